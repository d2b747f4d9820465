package tailscale_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/kit"
	"github.com/macfleet/macfleet/steps/stepstest"
	"github.com/macfleet/macfleet/steps/tailscale"
)

const step plan.StepID = "tailscale"

const (
	list        = "/Library/LaunchDaemons/com.tailscale.tailscaled.plist"
	daemonStamp = "201 23800000 1763000000"
	clientStamp = "202 16000000 1763000000"
)

// scene is a host that has joined, and what is changed of it.
type scene struct {
	spec             fleet.Spec
	view             plan.View
	version          string // of the receipts' digest
	daemon, client   string // stamps; empty: there is no such file
	bytes            string // of both programs where the stamp is not the receipt's
	plist, arguments string
	job, pid         int
	answers, folder  bool
	status           tailscale.Status
	prefs            tailscale.Prefs
	keys, resolvers  string
	unfinished       bool
	former           bool
	free             int64
}

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{spec: fleet.Spec{Tailscale: stepstest.Tailscale()}, job: 113, free: 400_000_000}
	for _, c := range s.find(t).Changes {
		if c.Command.Name == "tailscale-run" {
			s.plist = c.Command.Args[0]
		}
	}
	s.version, s.daemon, s.client, s.bytes = strings.Repeat("7a", 32), daemonStamp, clientStamp, "cd"
	s.arguments = "--state=/Library/Tailscale/tailscaled.state --socket=/var/run/tailscaled.socket --port=41641"
	s.job, s.pid, s.answers, s.folder = 0, 777, true, true
	if err := json.Unmarshal([]byte(stepstest.Status(stepstest.Name)), &s.status); err != nil {
		t.Fatal(err)
	}
	s.prefs = tailscale.Prefs{ControlURL: "https://controlplane.tailscale.com", WantRunning: true}
	s.view.Tailnet = &plan.TailnetSeen{Tailnet: inventory.Tailnet{Devices: []inventory.Device{stepstest.Device(stepstest.Name)},
		Keys: inventory.Present[[]inventory.DeviceKey](nil), Approval: inventory.Present(false), MagicDNS: inventory.Present(true)}}
	return s
}

// own is the host's device in the control server's list.
func (s *scene) own() *inventory.Device { return &s.view.Tailnet.Devices[0] }

// lists adds a device with the host's name.
func (s *scene) lists(d inventory.Device) {
	d.ID, d.Name, d.Approved = "nOther", stepstest.Name, true
	s.view.Tailnet.Devices = append(s.view.Tailnet.Devices, d)
}

// loggedOut is a daemon without a node key.
func (s *scene) loggedOut() {
	s.status.BackendState, s.status.HaveNodeKey, s.status.Self, s.status.TailscaleIPs = tailscale.NeedsLogin, false, tailscale.Self{}, nil
	s.prefs = tailscale.Prefs{CorpDNS: true, LoggedOut: true}
}

func (s *scene) answer() plan.Answer {
	var b strings.Builder
	part := func(body, head string) { b.WriteString(body + "\n== " + head + "\n") }
	receipt := func(name, stamp string) {
		part(fmt.Sprintf("current %s 1.102.5\nprevious -\nfile %s %s\ninstalled 1763000001\n", s.version, stamp, strings.Repeat("ab", 32)), "file 0 0:0:644 /usr/local/lib/macfleet/"+name+".receipt")
	}
	if s.version != "" {
		receipt("tailscale", daemonStamp)
		receipt("tailscale_client", clientStamp)
	}
	program := func(name, stamp, of string) {
		if stamp != "" {
			part("stamp "+stamp+"\n"+kit.Choose(stamp != of, "sha "+strings.Repeat(s.bytes, 32)+"\n", ""), name+" 0")
		}
	}
	program("daemon", s.daemon, daemonStamp)
	program("client", s.client, clientStamp)
	if s.plist != "" {
		part(s.plist, "file 0 0:0:644 "+list)
	}
	page := ""
	if s.job == 0 {
		page = "system/com.tailscale.tailscaled = {\n\tactive count = 1\n\tpath = " + list + "\n\ttype = LaunchDaemon\n\tstate = " + kit.Choose(s.pid != 0, "running", "spawn scheduled") +
			"\n\n\tprogram = /usr/local/bin/tailscaled\n\targuments = {\n\t\t/usr/local/bin/tailscaled\n\t\t" + strings.Join(strings.Fields(s.arguments), "\n\t\t") +
			"\n\t}\n\n\tstdout path = /var/log/tailscaled.log\n\tstderr path = /var/log/tailscaled.log\n\tminimum runtime = 10\n\truns = 1\n" +
			kit.Choose(s.pid != 0, fmt.Sprintf("\tpid = %d\n", s.pid), "") + "\tlast exit code = (never exited)\n}\n"
	}
	part(page, fmt.Sprintf("job %d", s.job))
	if s.job == 0 && s.answers && s.pid != 0 {
		status, _ := json.Marshal(s.status) // of texts and booleans
		prefs, _ := json.Marshal(s.prefs)
		part(string(status), "status 0")
		part(string(prefs), "prefs 0")
	}
	if s.folder {
		part("", "folder 0")
	}
	part(s.keys, "keys 0")
	part(s.resolvers, "resolvers 0")
	if s.unfinished {
		part("", "unfinished 0")
	}
	if s.former {
		part("", "former 0")
	}
	part("", "kept 0")
	part(fmt.Sprintf("/dev/disk3s1s1 482797652 14845348 %d 4%% 404475 4294562804 0%% /\n", s.free), "space 0")
	part("", "end")
	return plan.Answer{Stdout: b.String()}
}

func (s *scene) find(t *testing.T) plan.Finding {
	t.Helper()
	s.view.Host, s.view.Root = stepstest.Host(s.spec), true
	if s.view.Tailnet == nil {
		s.view.Tailnet = &plan.TailnetSeen{Tailnet: inventory.Tailnet{Keys: inventory.Present[[]inventory.DeviceKey](nil)}}
	}
	id := "tailscale.state"
	if s.spec.Tailscale == nil {
		id = "tailscale.traces"
	}
	s.view.Facts = plan.Facts{id: inventory.Present(s.answer())}
	f := stepstest.StepOf(t, step, s.view.Host).Diff(s.view)
	stepstest.Sound(t, step, s.view, f)
	return f
}

// brief shows changes as code and script or verb, with their modes; then what refuses them.
func brief(f plan.Finding) string {
	var out []string
	for _, c := range f.Changes {
		what := strings.TrimPrefix(c.Command.Name, "tailscale-")
		switch {
		case c.Device != nil:
			what = string(c.Device.Verb) + " " + c.Device.Device.ID + c.Device.Key
		case what == "run":
			what += " " + strings.TrimSpace(c.Command.Args[1]+" "+c.Command.Args[2])
		case what == "install":
			what = strings.TrimSpace(what + " " + c.Command.Args[4])
		case what == "join":
			what = strings.TrimSpace(what + " " + c.Command.Args[2])
		}
		out = append(out, c.Reason.Code.String()+": "+what)
	}
	if f.Refused != nil {
		out = append(out, "refused "+f.Refused.Code.String())
	}
	for _, w := range f.Warnings {
		out = append(out, "warns "+w.Code.String())
	}
	for _, u := range f.Unread {
		out = append(out, "unread "+u.Probe)
	}
	return strings.Join(out, "\n")
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
		"touched, the same bytes": {func(s *scene) { s.daemon, s.bytes = "9 9 9", "ab" }, ""},
		"nothing": {func(s *scene) { *s = scene{spec: s.spec, free: s.free, job: 113} },
			"tailscale-missing: install\ntailscale-missing: run load\ntailscale-not-joined: join"},
		"the client is missing": {func(s *scene) { s.client = "" }, "tailscale-missing: install client"},
		"the client is edited":  {func(s *scene) { s.client = "9 9 9" }, "tailscale-edited: install client"},
		"the daemon is missing": {func(s *scene) { s.daemon = "" }, "tailscale-missing: install\ntailscale-missing: run load"},
		"the daemon is edited":  {func(s *scene) { s.daemon = "9 9 9" }, "tailscale-edited: install\ntailscale-edited: run load"},
		"another version": {func(s *scene) { s.version, s.status.Version = strings.Repeat("01", 32), "1.100.0" },
			"tailscale-outdated: install\ntailscale-outdated: run load"},
		"another version, over the tailnet": {func(s *scene) { s.version, s.view.Path = strings.Repeat("01", 32), "tailscale" },
			"tailscale-outdated: install\ntailscale-outdated: run load guarded"},
		"another port, over the tailnet":    {func(s *scene) { s.spec.Tailscale.Port, s.view.Path = new(443), "tailscale" }, "tailscale-job-edited: run load guarded"},
		"an old process":                    {func(s *scene) { s.status.Version = "1.100.0" }, "tailscaled-outdated: run ask"},
		"a job that was not started again":  {func(s *scene) { s.unfinished = true }, "unfinished: run ask"},
		"files from before a roll":          {func(s *scene) { s.former = true }, "unfinished: tidy"},
		"an earlier run":                    {func(s *scene) { s.view.Pending = true }, "unfinished: tidy"},
		"not loaded":                        {func(s *scene) { s.job, s.view.Verified = 113, true }, "tailscaled-stopped: run load"},
		"stopped, and its device is gone":   {func(s *scene) { s.job, s.view.Verified, s.view.Tailnet.Devices = 113, true, nil }, "tailscaled-stopped: run load\ndevice-deleted: join fresh"},
		"no process":                        {func(s *scene) { s.pid, s.view.Verified = 0, true }, "tailscaled-stopped: run ask"},
		"no state folder":                   {func(s *scene) { s.pid, s.folder, s.own().Connected = 0, false, false }, "missing-state-folder: run ask\ntailscale-not-joined: delete nSample1CNTRL\ntailscale-not-joined: join fresh"},
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
		"not approved by an unlisted server":        {func(s *scene) { s.status.BackendState, s.view.Tailnet.Unlisted = tailscale.NeedsMachineAuth, true }, "refused machine-not-approved"},
		"a number behind its name, unlisted":        {func(s *scene) { s.status.Self.DNSName, s.view.Tailnet.Unlisted = stepstest.Name+"-1.acme.dev.", true }, ""},
		"a stale device": {func(s *scene) { s.own().Name = stepstest.Name + "-1"; s.lists(tagged) },
			"hostname-taken: delete " + other + "\nhostname-taken: rename nSample1CNTRL"},
		"a stale device with another tag": {func(s *scene) {
			s.own().Name = stepstest.Name + "-1"
			s.lists(inventory.Device{Tags: []string{"tag:other"}})
		}, "refused hostname-taken"},
		"a stale device without tags":      {func(s *scene) { s.own().Name = stepstest.Name + "-1"; s.lists(inventory.Device{}) }, "refused hostname-taken"},
		"a connected device with its name": {func(s *scene) { s.loggedOut(); s.lists(inventory.Device{Connected: true, Tags: tagged.Tags}) }, "refused hostname-taken"},
		"expired":                          {func(s *scene) { s.status.BackendState, s.status.Self.Expired = tailscale.NeedsLogin, true }, "key-expired: stop\nkey-expired: delete nSample1CNTRL\nkey-expired: join fresh"},
		"deleted":                          {func(s *scene) { s.view.Tailnet.Devices = nil }, "device-deleted: stop\ndevice-deleted: join fresh"},
		"another address in the list":      {func(s *scene) { s.own().Addresses = []string{"100.101.0.8"} }, "device-deleted: stop\ndevice-deleted: delete nSample1CNTRL\ndevice-deleted: join fresh"},
		"a key in its memory": {func(s *scene) {
			s.loggedOut()
			s.prefs.LoggedOut, s.prefs.WantRunning, s.view.Tailnet.Devices = false, true, nil
		}, "join-retrying: stop\njoin-retrying: join fresh"},
		"a shared node key":      {func(s *scene) { s.own().Shared = true }, "refused node-key-shared"},
		"other tags":             {func(s *scene) { s.own().Tags = []string{"tag:edited"} }, "tags-edited: retag nSample1CNTRL"},
		"a key that expires":     {func(s *scene) { s.own().KeyExpires = time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC) }, "key-expires: keep nSample1CNTRL"},
		"other settings":         {func(s *scene) { s.prefs.CorpDNS = true }, "tailscale-settings: set"},
		"another control server": {func(s *scene) { s.prefs.ControlURL = "https://vpn.acme.dev" }, "other-control-server: stop\nother-control-server: join fresh"},
		"a file with a key":      {func(s *scene) { s.keys = "/etc/macfleet/.tailscale-key.x\n" }, "tailnet-key-file: tidy"},
		"a resolver":             {func(s *scene) { s.resolvers = "/etc/resolver/search.tailscale\n" }, "resolver-leftover: tidy"},
		"a key that still works": {func(s *scene) {
			s.view.Tailnet.Keys = inventory.Present([]inventory.DeviceKey{{ID: "kLeft"}})
		}, "tailnet-key-left: revoke-key kLeft"},
		"a full disk":        {func(s *scene) { s.daemon, s.free = "", 1000 }, "tailscale-missing: install\ntailscale-missing: run load\nrefused disk-full"},
		"a full disk, as is": {func(s *scene) { s.free = 1000 }, ""},
		"MagicDNS is off":    {func(s *scene) { s.view.Tailnet.MagicDNS = inventory.Present(false) }, "warns magicdns-off"},
		"no list":            {func(s *scene) { s.view.Tailnet.Trouble = &plan.Trouble{} }, "unread " + plan.TailnetList},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			tc.seen(s)
			stepstest.Expect(t, name, tc.want, brief(s.find(t)))
		})
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
		"a person's own":        {func(s *scene) { s.version = "" }, ""},
		"interrupted, stopped":  {func(s *scene) { s.job, s.view.Pending, s.own().Connected = 113, true, false }, all},
		"interrupted, stopping": {func(s *scene) { s.job, s.view.Pending = 113, true }, "tailscale-not-wanted: stop\ntailscale-not-wanted: remove\nrefused hostname-taken"},
		"a stale device":        {func(s *scene) { s.lists(inventory.Device{Tags: []string{"tag:macmini"}}) }, strings.Replace(all, "\ntailscale-not-wanted: remove", "\ntailscale-not-wanted: delete nOther\ntailscale-not-wanted: remove", 1)},
		"another's device":      {func(s *scene) { s.lists(inventory.Device{Tags: []string{"tag:other"}}) }, all},
		"no credentials":        {func(s *scene) { s.view.Tailnet.Unlisted = true }, "tailscale-not-wanted: stop\ntailscale-not-wanted: remove\nwarns device-stays"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			s.spec = s.spec.WithoutTailnet()
			tc.seen(s)
			stepstest.Expect(t, name, tc.want, brief(s.find(t)))
		})
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
