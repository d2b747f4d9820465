package app

import (
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

// DefaultDrain is how long the Pods of a host have to end.
const DefaultDrain = engine.DefaultDrain

// ApplyOptions are the flags of apply.
type ApplyOptions struct {
	Locking
	Bounds
	File         string // plan file; empty: the plan is made and approved now
	JSON         bool
	JSONInto     string // file; empty: none
	Approve      bool
	Rollback     bool
	AskPasswords []string      // names of hosts
	Deadline     time.Duration // 0: none
	FailedFrom   string        // run whose hosts are selected; empty: none
	ForceBusy    []string
	DrainTimeout time.Duration
}

// Bounds lift what one run may do.
type Bounds struct {
	MaxDisrupted, MaxWipes int
	MaxHosts               int // 0: as the guardrails say
	AnyTime                bool
}

// of returns what a run may do; nil: the command has no such bounds.
func (b *Bounds) of(config *fleet.Config) (*plan.Bounds, error) {
	if b == nil {
		return nil, nil
	}
	for flag, n := range map[string]int{"max-disrupted": b.MaxDisrupted, "max-wipes": b.MaxWipes, "max-hosts": b.MaxHosts} {
		if n < 0 {
			return nil, fmt.Errorf("--%s is %d; it must be at least 1", flag, n)
		}
	}
	out := &plan.Bounds{Guardrails: config.Guardrails, MaxDisrupted: b.MaxDisrupted, MaxWipes: b.MaxWipes, AnyTime: b.AnyTime}
	if b.MaxHosts > 0 {
		out.Guardrails.MaxHosts = b.MaxHosts
	}
	return out, nil
}

// Apply makes the plan, asks, performs it and observes again.
func Apply(ctx context.Context, env *Env, o ApplyOptions) error {
	if err := env.openStream(o.JSON, o.JSONInto); err != nil {
		return err
	}
	if o.JSON && o.JSONInto != "" {
		return errTwoJSON
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
		if err := s.ownFailed(); err != nil {
			return err
		}
		s.limit(o.Deadline)
		return s.locked(looking, ctx, o.Locking, func() error { return s.apply(looking, ctx, o) })
	})
}

// toApply says what an apply is about, before anything is looked at.
func (env *Env) toApply(o ApplyOptions) (need, error) {
	n := need{Selection: env.Selection, bounds: &o.Bounds, drain: o.DrainTimeout}
	n.Rollback, n.ForceBusy = o.Rollback, o.ForceBusy
	var err error
	if o.File != "" {
		if n.approved, err = takePlanFile(o.File, &n.Selection); err != nil {
			return n, err
		}
	}
	switch {
	case o.DrainTimeout <= 0:
		return n, fmt.Errorf("--drain-timeout is %s; it must be more than nothing", o.DrainTimeout)
	case o.Deadline < 0:
		return n, fmt.Errorf("--deadline is %s; it must be more than nothing", o.Deadline)
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
			r, err = s.settle(ctx, p)
		} else {
			err = s.showing(env.Out, func() error {
				r, err = s.engine.Apply(ctx, p)
				return err
			})
		}
		s.sayApplied(r, idle)
		if err == nil && s.Rollback {
			env.outText().Say("The configuration still wants the newer version: the next apply without --rollback installs it again. Let it name the older one.")
		}
		return r, err
	})
}

// settle ends an apply whose plan has no action that can run.
func (s *session) settle(ctx context.Context, p *plan.Plan) (engine.Result, error) {
	failures, err := s.engine.Settle(ctx, p)
	return engine.Result{Failures: failures, After: p}, err
}

// sayApplied says what an apply came to.
func (s *session) sayApplied(r engine.Result, idle bool) {
	env := s.env
	if idle {
		env.stream.Outcome(r)
	} else {
		env.stream.Applied(r)
	}
	if !idle || len(r.Failures) > 0 {
		env.outText().Applied(r)
	}
}

// approvable refuses a command that must be approved where nobody can be asked: where it was
// started, or because of the form in which it answers.
func (env *Env) approvable(what string, approved, askable bool, remedy string) error {
	if approved || askable && env.interactive() {
		return nil
	}
	return fmt.Errorf("%s must be approved and nobody can be asked here; %s", what, remedy)
}

// ask prints a question and returns an error unless the answer is yes, or it is approved
// already.
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
		if text != "yes" {
			return fmt.Errorf("not approved (the answer was %q); nothing was changed", text)
		}
		return nil
	}
}

// checkNamed returns an error for a name given to a flag that no host of the plan bears or
// should bear: whoever names one must mean a host.
func checkNamed(flag string, names []string, p *plan.Plan, of func(plan.Host) []string) error {
	for _, name := range names {
		if !slices.ContainsFunc(p.Hosts, func(h plan.Host) bool { return slices.Contains(of(h), name) }) {
			return fmt.Errorf("--%s: no host of this run is called %q", flag, name)
		}
	}
	return nil
}

// RestartOptions are the arguments and flags of restart.
type RestartOptions struct {
	Locking
	Host, Job string
	Approve   bool
}

// Jobs are the jobs that can be restarted.
func Jobs() []string {
	return named(steps.Jobs(), func(id plan.StepID) string { return string(id) })
}

// Restart starts a job of a host anew, and proves it.
func Restart(ctx context.Context, env *Env, o RestartOptions) error {
	if err := env.oneHost("restart"); err != nil {
		return err
	}
	if !slices.Contains(Jobs(), o.Job) {
		return fmt.Errorf("there is no job %q;%s the jobs are %s", o.Job, didYouMean(` did you mean "%s"?`, o.Job, Jobs()), strings.Join(Jobs(), ", "))
	}
	if err := env.approvable("restart", o.Approve, true, "pass --auto-approve"); err != nil {
		return err
	}
	n := need{Selection: Selection{On: []string{"name=" + o.Host}, Steps: []string{o.Job}}}
	return env.with(ctx, n, func(looking context.Context, s *session) error {
		s.limit(0)
		return s.locked(looking, ctx, o.Locking, func() error {
			p, err := s.restartPlan(looking, o.Host, plan.StepID(o.Job))
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

// restartPlan is the plan of a host with one action: the job's restart. A host that
// must not be changed or cannot be asked keeps what its plan says of that. A host
// that was rolled back is taken as it is.
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
