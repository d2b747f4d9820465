package app

import (
	"context"
	"fmt"

	"github.com/macfleet/macfleet/hosts"
	"github.com/macfleet/macfleet/internal/lock"
	"github.com/macfleet/macfleet/internal/view"
)

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

// withLocks finds the locks of the configuration: the cluster's, or those of the
// hosts where no cluster keeps one.
func (env *Env) withLocks(ctx context.Context, f func(context.Context, []kept) error) error {
	config, err := env.config(reading{})
	if err != nil {
		return err
	}
	if config.Kubernetes == nil {
		return env.with(ctx, need{Selection: env.Selection, config: config, readOnly: true}, func(looking context.Context, s *session) error {
			return s.withHostLocks(looking, f)
		})
	}
	return env.with(ctx, need{config: config, reach: clusterOnly}, func(looking context.Context, s *session) error {
		store := s.lease()
		r, version, err := store.Get(looking)
		if err != nil {
			return err
		}
		age := store.Age(r)
		status := view.LockStatus{Of: s.config.String(), Where: store.String(), There: version != "", Record: r, Age: age, Dead: age >= r.Lasts}
		return f(looking, []kept{{status, func(ctx context.Context) error {
			_, err := lock.Break(ctx, store, r.Run.ID)
			return err
		}}})
	})
}

func (s *session) withHostLocks(ctx context.Context, f func(context.Context, []kept) error) error {
	p, err := s.look(ctx, "")
	if err != nil {
		return err
	}
	var all []kept
	for _, h := range p.Hosts {
		if e := h.Seen.Entered; e != nil && e.Alone && e.Held {
			run := newRun(s.started)
			target := hosts.Target{Server: h.Server, Name: h.Name, Pin: s.engine.PinOf(h), Run: &run, From: e.ID}
			all = append(all, kept{view.HostLock(h.Name, *e, hosts.LockSpan), func(ctx context.Context) error { return s.enterAndLeave(ctx, target) }})
		}
	}
	if len(all) == 0 {
		s.env.outText().Lock(view.LockStatus{Of: s.config.String(), Where: "without a cluster the hosts keep one each, and none of them is held"})
		return nil
	}
	return f(ctx, all)
}

// enterAndLeave takes a host from the run that has it, and gives it back.
func (s *session) enterAndLeave(ctx context.Context, t hosts.Target) error {
	conn, err := s.hosts.Connect(ctx, t)
	if err != nil {
		return err
	}
	defer conn.Close()
	return conn.Leave(ctx)
}

// ReleaseOptions are the flags of lock release.
type ReleaseOptions struct {
	Force   string // the run that it is taken from, though it may live; empty: only what has expired
	Approve bool
}

// LockRelease takes the lock from a run that is gone.
func LockRelease(ctx context.Context, env *Env, o ReleaseOptions) error {
	if err := env.approvable("the release of a lock", o.Force != "" || o.Approve, true,
		"pass --auto-approve for one that has expired, or --force RUN"); err != nil {
		return err
	}
	return env.withLocks(ctx, func(ctx context.Context, all []kept) error {
		named := false
		for _, k := range all {
			released, err := env.release(ctx, k, o)
			if err != nil {
				return err
			}
			named = named || released
		}
		if o.Force != "" && !named {
			return fmt.Errorf("%q has no lock here; --force takes the id of the run that has it, or who runs it", o.Force)
		}
		return nil
	})
}

// release takes one lock away where the options say so, and reports whether it did.
func (env *Env) release(ctx context.Context, k kept, o ReleaseOptions) (bool, error) {
	r := k.status.Record
	switch {
	case !r.Held, o.Force != "" && o.Force != r.Run.ID && o.Force != r.Run.Who:
		env.outText().Lock(k.status)
		return false, nil
	case o.Force == "" && !k.status.Dead:
		env.outText().Lock(k.status)
		return false, fmt.Errorf("the run %s gives signs of life; let it end, or name it: macfleet lock release --force %s", r.Run.ID, r.Run.ID)
	case o.Force == "" && !o.Approve:
		if err := env.ask(view.ReleaseQuestion(k.status)); err != nil {
			return false, err
		}
	}
	if err := k.take(ctx); err != nil {
		return false, err
	}
	env.outText().Say(fmt.Sprintf("%s: the lock of %s (run %s) is released. That run changes nothing more.", k.status.Of, r.Run.Who, r.Run.ID))
	return true, nil
}
