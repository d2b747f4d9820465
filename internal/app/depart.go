package app

import (
	"cmp"
	"context"

	"github.com/macfleet/macfleet/internal/view"
	"github.com/macfleet/macfleet/plan"
)

// DepartOptions are the flags of replace and release.
type DepartOptions struct {
	Locking
	Approve bool
	Full    bool // the plan is shown with every host, step and field
	AnyTime bool // the windows do not count
	Cancel  bool // the server stays
}

// Replace lets another server join before a host is released.
func Replace(ctx context.Context, env *Env, o DepartOptions) error {
	return depart(ctx, env, o, plan.Departure{Name: env.Args[0], Replace: true})
}

// ReleaseServer gives a server that has no place in the configuration back to the pool.
func ReleaseServer(ctx context.Context, env *Env, o DepartOptions) error {
	return depart(ctx, env, o, plan.Departure{Name: env.Args[0]})
}

// depart makes the plan of a server that leaves, asks, and performs it. apply does the rest if it is interrupted.
func depart(ctx context.Context, env *Env, o DepartOptions, d plan.Departure) error {
	if o.Cancel {
		return cancelDeparture(ctx, env, o)
	}
	if err := cmp.Or(env.oneHost(), env.approvable(env.Command, o.Approve, true, "review macfleet explain "+d.Name+", then pass --auto-approve")); err != nil {
		return err
	}
	env.ending = &view.Ending{}
	n := need{bounds: &Bounds{AnyTime: o.AnyTime}, drain: DefaultDrain, full: o.Full, failOnDeferred: true, asksRight: true}
	return env.with(ctx, n, func(looking context.Context, s *session) error {
		s.limit(0)
		s.engine.Selection.Departs = &d
		return s.locked(looking, ctx, o.Locking, func() error {
			p, err := s.lookWhenFree(looking, o.Locking, worked, func(ctx context.Context) (*plan.Plan, error) { return s.look(ctx, "") })
			if err != nil {
				return err
			}
			found := s.engine.Selection.Departs
			if found.Name != d.Name {
				env.errText().Say(d.Name + " is " + found.Name)
			}
			return s.perform(ctx, p, o.Approve)
		})
	})
}

// departing asks whether a server may leave. To release one that has no place in the configuration, a person types
// its name.
func (env *Env) departing(p *plan.Plan, d *plan.Departure, approved bool, question string) error {
	if !d.Replace {
		if h, known := p.HostByServer(d.ServerID); known && h.Unowned {
			env.errText().Say("No one is known to own " + d.Name + ". macfleet saw no virtual machine and no job of Tart, Packer, Xcode or a GitHub runner there; other work is unknown and would be lost.")
		}
		return env.askFor(approved, question+" The erased server returns to the pool.", d.Name)
	}
	if len(p.Runnable()) == 0 {
		question = d.Name + " is not replaced now. Store that it is replaced as soon as its group has another server?"
	}
	return env.ask(approved, question)
}

// cancelDeparture makes a server stay that should be replaced or released.
func cancelDeparture(ctx context.Context, env *Env, o DepartOptions) error {
	if err := env.oneHost(); err != nil {
		return err
	}
	return env.with(ctx, need{}, func(looking context.Context, s *session) error {
		return s.locked(looking, ctx, o.Locking, func() error {
			k, err := s.engine.CancelDeparture(looking, env.Args[0])
			if err != nil {
				return err
			}
			env.outText().Staying(k)
			return nil
		})
	})
}
