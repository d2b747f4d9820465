package engine_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/enginetest"
	"github.com/macfleet/macfleet/plan"
)

// TestAgentJoins: a host becomes an agent with one token, and a second plan has nothing to do. Labels that someone changed
// are restored at the service, without a fence.
func TestAgentJoins(t *testing.T) {
	t.Parallel()
	toyInMemory(t, func(t *testing.T, w *nodesInMemory, m *enginetest.Machine) {
		w.want["tools"] = "t1"
		w.isToy(t, m)
		if p := planned(t, w.engine); len(p.Actions) > 0 || w.Tokens() != 1 {
			t.Errorf("%d tokens; planned %q", w.Tokens(), codesOf(p, p.Hosts[0].Name))
		}
		w.Change(func() { w.Entries[0].Labels = []string{"mine"} })
		converges(t, w.engine)
		w.isToy(t, m)
		if got := w.happened(engine.Fencing, engine.Idling); len(got) > 0 {
			t.Errorf("%q", got)
		}
		// A registration that was deleted, and another agent that took the name.
		w.Change(func() { w.Entries = nil })
		w.Register(toyScope, m.Server.Name)
		converges(t, w.engine)
		w.isToy(t, m)
	})
}

// TestServiceAway: a service that does not answer never fails a command; it is in the snapshot with its trouble, and what it
// says is scrubbed.
func TestServiceAway(t *testing.T) {
	t.Parallel()
	toyInMemory(t, func(t *testing.T, w *nodesInMemory, _ *enginetest.Machine) {
		w.engine.Scrub = func(s string) string { return strings.ReplaceAll(s, "hunter2", "***") }
		w.OnCall = func(c enginetest.Call) enginetest.Fault {
			if c.Place == enginetest.InService {
				return enginetest.Fault{Err: errors.New("502 hunter2")}
			}
			return enginetest.Fault{}
		}
		snap, p, err := w.engine.Observe(t.Context())
		if trouble := snap.Peers["toy"][toyScope].Trouble; err != nil || trouble == nil || trouble.Text != "502 ***" {
			t.Errorf("%+v, %v", snap.Peers, err)
		}
		if len(p.Hosts) != 1 || p.Hosts[0].Peer("toy").Seen == nil || len(p.Hosts[0].Unread) != 1 {
			t.Errorf("%+v", p.Hosts[0].Unread)
		}
	})
}

// changedAt returns when the tools were changed after the run started, or 0.
func changedAt(w *nodesInMemory, started time.Time) time.Duration {
	for _, ev := range w.events {
		if ev.Type == engine.Done && ev.Action.Step == "tools" {
			return ev.Time.Sub(started)
		}
	}
	return 0
}

// TestAgentIdle: a change waits for the job of the host's agent, whatever the service reports. Before and behind it the agent
// is fenced and restored.
func TestAgentIdle(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	after := func(d time.Duration, w *nodesInMemory, f func()) { time.AfterFunc(d, func() { w.Change(f) }) }
	const job = 5 * time.Minute
	for name, tc := range map[string]struct {
		happens func(w *nodesInMemory, m *enginetest.Machine)
		least   time.Duration // from the start of the run until the change
		code    plan.Code     // of the failure; zero: it is changed
		says    string
	}{
		"nothing runs": {happens: func(*nodesInMemory, *enginetest.Machine) {}, least: engine.DefaultQuiet},
		"a job ends": {least: job + engine.DefaultQuiet, happens: func(w *nodesInMemory, m *enginetest.Machine) {
			after(job, w, func() { m.Agent.Jobs = nil })
		}},
		"a job ends that the service does not report": {least: job + engine.DefaultQuiet, happens: func(w *nodesInMemory, m *enginetest.Machine) {
			w.Entries[0].Says = &no
			after(job, w, func() { m.Agent.Jobs = nil })
		}},
		"the service reports a job for a while": {least: job + engine.DefaultQuiet, happens: func(w *nodesInMemory, m *enginetest.Machine) {
			m.Agent.Jobs, w.Entries[0].Says = nil, &yes
			after(job, w, func() { w.Entries[0].Says = nil })
		}},
		"a job starts in spite of the fence": {least: job + engine.DefaultQuiet, happens: func(w *nodesInMemory, m *enginetest.Machine) {
			m.Agent.Jobs = nil
			after(40*time.Second, w, func() { m.Agent.Jobs = []string{"late"} })
			after(job, w, func() { m.Agent.Jobs = nil })
		}},
		"a job does not end": {code: engine.CodeNotDrained, says: "the job bake", happens: func(*nodesInMemory, *enginetest.Machine) {}},
		"a job does not end that the service does not report": {code: engine.CodeNotDrained, says: "the job bake",
			happens: func(w *nodesInMemory, _ *enginetest.Machine) { w.Entries[0].Says = &no }},
		"the service reports a job for ever": {code: engine.CodeRunnerBusyStuck, says: "reports a job", happens: func(w *nodesInMemory, m *enginetest.Machine) {
			m.Agent.Jobs, w.Entries[0].Says = nil, &yes
		}},
		"the service reports a job for ever that has ended": {code: engine.CodeNotDrained, says: "reports a job", happens: func(w *nodesInMemory, m *enginetest.Machine) {
			w.Entries[0].Says = &yes
			after(job, w, func() { m.Agent.Jobs = nil })
		}},
		"the host answers rubbish": {code: engine.CodeNotDrained, says: "cannot be parsed", happens: func(w *nodesInMemory, m *enginetest.Machine) {
			m.Agent.Jobs, m.Agent.Unread = nil, true
		}},
		"an agent that is offline was busy": {least: engine.DefaultQuiet, happens: func(w *nodesInMemory, m *enginetest.Machine) {
			m.Agent.Jobs, m.Agent.Runs, w.Entries[0].Says = nil, false, &yes
		}},
	} {
		toyRow(t, name, func(t *testing.T, w *nodesInMemory, m *enginetest.Machine) {
			if name != "nothing runs" && !w.RunJob(m, "bake") {
				t.Fatal("no job runs")
			}
			p := planned(t, w.engine)
			w.Change(func() { tc.happens(w, m) })
			w.on(engine.Idling, m.Server.Name, func() {
				if jobs := len(m.Agent.Jobs); w.RunJob(m, "another") || len(m.Agent.Jobs) != jobs {
					t.Error("a fenced agent got a job")
				}
			})
			started := time.Now()
			r := performed(t, w.engine, p)
			at := changedAt(w, started)
			if tc.code == (plan.Code{}) {
				if len(r.Failures) > 0 || at < tc.least || at > tc.least+time.Minute {
					t.Errorf("changed after %s, want %s; failures %v", at, tc.least, r.Failures)
				}
			} else {
				var trouble *plan.Trouble
				if len(r.Failures) != 1 || !errors.As(r.Failures[0].Err, &trouble) || trouble.Code != tc.code || !strings.Contains(trouble.Text, tc.says) ||
					!strings.Contains(trouble.Remedy, "--force-busy "+m.Server.Name) || m.State["tools"] != "t1" {
					t.Errorf("failures %v, tools %s", r.Failures, m.State["tools"])
				}
			}
			if got := w.happened(engine.Fencing, engine.Unfenced); len(got) != 2 || len(r.LeftFenced) > 0 {
				t.Errorf("%q, left %v", got, r.LeftFenced)
			}
			var last string
			for _, ev := range w.events {
				if ev.Type == engine.Idling && ev.Text == last {
					t.Errorf("said twice: %s", last)
				} else if ev.Type == engine.Idling {
					last = ev.Text
				}
			}
			w.Change(func() { m.Agent.Jobs, m.Agent.Unread, m.Agent.Runs, w.Entries[0].Says = nil, false, true, nil })
			w.isToy(t, m)
		})
	}
}

// TestAgentServiceComesBack: a service that does not answer in the wait counts as busy until it does.
func TestAgentServiceComesBack(t *testing.T) {
	t.Parallel()
	toyInMemory(t, func(t *testing.T, w *nodesInMemory, m *enginetest.Machine) {
		p := planned(t, w.engine)
		fenced, until := false, time.Time{}
		w.OnCall = func(c enginetest.Call) enginetest.Fault {
			if c.What == "fence" {
				fenced, until = true, time.Now().Add(3*time.Minute)
			}
			if fenced && c.What == "agent" && time.Now().Before(until) {
				return enginetest.Fault{Err: errors.New("502")}
			}
			return enginetest.Fault{}
		}
		started := time.Now()
		r := performed(t, w.engine, p)
		if at := changedAt(w, started); len(r.Failures) > 0 || at < 4*time.Minute {
			t.Errorf("changed after %s, failures %v", at, r.Failures)
		}
		w.isToy(t, m)
	})
}

// TestAgentServiceGone: while the service answers nothing, no job ends, whatever is configured. A host that is idle keeps its agent too,
// because the service cannot be kept from giving it a job.
func TestAgentServiceGone(t *testing.T) {
	t.Parallel()
	for change, configure := range map[string]func(*nodesInMemory){
		"tools":   func(*nodesInMemory) {},
		"removal": func(w *nodesInMemory) { w.More, w.want["tools"] = noToy, "t1" },
		"release": func(w *nodesInMemory) { w.Config.Fleets[0].Groups[0].Replicas = 0 },
	} {
		for _, idle := range []bool{false, true} {
			toyInMemory(t, func(t *testing.T, w *nodesInMemory, m *enginetest.Machine) {
				if !idle && !w.RunJob(m, "bake") {
					t.Fatal("no job runs")
				}
				configure(w)
				if !idle {
					w.OnCall = away(enginetest.InService)
				}
				p := planned(t, w.engine)
				w.OnCall = away(enginetest.InService)
				if r := performed(t, w.engine, p); r.Converged() || (len(m.Agent.Jobs) == 0) != idle || !m.Agent.Runs || m.State["tools"] != "t1" || m.Server.Status != "ready" {
					t.Errorf("%s, idle %t: %d actions were done, the agent is %+v", change, idle, r.Done, m.Agent)
				}
				w.OnCall, m.Agent.Jobs = nil, nil
				w.asToyRun(2)
				converges(t, w.engine)
			})
		}
	}
}

// TestAgentNoted: the marker notes the fence before the service has it, and until the service has it no more. A connection
// that breaks at the end is opened again.
func TestAgentNoted(t *testing.T) {
	t.Parallel()
	toyInMemory(t, func(t *testing.T, w *nodesInMemory, m *enginetest.Machine) {
		noted := func() {
			if !slices.ContainsFunc(w.Lasting(), func(line string) bool { return strings.Contains(line, "fence true") }) {
				t.Error("the marker does not note the fence")
			}
		}
		p := planned(t, w.engine)
		unfenced, calls := false, 0
		w.OnCall = func(c enginetest.Call) (f enginetest.Fault) {
			switch {
			case c.What == "fence":
				f.Before = noted
				calls++
			case c.What == "unfence":
				f.After = func() { unfenced = true }
				f.Before = noted
				calls++
			case unfenced && c.What == "WriteMarker":
				unfenced, f.Err = false, enginetest.ErrLost
				calls++
			}
			return f
		}
		if r := performed(t, w.engine, p); !r.Converged() || calls != 3 {
			t.Errorf("%d calls, failures %v, left %v", calls, r.Failures, r.LeftFenced)
		}
		w.isToy(t, m)
	})
}

// TestAgentLeftFenced: a service that refuses to end a fence leaves it noted and reported. A run that changes something else
// keeps the note, and the next whole one restores the agent.
func TestAgentLeftFenced(t *testing.T) {
	t.Parallel()
	toyInMemory(t, func(t *testing.T, w *nodesInMemory, m *enginetest.Machine) {
		w.OnCall = func(c enginetest.Call) (f enginetest.Fault) {
			if c.What == "unfence" {
				f.Err = errors.New("503")
			}
			return f
		}
		if r := apply(t, w.engine); len(r.LeftFenced) != 1 || r.LeftFenced[0].Host != m.Server.Name || r.Finished() || m.State["tools"] != "t2" {
			t.Errorf("left %v, failures %v", r.LeftFenced, r.Failures)
		}
		w.OnCall, w.want["tools"] = nil, "t3"
		w.asToyRun(2)
		w.engine.Selection.Steps, w.engine.Selection.ForceBusy = []plan.StepID{"tools"}, []string{m.Server.Name}
		if r := apply(t, w.engine); len(r.Failures) > 0 || m.State["tools"] != "t3" {
			t.Errorf("failures %v", r.Failures)
		}
		if !slices.ContainsFunc(w.Lasting(), func(line string) bool { return strings.Contains(line, "fence true") }) {
			t.Error("the note is gone, and the agent is still fenced")
		}
		w.asToyRun(3)
		converges(t, w.engine)
		w.isToy(t, m)
	})
}

// TestAgentRebooted: a server is restarted after the job of its agent.
func TestAgentRebooted(t *testing.T) {
	t.Parallel()
	toyInMemory(t, func(t *testing.T, w *nodesInMemory, m *enginetest.Machine) {
		w.want["tools"] = "t1"
		p := planned(t, w.engine)
		h := p.Hosts[0]
		p.Actions = []plan.Action{{Kind: plan.RebootServer, Host: h.Name, Fleet: h.Fleet, Group: h.Group, ServerID: h.Server.ID, Disruption: plan.Reboot}}
		w.RunJob(m, "bake")
		waited := false
		w.on(engine.Idling, h.Name, func() { w.Change(func() { waited, m.Agent.Jobs = true, nil }) })
		if r := performed(t, w.engine, p); !r.Converged() || !waited {
			t.Errorf("waited %t, failures %v", waited, r.Failures)
		}
		w.isToy(t, m)
	})
}

// TestAgentForced: --force-busy neither fences nor waits.
func TestAgentForced(t *testing.T) {
	t.Parallel()
	toyInMemory(t, func(t *testing.T, w *nodesInMemory, m *enginetest.Machine) {
		w.RunJob(m, "bake")
		w.engine.Selection.ForceBusy = []string{m.Server.Name}
		started := time.Now()
		r := apply(t, w.engine)
		if at := changedAt(w, started); !r.Converged() || at > time.Minute || len(w.happened(engine.Fencing)) > 0 {
			t.Errorf("changed after %s, failures %v, %q", at, r.Failures, w.happened(engine.Fencing))
		}
	})
}

// TestAgentLastLook: a job that starts between the wait and the change is found right before the change.
func TestAgentLastLook(t *testing.T) {
	t.Parallel()
	toyInMemory(t, func(t *testing.T, w *nodesInMemory, m *enginetest.Machine) {
		last, changed := 0, false
		for _, try := range []struct {
			tools string
			at    int // the probe before which a job starts; 0: none
		}{{"t2", 0}, {"t3", 1}} {
			w.want["tools"] = try.tools
			p := planned(t, w.engine)
			probes := 0
			w.OnCall = func(c enginetest.Call) enginetest.Fault {
				changed = changed || c.What == "RunChange"
				if c.What != "probe" {
					return enginetest.Fault{}
				}
				probes++
				if try.at == 0 && !changed {
					last = probes
				}
				if try.at == 0 || probes != last {
					return enginetest.Fault{}
				}
				return enginetest.Fault{Before: func() { w.Change(func() { m.Agent.Jobs = []string{"late"} }) }}
			}
			r := performed(t, w.engine, p)
			if failed := len(r.Failures) > 0; failed != (try.at > 0) {
				t.Errorf("%s: failures %v", try.tools, r.Failures)
			}
		}
		if m.State["tools"] != "t2" {
			t.Errorf("changed under a job: %s", m.State["tools"])
		}
		w.OnCall = nil
		w.isToy(t, m)
	})
}

// TestAgentStopped: Ctrl-C ends the wait at once, nothing is changed, and the agent gets jobs again. After a second one the
// fence is left and reported, and the next apply restores the agent.
func TestAgentStopped(t *testing.T) {
	t.Parallel()
	for name, twice := range map[string]bool{"once": false, "twice": true} {
		toyRow(t, name, func(t *testing.T, w *nodesInMemory, m *enginetest.Machine) {
			w.RunJob(m, "bake")
			p := planned(t, w.engine)
			ctx, die := context.WithCancelCause(t.Context())
			defer die(nil)
			stop, halt := context.WithCancelCause(t.Context())
			defer halt(nil)
			w.engine.Stop = stop
			started := time.Now()
			w.on(engine.Idling, m.Server.Name, func() {
				halt(errors.New("interrupted"))
				if twice {
					die(errDied)
				}
			})
			r, err := applying(t, ctx, w.engine, p)
			if took := time.Since(started); took > 10*time.Second || m.State["tools"] != "t1" || errors.Is(err, errDied) != twice {
				t.Errorf("it took %s, tools %s, %v", took, m.State["tools"], err)
			}
			if twice != (len(r.LeftFenced) == 1) || r.Finished() {
				t.Errorf("left %v", r.LeftFenced)
			}
			if !twice && (len(r.Failures) > 0 || r.NotStarted != 1) {
				t.Errorf("failures %v, %d not started", r.Failures, r.NotStarted)
			}
			w.Change(func() { m.Agent.Jobs = nil })
			if twice {
				if w.RunJob(m, "bake") {
					t.Error("it is not fenced")
				}
				w.asToyRun(2)
				if p := planned(t, w.engine); !slices.ContainsFunc(p.Actions, func(a plan.Action) bool { return a.Step == "toy" }) {
					t.Errorf("the next plan has %q", codesOf(p, m.Server.Name))
				}
				converges(t, w.engine)
			}
			w.isToy(t, m)
		})
	}
}

// TestAgentLate: an agent that the service shows as online in time is verified; one that it does not show is a failure.
func TestAgentLate(t *testing.T) {
	t.Parallel()
	for name, within := range map[string]time.Duration{"in time": 0, "too late": 2 * time.Second} {
		toyRow(t, name, func(t *testing.T, w *nodesInMemory, m *enginetest.Machine) {
			w.want["tools"], w.engine.Ready.Agent = "t1", within
			w.Change(func() { m.Agent.Runs = false })
			r := apply(t, w.engine)
			if failed := len(r.Failures) == 1; failed != (within > 0) {
				t.Errorf("failures %v", r.Failures)
			}
		})
	}
}

// forgetting deletes the entry of a host that is gone.
func forgetting(id string) plan.Action {
	return plan.Action{Kind: plan.ForgetPeer, Host: "old", Changes: []plan.Change{{Peer: &plan.PeerChange{Peer: "toy", Verb: inventory.DeleteEntry, Realm: toyScope,
		Entry: inventory.Entry{ID: id, Name: "old"}}}}}
}

// TestForgetAgent: an entry whose host is gone is deleted only if it is still the planned one and unused.
func TestForgetAgent(t *testing.T) {
	t.Parallel()
	yes := true
	for name, tc := range map[string]struct {
		since func(e *enginetest.Entry, m *enginetest.Machine)
		kept  bool
	}{
		"as planned":     {since: func(*enginetest.Entry, *enginetest.Machine) {}},
		"renamed":        {since: func(e *enginetest.Entry, _ *enginetest.Machine) { e.Name = "other" }, kept: true},
		"busy":           {since: func(e *enginetest.Entry, _ *enginetest.Machine) { e.Says = &yes }, kept: true},
		"online":         {since: func(e *enginetest.Entry, m *enginetest.Machine) { m.Agent.ID = e.ID }, kept: true},
		"is another now": {since: func(e *enginetest.Entry, _ *enginetest.Machine) { e.ID = "99" }, kept: true},
	} {
		toyRow(t, name, func(t *testing.T, w *nodesInMemory, m *enginetest.Machine) {
			w.want["tools"] = "t1"
			p := planned(t, w.engine)
			p.Actions = append([]plan.Action{forgetting(w.Register(toyScope, "old", "bake"))}, p.Actions...)
			w.Change(func() { tc.since(&w.Entries[1], m) })
			r := performed(t, w.engine, p)
			if kept := len(w.Entries) == 2; kept != tc.kept || tc.kept && name != "is another now" && (len(r.Failures) != 1 || !strings.Contains(r.Failures[0].Err.Error(), "plan again")) {
				t.Errorf("entries %+v, failures %v", w.Entries, r.Failures)
			}
		})
	}
}
