package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/hosts"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/lock"
	"github.com/macfleet/macfleet/internal/runlog"
	"github.com/macfleet/macfleet/internal/view"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/providers/kubernetes"
)

// Locking are the flags of commands that change hosts.
type Locking struct {
	Timeout time.Duration // how long another's lock is waited for
	Lasts   time.Duration // how long this run's lock is valid without being renewed
}

func (o Locking) check() error {
	return cmp.Or(refuse(o.Timeout < 0, "--lock-timeout is %s; it must be 0 or more", o.Timeout),
		refuse(o.Lasts < time.Second || o.Lasts%time.Second != 0, "--lock-lease is %s; it must be a whole number of seconds, at least 1s", o.Lasts))
}

// releasing is how long the cluster has for taking the lock back. After that it expires.
const releasing = 5 * time.Second

// lease is the lock of the configuration and environment.
func (s *session) lease() kubernetes.Lease {
	return s.kubernetes.Lease(kubernetes.LeaseName(s.config.Name, s.config.Environment))
}

// locked does something under the lock. It is taken before anything is read, so that
// a plan is made of what the run before has left. looking ends with the first Ctrl-C,
// acting with the second. Without a cluster, or with one that is not prepared, hosts keep
// the lock.
func (s *session) locked(looking, acting context.Context, o Locking, do func() error) error {
	if err := o.check(); err != nil {
		return err
	}
	s.engine.Run = s.env.this
	if s.kubernetes == nil {
		return do()
	}
	// A lock in a wrong cluster would be a change there.
	here, noted, err := s.rightCluster(looking, s.MovedFrom)
	if err != nil {
		return err
	}
	defer s.warnNoted(here, noted)
	l, err := lock.Acquire(looking, lock.Options{Store: s.lease(), Run: s.env.this, Machine: machine(), Lasts: o.Lasts, Wait: o.Timeout, Tell: s.reportWaiting(),
		Place: lock.Place{ID: here.UID, Name: here.Name()}, From: s.MovedFrom})
	var elsewhere *lock.ElsewhereError
	switch {
	case errors.As(err, &elsewhere):
		r := elsewhere.Record
		return plan.LockedElsewhere(s.config.Owner, here, plan.Lock{Run: r.Run, ClusterUID: r.Place.ID, Cluster: r.Place.Name})
	case errors.Is(err, kubernetes.ErrUnprepared):
		return do()
	case err != nil:
		return err
	}
	defer s.hold(acting, l)()
	return do()
}

// rightCluster returns which cluster it is, or why nothing may be changed in it. A cluster
// that answers and does not say which one it is has no uid: what relies on it is refused later.
// noted is the cluster that macfleet's namespace names.
func (s *session) rightCluster(ctx context.Context, movedFrom string) (here inventory.ClusterID, noted inventory.Seen[inventory.ClusterID], err error) {
	here, noted, err = s.kubernetes.Which(ctx)
	switch {
	case err != nil && (s.config.ClusterUID != "" || kubernetes.Unanswered(err)):
		return here, noted, &engine.AwayError{Provider: engine.Kubernetes, Err: err}
	case err != nil:
		return here, noted, nil
	}
	return here, noted, engine.RightCluster(s.config, here, noted, movedFrom)
}

// warnNoted warns after a move of hosts that macfleet's namespace still names the old cluster: an administrator
// changes that, as macfleet's own account may not.
func (s *session) warnNoted(here inventory.ClusterID, noted inventory.Seen[inventory.ClusterID]) {
	if was, noting := noted.Get(); noting && here.UID != "" && was.UID != here.UID {
		s.env.warn(fmt.Sprintf("the namespace %s still names the cluster %s; until that is changed, every command needs --moved-from-cluster, and drift fails; fix: "+
			"macfleet init cluster --moved-from-cluster %s", s.config.Kubernetes.Namespace, was, was.UID))
	}
}

// hold lets the engine work under a lock until it is lost, or released by the function that it returns.
func (s *session) hold(acting context.Context, l *lock.Lock) (release func()) {
	s.env.held.Store(l)
	stop, cancel := context.WithCancelCause(s.engine.Stop)
	over := make(chan struct{})
	go func() {
		defer close(over)
		select {
		case <-l.Lost():
			cancel(l.Check()) // whatever waits, such as for Nodes, stops waiting
			s.env.logged(slog.LevelWarn, "lock lost", "why", l.Check())
		case <-stop.Done():
		}
	}()
	s.engine.Run, s.engine.Guard, s.engine.Stop = l.Run(), l, stop
	s.env.this.Epoch = l.Run().Epoch
	s.engine.Raise = func(ctx context.Context, above int64) (plan.Run, error) {
		run, err := l.Raise(ctx, above)
		if err == nil && run.Epoch != s.env.this.Epoch {
			s.env.this.Epoch = run.Epoch
			if w := s.env.record.Load(); w != nil { // hosts know the run by the new one
				err = w.Write(runlog.Entry{Event: engine.Event{Type: runlog.TypeRise}, Epoch: run.Epoch})
			}
		}
		return run, err
	}
	return func() {
		// After an abort, actions may still run on hosts: the lock is not released, it expires.
		ctx, end := context.WithTimeout(acting, releasing)
		defer end()
		switch err := l.Release(ctx); {
		case err == nil:
			s.env.held.Store(nil)
		case acting.Err() == nil:
			s.env.errText().Warn(err.Error())
		}
		cancel(nil)
		<-over
	}
}

// reportWaiting returns what says, now and then, that another's lock is waited for.
func (s *session) reportWaiting() func(lock.Waiting) {
	var last time.Time
	var run string
	return func(w lock.Waiting) {
		now := time.Now()
		if run == w.Record.Run.ID && now.Sub(last) < heartbeat {
			return
		}
		last, run = now, w.Record.Run.ID
		s.env.say(view.WaitingLine(s.config.String(), w))
	}
}

// warnInProgress warns a command that takes no lock that an apply is in progress, which may undo its change.
func (s *session) warnInProgress(ctx context.Context) {
	if s.kubernetes == nil {
		return
	}
	// If it cannot be read, the next request reports why.
	if l, err := s.lease().Look(ctx); err == nil && l != nil && l.Alive {
		s.env.warn(fmt.Sprintf("%s has been applying %s since %s (run %s) and continues; macfleet lock status shows more",
			l.Run.Who, s.config.Owner, l.Since.Format("15:04:05 MST"), l.Run.ID))
	}
}

// hostPoll is how often hosts are checked again on which another run works: each check reads everything.
const hostPoll = 10 * time.Second

// lookWhenFree looks, and waits for runs that hosts keep a lock for, and for hosts that are about to take a change
// back: the plan that it returns was made when they were free. concerned says which hosts of a plan are waited for.
func (s *session) lookWhenFree(ctx context.Context, o Locking, concerned func(*plan.Plan) map[string]bool,
	look func(context.Context) (*plan.Plan, error)) (*plan.Plan, error) {
	late := time.Now().Add(o.Timeout)
	var took string      // the run that hosts were taken from last; hosts that still name it are waited for
	var undone time.Time // by then every host has taken back what is armed now
	for {
		p, err := look(ctx)
		if err != nil {
			return nil, err
		}
		if undone.IsZero() {
			undone = time.Now().Add(cmp.Or(s.config.SSH.Timeouts.Undo, hosts.DefaultUndo) + undoSlack)
		}
		if a := armed(p); a != nil && time.Now().Before(undone) {
			s.env.say(view.ArmedLine(a.Name, *a.Seen.Armed))
			if err := pause(ctx, min(hostPoll, max(undoPoll, time.Duration(a.Seen.Armed.Left+1)*time.Second))); err != nil {
				return nil, err
			}
			continue
		}
		h := heldByAnother(p, s.engine.Run.ID, concerned(p))
		if h == nil {
			return p, nil
		}
		if e := h.Seen.Entered; e.ID != took && runlog.Gone(s.env.kept("runs"), e.ID) {
			took = e.ID
			if err := s.takeOver(ctx, p, *e); err != nil {
				return nil, err
			}
			continue
		}
		w := lock.Waiting{Record: view.HostLock(h.Name, *h.Seen.Entered, hosts.LockSpan).Record, Still: h.Seen.Entered.Idle, Left: time.Until(late)}
		w.Record.Machine = "host " + h.Name
		if w.Left <= 0 {
			return nil, &lock.HeldError{Waiting: w, Waited: o.Timeout}
		}
		s.env.say(view.WaitingLine(h.Name, w))
		if err := pause(ctx, min(hostPoll, w.Left)); err != nil {
			return nil, err
		}
	}
}

// pause waits, or returns why ctx ended.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// undoPoll is how often a host is checked whose time is over: its job looks every two seconds, and later if launchd restarts it.
const undoPoll = 2 * time.Second

// undoSlack is how long after its deadline a host may take to have a change taken back: its job looks every two seconds,
// and restoring takes a while. A host that has not done so by then says it when the next change is armed.
const undoSlack = 30 * time.Second

// armed returns the host that has the longest to go until it takes a change back.
func armed(p *plan.Plan) (last *plan.Host) {
	for i, h := range p.Hosts {
		if h.Seen.Armed != nil && (last == nil || h.Seen.Armed.Left > last.Seen.Armed.Left) {
			last = &p.Hosts[i]
		}
	}
	return last
}

// takeOver takes all hosts from a run whose process has ended. A higher epoch is entered there, so that nothing which that
// run may still have under way is followed by more of it.
func (s *session) takeOver(ctx context.Context, p *plan.Plan, dead plan.Entered) error {
	s.env.say(fmt.Sprintf("Taking over the hosts of run %s (%s): its process on this machine has ended.", dead.ID, dead.Who))
	for _, h := range p.Hosts {
		if e := h.Seen.Entered; e == nil || !e.Alone || !e.Held || e.ID != dead.ID {
			continue
		}
		if err := s.takeHost(ctx, h, dead.ID); err != nil {
			return err
		}
	}
	return nil
}

// takeHost takes a host from a run, and leaves it.
func (s *session) takeHost(ctx context.Context, h plan.Host, from string) error {
	run := newRun(s.started)
	conn, err := s.hosts.Connect(ctx, hosts.Target{Server: h.Server, Name: h.Name, Trust: plan.Trust{Pin: s.engine.PinOf(h)}, Run: &run, From: from})
	if err != nil {
		return err
	}
	defer conn.Close()
	return conn.Leave(ctx)
}

// worked returns the servers that a plan would change, by their ids.
func worked(p *plan.Plan) map[string]bool {
	work := make(map[string]bool)
	for _, actions := range p.Runnable() {
		work[actions[0].ServerID] = true
	}
	for _, h := range p.Hosts {
		if h.MarkerStale() {
			work[h.Server.ID] = true
		}
	}
	return work
}

// all returns all servers of a plan.
func all(p *plan.Plan) map[string]bool {
	ids := make(map[string]bool)
	for _, h := range p.Hosts {
		ids[h.Server.ID] = true
	}
	return ids
}

// heldByAnother returns one of these servers' hosts that says that another run works on it.
func heldByAnother(p *plan.Plan, run string, of map[string]bool) *plan.Host {
	for _, h := range p.Hosts {
		if e := h.Seen.Entered; e != nil && e.Alone && e.Held && e.ID != run && of[h.Server.ID] {
			return &h
		}
	}
	return nil
}

// LockStatus shows who has the lock.
func LockStatus(ctx context.Context, env *Env) error {
	return env.withLocks(ctx, func(_ context.Context, all []kept) error {
		for _, k := range all {
			env.outText().Lock(k.status)
		}
		return nil
	})
}

// kept is a lock, and how it is taken from its run.
type kept struct {
	status view.LockStatus
	take   func(context.Context) error
}

// withLocks finds the locks of the configuration: the cluster's, or those of the hosts without one.
func (env *Env) withLocks(ctx context.Context, f func(context.Context, []kept) error) error {
	config, err := env.config(reading{})
	if err != nil {
		return err
	}
	n, find := need{config: config, clusterOnly: true}, (*session).clusterLock
	if config.Kubernetes == nil {
		n, find = need{Selection: env.Selection, config: config, readOnly: true}, (*session).hostLocks
	}
	return env.with(ctx, n, func(looking context.Context, s *session) error {
		all, err := find(s, looking)
		if err != nil {
			return err
		}
		if len(all) == 0 {
			env.outText().Lock(view.LockStatus{Of: config.String(), Where: "each host keeps its own; none is held"})
			return nil
		}
		return f(looking, all)
	})
}

func (s *session) clusterLock(ctx context.Context) ([]kept, error) {
	store := s.lease()
	r, version, err := store.Get(ctx)
	age := store.Age(r)
	status := view.LockStatus{Of: s.config.String(), Where: store.String(), There: version != "", Record: r, Age: age, Dead: age >= r.Lasts}
	return []kept{{status, func(ctx context.Context) error {
		_, err := lock.Break(ctx, store, r.Run.ID)
		return err
	}}}, err
}

func (s *session) hostLocks(ctx context.Context) (all []kept, err error) {
	p, err := s.look(ctx, "")
	if err != nil {
		return nil, err
	}
	for _, h := range p.Hosts {
		e := h.Seen.Entered
		if e == nil || !e.Alone || !e.Held {
			continue
		}
		all = append(all, kept{view.HostLock(h.Name, *e, hosts.LockSpan), func(ctx context.Context) error { return s.takeHost(ctx, h, e.ID) }})
	}
	return all, nil
}

// ReleaseOptions are the flags of lock release.
type ReleaseOptions struct {
	Force   string // the run that it is taken from, though it may live; empty: only what has expired
	Approve bool
}

// LockRelease takes the lock from a run that is gone.
func LockRelease(ctx context.Context, env *Env, o ReleaseOptions) error {
	approved := o.Force != "" || o.Approve
	return env.withLocks(ctx, func(ctx context.Context, all []kept) error {
		t := env.outText()
		released := 0
		for _, k := range all {
			r := k.status.Record
			meant := r.Held && (o.Force == "" || o.Force == r.Run.ID || o.Force == r.Run.Who)
			lives := meant && o.Force == "" && !k.status.Dead
			if !meant || lives {
				t.Lock(k.status)
			}
			switch {
			case !meant:
				continue
			case lives:
				return fmt.Errorf("the lock of run %s has not expired; wait for it, or take it: macfleet lock release --force %s", r.Run.ID, r.Run.ID)
			case o.Force == "":
				if err := env.approvable("lock release", approved, true, "pass --auto-approve (expired locks only), or --force RUN"); err != nil {
					return err
				}
				if err := env.ask(approved, view.ReleaseQuestion(k.status)); err != nil {
					return err
				}
			}
			if err := k.take(ctx); err != nil {
				return err
			}
			released++
			t.Say(fmt.Sprintf("%s: released the lock of %s (run %s). That run starts nothing more.", k.status.Of, r.Run.Who, r.Run.ID))
		}
		if released == 0 {
			return refuse(o.Force != "", "no lock is held by %q; pass the run id or owner shown by lock status", o.Force)
		}
		var done view.Counts
		done.Add("released", released)
		return env.summed("lock", done, nil)
	})
}
