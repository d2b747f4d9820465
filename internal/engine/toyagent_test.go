package engine_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/enginetest"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/plan/lists"
)

// toyScope is where toy agents register.
const toyScope = "https://ci.example.com/acme"

// toyAgent is a CI agent that is not GitHub's: a step with a probe and four scripts. The engine requires no more of another
// service.
type toyAgent struct {
	spec plan.AgentSpec
	none bool // the host should be no agent
}

var _ plan.AgentKeeper = toyAgent{}

func (a toyAgent) ID() plan.StepID { return "toy" }

func (a toyAgent) Wanted() string {
	if a.none {
		return ""
	}
	return a.spec.Scope + " " + strings.Join(a.spec.Labels, ",")
}

func (a toyAgent) Agent() (plan.AgentSpec, bool) { return a.spec, !a.none }

func (a toyAgent) Probes() []plan.Probe {
	return []plan.Probe{{ID: "toy.state", Command: plan.Command{Name: "toy", Script: enginetest.AgentState, As: plan.Login}}}
}

// words are "ID PROCESS JOB JOB …"; nil: unread.
func (a toyAgent) words(f plan.Facts) []string {
	said, _ := f.Get("toy.state").Get()
	if words := strings.Fields(said.Stdout); len(words) >= 2 {
		return words
	}
	return nil
}

func (toyAgent) Service() plan.Service {
	return plan.Service{ID: "toy", Entry: "toy", Noun: "toy", Field: "entry", Idle: "offline", LeftOver: plan.CodeFirstSetup, Works: true}
}

func (a toyAgent) Realm() (string, bool) { return a.spec.Scope, !a.none }

func (a toyAgent) Said(f plan.Facts) (said lists.Said, ok bool) {
	w := a.words(f)
	if w == nil || w[0] == "-" {
		return lists.Said{}, false
	}
	return lists.Said{ID: w[0], Realm: a.spec.Scope}, true
}

func (toyAgent) Job(plan.Facts) string { return "" }

func (a toyAgent) do(script string, of plan.Disruption) plan.Change {
	return plan.Change{Reason: plan.Reason{Code: plan.CodeFirstSetup, Text: script}, Disruption: of,
		Command: plan.Command{Name: "toy", Script: script, As: plan.Login, Args: append([]string{a.spec.Scope, a.spec.Name}, a.spec.Labels...)}}
}

func (a toyAgent) at(verb inventory.Verb, e inventory.Agent) plan.Change {
	return plan.Change{Reason: plan.Reason{Code: plan.CodeFirstSetup, Text: string(verb)},
		Peer: &plan.PeerChange{Peer: "toy", Verb: verb, Realm: a.spec.Scope, Entry: e.Entry()}}
}

// found reads the host: its registration, and the work there.
func (a toyAgent) found(v plan.View) (f plan.Finding, id string, runs bool) {
	w := a.words(v.Facts)
	if w == nil {
		return plan.Finding{Unread: []plan.Unread{{Probe: "toy.state", Why: "cannot be parsed"}}}, "", false
	}
	for _, job := range w[2:] {
		f.Busy = append(f.Busy, plan.Task{Text: "the job " + job})
	}
	f.Running, f.Facts = inventory.Present(f.Busy), strings.Join(w[1:2], " ")
	said, _ := a.Said(v.Facts)
	id = said.ID
	return f, id, w[1] != "-"
}

func (a toyAgent) Diff(v plan.View) plan.Finding {
	if a.none {
		return a.Leave(v)
	}
	f, id, runs := a.found(v)
	listed := v.Peer("toy")
	if len(f.Unread) > 0 || !listed.Read() {
		f.Unread = append(f.Unread, plan.Unread{Probe: "toy.service", Why: "was not read"})
		return f
	}
	for _, e := range listed.CI().Named(a.spec.Name) {
		if e.ID != id {
			f.Changes = append(f.Changes, a.at(inventory.DeleteEntry, e))
		}
	}
	e, there := listed.CI().Agent(id)
	switch {
	case !there:
		if runs {
			f.Changes = append(f.Changes, a.do(enginetest.AgentStop, plan.Drain))
		}
		register := a.do(enginetest.AgentRegister, plan.NoDisruption)
		register.Input = plan.Admission
		f.Changes = append(f.Changes, register, a.do(enginetest.AgentStart, plan.NoDisruption))
	case !runs, !e.Online:
		f.Changes = append(f.Changes, a.do(enginetest.AgentStart, plan.NoDisruption))
	}
	if there && !v.Fenced && (v.Fence != nil || !slices.Equal(e.Labels, a.spec.Labels)) {
		f.Changes = append(f.Changes, a.at(inventory.RestoreAgent, e))
	}
	return f
}

func (a toyAgent) Leave(v plan.View) plan.Finding {
	f, id, runs := a.found(v)
	f.Facts = ""
	if runs {
		f.Changes = append(f.Changes, a.do(enginetest.AgentStop, plan.Drain))
	}
	listed := v.Peer("toy")
	if listed == nil && id != "" {
		f.Changes = append(f.Changes, a.at(inventory.DeleteEntry, inventory.Agent{ID: id, Name: a.spec.Name}))
	}
	if listed != nil {
		for _, e := range listed.CI().Agents {
			if e.ID == id || e.Name == a.spec.Name {
				f.Changes = append(f.Changes, a.at(inventory.DeleteEntry, e))
			}
		}
	}
	if id != "" {
		f.Changes = append(f.Changes, a.do(enginetest.AgentForget, plan.NoDisruption))
	}
	return f
}

// toyOf is the toy agent of a host.
func toyOf(h fleet.Host) []plan.Step {
	return []plan.Step{toyAgent{spec: plan.AgentSpec{Scope: toyScope, Name: h.Name, Labels: []string{"bake", "m2"}}}}
}

// toyInMemory calls f in a bubble with one host that is a toy agent and no Node, and runs no job. Its tools will be changed.
func toyInMemory(t *testing.T, f func(t *testing.T, w *nodesInMemory, m *enginetest.Machine)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &nodesInMemory{World: enginetest.New(1, 1, oneByOne), want: map[plan.StepID]string{"tools": "t1"}}
		w.Config.Fleets[0].Groups[0].Spec = fleet.Spec{GithubRunner: &fleet.GithubRunner{}}.WithBuiltIn().WithDefaults()
		w.Scopes, w.More = []string{toyScope}, toyOf
		w.Things = func(fleet.Host) []enginetest.Thing {
			return []enginetest.Thing{{Key: "sudo", Value: "yes", Input: plan.LoginPassword, Grants: true},
				{Key: "tools", Value: w.want["tools"], Class: plan.Drain, Root: true}}
		}
		w.asToyRun(1)
		converges(t, w.engine)
		w.want["tools"], w.events = "t2", nil
		f(t, w, w.Machines[0])
		if open, _ := w.Connections(); open != 0 || len(w.Wrong()) > 0 {
			t.Errorf("%d connections are left, and %q was done", open, w.Wrong())
		}
	})
}

// asToyRun begins a run as a new process.
func (w *nodesInMemory) asToyRun(epoch int64) {
	w.engine = w.Engine()
	w.engine.Run = named("r", epoch)
	w.engine.Emit = func(ev engine.Event) { w.events = append(w.events, ev) }
}

// toys is the service of the run.
func (w *nodesInMemory) toys() engine.Fencer { return w.engine.Peers["toy"].(engine.Fencer) }

// isToy finds a machine registered once and online, with its labels, and nothing noted in its marker.
func (w *nodesInMemory) isToy(t *testing.T, m *enginetest.Machine) {
	t.Helper()
	time.Sleep(10 * time.Second) // on the virtual clock
	seen := w.toys().Observe(t.Context())[toyScope].CI()
	if len(seen.Agents) != 1 || seen.Agents[0].ID != m.Agent.ID || !seen.Agents[0].Online || strings.Join(seen.Agents[0].Labels, " ") != "bake m2" {
		t.Errorf("the service lists %+v; the host has %+v", seen, m.Agent)
	}
	for _, line := range w.Lasting() {
		if strings.Contains(line, "fence true") {
			t.Error(line)
		}
	}
}
