package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/view"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps"
)

// ApplyOptions are the flags of apply.
type ApplyOptions struct {
	Locking
	Bounds
	JSON         bool
	JSONInto     string // file; empty: none
	Approve      bool
	AskPasswords []string      // names of hosts
	Deadline     time.Duration // 0: none
	FailedFrom   string        // run whose hosts are selected; empty: none
	ForceBusy    []string
	DrainTimeout time.Duration
}

// Bounds say what one run may do: lifted beyond what the guardrails say, or back to versions before.
type Bounds struct {
	plan.Bounds
	MaxHosts int // 0: as the guardrails say
	Rollback bool
}

// of returns what a run may do; nil: the command has no such bounds.
func (b *Bounds) of(config *fleet.Config) (*plan.Bounds, error) {
	if b == nil {
		return nil, nil
	}
	const tooFew = "--%s is %d; it must be at least 1"
	if err := cmp.Or(refuse(b.MaxDisrupted < 0, tooFew, "max-disrupted", b.MaxDisrupted),
		refuse(b.MaxWipes < 0, tooFew, "max-wipes", b.MaxWipes),
		refuse(b.MaxHosts < 0, tooFew, "max-hosts", b.MaxHosts)); err != nil {
		return nil, err
	}
	out := b.Bounds
	out.Guardrails = config.Guardrails
	if b.MaxHosts > 0 {
		out.Guardrails.MaxHosts = b.MaxHosts
	}
	return &out, nil
}

// Apply makes the plan, asks, performs it and observes again.
func Apply(ctx context.Context, env *Env, o ApplyOptions) error {
	if o.JSON {
		env.streamOut()
	}
	if err := env.streamInto(o.JSONInto, o.JSON); err != nil {
		return err
	}
	n, err := env.toApply(o)
	if err != nil {
		return err
	}
	if err := env.approvable("apply", o.Approve || n.approved != nil, !o.JSON, "look at macfleet plan, then pass --auto-approve"); err != nil {
		return err
	}
	if n.asked, err = env.askPasswords(o.AskPasswords); err != nil {
		return err
	}
	return env.with(ctx, n, func(looking context.Context, s *session) error {
		s.limit(o.Deadline)
		return s.locked(looking, ctx, o.Locking, func() error { return s.apply(looking, ctx, o) })
	})
}

// toApply says what an apply is about, before anything is looked at.
func (env *Env) toApply(o ApplyOptions) (need, error) {
	n := need{Selection: env.Selection, bounds: &o.Bounds, drain: o.DrainTimeout}
	n.Rollback, n.ForceBusy = o.Rollback, o.ForceBusy
	var err error
	for _, file := range env.Args {
		if n.approved, err = takePlanFile(file, &n.Selection); err != nil {
			return n, err
		}
	}
	if err := cmp.Or(refuse(o.DrainTimeout <= 0, "--drain-timeout is %s; it must be more than nothing", o.DrainTimeout),
		refuse(o.Deadline < 0, "--deadline is %s; it must be more than nothing", o.Deadline)); err != nil {
		return n, err
	}
	n.failed, err = env.failedFrom(o.FailedFrom, &n.Selection)
	return n, err
}

// apply looks when it is this run's turn, and does what is approved.
func (s *session) apply(looking, acting context.Context, o ApplyOptions) error {
	p, err := s.lookWhenFree(looking, o.Locking)
	if err != nil {
		return err
	}
	if err := errors.Join(
		checkNamed("ask-password", o.AskPasswords, p, func(h plan.Host) []string { return namesOf(h.Server, h.Name) }),
		checkNamed("force-busy", o.ForceBusy, p, func(h plan.Host) []string { return []string{h.Name} }),
		s.checkApproval()); err != nil {
		return err
	}
	s.sayApproval(p)
	s.sayGone(p)
	return s.perform(acting, p, o.Approve || s.approved != nil)
}

// perform shows a plan, asks unless it is approved, and does what it holds, under a record.
// A plan with no action that can run was shown already, and is its own proof.
func (s *session) perform(ctx context.Context, p *plan.Plan, approved bool) error {
	env := s.env
	env.stream.Plan(p)
	env.outText().Plan(p)
	if err := env.unwritten(); err != nil {
		return fmt.Errorf("%w; the plan could not be seen, so nothing was changed", err)
	}
	idle := len(p.Runnable()) == 0
	if !idle || len(engine.Unpinned(p)) > 0 {
		if err := env.ask(approved, view.Question(p, s.config.Fleets)); err != nil {
			return err
		}
	}
	return s.underRecord(ctx, p, func() (r engine.Result, err error) {
		env.acting.Store(true)
		if idle {
			r.After = p
			r.Failures, err = s.engine.Settle(ctx, p)
			env.stream.Outcome(r)
		} else {
			r, err = showing(s, env.Out, func() (engine.Result, error) { return s.engine.Apply(ctx, p) })
			env.stream.Applied(r)
		}
		if !idle || len(r.Failures) > 0 {
			env.outText().Applied(r)
		}
		if err == nil && s.Rollback {
			env.outText().Say("The configuration still wants the newer version: the next apply without --rollback installs it again. Let it name the older one.")
		}
		return r, err
	})
}

// approvable refuses a command that must be approved where nobody can be asked, or in a form that cannot ask.
func (env *Env) approvable(what string, approved, askable bool, remedy string) error {
	return refuse(!approved && !(askable && env.interactive()), "%s must be approved and nobody can be asked here; %s", what, remedy)
}

// ask prints a question and returns an error unless the answer is yes, or it is approved already.
func (env *Env) ask(approved bool, question string) error {
	if approved {
		return nil
	}
	t := env.errText()
	t.Print("\n")
	t.Say(question)
	t.Print("Only \"yes\" goes on: ")
	answer := make(chan string, 1)
	go func() {
		line, _ := env.lines().ReadString('\n')
		answer <- strings.TrimSpace(line)
	}()
	select {
	case <-env.stop.Done():
		return errors.New("not approved; nothing was changed")
	case text := <-answer:
		return refuse(text != "yes", "not approved (the answer was %q); nothing was changed", text)
	}
}

// checkNamed returns an error for a name given to a flag that no host of the plan bears or should bear.
func checkNamed(flag string, names []string, p *plan.Plan, of func(plan.Host) []string) error {
	for _, name := range names {
		if !slices.ContainsFunc(p.Hosts, func(h plan.Host) bool { return slices.Contains(of(h), name) }) {
			return fmt.Errorf("--%s: no host of this run is called %q", flag, name)
		}
	}
	return nil
}

// RestartOptions are the flags of restart.
type RestartOptions struct {
	Locking
	Approve bool
}

// Jobs are the jobs that can be restarted.
func Jobs() []string {
	return mapped(steps.Jobs(), func(id plan.StepID) string { return string(id) })
}

// Restart starts a job of a host anew, and proves it.
func Restart(ctx context.Context, env *Env, o RestartOptions) error {
	host, job := env.Args[0], env.Args[1]
	if err := cmp.Or(env.oneHost(),
		refuse(!slices.Contains(Jobs(), job), "there is no job %q;%s the jobs are %s",
			job, didYouMean(` did you mean "%s"?`, job, Jobs()), strings.Join(Jobs(), ", ")),
		env.approvable("restart", o.Approve, true, "pass --auto-approve")); err != nil {
		return err
	}
	n := need{Selection: Selection{On: []string{"name=" + host}, Steps: []string{job}}}
	return env.with(ctx, n, func(looking context.Context, s *session) error {
		s.limit(0)
		return s.locked(looking, ctx, o.Locking, func() error {
			p, err := s.restartPlan(looking, host, plan.StepID(job))
			if err != nil {
				return err
			}
			if len(p.Runnable()) == 0 {
				env.outText().Plan(p)
				return result(false, false)
			}
			return s.perform(ctx, p, o.Approve)
		})
	})
}

// restartPlan is the plan of a host with one action, the job's restart. A host that must not be
// changed or cannot be asked keeps what its plan says of that; one that was rolled back is taken as it is.
func (s *session) restartPlan(ctx context.Context, host string, job plan.StepID) (*plan.Plan, error) {
	snap, p, err := s.observe(ctx)
	if err != nil {
		return nil, err
	}
	if len(p.Runnable()) > 0 {
		s.engine.Selection.Rollback = true
		if back := s.engine.Compute(ctx, snap); len(back.Actions) == 0 {
			p = back
		} else {
			s.engine.Selection.Rollback = false
		}
	}
	if len(p.Hosts) != 1 || !p.Hosts[0].Member {
		return nil, fmt.Errorf("no member is called %s; macfleet hosts lists them", host)
	}
	h := p.Hosts[0]
	switch {
	case h.Unknown != nil, h.Refused != nil, len(h.Unread) > 0, slices.ContainsFunc(p.Actions, isRefused):
		p.Actions = slices.DeleteFunc(p.Actions, func(a plan.Action) bool { return !isRefused(a) })
		return p, nil
	case len(p.Runnable()) > 0:
		return nil, fmt.Errorf("%s differs from its configuration in what the restart is about (%s); macfleet apply --on name=%s repairs that first",
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
