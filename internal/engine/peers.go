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

// Service is the engine's way to a service that keeps an entry for each host. A realm is where it keeps them, such as an organization.
type Service interface {
	// Observe reads the realms of the run, each once: one that cannot be read has a Trouble.
	Observe(context.Context) map[string]plan.PeerSeen
	// Entry reads one entry, as a listing that has no other; absent: there is none with the id.
	Entry(ctx context.Context, realm, id string) (inventory.Seen[inventory.Listing], error)
	// MayJoin fails unless the credentials may admit hosts. It leaves nothing behind with which one could join.
	MayJoin(ctx context.Context, realm string) error
	// Admit returns what one host joins with.
	Admit(ctx context.Context, realm, host string) (Admission, error)
	// Revoke ends an admission. Already used, expired or revoked: nothing to do.
	Revoke(ctx context.Context, id string) error
	// Change makes a change at the service.
	Change(context.Context, plan.PeerChange) error
}

// Fencer is a service that gives work to hosts.
type Fencer interface {
	Service
	// Fence keeps new jobs away from an agent. It does not end a job.
	Fence(context.Context, plan.AgentSpec, inventory.Agent) error
	// Unfence gives an agent the labels and the group of its specification.
	Unfence(context.Context, plan.AgentSpec, inventory.Agent) error
}

// Admission is what a host joins a service with.
type Admission struct {
	ID      string // for Revoke; empty: it ends by itself, or was made by hand
	Secret  secret.Value
	Expires time.Time // zero: unknown
}

// DefaultAgent is the time for a CI service to show an agent that was started as online. GitHub keeps the session of a
// listener that was killed for four minutes.
const DefaultAgent = 5 * time.Minute

// errNoService reports a plan that needs a service, in a run without its credentials.
var errNoService = errors.New("the configuration has no such service")

// service returns the service of a step.
func (e *Engine) service(id inventory.ServiceName) (Service, error) {
	s, has := e.Peers[id]
	if !has {
		return nil, fmt.Errorf("%s: %w", id, errNoService)
	}
	return s, nil
}

// fencer returns the service of a step that gives work to hosts.
func (e *Engine) fencer(id inventory.ServiceName) (Fencer, error) {
	s, err := e.service(id)
	if err != nil {
		return nil, err
	}
	f, gives := s.(Fencer)
	if !gives {
		return nil, fmt.Errorf("%s gives no work to hosts", id)
	}
	return f, nil
}

// entry reads one entry of a service; there is false if it has none with the id.
func (e *Engine) entry(ctx context.Context, of inventory.ServiceName, realm, id string) (l inventory.Listing, there bool, err error) {
	s, err := e.service(of)
	if err != nil {
		return l, false, err
	}
	seen, err := s.Entry(ctx, realm, id)
	if err == nil && seen.IsUnread() {
		err = errors.New(seen.Why())
	}
	if err != nil {
		return l, false, fmt.Errorf("read entry %s of %s: %w", id, cmp.Or(realm, string(of)), err)
	}
	l, there = wire.Clean(e.Scrub, seen).Get()
	return l, there, nil
}

// mayJoin fails unless the run may admit hosts to a service. It is checked before the first host is changed: a host that was claimed and
// cannot join would be half of a member.
func (e *Engine) mayJoin(ctx context.Context, p plan.Peer) error {
	s, err := e.service(p.Service().ID)
	if err == nil {
		err = e.checkLock()
	}
	if err != nil {
		return err
	}
	realm, _ := p.Realm()
	return s.MayJoin(ctx, realm)
}

// mayJoinAll is mayJoin for all services that a claimed host must be able to join.
func (w *worker) mayJoinAll(ctx context.Context) error {
	for _, p := range plan.Peers(w.engine.Steps(w.host.Spec)) {
		if _, wanted := p.Realm(); wanted && p.Service().Required {
			if err := w.engine.mayJoin(ctx, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// admitted is an admission that the running script has.
type admitted struct {
	service Service
	id      string
}

// admission returns the input of a script that joins the host. The id of its key is recorded before the host gets it.
func (w *worker) admission(ctx context.Context, step plan.Step) (secret.Value, error) {
	p, is := step.(plan.Peer)
	if !is {
		return secret.Value{}, errors.New("the step joins no service")
	}
	s, err := w.engine.service(p.Service().ID)
	if err != nil {
		return secret.Value{}, err
	}
	realm, _ := p.Realm()
	a, err := s.Admit(ctx, realm, w.host.Name)
	if err != nil {
		return secret.Value{}, err
	}
	if a.ID != "" {
		w.admitted = admitted{s, a.ID}
		w.engine.emit(Event{Type: KeyMade, Host: w.host.Name, Text: a.ID})
	}
	value, err := w.engine.Input(InputFor{Kind: plan.Admission, Host: w.host.Spec}, a.Secret)
	if err != nil {
		return secret.Value{}, w.admissionUsed(ctx, err)
	}
	return value, nil
}

// revoking limits how long a key is revoked after the run was cancelled.
const revoking = 20 * time.Second

// admissionUsed ends the key of a join that failed, also when the run was cancelled meanwhile: no daemon may join with it later. A key that
// was used is no more.
func (w *worker) admissionUsed(ctx context.Context, failed error) error {
	a := w.admitted
	if w.admitted = (admitted{}); failed == nil || a.id == "" {
		return failed
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), revoking)
	defer cancel()
	if err := a.service.Revoke(ctx, a.id); err != nil {
		return errors.Join(failed, fmt.Errorf("the key %s could not be revoked; it expires by itself within ten minutes: %w", a.id, err))
	}
	w.engine.emit(Event{Type: KeyRevoked, Host: w.host.Name, Text: a.id})
	return failed
}

// atService makes a change at a service. The entry must still be the planned one.
func (w *worker) atService(ctx context.Context, a plan.Action, c plan.Change) error {
	to, e := *c.Peer, w.engine
	s, err := e.service(to.Peer)
	if err != nil {
		return err
	}
	if to.Verb == inventory.RestoreAgent {
		return w.restoreAgent(ctx, to)
	}
	if to.Verb == inventory.DeleteEntry {
		if err := w.stillIdleAgent(ctx, a, c); err != nil {
			return err
		}
	}
	if to.Key == "" {
		now, there, err := e.entry(ctx, to.Peer, to.Realm, to.Entry.ID)
		if err == nil {
			err = unchanged(to, now, there)
		}
		if err != nil || !there && to.Verb == inventory.DeleteEntry {
			return err
		}
	}
	if err := e.checkLock(); err != nil {
		return err
	}
	err = s.Change(ctx, to)
	switch {
	case to.Verb == inventory.DeleteEntry && a.Forced && inventory.ClassOf(err) == inventory.Precondition:
		return nil // the service lists a job that the run may lose; a registration takes the entry over
	case err != nil:
		return err
	case to.Verb == inventory.DeleteEntry:
		w.deleted = append(w.deleted, to.Entry.ID)
	case to.Key != "":
		w.revoked = append(w.revoked, to.Key)
		e.emit(Event{Type: KeyRevoked, Host: w.host.Name, Text: to.Key})
	}
	return nil
}

// unchanged fails if an entry is not the planned one any more. One that is deleted may be missing already.
func unchanged(to plan.PeerChange, now inventory.Listing, there bool) error {
	what := to.Entry.ID + " of " + cmp.Or(to.Realm, string(to.Peer))
	if !there {
		if to.Verb == inventory.DeleteEntry {
			return nil
		}
		return fmt.Errorf("there is no entry %s any more; plan again", what)
	}
	is, was := now.Entries()[0], to.Entry
	if to.Verb == inventory.DeleteEntry && (!strings.EqualFold(is.Name, was.Name) || is.Online && !was.Online || is.Busy && !was.Busy) {
		return fmt.Errorf("entry %s changed since the plan: it is called %s, and another machine may use it; plan again", what, is.Name)
	}
	return nil
}

// viewPeer completes what the step of a service reads: the entries that matter are read again, because the list is older than the changes. done
// says that the step's changes were just made.
func (w *worker) viewPeer(ctx context.Context, p plan.Peer, v *plan.View, done bool) error {
	id := p.Service().ID
	if _, works := p.(plan.AgentKeeper); works {
		if v.Fenced = w.fence != nil; v.Fenced || done {
			v.Fence = nil // this run's own, or restored by it
		}
	}
	seen, realm := v.Peer(id), w.host.Peer(id).Realm
	if !seen.Read() || w.engine.Peers[id] == nil {
		return nil
	}
	var ids []string
	for _, e := range seen.Entries() {
		ids = append(ids, e.ID)
	}
	if said, is := p.Said(v.Facts); is && (realm == "" || strings.EqualFold(said.Realm, realm)) {
		ids = append(ids, said.ID)
	}
	slices.Sort(ids)
	var read []inventory.Listing
	for _, one := range slices.Compact(ids) {
		now, there, err := w.engine.entry(ctx, id, realm, one)
		if err != nil {
			return err
		}
		if there && !slices.Contains(w.deleted, one) {
			read = append(read, now)
		}
	}
	fresh := *seen
	fresh.Listing = seen.Now(read, w.revoked)
	w.host = w.host.See(id, &fresh)
	v.Peers = w.host.Peers
	return nil
}

// settled probes a step after its changes. A CI service shows an agent as online some time after its start.
func (w *worker) settled(ctx context.Context, step plan.Step, judge func(plan.View) plan.Finding) (plan.Finding, error) {
	f, err := w.probeAs(ctx, step, true, judge)
	if k, is := step.(plan.AgentKeeper); !is || w.engine.Peers[k.Service().ID] == nil {
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

// retirePeer ends the entry of a host that leaves. Where the service gives work, the host ends it itself after that work; a host that does not
// answer loses only its entry.
func (w *worker) retirePeer(ctx context.Context, a plan.Action) error {
	p, is := w.stepOf(a).(plan.Peer)
	if !is {
		return errors.New("no step keeps the entry; plan again")
	}
	if p.Service().Works {
		return w.retireAgent(ctx, a, p)
	}
	for _, c := range a.Changes {
		if err := w.atService(ctx, a, c); err != nil {
			return err
		}
	}
	return nil
}

func (w *worker) retireAgent(ctx context.Context, a plan.Action, p plan.Peer) error {
	silent := w.host.Unknown != nil
	if silent {
		if err := w.silentAgent(ctx, a); err != nil {
			return err
		}
	} else {
		if err := w.connect(ctx); err != nil {
			return err
		}
		if err := w.drainFor(ctx, a, p); err != nil {
			return err
		}
	}
	for _, c := range a.Changes {
		if c.Peer == nil && silent {
			continue
		}
		if err := w.change(ctx, a, c); err != nil {
			return err
		}
	}
	if silent {
		return nil
	}
	f, err := w.settled(ctx, p, p.Leave)
	if err == nil && len(f.Changes) > 0 {
		err = fmt.Errorf("the change had no effect: %s: %s", f.Changes[0].Reason.Code, f.Changes[0].Reason.Text)
	}
	return err
}

// forgetPeer deletes the entry of a host that is gone. It must still be the planned one, and unused.
func (e *Engine) forgetPeer(ctx context.Context, a plan.Action) error {
	w := &worker{engine: e, host: plan.Host{Name: a.Host}}
	for _, c := range a.Changes {
		if err := w.atService(ctx, a, c); err != nil {
			return err
		}
	}
	return nil
}
