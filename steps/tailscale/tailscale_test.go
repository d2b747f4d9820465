package tailscale_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/maintest"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/kit"
	"github.com/macfleet/macfleet/steps/stepstest"
	"github.com/macfleet/macfleet/steps/tailscale"
)

func TestMain(m *testing.M) { maintest.Main(m) }

const step plan.StepID = "tailscale"

const list = "/Library/LaunchDaemons/com.tailscale.tailscaled.plist"

// scene is a host that has joined, and what is changed of it.
type scene struct {
	stepstest.TailscaleMac
	spec   fleet.Spec
	view   plan.View
	status tailscale.Status
	prefs  tailscale.Prefs
}

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{TailscaleMac: stepstest.JoinedTailscale(stepstest.Name), spec: fleet.Spec{Tailscale: stepstest.Tailscale()}}
	s.Version, s.SHA = "1.102.5", strings.Repeat("cd", 32)
	if err := errors.Join(json.Unmarshal([]byte(s.Status), &s.status), json.Unmarshal([]byte(s.Prefs), &s.prefs)); err != nil {
		t.Fatal(err)
	}
	s.view.Peers = []plan.HostPeer{{Peer: inventory.TailnetService, Seen: stepstest.TailnetOf(stepstest.Name, plan.Facts{"tailscale.state": inventory.Present(s.Answer())})}}
	return s
}

// older has the programs of an older version.
func (s *scene) older() { s.Digest = strings.Repeat("01", 32) }

// own is the host's device in the control server's list.
func (s *scene) own() *inventory.Device { return &s.view.Peers[0].Seen.Tailnet.Devices[0] }

// lists adds a device with the host's name.
func (s *scene) lists(d inventory.Device) {
	d.ID, d.Name, d.Approved = "nOther", stepstest.Name, true
	s.view.Peers[0].Seen.Tailnet.Devices = append(s.view.Peers[0].Seen.Tailnet.Devices, d)
}

// loggedOut is a daemon without a node key.
func (s *scene) loggedOut() {
	s.status.BackendState, s.status.HaveNodeKey, s.status.Self, s.status.TailscaleIPs = tailscale.NeedsLogin, false, tailscale.Self{}, nil
	s.prefs = tailscale.Prefs{CorpDNS: true, LoggedOut: true}
}

func (s *scene) find(t *testing.T) plan.Finding {
	t.Helper()
	s.view.Host, s.view.Root = stepstest.Host(s.spec), true
	id := "tailscale.state"
	if s.spec.Tailscale == nil {
		id = "tailscale.traces"
	}
	s.Status, s.Prefs = "", ""
	if strings.Contains(s.Process, "running") {
		status, _ := json.Marshal(s.status) // of texts and booleans
		prefs, _ := json.Marshal(s.prefs)
		s.Status, s.Prefs = string(status), string(prefs)
	}
	s.view.Facts = plan.Facts{id: inventory.Present(s.Answer())}
	return stepstest.Find(t, step, s.view)
}

// brief shows changes as code and script or verb, with their modes; then what refuses them.
func brief(f plan.Finding) string {
	return strings.Join(stepstest.Lines(f, func(c plan.Change) string {
		what := strings.TrimPrefix(c.Command.Name, "tailscale-")
		switch {
		case c.Peer != nil:
			what = string(c.Peer.Verb) + " " + c.Peer.Entry.ID + c.Peer.Key
		case what == "run":
			what += " " + strings.TrimSpace(c.Command.Args[1]+" "+c.Command.Args[2])
		case what == "install":
			what = strings.TrimSpace(what + " " + c.Command.Args[4])
		case what == "join":
			what = strings.TrimSpace(what + " " + c.Command.Args[2])
		}
		return c.Reason.Code.String() + ": " + what
	}), "\n")
}

// TestFindings: what was seen of a host's tailscaled and of its device, and what follows.
func TestFindings(t *testing.T) {
	t.Parallel()
	const other = "nOther"
	tagged := inventory.Device{Tags: []string{"tag:macmini"}}
	for name, tc := range map[string]struct {
		seen func(*scene)
		want string
	}{
		"in sync":                 {func(*scene) {}, ""},
		"touched, the same bytes": {func(s *scene) { s.Daemon, s.SHA = "9 9 9", strings.Repeat("d1", 32) }, ""},
		"nothing": {func(s *scene) {
			s.TailscaleMac, s.view.Peers[0].Seen.Tailnet.Devices = stepstest.TailscaleMac{FreeKB: s.FreeKB}, nil
		},
			"tailscale-missing: install\ntailscale-missing: run load\ntailscale-not-joined: join"},
		"the client is missing": {func(s *scene) { s.Client = "" }, "tailscale-missing: install client"},
		"the client is edited":  {func(s *scene) { s.Client = "9 9 9" }, "tailscale-edited: install client"},
		"the daemon is missing": {func(s *scene) { s.Daemon = "" }, "tailscale-missing: install\ntailscale-missing: run load"},
		"the daemon is edited":  {func(s *scene) { s.Daemon = "9 9 9" }, "tailscale-edited: install\ntailscale-edited: run load"},
		"another version":       {func(s *scene) { s.older(); s.status.Version = "1.100.0" }, "tailscale-outdated: install\ntailscale-outdated: run load"},
		"another version, over the tailnet": {func(s *scene) { s.older(); s.view.Path = "tailscale" },
			"tailscale-outdated: install\ntailscale-outdated: run load guarded"},
		"another port, over the tailnet":    {func(s *scene) { s.spec.Tailscale.Port, s.view.Path = new(443), "tailscale" }, "tailscale-job-edited: run load guarded"},
		"an old process":                    {func(s *scene) { s.status.Version = "1.100.0" }, "tailscaled-outdated: run ask"},
		"a job that was not started again":  {func(s *scene) { s.Unfinished = true }, "unfinished: run ask"},
		"files from before a roll":          {func(s *scene) { s.Former = true }, "unfinished: tidy"},
		"an earlier run":                    {func(s *scene) { s.view.Pending = true }, "unfinished: tidy"},
		"not loaded":                        {func(s *scene) { s.Process, s.view.Verified = "", true }, "tailscaled-stopped: run load"},
		"stopped, and its device is gone":   {func(s *scene) { s.Process, s.view.Verified, s.view.Peers[0].Seen.Tailnet.Devices = "", true, nil }, "tailscaled-stopped: run load\ndevice-deleted: join fresh"},
		"no process":                        {func(s *scene) { s.Process, s.view.Verified = stepstest.DaemonWaits, true }, "tailscaled-stopped: run ask"},
		"no state folder":                   {func(s *scene) { s.Process, s.Folder, s.own().Connected = stepstest.DaemonWaits, false, false }, "missing-state-folder: run ask\ntailscale-not-joined: delete nSample1CNTRL\ntailscale-not-joined: join fresh"},
		"just started":                      {func(s *scene) { s.status.BackendState = tailscale.NoState }, "refused control-unreachable"},
		"its control server is not reached": {func(s *scene) { s.status.BackendState = tailscale.Starting }, "refused control-unreachable"},
		"logged out":                        {func(s *scene) { s.loggedOut(); s.view.Verified, s.own().Connected = true, false }, "tailscale-logged-out: stop\ntailscale-logged-out: delete nSample1CNTRL\ntailscale-logged-out: join fresh"},
		"logged out, over the tailnet":      {func(s *scene) { s.loggedOut(); s.view.Path = "tailscale" }, "refused tailnet-in-use"},
		"down":                              {func(s *scene) { s.status.BackendState = tailscale.Stopped }, "tailscale-down: up"},
		"down, with another name":           {func(s *scene) { s.status.BackendState, s.own().Name = tailscale.Stopped, "renamed" }, "tailscale-down: up\ndevice-renamed: rename nSample1CNTRL"},
		"down, with a number behind its name": {func(s *scene) {
			s.status.BackendState, s.own().Name = tailscale.Stopped, stepstest.Name+"-1"
			s.lists(tagged)
		}, "tailscale-down: up\nhostname-taken: delete " + other + "\nhostname-taken: rename nSample1CNTRL"},
		"not approved":                              {func(s *scene) { s.status.BackendState, s.own().Approved = tailscale.NeedsMachineAuth, false }, "machine-not-approved: approve nSample1CNTRL\nmachine-not-approved: wait"},
		"not approved, and the daemon runs":         {func(s *scene) { s.own().Approved = false }, "machine-not-approved: approve nSample1CNTRL"},
		"approved, and the daemon does not know it": {func(s *scene) { s.status.BackendState = tailscale.NeedsMachineAuth }, "machine-not-approved: wait"},
		"not approved by an unlisted server": {func(s *scene) {
			s.status.BackendState, s.view.Peers[0].Seen.Unlisted = tailscale.NeedsMachineAuth, true
		}, "refused machine-not-approved"},
		"a number behind its name, unlisted": {func(s *scene) {
			s.status.Self.DNSName, s.view.Peers[0].Seen.Unlisted = stepstest.Name+"-1.acme.dev.", true
		}, ""},
		"a stale device": {func(s *scene) { s.own().Name = stepstest.Name + "-1"; s.lists(tagged) },
			"hostname-taken: delete " + other + "\nhostname-taken: rename nSample1CNTRL"},
		"a stale device with another tag": {func(s *scene) {
			s.own().Name = stepstest.Name + "-1"
			s.lists(inventory.Device{Tags: []string{"tag:other"}})
		}, "refused hostname-taken"},
		"a stale device without tags":      {func(s *scene) { s.own().Name = stepstest.Name + "-1"; s.lists(inventory.Device{}) }, "refused hostname-taken"},
		"a connected device with its name": {func(s *scene) { s.loggedOut(); s.lists(inventory.Device{Connected: true, Tags: tagged.Tags}) }, "refused hostname-taken"},
		"expired":                          {func(s *scene) { s.status.BackendState, s.status.Self.Expired = tailscale.NeedsLogin, true }, "key-expired: stop\nkey-expired: delete nSample1CNTRL\nkey-expired: join fresh"},
		"deleted":                          {func(s *scene) { s.view.Peers[0].Seen.Tailnet.Devices = nil }, "device-deleted: stop\ndevice-deleted: join fresh"},
		"another address in the list":      {func(s *scene) { s.own().Addresses = []string{"100.101.0.8"} }, "device-deleted: stop\ndevice-deleted: delete nSample1CNTRL\ndevice-deleted: join fresh"},
		"a key in its memory": {func(s *scene) {
			s.loggedOut()
			s.prefs.LoggedOut, s.prefs.WantRunning, s.view.Peers[0].Seen.Tailnet.Devices = false, true, nil
		}, "join-retrying: stop\njoin-retrying: join fresh"},
		"a shared node key":      {func(s *scene) { s.own().Shared = true }, "refused node-key-shared"},
		"other tags":             {func(s *scene) { s.own().Tags = []string{"tag:edited"} }, "tags-edited: retag nSample1CNTRL"},
		"a key that expires":     {func(s *scene) { s.own().KeyExpires = time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC) }, "key-expires: keep nSample1CNTRL"},
		"other settings":         {func(s *scene) { s.prefs.CorpDNS = true }, "tailscale-settings: set"},
		"another control server": {func(s *scene) { s.prefs.ControlURL = "https://vpn.acme.dev" }, "other-control-server: stop\nother-control-server: join fresh"},
		"a file with a key":      {func(s *scene) { s.Keys = "/etc/macfleet/.tailscale-key.x\n" }, "tailnet-key-file: tidy"},
		"a resolver":             {func(s *scene) { s.Resolvers = "/etc/resolver/search.tailscale\n" }, "resolver-leftover: tidy"},
		"a key that still works": {func(s *scene) {
			s.view.Peers[0].Seen.Tailnet.Keys = inventory.Present([]inventory.DeviceKey{{ID: "kLeft"}})
		}, "tailnet-key-left: revoke-key kLeft"},
		"a full disk":        {func(s *scene) { s.Daemon, s.FreeKB, s.Kept = "", 1000, "" }, "tailscale-missing: install\ntailscale-missing: run load\nrefused disk-full"},
		"a full disk, as is": {func(s *scene) { s.FreeKB = 1000 }, ""},
		"MagicDNS is off":    {func(s *scene) { s.view.Peers[0].Seen.Tailnet.MagicDNS = inventory.Present(false) }, "warns magicdns-off"},
		"no list":            {func(s *scene) { s.view.Peers[0].Seen.Trouble = &plan.Trouble{} }, "unread it was not used ()"},
	} {
		s := newScene(t)
		tc.seen(s)
		stepstest.Expect(t, name, tc.want, brief(s.find(t)))
	}
}

// TestLeaving: the daemon stops first, then its device goes, then its files. Devices of others stay.
func TestLeaving(t *testing.T) {
	t.Parallel()
	const all = "tailscale-not-wanted: stop\ntailscale-not-wanted: delete nSample1CNTRL\ntailscale-not-wanted: remove"
	for name, tc := range map[string]struct {
		seen func(*scene)
		want string
	}{
		"joined":                {func(*scene) {}, all},
		"over the tailnet":      {func(s *scene) { s.view.Path = "tailscale" }, "tailscale-not-wanted: stop\ntailscale-not-wanted: remove\nrefused tailnet-in-use"},
		"a person's own":        {func(s *scene) { s.Digest = "" }, ""},
		"interrupted, stopped":  {func(s *scene) { s.Process, s.view.Pending, s.own().Connected = "", true, false }, all},
		"interrupted, stopping": {func(s *scene) { s.Process, s.view.Pending = "", true }, "tailscale-not-wanted: stop\ntailscale-not-wanted: remove\nrefused hostname-taken"},
		"a stale device":        {func(s *scene) { s.lists(inventory.Device{Tags: []string{"tag:macmini"}}) }, strings.Replace(all, "\ntailscale-not-wanted: remove", "\ntailscale-not-wanted: delete nOther\ntailscale-not-wanted: remove", 1)},
		"another's device":      {func(s *scene) { s.lists(inventory.Device{Tags: []string{"tag:other"}}) }, all},
		"no credentials":        {func(s *scene) { s.view.Peers[0].Seen.Unlisted = true }, "tailscale-not-wanted: stop\ntailscale-not-wanted: remove\nwarns device-stays"},
	} {
		s := newScene(t)
		s.spec = s.spec.WithoutTailnet()
		tc.seen(s)
		stepstest.Expect(t, name, tc.want, brief(s.find(t)))
	}
}

// TestRestart: macfleet restart restarts the daemon; over the tailnet with an undo.
func TestRestart(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.find(t)
	r, ok := stepstest.StepOf(t, step, s.view.Host).(kit.Restarter)
	if !ok {
		t.Fatal("it cannot be restarted")
	}
	if c := r.Restart(s.view); c.Command.Name != "tailscale-run" || c.Command.Args[1] != "ask" || c.Guard != nil || len(c.Fields) == 0 {
		t.Errorf("the change is %+v", c)
	}
	s.view.Path = "tailscale"
	if c := r.Restart(s.view); c.Guard == nil || c.Guard.Restore == nil {
		t.Errorf("over the tailnet the change is %+v", c)
	}
}
