package plan_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// examined returns the check list of a server as "name state", and the checks by
// name.
func (w *world) examined(t *testing.T, n int) (states string, by map[string]plan.Check) {
	t.Helper()
	for id, seen := range w.hosts {
		if _, told := seen.Facts["checkup.clock"]; !told && seen.Facts != nil {
			seen.Facts["checkup.clock"] = inventory.Present(plan.Answer{Stdout: fmt.Sprintln(noon.Unix() + 2)})
		}
		w.snap.Hosts[id] = seen
	}
	c := plan.Examine(w.cfg, w.steps, w.snap, serverID(n), noon)
	by = make(map[string]plan.Check)
	var out []string
	for _, check := range c.Checks {
		if check.State != plan.CheckOK {
			out = append(out, check.Name+" "+string(check.State))
		}
		if (check.State == plan.CheckProblem) != (check.State != plan.CheckUnknown && check.Remedy != "") {
			t.Errorf("%s is %s with the remedy %q", check.Name, check.State, check.Remedy)
		}
		if check.Text == "" {
			t.Errorf("%s says nothing", check.Name)
		}
		by[check.Name] = check
	}
	if c.Healthy() != (len(out) == 0) || c.Count(plan.CheckOK)+len(out) != len(c.Checks) {
		t.Errorf("healthy %t with %v", c.Healthy(), out)
	}
	return strings.Join(out, ", "), by
}

func TestExamine(t *testing.T) {
	t.Parallel()
	behind := "ssh unknown, host key unknown, authentication unknown, answers unknown"
	trouble := func(code string) func(*plan.HostSeen) {
		return func(s *plan.HostSeen) {
			*s = plan.HostSeen{Trouble: &plan.Trouble{Code: code, Text: "it went wrong", Remedy: "do something"}}
		}
	}
	for _, c := range []struct {
		name   string
		edit   func(*plan.HostSeen)
		states string
	}{
		{"healthy", func(*plan.HostSeen) {}, ""},
		{"unreachable", trouble("unreachable"), "connection problem, " + behind},
		{"a code of a later version", trouble("jump-host-refused"), "connection problem, " + behind},
		{"no ssh", trouble("no-ssh-answer"), "ssh problem, host key unknown, authentication unknown, answers unknown"},
		{"another host key", trouble("wrong-host-key"), "host key problem, authentication unknown, answers unknown"},
		{"damaged pin", trouble("damaged-pin"), "host key problem, authentication unknown, answers unknown"},
		{"key refused", trouble("key-refused"), "authentication problem, answers unknown"},
		{"cut off", trouble("connection-lost"), "answers problem"},
		{"no sudo", func(s *plan.HostSeen) { s.Root = false }, "sudo problem"},
		{"another macOS", func(s *plan.HostSeen) { s.OSVersion = inventory.Present("15.7") }, "macos problem"},
		{"a macOS of the future", func(s *plan.HostSeen) { s.OSVersion = inventory.Present("40.1") }, "macos unknown"},
		{"no version", func(s *plan.HostSeen) { s.OSVersion = inventory.Unread[string]("exit 1") }, "macos unknown"},
		{"no serial", func(s *plan.HostSeen) { s.Serial = inventory.Unread[string]("exit 1") }, "serial unknown"},
		{"another machine", func(s *plan.HostSeen) { s.Serial = inventory.Present("C07OTHER") }, "marker problem"},
		{"no marker", func(s *plan.HostSeen) { s.Marker = inventory.Absent[plan.Marker]() }, "marker problem"},
		{"marker unread", func(s *plan.HostSeen) { s.Marker = inventory.Unread[plan.Marker]("needs root") }, "marker problem"},
		{"foreign marker", func(s *plan.HostSeen) {
			m, _ := s.Marker.Get()
			m.Configuration = "globex"
			s.Marker = inventory.Present(m)
		}, "marker problem"},
		{"claim unread", func(s *plan.HostSeen) { s.Claim = inventory.Unread[plan.Claim]("not JSON") }, "claim problem"},
		{"clock", func(s *plan.HostSeen) {
			s.Facts["checkup.clock"] = inventory.Present(plan.Answer{Stdout: fmt.Sprintln(noon.Add(-time.Hour).Unix())})
		}, "clock problem"},
		{"clock unread", func(s *plan.HostSeen) {
			s.Facts["checkup.clock"] = inventory.Present(plan.Answer{Stdout: "soon\n"})
		}, "clock unknown"},
		{"answer unread", func(s *plan.HostSeen) { s.Facts["alpha.get"] = inventory.Unread[plan.Answer]("needs root") }, "step alpha unknown"},
		{"a difference", func(s *plan.HostSeen) { s.Facts["alpha.get"] = inventory.Present(plan.Answer{Stdout: "bad"}) }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(1, 0, 0)
			w.member("macos", "m2", 1)
			w.change(1, c.edit)
			states, by := w.examined(t, 1)
			if d := cmp.Diff(c.states, states); d != "" {
				t.Errorf("(-want +got):\n%s\n%+v", d, by)
			}
		})
	}
}

func TestExamineRoles(t *testing.T) {
	t.Parallel()
	w := newWorld(1, 0, 0)
	w.free(1)
	w.hosts[serverID(2)] = clean(2)
	w.server(2, "somebody-elses")
	w.member("macos", "m2", 3)
	w.snap.Servers[2].Name = "acme-by-hand"
	w.pin(3, w.cfg.HostName("macos", "m2", serverID(3)))
	w.free(4)
	w.snap.Servers[3].Status = "reinstalling"
	w.free(5)
	w.change(5, func(s *plan.HostSeen) {
		s.Claim = inventory.Present(plan.Claim{Configuration: "globex", Environment: "prod", Name: "globex-1", ServerID: serverID(5)})
	})
	w.node(3, w.cfg.HostName("macos", "m2", serverID(3)), inventory.NotReady)
	for n, want := range map[int]struct{ states, inventory, marker string }{
		1: {"", "in the pool", "nobody's"},
		2: {"", "in no pool and no fleet", "nobody's"},
		3: {"inventory problem, node problem", "Scaleway calls it acme-by-hand", "proven: alpha, beta"},
		4: {"inventory problem", "status reinstalling", "nobody's"},
		5: {"claim problem", "in the pool", "nobody's"},
	} {
		states, by := w.examined(t, n)
		if states != want.states || !strings.Contains(by["inventory"].Text, want.inventory) || !strings.Contains(by["marker"].Text, want.marker) {
			t.Errorf("server %d: %s\n%+v", n, states, by)
		}
	}
	delete(w.hosts, serverID(1))
	delete(w.snap.Hosts, serverID(1))
	if states, _ := w.examined(t, 1); !strings.HasPrefix(states, "connection problem") {
		t.Errorf("a host that was not asked: %s", states)
	}
}

func TestRecording(t *testing.T) {
	t.Parallel()
	s := inventory.Server{ID: serverID(1), Name: "globex-prod-1", Address: "198.51.100.7"}
	seen := clean(1)
	seen.Marker = inventory.Present(plan.Marker{Name: "globex-prod-1-old", ServerID: s.ID})
	seen.Facts = plan.Facts{
		"host.serial": inventory.Present(plan.Answer{Stdout: "C0700001"}),
		"alpha.get":   inventory.Present(plan.Answer{Exit: 3, Stdout: "globex-prod-1-old globex-prod-1 198.51.100.7\n", Stderr: "C0700001 " + s.ID}),
		"beta.get":    inventory.Unread[plan.Answer]("needs root"),
	}
	text, err := plan.EncodeRecording(s, seen)
	if err != nil {
		t.Fatal(err)
	}
	for _, real := range []string{"globex", "198.51.100.7", "C0700001", s.ID, seen.Key, "host."} {
		if strings.Contains(string(text), real) {
			t.Errorf("%s is in the recording:\n%s", real, text)
		}
	}
	facts, err := plan.DecodeRecording(text)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := facts.Get("alpha.get").Get()
	if want := (plan.Answer{Exit: 3, Stdout: "acme-sample acme-sample 192.0.2.1\n", Stderr: "C07SAMPLE1 00000000-0000-4000-8000-000000000000"}); a != want {
		t.Errorf("answer = %+v", a)
	}
	if why := facts.Get("beta.get").Why(); why != "needs root" || len(facts) != 2 {
		t.Errorf("facts = %+v", facts)
	}
	for _, bad := range []string{"", "{}", `{"recording": 2, "answers": {"a": {}}}`, `{"recording": 1}`} {
		if _, err := plan.DecodeRecording([]byte(bad)); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
	if _, err := plan.EncodeRecording(s, plan.HostSeen{Trouble: &plan.Trouble{Text: "no route"}}); err == nil || !strings.Contains(err.Error(), "no route") {
		t.Errorf("a host that was not observed: %v", err)
	}
}
