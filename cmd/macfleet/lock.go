package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/macfleet/macfleet/hosts"
	"github.com/macfleet/macfleet/internal/lock"
	"github.com/macfleet/macfleet/internal/view"
)

func (a *app) lockingCmd() *cobra.Command {
	c := &cobra.Command{Use: "lock", Short: "See who applies, and take over from a run that is gone",
		Long: "One apply at a time works on a configuration and environment. Where there is a cluster, a Lease in\n" +
			"macfleet's namespace says who; it counts for 30 s without being renewed, so a run that was killed is\n" +
			"taken over by itself. Without a cluster each host keeps a lock for the run that works on it.\n" +
			"docs/locking.md says more."}
	c.AddCommand(&cobra.Command{Use: "status", Short: "Show who has the lock, where, since when, and whether that run lives", Args: cobra.NoArgs,
		Long: "status shows who has the lock. It changes nothing. Without a cluster it asks every host of the fleet.\n\n" +
			"Exit codes: 0 done, 1 error.",
		RunE: func(c *cobra.Command, _ []string) error { return a.lockStatus(c.Context()) }})
	var o releaseOptions
	r := &cobra.Command{Use: "release", Short: "Take the lock from a run that is gone", Args: cobra.NoArgs,
		Long: "release takes the lock away from the run that has it. That run, if it lives, finishes what it is\n" +
			"doing and changes nothing more. A lock that gave a sign of life lately is only taken with --force and\n" +
			"the id of the run, or who runs it, as macfleet lock status shows them.\n\n" +
			"  macfleet lock release\n" +
			"  macfleet lock release --force k3h7w2mq5a\n\n" +
			"Exit codes: 0 done, also where nobody has it, 1 error or not approved.",
		RunE: func(c *cobra.Command, _ []string) error { return a.lockRelease(c.Context(), o) }}
	r.Flags().StringVar(&o.force, "force", "", "take it from this `RUN` (its id, or who runs it), though it may live; does not ask")
	r.Flags().BoolVar(&o.approve, "auto-approve", false, "do not ask; takes only what has expired")
	c.AddCommand(r)
	return c
}

type releaseOptions struct {
	force   string
	approve bool
}

func (a *app) lockStatus(ctx context.Context) error {
	return a.withLocks(ctx, func(_ context.Context, _ *session, all []kept) error {
		for _, k := range all {
			a.outText().Lock(k.status)
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
func (a *app) withLocks(ctx context.Context, f func(context.Context, *session, []kept) error) error {
	config, err := a.config()
	if err != nil {
		return err
	}
	if config.Kubernetes == nil {
		return a.withHostLocks(ctx, f)
	}
	return a.withCluster(ctx, func(ctx, _ context.Context, s *session) error {
		store := s.lease()
		r, version, err := store.Get(ctx)
		if err != nil {
			return err
		}
		age := store.Age(r)
		status := view.LockStatus{Of: s.config.String(), Where: store.String(), There: version != "", Record: r, Age: age, Dead: age >= r.Lasts}
		return f(ctx, s, []kept{{status, func(ctx context.Context) error {
			_, err := lock.Break(ctx, store, r.Run.ID)
			return err
		}}})
	})
}

func (a *app) withHostLocks(ctx context.Context, f func(context.Context, *session, []kept) error) error {
	ctx, done := a.untilStopped(ctx)
	defer done()
	s, err := a.openToLook(ctx)
	if err != nil {
		return err
	}
	defer s.close()
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
		a.outText().Lock(view.LockStatus{Of: s.config.String(), Where: "without a cluster the hosts keep one each, and none of them is held"})
		return nil
	}
	return f(ctx, s, all)
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

func (a *app) lockRelease(ctx context.Context, o releaseOptions) error {
	if o.force == "" && !o.approve && !a.interactive() {
		return errors.New("the release of a lock must be approved and nobody can be asked here; pass --auto-approve for one that has expired, or --force RUN")
	}
	return a.withLocks(ctx, func(ctx context.Context, _ *session, all []kept) error {
		named := false
		for _, k := range all {
			r := k.status.Record
			switch {
			case !r.Held:
				a.outText().Lock(k.status)
				continue
			case o.force != "" && o.force != r.Run.ID && o.force != r.Run.Who:
				a.outText().Lock(k.status)
				continue
			case o.force == "" && !k.status.Dead:
				a.outText().Lock(k.status)
				return fmt.Errorf("the run %s gives signs of life; let it end, or name it: macfleet lock release --force %s", r.Run.ID, r.Run.ID)
			case o.force == "" && !o.approve:
				if err := a.ask(view.ReleaseQuestion(k.status)); err != nil {
					return err
				}
			}
			named = true
			if err := k.take(ctx); err != nil {
				return err
			}
			a.outText().Say(fmt.Sprintf("%s: the lock of %s (run %s) is released. That run changes nothing more.", k.status.Of, r.Run.Who, r.Run.ID))
		}
		if o.force != "" && !named {
			return fmt.Errorf("%q has no lock here; --force takes the id of the run that has it, or who runs it", o.force)
		}
		return nil
	})
}
