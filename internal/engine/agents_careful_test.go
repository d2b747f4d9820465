package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/enginetest"
	"github.com/macfleet/macfleet/plan"
)

// connected is a service where an entry has come online since the plan.
type connected struct {
	engine.Fencer
	id string
}

// Entry returns the entry as it is now.
func (c connected) Entry(ctx context.Context, scope, id string) (inventory.Seen[inventory.Listing], error) {
	seen, err := c.Fencer.Entry(ctx, scope, id)
	if l, ok := seen.Get(); ok && id == c.id {
		l.Agents.Agents[0].Online = true
	}
	return seen, err
}

// restores is a service that records what agents get back.
type restores struct {
	engine.Fencer
	got *[]plan.AgentSpec
}

// Unfence records the specification.
func (r restores) Unfence(ctx context.Context, spec plan.AgentSpec, a inventory.Agent) error {
	*r.got = append(*r.got, spec)
	return r.Fencer.Unfence(ctx, spec, a)
}

// TestNoTokenNoChange: without a token for the new registration, the present agent is not stopped.
func TestNoTokenNoChange(t *testing.T) {
	t.Parallel()
	toyInMemory(t, func(t *testing.T, w *nodesInMemory, m *enginetest.Machine) {
		w.want["tools"] = "t1"
		w.Change(func() { w.Entries = nil }) // someone deleted the entry
		w.asToyRun(2)
		p := planned(t, w.engine)
		w.OnCall = faultAt("register", enginetest.Fault{Err: errors.New("rate limited")})
		r := performed(t, w.engine, p)
		if len(r.Failures) != 1 || !strings.Contains(r.Failures[0].Err.Error(), "rate limited") || !m.Agent.Runs || m.Agent.ID == "" {
			t.Errorf("failures %v, agent %+v", r.Failures, m.Agent)
		}
		w.OnCall = nil
		converges(t, w.engine)
		w.isToy(t, m)
	})
}

// TestFailedScriptEndsItsStep: what comes behind a script that failed is not done, and the failure is the script's.
func TestFailedScriptEndsItsStep(t *testing.T) {
	t.Parallel()
	toyInMemory(t, func(t *testing.T, w *nodesInMemory, m *enginetest.Machine) {
		w.want["tools"] = "t1"
		w.Change(func() { w.Entries = nil }) // someone deleted the entry
		w.asToyRun(2)
		p := planned(t, w.engine)
		w.OnCall = faultAt("register", enginetest.Fault{After: func() { w.Register(toyScope, m.Server.Name) }}) // and then takes its name
		r := performed(t, w.engine, p)
		if len(r.Failures) != 1 || !strings.Contains(r.Failures[0].Err.Error(), "failed with exit code 1") || m.Agent.Runs {
			t.Errorf("failures %v, agent %+v", r.Failures, m.Agent)
		}
	})
}

// TestAnotherMachinesEntry: an entry of the host's name that came online or got another name since the plan is another machine's.
func TestAnotherMachinesEntry(t *testing.T) {
	t.Parallel()
	t.Run("online", func(t *testing.T) { anothersEntry(t, false) })
	t.Run("renamed", func(t *testing.T) { anothersEntry(t, true) })
}

func anothersEntry(t *testing.T, renamed bool) {
	t.Parallel()
	toyInMemory(t, func(t *testing.T, w *nodesInMemory, m *enginetest.Machine) {
		w.want["tools"] = "t1"
		other := w.Register(toyScope, m.Server.Name)
		p := planned(t, w.engine)
		w.OnCall = func(c enginetest.Call) enginetest.Fault {
			if c.What == "deregister" {
				t.Errorf("the entry %s was deleted", c.Name)
			}
			return enginetest.Fault{}
		}
		if renamed {
			w.Change(func() { w.Entries[1].Name = "other" })
		} else {
			w.engine.Peers["toy"] = connected{w.toys(), other}
		}
		if r := performed(t, w.engine, p); len(r.Failures) != 1 || !strings.Contains(r.Failures[0].Err.Error(), "another machine may use it") {
			t.Errorf("failures %v", r.Failures)
		}
	})
}

// TestRetireIsCareful: the agent of a host that leaves is ended only once the service keeps new jobs away, and its entry deleted only
// while no job runs.
func TestRetireIsCareful(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		what    string // the call that fails, or after which a job is found
		fails   error
		stopped bool
	}{
		"the fence is refused":       {what: "fence", fails: errors.New("rate limited")},
		"a job outlives its process": {what: "RunChange", stopped: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			toyInMemory(t, func(t *testing.T, w *nodesInMemory, m *enginetest.Machine) {
				w.Config.Fleets[0].Groups[0].Replicas = 0
				p := planned(t, w.engine)
				w.OnCall = func(c enginetest.Call) enginetest.Fault {
					switch {
					case c.What != tc.what:
						return enginetest.Fault{}
					case tc.fails != nil:
						return enginetest.Fault{Err: tc.fails}
					}
					return enginetest.Fault{After: func() { w.Change(func() { m.Agent.Jobs = []string{"late"} }) }}
				}
				r := performed(t, w.engine, p)
				if len(r.Failures) != 1 || r.Failures[0].Action.Kind != plan.RetirePeer || m.Agent.Runs == tc.stopped || len(w.Entries) != 1 {
					t.Errorf("failures %+v, agent %+v, entries %+v", r.Failures, m.Agent, w.Entries)
				}
			})
		})
	}
}

// TestForcedOverAJob: a service that keeps an entry because of a job does not stop a run that may lose the job.
func TestForcedOverAJob(t *testing.T) {
	t.Parallel()
	refused := &inventory.ProviderError{Class: inventory.Precondition, Text: "a job runs"}
	for _, forced := range []bool{false, true} {
		toyInMemory(t, func(t *testing.T, w *nodesInMemory, m *enginetest.Machine) {
			w.want["tools"] = "t1"
			w.Register(toyScope, m.Server.Name)
			if forced {
				w.engine.Selection.ForceBusy = []string{m.Server.Name}
			}
			p := planned(t, w.engine)
			for i := range p.Actions {
				p.Actions[i].Forced = forced
			}
			w.OnCall = faultAt("deregister", enginetest.Fault{Err: refused})
			r := performed(t, w.engine, p)
			stopped := len(r.Failures) > 0 && errors.Is(r.Failures[0].Err, refused)
			if stopped == forced {
				t.Errorf("forced %t: failures %v", forced, r.Failures)
			}
		})
	}
}

// noToy wants a host that is no agent any more.
func noToy(h fleet.Host) []plan.Step {
	return []plan.Step{toyAgent{none: true, spec: plan.AgentSpec{Scope: toyScope, Name: h.Name}}}
}

// TestUnfenceRestores: an agent that is not configured any more gets back the labels and the group that it had.
func TestUnfenceRestores(t *testing.T) {
	t.Parallel()
	toyInMemory(t, func(t *testing.T, w *nodesInMemory, m *enginetest.Machine) {
		w.Change(func() { w.Entries[0].Labels, w.Entries[0].Group = []string{"by-hand"}, "7" })
		if !w.RunJob(m, "bake") {
			t.Fatal("no job runs")
		}
		w.More = noToy
		w.want["tools"] = "t1"
		w.asToyRun(2)
		p := planned(t, w.engine)
		var got []plan.AgentSpec
		w.engine.Peers["toy"] = restores{w.toys(), &got}
		if r := performed(t, w.engine, p); len(r.Failures) == 0 {
			t.Error("the job was not awaited")
		}
		if len(got) != 1 || strings.Join(got[0].Labels, " ") != "by-hand" || got[0].GroupID != "7" {
			t.Errorf("it gets %+v", got)
		}
	})
}

// TestFenceIsNotedFirst: an agent whose fence the marker cannot note is not fenced, as no later run would know why it gets no jobs.
func TestFenceIsNotedFirst(t *testing.T) {
	t.Parallel()
	toyInMemory(t, func(t *testing.T, w *nodesInMemory, m *enginetest.Machine) {
		p, refused := planned(t, w.engine), false
		w.OnCall = func(c enginetest.Call) (f enginetest.Fault) {
			switch {
			case c.What == "fence":
				t.Error("it is fenced")
			case c.What == "WriteMarker" && !refused:
				refused, f.Err = true, enginetest.ErrLost
			}
			return f
		}
		if r := performed(t, w.engine, p); len(r.Failures) != 1 || len(r.LeftFenced) > 0 || m.State["tools"] != "t1" {
			t.Errorf("tools %s, failures %v, left %v", m.State["tools"], r.Failures, r.LeftFenced)
		}
		w.isToy(t, m)
	})
}

// murky is a toy agent of which it is unknown what it runs.
type murky struct{ toyAgent }

func (m murky) Diff(v plan.View) plan.Finding {
	f := m.toyAgent.Diff(v)
	f.Running = inventory.Unread[[]plan.Task]("its log is gone")
	return f
}

// TestUnknownWorkIsWork: a host is not changed while it is unknown what its agent runs.
func TestUnknownWorkIsWork(t *testing.T) {
	t.Parallel()
	toyInMemory(t, func(t *testing.T, w *nodesInMemory, m *enginetest.Machine) {
		w.More = func(h fleet.Host) []plan.Step { return []plan.Step{murky{toyOf(h)[0].(toyAgent)}} }
		if r := apply(t, w.engine); len(r.Failures) != 1 || !strings.Contains(r.Failures[0].Err.Error(), "unknown work: its log is gone") || m.State["tools"] != "t1" {
			t.Errorf("tools %s, failures %v", m.State["tools"], r.Failures)
		}
	})
}
