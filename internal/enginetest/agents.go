package enginetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/plan"
)

// connects is how long a CI agent takes to be online after its start.
const connects = 5 * time.Second

// Entry is a CI agent as its service keeps it.
type Entry struct {
	Scope string
	inventory.Agent
	Says *bool // what the service reports as busy; nil: the actual state
}

// Agent is the CI agent of a Mac.
type Agent struct {
	ID      string // of the entry that it is registered as; empty: it is not registered
	Runs    bool   // its process runs
	Jobs    []string
	Unread  bool // what it runs cannot be read
	started time.Time
}

// Register adds an entry to a service, as another process does.
func (w *World) Register(scope, name string, labels ...string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.register(scope, name, labels)
}

func (w *World) register(scope, name string, labels []string) string {
	w.registrations++
	id := fmt.Sprint(w.registrations)
	w.Entries = append(w.Entries, Entry{Scope: scope, Agent: inventory.Agent{ID: id, Name: name, Labels: slices.Clone(labels)}})
	return id
}

// RunJob gives a job to a machine's agent, unless it is fenced. It reports whether the job runs.
func (w *World) RunJob(m *Machine, name string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	e := w.entry(m.Agent.ID)
	if e == nil || len(e.Labels) == 0 || !m.Agent.Runs {
		return false
	}
	m.Agent.Jobs = append(m.Agent.Jobs, name)
	return true
}

// entry returns the entry with an id, or nil.
func (w *World) entry(id string) *Entry {
	for i := range w.Entries {
		if w.Entries[i].ID == id {
			return &w.Entries[i]
		}
	}
	return nil
}

// holder returns the machine that is registered as an entry, or nil.
func (w *World) holder(id string) *Machine {
	if i := slices.IndexFunc(w.Machines, func(m *Machine) bool { return m.Agent.ID == id }); i >= 0 {
		return w.Machines[i]
	}
	return nil
}

// listed is an entry as the service lists it now.
func (w *World) listed(e Entry) inventory.Agent {
	a := e.Agent
	a.Labels = slices.Clone(a.Labels)
	if m := w.holder(a.ID); m != nil {
		up := !m.Away && time.Now().After(m.up)
		a.Online = up && m.Agent.Runs && time.Since(m.Agent.started) >= connects
		a.Busy = a.Online && len(m.Agent.Jobs) > 0
	}
	if e.Says != nil {
		a.Busy = *e.Says
	}
	return a
}

// Tokens returns how many registration tokens were created.
func (w *World) Tokens() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.tokens
}

// services are the CI services of the world, for one run.
type services struct {
	world  *World
	tokens *sync.Map // by scope: the agents of a run share one
}

// Observe lists all entries.
func (s services) Observe(ctx context.Context) map[string]plan.PeerSeen {
	out := make(map[string]plan.PeerSeen)
	err := s.world.call(ctx, Call{InService, "observe", ""}, func() error {
		for _, scope := range s.world.Scopes {
			seen := new(inventory.AgentService)
			for _, e := range s.world.Entries {
				if e.Scope == scope {
					seen.Agents = append(seen.Agents, s.world.listed(e))
				}
			}
			out[scope] = plan.PeerSeen{Listing: inventory.Listing{Agents: seen}}
		}
		return nil
	})
	if err != nil {
		for _, scope := range s.world.Scopes {
			out[scope] = plan.PeerSeen{Trouble: &plan.Trouble{Code: code("service-away"), Text: err.Error(), Remedy: "run the command again"}}
		}
	}
	return out
}

// Entry reads one entry.
func (s services) Entry(ctx context.Context, _, id string) (out inventory.Seen[inventory.Listing], err error) {
	return out, s.world.call(ctx, Call{InService, "agent", id}, func() error {
		out = inventory.Absent[inventory.Listing]()
		if e := s.world.entry(id); e != nil {
			out = inventory.Present(inventory.Listing{Agents: &inventory.AgentService{Agents: []inventory.Agent{s.world.listed(*e)}}})
		}
		return nil
	})
}

// MayJoin creates a token, as Admit does.
func (s services) MayJoin(ctx context.Context, scope string) error {
	_, err := s.Admit(ctx, scope, "")
	return err
}

// Admit creates a token when the run needs it first.
func (s services) Admit(ctx context.Context, scope, _ string) (out engine.Admission, err error) {
	if kept, is := s.tokens.Load(scope); is {
		return kept.(engine.Admission), nil
	}
	defer func() {
		if err == nil {
			s.tokens.Store(scope, out)
		}
	}()
	err = s.world.call(ctx, Call{InService, "register", scope}, func() (err error) {
		s.world.tokens++
		out.Secret, err = secret.New("token for " + scope)
		return err
	})
	return out, err
}

// Revoke does nothing: a token ends by itself.
func (services) Revoke(context.Context, string) error { return nil }

// Fence removes an agent's labels.
func (s services) Fence(ctx context.Context, _ plan.AgentSpec, a inventory.Agent) error {
	return s.world.call(ctx, Call{InService, "fence", a.ID}, func() error { return s.label(a.ID, nil) })
}

// Unfence restores an agent's labels.
func (s services) Unfence(ctx context.Context, spec plan.AgentSpec, a inventory.Agent) error {
	return s.world.call(ctx, Call{InService, "unfence", a.ID}, func() error { return s.label(a.ID, spec.Labels) })
}

func (s services) label(id string, labels []string) error {
	e := s.world.entry(id)
	if e == nil {
		return errors.New("404: no agent " + id)
	}
	e.Labels = slices.Clone(labels)
	return nil
}

// Change deletes an entry, whether or not a job runs: that is wrong.
func (s services) Change(ctx context.Context, to plan.PeerChange) error {
	w, id := s.world, to.Entry.ID
	if to.Verb != inventory.DeleteEntry {
		return fmt.Errorf("unknown change %s", to.Verb)
	}
	return w.call(ctx, Call{InService, "deregister", id}, func() error {
		if m := w.holder(id); m != nil {
			w.interrupts(m, "deregistered", false)
		}
		w.Entries = slices.DeleteFunc(w.Entries, func(e Entry) bool { return e.ID == id })
		return nil
	})
}

// interrupts notes that something was done to a machine under a job.
func (w *World) interrupts(m *Machine, what string, forced bool) {
	if len(m.Agent.Jobs) > 0 && !forced {
		w.wrong = append(w.wrong, fmt.Sprintf("%s was %s under %s", m.Server.Name, what, m.Agent.Jobs[0]))
	}
}

// The scripts of a step that keeps a CI agent. Its probe has the script AgentState, and its answer is
// "ID PROCESS JOB JOB …"; the arguments of AgentRegister are the scope, the name and the labels.
const (
	AgentState    = "agent state"
	AgentRegister = "agent register"
	AgentStart    = "agent start"
	AgentStop     = "agent stop"
	AgentForget   = "agent forget"
)

// agentState is the answer to the probe.
func (m *Machine) agentState() string {
	process := "-"
	if m.Agent.Runs {
		process = "runs"
	}
	if m.Agent.Unread {
		return "rubbish"
	}
	return strings.Join(append([]string{orNone(m.Agent.ID), process}, m.Agent.Jobs...), " ")
}

// agentChange does what a script of an agent's step does.
func (c *conn) agentChange(t engine.RunChange, f Fault) (exit int, known bool) {
	w, m, args := c.world, c.machine, t.Change.Command.Args
	a := &m.Agent
	switch t.Change.Command.Script {
	case AgentRegister:
		if t.Input.Reveal() != "token for "+args[0] {
			w.wrong = append(w.wrong, m.Server.Name+" was registered without a token")
			return 1, true
		}
		for _, e := range w.Entries {
			if e.Scope == args[0] && e.Name == args[1] {
				return 1, true // the name is taken
			}
		}
		id := w.register(args[0], args[1], args[2:])
		if !f.Half {
			a.ID = id
		}
	case AgentStart:
		a.Runs, a.started = true, time.Now()
	case AgentStop:
		w.interrupts(m, "stopped", false)
		a.Runs = false
	case AgentForget:
		a.ID = ""
	default:
		return 0, false
	}
	return 0, true
}
