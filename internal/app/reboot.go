package app

import (
	"cmp"
	"context"
	"fmt"

	"github.com/macfleet/macfleet/internal/view"
	"github.com/macfleet/macfleet/plan"
)

// RebootOptions are the flags of reboot.
type RebootOptions struct {
	Locking
	Approve   bool
	ForceBusy []string // the host's name: its running work may be lost
}

// Reboot restarts a host once it is idle, and waits until it is back: with shutdown -r if it answers, otherwise through the provider.
func Reboot(ctx context.Context, env *Env, o RebootOptions) error {
	host := env.Args[0]
	if err := cmp.Or(env.oneHost(), env.approvable("reboot", o.Approve, true, "pass --auto-approve")); err != nil {
		return err
	}
	env.ending = &view.Ending{}
	n := need{Selection: Selection{On: []string{"name=" + host}, ForceBusy: o.ForceBusy}}
	return env.with(ctx, n, func(looking context.Context, s *session) error {
		s.limit(0)
		return s.locked(looking, ctx, o.Locking, func() error {
			p, err := s.lookWhenFree(looking, o.Locking, all, func(ctx context.Context) (p *plan.Plan, err error) {
				s.warnInterrupted()
				_, p, err = s.observe(ctx)
				return p, err
			})
			if err != nil {
				return err
			}
			if len(p.Hosts) != 1 || !p.Hosts[0].Member {
				return fmt.Errorf("no host is called %s; macfleet hosts lists them", host)
			}
			if err := checkNamed("force-busy", s.engine.Selection.ForceBusy, p, func(h plan.Host) []string { return []string{h.Name} }); err != nil {
				return err
			}
			var ring *plan.Keyring
			if p.Hosts[0].LacksKey() {
				ring = s.engine.Keyring(looking)
			}
			p.Actions = plan.Rebooting(p.Hosts[0], p.Actions, plan.SessionStep(s.engine.Steps(p.Hosts[0].Spec)), ring)
			s.sayMeant()
			if len(p.Runnable()) == 0 {
				env.outText().Plan(p, view.PlanForm{Config: s.config})
				env.ending.What, env.ending.Result.After = "nothing could be changed", p
				return result(false, false)
			}
			if p.Hosts[0].Unknown != nil {
				env.errText().Warn(p.Hosts[0].Name + " does not answer: it is unknown whether automatic login works and whether FileVault is off. After the restart it may have no session.")
			}
			return s.perform(ctx, p, o.Approve)
		})
	})
}
