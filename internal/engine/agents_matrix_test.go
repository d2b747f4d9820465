package engine_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/enginetest"
	"github.com/macfleet/macfleet/plan"
)

// agentFaults are what may hit a run with CI agents, by name: those at the service, and those of other places that end or
// overtake a run.
func agentFaults() map[string]memFault {
	lost := enginetest.ErrLost
	out := map[string]memFault{
		"service: refuses":                {at: enginetest.InService, is: enginetest.Fault{Err: errors.New("503 Service Unavailable")}},
		"service: answer is lost":         {at: enginetest.InService, is: enginetest.Fault{Err: lost, Applied: true}},
		"service: hangs":                  {at: enginetest.InService, is: enginetest.Fault{Err: lost, Hang: true}},
		"kill -9 at the service":          {at: enginetest.InService, happens: (*memory).kill},
		"kill -9 behind the service":      {at: enginetest.InService, behind: true, happens: (*memory).kill},
		"stopped at the service":          {at: enginetest.InService, happens: func(m *memory) { m.halt(errors.New("interrupted")) }},
		"left at once at the service":     {at: enginetest.InService, happens: func(m *memory) { m.halt(errors.New("interrupted")); m.die(errDied) }},
		"lock: stolen at the service":     {at: enginetest.InService, happens: (*memory).takeOver},
		"lock: stolen behind the service": {at: enginetest.InService, behind: true, happens: (*memory).takeOver},
	}
	for _, name := range []string{"host: line breaks before", "host: answer is lost", "host: half of it is done", "host: reboots", "kill -9 at a host", "kill -9 behind a host",
		"kill -9 after an event", "kill -9 behind the cloud", "lock: lost, and it knows", "record: full disk", "lock: stolen while it is asleep"} {
		out[name] = memFaults()[name]
	}
	return out
}

// withAgents makes the hosts of a world CI agents with some labels; none: they should be no agents.
func (m *memory) withAgents(labels ...string) {
	m.world.Scopes = []string{toyScope}
	m.world.More = func(h fleet.Host) []plan.Step {
		return []plan.Step{toyAgent{none: len(labels) == 0, spec: plan.AgentSpec{Scope: toyScope, Name: h.Name, Labels: labels}}}
	}
}

// agentRolls are what is rolled to and fro on hosts with CI agents.
var agentRolls = map[string]func(m *memory, second bool){
	"tools under an agent": func(m *memory, second bool) {
		m.withAgents("bake")
		m.values["tools"] = map[bool]string{false: "t1", true: "t2"}[second]
	},
	"labels of an agent": func(m *memory, second bool) {
		m.withAgents(map[bool]string{false: "bake", true: "test"}[second])
	},
	"an agent comes and goes": func(m *memory, second bool) {
		m.withAgents()
		if second {
			m.withAgents("bake")
		}
	},
}

// TestAgentFaultMatrix is TestFaultMatrix for CI agents: wherever a run ends, the next one converges, no agent is listed
// twice or stays fenced, and no marker notes a fence.
func TestAgentFaultMatrix(t *testing.T) {
	t.Parallel()
	count := &tally{said: make(map[string]map[string]int)}
	t.Cleanup(func() {
		count.report(t)
		whole := count.parts.Load() == int64(len(agentFaults())*len(agentRolls))
		if whole && !t.Failed() && count.points.Load() < 800 {
			t.Errorf("only %d points were tried", count.points.Load())
		}
	})
	scenarios, names := slices.Sorted(maps.Keys(agentRolls)), slices.Sorted(maps.Keys(agentFaults()))
	for _, row := range rows(t, len(scenarios), len(names)) {
		scenario, name := scenarios[row[0]], names[row[1]]
		configure, f := agentRolls[scenario], agentFaults()[name]
		parallel(t, scenario+", "+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { everyPlace(t, count, name, f, configure) })
		})
	}
}

// retiring adds to a plan what ends the agent of a host that leaves, before its server is erased.
func retiring(w *nodesInMemory, p *plan.Plan) *plan.Plan {
	for _, h := range p.Hosts {
		i := slices.IndexFunc(p.Actions, func(a plan.Action) bool { return a.ServerID == h.Server.ID && a.Kind == plan.ReinstallServer })
		if i < 0 || h.Stage.Final() || h.Unknown != nil {
			continue
		}
		k, _, _ := plan.AgentStep(w.engine.Steps(h.Spec))
		if f := k.Leave(h.View(k.ID())); len(f.Changes) > 0 {
			p.Actions = slices.Insert(p.Actions, i, plan.Action{Kind: plan.RetirePeer, Host: h.Name, Fleet: h.Fleet, Group: h.Group, ServerID: h.Server.ID,
				Step: k.ID(), Changes: f.Changes, Disruption: plan.Drain})
		}
	}
	return p
}

// TestAgentReleased: the server of a host whose agent runs a job is erased only after the job, whatever the service reports,
// and nothing of the agent is left. That also holds if a run is killed anywhere.
func TestAgentReleased(t *testing.T) {
	t.Parallel()
	no := false
	for _, place := range []enginetest.Place{enginetest.Nowhere, enginetest.InService, enginetest.OnHost, enginetest.InCloud} {
		for _, behind := range []bool{false, true} {
			parallel(t, fmt.Sprint(place, " ", behind), func(t *testing.T) {
				for n, fell := 0, true; fell && n < 200; n++ {
					toyInMemory(t, func(t *testing.T, w *nodesInMemory, m *enginetest.Machine) {
						w.want["tools"] = "t1"
						w.Config.Fleets[0].Groups[0].Replicas = 0
						p := retiring(w, planned(t, w.engine))
						w.RunJob(m, "bake")
						w.Entries[0].Says = &no
						w.on("idling", m.Server.Name, func() { w.Change(func() { m.Agent.Jobs = nil }) })
						left := n
						w.OnCall = func(c enginetest.Call) (f enginetest.Fault) {
							if c.Place != place {
								return f
							}
							if left--; left == -1 && behind {
								f.After = func() { w.Die(errDied) }
							} else if left == -1 {
								f.Before = func() { w.Die(errDied) }
							}
							return f
						}
						r, err := applying(t, t.Context(), w.engine, p)
						if place == enginetest.Nowhere && (err != nil || !r.Finished()) {
							t.Errorf("failures %v, left %v, %v", r.Failures, r.LeftFenced, err)
						}
						fell = left < 0
						w.OnCall = nil
						w.Die(nil)
						w.Change(func() { m.Agent.Jobs = nil })
						for epoch := range 3 {
							w.asToyRun(int64(epoch + 2))
							if r := performed(t, w.engine, retiring(w, planned(t, w.engine))); r.Converged() {
								break
							}
						}
						if p := planned(t, w.engine); len(p.Actions) > 0 || len(w.Entries) > 0 || m.Server.Name != "acme-pool-0" || m.Agent.ID != "" {
							t.Errorf("killed at %d: %d actions, entries %+v, the server is %s with %+v\n%s", n, len(p.Actions), w.Entries, m.Server.Name, m.Agent, cmp.Diff(nil, w.Lasting()))
						}
					})
				}
			})
		}
	}
}

// TestAgentErased: a server is erased only after the job of its agent, also if the plan found no agent to retire.
func TestAgentErased(t *testing.T) {
	t.Parallel()
	toyInMemory(t, func(t *testing.T, w *nodesInMemory, m *enginetest.Machine) {
		w.want["tools"] = "t1"
		w.Config.Fleets[0].Groups[0].Replicas = 0
		p := planned(t, w.engine)
		w.RunJob(m, "bake")
		waited := false
		w.on("idling", m.Server.Name, func() { w.Change(func() { waited, m.Agent.Jobs = true, nil }) })
		if r := performed(t, w.engine, p); !r.Finished() || !waited {
			t.Errorf("waited %t, failures %v, left %v", waited, r.Failures, r.LeftFenced)
		}
	})
}

// TestSilentAgent: a host that does not answer loses its entry at the service, or is restarted, only if the service lists its agent as
// offline and without a job.
func TestSilentAgent(t *testing.T) {
	t.Parallel()
	yes := true
	silent := func(kind plan.Kind, busy *bool, online bool) func(*testing.T, *nodesInMemory, *enginetest.Machine) {
		return func(t *testing.T, w *nodesInMemory, m *enginetest.Machine) {
			w.want["tools"] = "t1"
			p := planned(t, w.engine)
			h := &p.Hosts[0]
			leave := toyOf(h.Spec)[0].(toyAgent).Leave(h.View("toy"))
			h.Unknown, h.Leaves = plan.CodeUnreachable.Trouble("no answer"), kind == plan.RetirePeer
			p.Actions = []plan.Action{{Kind: kind, Host: h.Name, Fleet: h.Fleet, Group: h.Group, ServerID: h.Server.ID, Step: "toy",
				Changes: leave.Changes, Disruption: plan.Reboot, PullsPlug: kind == plan.RebootServer}}
			w.Change(func() { m.Away, w.Entries[0].Says = true, busy })
			if online {
				w.engine.Peers["toy"] = connected{w.toys(), w.Entries[0].ID}
			}
			restarts, _ := w.requests()
			r := performed(t, w.engine, p)
			if done := len(w.Entries) == 0 || *restarts > 0; done != (busy == nil && !online) || done != (len(r.Failures) == 0) || m.Agent.ID == "" {
				t.Errorf("entries %+v, %d restarts, failures %v", w.Entries, *restarts, r.Failures)
			}
			w.Change(func() { m.Away, m.Agent.ID = false, "" })
		}
	}
	for _, kind := range []plan.Kind{plan.RetirePeer, plan.RebootServer} {
		toyRow(t, string(kind)+" offline", silent(kind, nil, false))
		toyRow(t, string(kind)+" busy", silent(kind, &yes, false))
		toyRow(t, string(kind)+" online", silent(kind, nil, true))
	}
}
