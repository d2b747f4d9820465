package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/internal/wire"
	"github.com/macfleet/macfleet/plan"
)

// Agents are the CI services that give jobs to agents on hosts. A scope is the web address where agents register.
type Agents interface {
	// Observe reads the scopes of the configuration, each once: a scope that cannot be read has a Trouble.
	Observe(context.Context) map[string]plan.ServiceSeen
	// Agent reads one entry; absent: there is none with the id.
	Agent(ctx context.Context, scope, id string) (inventory.Seen[inventory.Agent], error)
	// Register returns what agents of a scope register with. One serves all agents of a run.
	Register(ctx context.Context, scope string) (Registration, error)
	// Fence keeps new jobs away from an agent. It does not end a job.
	Fence(context.Context, plan.AgentSpec, inventory.Agent) error
	// Unfence gives an agent the labels and the group of its specification.
	Unfence(context.Context, plan.AgentSpec, inventory.Agent) error
	// Deregister deletes an entry. Already deleted: nothing to do.
	Deregister(ctx context.Context, scope, id string) error
}

// Registration is what an agent registers with: a token, or a finished configuration for one job (GitHub's JIT).
type Registration struct {
	Token   secret.Value
	Encoded secret.Value // in base64; zero: the agent configures itself with Token
	Expires time.Time
}

// DefaultAgent is the time for a CI service to show an agent that was started as online. GitHub keeps the session of a
// listener that was killed for four minutes.
const DefaultAgent = 5 * time.Minute

// errNoAgents reports a plan that needs a CI service, in a run without one.
var errNoAgents = errors.New("the configuration has no CI service")

// agent reads one entry of a service; there is false if it has none with the id.
func (e *Engine) agent(ctx context.Context, scope, id string) (a inventory.Agent, there bool, err error) {
	if e.Agents == nil {
		return a, false, errNoAgents
	}
	seen, err := e.Agents.Agent(ctx, scope, id)
	if err == nil && seen.IsUnread() {
		err = errors.New(seen.Why())
	}
	if err != nil {
		return a, false, fmt.Errorf("read agent %s of %s: %w", id, scope, err)
	}
	a, there = wire.Clean(e.Scrub, seen).Get()
	return a, there, nil
}

// atService makes a change at the CI service.
func (w *worker) atService(ctx context.Context, a plan.Action, c plan.Change) error {
	to, e := c.Agent, w.engine
	if e.Agents == nil {
		return errNoAgents
	}
	switch to.Verb {
	case plan.Deregister:
		if err := w.stillIdleAgent(ctx, a, c); err != nil {
			return err
		}
		now, there, err := e.agent(ctx, to.Scope, to.Agent.ID)
		if there && (!strings.EqualFold(now.Name, to.Agent.Name) || now.Online && !to.Agent.Online) {
			err = fmt.Errorf("agent %s of %s changed since the plan: it is called %s, and another machine may use it; plan again", now.ID, to.Scope, now.Name)
		}
		if err == nil {
			err = e.checkLock()
		}
		if err != nil {
			return err
		}
		err = e.Agents.Deregister(ctx, to.Scope, to.Agent.ID)
		if a.Forced && inventory.ClassOf(err) == inventory.Precondition {
			return nil // the service lists a job that the run may lose; a registration takes the entry over
		}
		if err == nil {
			w.deregistered = append(w.deregistered, to.Agent.ID)
		}
		return err
	case plan.Restore:
		if f := w.fence; f != nil && f.agent.ID == to.Agent.ID {
			return nil // the end of the fence restores it
		}
		_, spec, ok := plan.AgentStep(e.Steps(w.host.Spec))
		if !ok {
			return errors.New("the host should be no agent of a CI service; plan again")
		}
		now, there, err := e.agent(ctx, to.Scope, to.Agent.ID)
		if err == nil && !there {
			err = fmt.Errorf("%s has no agent %s any more; plan again", to.Scope, to.Agent.ID)
		}
		if err == nil {
			err = e.checkLock()
		}
		if err != nil {
			return err
		}
		return e.Agents.Unfence(ctx, spec, now)
	}
	return fmt.Errorf("unknown change of an agent: %s", to.Verb)
}

// registration returns the input of a script that registers the host's agent.
func (w *worker) registration(ctx context.Context) (secret.Value, error) {
	_, spec, ok := plan.AgentStep(w.engine.Steps(w.host.Spec))
	if !ok || w.engine.Agents == nil {
		return secret.Value{}, errNoAgents
	}
	if w.admission.IsZero() {
		r, err := w.engine.Agents.Register(ctx, spec.Scope)
		if err != nil {
			return secret.Value{}, err
		}
		w.admission = r.Token
	}
	return w.engine.Input(InputFor{Kind: plan.Registration, Host: w.host.Spec}, w.admission)
}

// viewAgent completes what the step of a CI agent reads: the entries that matter are read again, because the list is older
// than the changes. done says that the step's changes were just made.
func (w *worker) viewAgent(ctx context.Context, k plan.AgentKeeper, v *plan.View, done bool) error {
	if v.Fenced = w.fence != nil; v.Fenced || done {
		v.Fence = nil // this run's own, or restored by it
	}
	if v.Service == nil || v.Service.Trouble != nil {
		return nil
	}
	spec, _ := k.Agent()
	now := *v.Service
	gone := func(a inventory.Agent) bool { return slices.Contains(w.deregistered, a.ID) }
	now.Agents = slices.DeleteFunc(slices.Clone(now.Agents), gone)
	ids := w.namesakes(spec)
	said, ok := k.Entry(v.Facts)
	scope, id := said.Realm, said.ID
	if spec.Scope = cmp.Or(spec.Scope, scope); ok && strings.EqualFold(scope, spec.Scope) {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range slices.Compact(ids) {
		a, there, err := w.engine.agent(ctx, spec.Scope, id)
		if err != nil {
			return err
		}
		now.Agents = slices.DeleteFunc(now.Agents, func(old inventory.Agent) bool { return old.ID == id })
		if there && !gone(a) {
			now.Agents = append(now.Agents, a)
		}
	}
	slices.SortFunc(now.Agents, func(a, b inventory.Agent) int { return strings.Compare(a.ID, b.ID) })
	v.Service, w.host.Service = &now, &now
	return nil
}

// settled probes a step after its changes. A CI service shows an agent as online some time after its start.
func (w *worker) settled(ctx context.Context, step plan.Step, judge func(plan.View) plan.Finding) (plan.Finding, error) {
	f, err := w.probeAs(ctx, step, true, judge)
	if _, is := step.(plan.AgentKeeper); !is || w.engine.Agents == nil {
		return f, err
	}
	waiting, cancel := context.WithTimeout(ctx, cmp.Or(w.engine.Ready.Agent, DefaultAgent))
	defer cancel()
	defer context.AfterFunc(w.engine.Stop, cancel)()
	for err == nil && len(f.Changes) > 0 || passing(err) {
		why := "its service does not answer"
		if err == nil {
			why = f.Changes[0].Reason.Text
		}
		w.awaits(Idling, "waiting for the CI agent: "+why)
		if pause(waiting, cmp.Or(w.engine.Ready.Every, DefaultEvery)) != nil {
			break
		}
		f, err = w.probeAs(ctx, step, true, judge)
	}
	return f, err
}

// passing reports whether a service's error passes by itself.
func passing(err error) bool {
	switch inventory.ClassOf(err) {
	case inventory.ServerFault, inventory.NetworkFault, inventory.RateLimited:
		return true
	}
	return false
}

// retireAgent ends the CI agent of a host that leaves. A host that does not answer loses only its entry at the service.
func (w *worker) retireAgent(ctx context.Context, a plan.Action) error {
	k, _, ok := w.agentFor(a)
	if !ok {
		return errors.New("no step keeps a CI agent on the host; plan again")
	}
	if w.host.Unknown != nil {
		if err := w.silentAgent(ctx, a); err != nil {
			return err
		}
	} else {
		if err := w.connect(ctx); err != nil {
			return err
		}
		if err := w.drainFor(ctx, a, k); err != nil {
			return err
		}
	}
	for _, c := range a.Changes {
		if c.Agent == nil && w.host.Unknown != nil {
			continue
		}
		if err := w.change(ctx, a, c); err != nil {
			return err
		}
	}
	if w.host.Unknown != nil {
		return nil
	}
	f, err := w.settled(ctx, k, k.Leave)
	if err == nil && len(f.Changes) > 0 {
		err = fmt.Errorf("the change had no effect: %s: %s", f.Changes[0].Reason.Code, f.Changes[0].Reason.Text)
	}
	return err
}

// forgetAgent deletes the entry of a CI agent whose host is gone. It must still be the planned one, and unused.
func (e *Engine) forgetAgent(ctx context.Context, a plan.Action) error {
	for _, c := range a.Changes {
		to := c.Agent
		now, there, err := e.agent(ctx, to.Scope, to.Agent.ID)
		switch {
		case err != nil:
			return err
		case !there:
			continue // already deleted
		case now.Online, now.Busy, !strings.EqualFold(now.Name, to.Agent.Name):
			return fmt.Errorf("agent %s of %s changed since the plan: it is called %s, and is online or busy; plan again", now.ID, to.Scope, now.Name)
		}
		if err := e.checkLock(); err != nil {
			return err
		}
		if err := e.Agents.Deregister(ctx, to.Scope, to.Agent.ID); err != nil {
			return err
		}
	}
	return nil
}
