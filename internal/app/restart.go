package app

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/internal/view"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps"
)

// RestartOptions are the flags of restart.
type RestartOptions struct {
	Locking
	Approve bool
}

// Jobs are the jobs that can be restarted.
func Jobs() []string {
	return mapped(steps.Jobs(), func(id plan.StepID) string { return string(id) })
}

// Restart restarts a job of a host and verifies it.
func Restart(ctx context.Context, env *Env, o RestartOptions) error {
	host, job := env.Args[0], env.Args[1]
	if err := cmp.Or(env.oneHost(),
		refuse(!slices.Contains(Jobs(), job), "there is no job %q;%s the jobs are %s",
			job, didYouMean(` did you mean "%s"?`, job, Jobs()), strings.Join(Jobs(), ", ")),
		env.approvable("restart", o.Approve, true, "pass --auto-approve")); err != nil {
		return err
	}
	env.ending = &view.Ending{}
	n := need{Selection: Selection{On: []string{"name=" + host}, Steps: []string{job}}}
	return env.with(ctx, n, func(looking context.Context, s *session) error {
		s.limit(0)
		return s.locked(looking, ctx, o.Locking, func() error {
			var snap plan.Snapshot
			p, err := s.lookWhenFree(looking, o.Locking, all, func(ctx context.Context) (p *plan.Plan, err error) {
				s.warnInterrupted()
				snap, p, err = s.observe(ctx)
				return p, err
			})
			if err == nil {
				p, err = s.restartPlan(looking, snap, p, host, plan.StepID(job))
			}
			if err != nil {
				return err
			}
			s.sayMeant()
			if len(p.Runnable()) == 0 {
				env.outText().Plan(p, view.PlanForm{Config: s.config})
				env.ending.What, env.ending.Result.After = "nothing could be changed", p
				return result(false, false)
			}
			return s.perform(ctx, p, o.Approve)
		})
	})
}

// restartPlan is the plan of a host with one action, the job's restart. A host that must not be
// changed or is unreachable keeps what its plan says of that; one that was rolled back is taken as it is.
func (s *session) restartPlan(ctx context.Context, snap plan.Snapshot, p *plan.Plan, host string, job plan.StepID) (*plan.Plan, error) {
	if len(p.Runnable()) > 0 {
		s.engine.Selection.Rollback = true
		if back := s.engine.Compute(ctx, snap); len(back.Actions) == 0 {
			p = back
		} else {
			s.engine.Selection.Rollback = false
		}
	}
	if len(p.Hosts) != 1 || !p.Hosts[0].Member {
		return nil, fmt.Errorf("no host is called %s; macfleet hosts lists them", host)
	}
	h := p.Hosts[0]
	switch {
	case h.Unknown != nil, h.Refused != nil, len(h.Unread) > 0, slices.ContainsFunc(p.Actions, isRefused):
		p.Actions = slices.DeleteFunc(p.Actions, func(a plan.Action) bool { return !isRefused(a) })
		return p, nil
	case len(p.Runnable()) > 0:
		return nil, fmt.Errorf("%s is not converged (%s); fix: macfleet apply --on name=%s",
			h.Name, p.Runnable()[0][0].Reason.Code, h.Name)
	}
	c, ok := steps.Restart(job, h.View(job))
	if !ok {
		return nil, fmt.Errorf("%s has no job %s: its configuration has no such block", h.Name, job)
	}
	p.Actions = append(p.Actions, plan.Restarting(h, job, c))
	return p, nil
}

func isRefused(a plan.Action) bool { return a.Refusal != nil }
