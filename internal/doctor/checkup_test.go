package doctor_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	_ "github.com/macfleet/macfleet/hosts" // declares its codes
	"github.com/macfleet/macfleet/internal/doctor"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/plan/lists"
	"github.com/macfleet/macfleet/plan/plantest"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// examined returns the check list of a server as "name state", and the checks by name.
func (w *world) examined(t *testing.T, n int) (states string, by map[string]doctor.Check) {
	t.Helper()
	for id, seen := range w.hosts {
		if _, told := seen.Facts["checkup.clock"]; !told && seen.Facts != nil {
			seen.Facts["checkup.clock"] = said(fmt.Sprintln(noon.Unix() + 2))
		}
		seen.At = noon
		w.snap.Hosts[id] = seen
	}
	var p *plan.Plan
	if plan.SubjectOf(w.cfg, w.snap, serverID(n)).Member {
		sel, err := plan.SelectHost(w.cfg, w.snap, serverID(n))
		if err != nil {
			t.Fatal(err)
		}
		p = plan.Compute(w.cfg, w.steps, w.snap, sel)
	}
	c := doctor.Examine(w.cfg, w.steps, w.snap, serverID(n), p)
	by = make(map[string]doctor.Check)
	var out []string
	for _, check := range c.Checks {
		if check.State != doctor.OK {
			out = append(out, check.Name+" "+string(check.State))
		}
		if (check.State == doctor.Problem) != (check.State != doctor.Unknown && check.Remedy != "") {
			t.Errorf("%s is %s with the remedy %q", check.Name, check.State, check.Remedy)
		}
		if check.Text == "" {
			t.Errorf("%s says nothing", check.Name)
		}
		by[check.Name] = check
	}
	if c.Healthy != (len(out) == 0) || c.Count(doctor.OK)+len(out) != len(c.Checks) {
		t.Errorf("healthy %t with %v", c.Healthy, out)
	}
	return strings.Join(out, ", "), by
}

// member examines a member of a fleet that differs in something.
func member(t *testing.T, edit func(*world, *plan.HostSeen)) (states string, by map[string]doctor.Check) {
	t.Helper()
	w := newWorld()
	w.member(1)
	w.change(1, func(s *plan.HostSeen) { edit(w, s) })
	return w.examined(t, 1)
}

// troubled is a host whose conversation failed.
func troubled(code string) func(*world, *plan.HostSeen) {
	return func(_ *world, s *plan.HostSeen) {
		*s = plan.HostSeen{Trouble: &plan.Trouble{Code: plantest.Code(code), Text: "it went wrong", Remedy: "do something"}}
	}
}

// unread is a host that did not give an answer of the step alpha.
func unread(why string) func(*world, *plan.HostSeen) {
	return func(_ *world, s *plan.HostSeen) { s.Facts["alpha.get"] = inventory.Unread[plan.Answer](why) }
}

func TestExamine(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		edit   func(*plan.HostSeen)
		states string
	}{
		{"healthy", func(*plan.HostSeen) {}, ""},
		{"no root", func(s *plan.HostSeen) { s.Root = false }, "root problem"},
		{"another macOS", func(s *plan.HostSeen) { s.OSVersion = inventory.Present("15.7") }, "macos problem"},
		{"a macOS of the future", func(s *plan.HostSeen) { s.OSVersion = inventory.Present("40.1") }, "macos unknown"},
		{"no version", func(s *plan.HostSeen) { s.OSVersion = inventory.Unread[string]("exit 1") }, "macos unknown"},
		{"no serial", func(s *plan.HostSeen) { s.Serial = inventory.Unread[string]("exit 1") }, "serial unknown"},
		{"another machine", func(s *plan.HostSeen) { s.Serial = inventory.Present("C07OTHER") }, "marker problem, " + notCompared},
		{"no marker", func(s *plan.HostSeen) { s.Marker = inventory.Absent[plan.Marker]() }, "marker problem"},
		{"marker unread", func(s *plan.HostSeen) { s.Marker = inventory.Unread[plan.Marker]("needs root") }, "marker problem, " + notCompared},
		{"foreign marker", func(s *plan.HostSeen) {
			m, _ := s.Marker.Get()
			m.Configuration = "globex"
			s.Marker = inventory.Present(m)
		}, "marker problem, " + notCompared},
		{"claim unread", func(s *plan.HostSeen) { s.Claim = inventory.Unread[plan.Claim]("not JSON") }, "claim problem"},
		{"clock", func(s *plan.HostSeen) { s.Facts["checkup.clock"] = said(fmt.Sprintln(noon.Add(-time.Hour).Unix())) }, "clock problem"},
		{"clock unread", func(s *plan.HostSeen) { s.Facts["checkup.clock"] = said("soon\n") }, "clock unknown"},
		{"answer unread", func(s *plan.HostSeen) { s.Facts["alpha.get"] = inventory.Unread[plan.Answer]("needs root") }, "step alpha unknown"},
		{"a difference", func(s *plan.HostSeen) { s.Facts["alpha.get"] = said("bad") }, "step alpha problem"},
	} {
		if states, by := member(t, func(_ *world, s *plan.HostSeen) { c.edit(s) }); states != c.states {
			t.Errorf("%s: %s, want %s\n%+v", c.name, states, c.states, by)
		}
	}
}

// notCompared is the state of the steps of a host that must not be touched.
const notCompared = "step alpha unknown, step beta unknown"

// nothing is the state of a host about which nothing is known.
const nothing = "connection unknown, ssh unknown, host key unknown, authentication unknown, answers unknown"

// TestExamineTroubles takes every trouble that a conversation can end with: ok is only what was checked before it.
func TestExamineTroubles(t *testing.T) {
	t.Parallel()
	const login = "host key problem, authentication unknown, answers unknown"
	const away = "connection problem, ssh unknown, host key unknown, authentication unknown, answers unknown"
	want := map[string]string{
		"unreachable": away, "ssh-config": away, "jump-failed": away, "jump-lost": away,
		"no-ssh-answer":  "ssh problem, host key unknown, authentication unknown, answers unknown",
		"wrong-host-key": login, "host-key-unknown": login,
		"damaged-pin":       "connection unknown, ssh unknown, " + login,
		"key-not-installed": "authentication problem, answers unknown",
		"no-key":            "connection unknown, ssh unknown, host key unknown, authentication problem, answers unknown",
		"connection-lost":   "answers problem",
	}
	// These come after an observation, so they end none. The last two are of a later version, and none.
	for _, code := range []string{"newer-run", "host-locked", "run-not-noted", "new-key-refused", "previous-key-needed", "rolled-back", "undo-armed", "cut-off",
		"no-gui-session", "job-running", "unknown-host-key", "known-hosts", "disk-full", "download-failed", "wrong-artifact", "jump-host-refused", ""} {
		want[code] = nothing
	}
	for _, c := range plan.Codes() {
		if _, told := want[c.String()]; !told && strings.HasPrefix(c.Home(), "hosts/") {
			t.Errorf("what does a checkup say of %s?", c)
		}
	}
	for code, states := range want {
		got, by := member(t, troubled(code))
		if got != states {
			t.Errorf("%q: %s\nwant %s", code, got, states)
		}
		told := 0
		for _, c := range by {
			if c.Text == "it went wrong" && c.Remedy == "do something" {
				told++
			}
			if c.State == doctor.OK && strings.Contains(c.Text, "192.0.2.") && c.Name != "inventory" {
				t.Errorf("%q: the address is unknown, and yet it is shown: %+v", code, c)
			}
		}
		if told != 1 {
			t.Errorf("%q: the trouble is shown %d times: %+v", code, told, by)
		}
	}
}

// TestExamineWords checks sentences: each must be true and say what to type.
func TestExamineWords(t *testing.T) {
	t.Parallel()
	name := newWorld().name(1)
	pinned := func(code string) func(*world, *plan.HostSeen) {
		return func(w *world, s *plan.HostSeen) { w.pin(1); troubled(code)(w, s) }
	}
	path := func(path string) func(*world, *plan.HostSeen) {
		return func(_ *world, s *plan.HostSeen) { s.Path = path }
	}
	for _, c := range []struct {
		name, check, text, remedy string
		edit                      func(*world, *plan.HostSeen)
	}{
		{"the tailnet", "connection", "the host answers (path: tailscale)", "", path("tailscale")},
		{"a HostName", "connection", "the host answers (path: public)", "", path("public")},
		{"a jump host", "connection", "the host answers (path: public through bastion)", "", path("public through bastion")},
		{"refused, no pin", "host key", "none pinned yet", "", troubled("key-not-installed")},
		{"refused, pinned", "host key", "the pinned one", "", pinned("key-not-installed")},
		{"behind the connection", "answers", "not checked: there is no connection", "", troubled("unreachable")},
		{"behind ssh", "answers", "not checked: no ssh server answers", "", troubled("no-ssh-answer")},
		{"before the host key", "connection", "not checked: the host key is not trusted", "", troubled("damaged-pin")},
		{"without a key", "connection", "not checked: login failed", "", troubled("no-key")},
		{"clock", "clock", "less than a minute off", "", func(*world, *plan.HostSeen) {}},
		{"another macOS", "macos", "15.7 (Sequoia); fleet macos wants Tahoe", "macfleet replace acme-prod-macos-m2-00001, or restore the type or os of the group",
			func(_ *world, s *plan.HostSeen) { s.OSVersion = inventory.Present("15.7") }},
		{"root", "step alpha", "not compared: alpha.get: needs root", plan.MissingSudo().Remedy, unread("needs root")},
		{"hung", "step alpha", "not compared: alpha.get: timed out and was stopped",
			"run the command again; if it fails again, raise question in the timeouts of the ssh block",
			unread(plan.ProbeTimedOut)},
		{"cut off", "step alpha", "not compared: alpha.get: the answer was truncated", "run the command again; if it fails again, log in with ssh and see what the login shell prints", unread(plan.AnswerTruncated)},
		{"something else", "step alpha", "not compared: alpha.get: strange", "macfleet doctor " + name + " --record FILE, and report it with the file", unread("strange")},
	} {
		_, by := member(t, c.edit)
		if got := by[c.check]; got.Text != c.text || got.Remedy != c.remedy {
			t.Errorf("%s: %q, do %q\nwant %q, do %q", c.name, got.Text, got.Remedy, c.text, c.remedy)
		}
	}
}

// TestUnreadReasons requires a separate remedy for each reason that package hosts gives for a missing answer.
func TestUnreadReasons(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../hosts/frame.go")
	if err != nil {
		t.Fatal(err)
	}
	reasons := []string{plan.NeedsRoot, plan.ProbeTimedOut, plan.AnswerTruncated}
	for _, m := range regexp.MustCompile(`Unread\[plan\.Answer\]\("([^"]+)"\)`).FindAllStringSubmatch(string(text), -1) {
		reasons = append(reasons, m[1])
	}
	for _, why := range reasons {
		if _, by := member(t, unread(why)); strings.Contains(by["step alpha"].Remedy, "--record FILE") {
			t.Errorf("%s: %s", why, by["step alpha"].Remedy)
		}
	}
}

// peerStep makes its host known to a service.
type peerStep struct{ plan.Peer }

func (peerStep) ID() plan.StepID                { return "peer" }
func (peerStep) Wanted() string                 { return "" }
func (peerStep) Probes() []plan.Probe           { return nil }
func (peerStep) Diff(plan.View) plan.Finding    { return plan.Finding{} }
func (peerStep) Service() plan.Service          { return plan.Service{ID: "peer", Noun: "agent"} }
func (peerStep) Realm() (realm string, ok bool) { return "https://ci.acme.dev", true }

func (peerStep) Said(plan.Facts) (said lists.Said, ok bool) { return said, false }

// TestExamineAgent: what the CI service lists of a host, or why it lists nothing, with one fix.
func TestExamineAgent(t *testing.T) {
	t.Parallel()
	trouble := &plan.Trouble{Code: plan.CodeRunnerRight, Text: "no right", Remedy: "grant it"}
	for name, c := range map[string]struct {
		service plan.PeerSeen
		entry   *inventory.Entry
		fenced  bool
		want    string
	}{
		"none":     {want: "problem: https://ci.acme.dev lists no agent of the host, fix: macfleet apply"},
		"unread":   {service: plan.PeerSeen{Trouble: trouble}, want: "unknown: no right, fix: grant it"},
		"unlisted": {service: plan.PeerSeen{Unlisted: true}, want: "ok: not checked: this control server's entries cannot be listed"},
		"idle": {entry: &inventory.Entry{ID: "21", Name: "mini", Version: "2.337.0", Online: true, Tags: []string{"tart", "macos"}},
			want: "ok: mini (id 21), 2.337.0, online, idle, tags tart, macos"},
		"fenced": {entry: &inventory.Entry{ID: "21", Name: "mini", Busy: true, Addresses: []string{"100.64.0.7"}}, fenced: true,
			want: "ok: mini (id 21), address 100.64.0.7, offline, busy, fenced, tags none"},
	} {
		w := newWorld()
		w.member(1)
		w.change(1, func(s *plan.HostSeen) {
			if c.service.Trouble != nil {
				s.Facts["alpha.get"] = inventory.Unread[plan.Answer](plan.ServiceUnread + " (" + trouble.Code.String() + ")")
			}
		})
		w.snap.Hosts = w.hosts
		sel, err := plan.SelectHost(w.cfg, w.snap, serverID(1))
		if err != nil {
			t.Fatal(err)
		}
		steps := func(h fleet.Host) []plan.Step { return append(w.steps(h), peerStep{}) }
		p := plan.Compute(w.cfg, steps, w.snap, sel)
		p.Hosts[0].Peers = []plan.HostPeer{{Peer: "peer", Works: true, Realm: "https://ci.acme.dev", Seen: &c.service, Entry: c.entry, Fenced: c.fenced}}
		got := ""
		for _, check := range doctor.Examine(w.cfg, steps, w.snap, serverID(1), p).Checks {
			if check.Name == "agent" {
				got = string(check.State) + ": " + check.Text + given(check.Remedy)
			} else if check.Name == "step alpha" && check.Remedy != "" {
				t.Errorf("%s: the step has a separate fix: %s", name, check.Remedy)
			}
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func given(fix string) string {
	if fix == "" {
		return ""
	}
	return ", fix: " + fix
}

func TestExamineRoles(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.free(1)
	w.server(2, "somebody-elses")
	w.member(3)
	w.snap.Servers[2].Name = "acme-by-hand"
	w.pin(3)
	w.free(4)
	w.snap.Servers[3].Status = "reinstalling"
	w.free(5)
	w.change(5, func(s *plan.HostSeen) {
		s.Claim = inventory.Present(plan.Claim{Configuration: "globex", Environment: "prod", Name: "globex-1", ServerID: serverID(5)})
	})
	w.notReady(3)
	for n, want := range map[int]struct{ states, inventory, marker string }{
		1: {"", "in the pool", "without an owner"},
		2: {"", "in no pool and no fleet", "without an owner"},
		3: {"inventory problem, node problem", "its name at Scaleway is acme-by-hand", "verified: alpha, beta"},
		4: {"inventory problem", "status reinstalling", "without an owner"},
		5: {"claim problem", "in the pool", "without an owner"},
	} {
		states, by := w.examined(t, n)
		if states != want.states || !strings.Contains(by["inventory"].Text, want.inventory) || !strings.Contains(by["marker"].Text, want.marker) {
			t.Errorf("server %d: %s\n%+v", n, states, by)
		}
	}
	delete(w.hosts, serverID(1))
	delete(w.snap.Hosts, serverID(1))
	if states, _ := w.examined(t, 1); states != nothing {
		t.Errorf("a host that was not checked: %s", states)
	}
}

// TestExamineWithoutPlan: of a member of which no plan can be made nothing is called compared.
func TestExamineWithoutPlan(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.member(1)
	w.snap.Hosts[serverID(1)] = w.hosts[serverID(1)]
	c := doctor.Examine(w.cfg, w.steps, w.snap, serverID(1), nil)
	last := c.Checks[len(c.Checks)-1]
	if c.Healthy || last.Name != "steps" || last.State != doctor.Unknown || last.Remedy == "" {
		t.Errorf("healthy %t: %+v", c.Healthy, last)
	}
}
