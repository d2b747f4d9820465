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
	"github.com/macfleet/macfleet/internal/lock"
	"github.com/macfleet/macfleet/internal/runlog"
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
	Full         bool          // the plan is shown with every host, step and field
	AskPasswords []string      // names of hosts
	Deadline     time.Duration // 0: none
	FailedFrom   string        // run whose hosts are selected; empty: none
	ForceBusy    []string
	DrainTimeout time.Duration
	// FailOnDeferred says that what a limit leaves for a later run is exit code 3.
	FailOnDeferred bool
}

// Bounds say what one run may do in the place of what the guardrails say, and what a person decided for it.
type Bounds struct {
	MaxHosts, MaxDisrupted, MaxWipes int  // 0: as the guardrails say
	AnyTime                          bool // the windows do not count
	plan.Decisions
}

// of returns what a run may do; nil: the command has no such bounds.
func (b *Bounds) of(config *fleet.Config, c Call) (*plan.Bounds, error) {
	if b == nil {
		return nil, nil
	}
	const tooFew = "--%s is %d; it must be at least 1"
	few := func(flag string, n int) error { return refuse(c.gave(flag) && n < 1, tooFew, flag, n) } // 0 must not mean any number
	if err := cmp.Or(few("max-disrupted", b.MaxDisrupted), few("max-wipes", b.MaxWipes), few("max-hosts", b.MaxHosts)); err != nil {
		return nil, err
	}
	out := plan.Bounds{Guardrails: config.Guardrails, AnyTime: b.AnyTime}
	g := &out.Guardrails
	g.MaxHosts, g.MaxWipes = cmp.Or(b.MaxHosts, g.MaxHosts), cmp.Or(b.MaxWipes, g.MaxWipes)
	g.MaxDisrupted = cmp.Or(fleet.Share{Count: b.MaxDisrupted}, g.MaxDisrupted)
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
	if err := env.approvable("apply", o.Approve || n.approved != nil, !o.JSON, "review macfleet plan, then pass --auto-approve"); err != nil {
		return err
	}
	if n.asked, err = env.askPasswords(o.AskPasswords); err != nil {
		return err
	}
	env.ending = &view.Ending{}
	return env.with(ctx, n, func(looking context.Context, s *session) error {
		s.limit(o.Deadline)
		return s.locked(looking, ctx, o.Locking, func() error { return s.apply(looking, ctx, o) })
	})
}

// toApply says what an apply is about, before anything is read.
func (env *Env) toApply(o ApplyOptions) (need, error) {
	n := need{Selection: env.Selection, bounds: &o.Bounds, drain: o.DrainTimeout, full: o.Full, failOnDeferred: o.FailOnDeferred, asksRight: true}
	n.Decisions, n.ForceBusy, n.Passwords = o.Decisions, o.ForceBusy, o.AskPasswords
	kubelet, _ := plan.NodeStep(steps.For(fleet.Host{Spec: fleet.Spec{TartKubelet: &fleet.TartKubelet{}}}))
	var err error
	if err = refuse(o.NewTokens && len(n.Steps) > 0 && !slices.Contains(n.Steps, string(kubelet.ID())),
		"--rotate-tokens needs the step %s: add --step %[1]s, or remove --step", kubelet.ID()); err != nil {
		return n, err
	}
	for _, file := range env.Args {
		if n.approved, err = env.takePlanFile(file, &n.Selection); err != nil {
			return n, err
		}
	}
	if err := cmp.Or(refuse(o.DrainTimeout <= 0, "--drain-timeout is %s; it must be positive", o.DrainTimeout),
		refuse(o.Deadline < 0, "--deadline is %s; it must be positive", o.Deadline)); err != nil {
		return n, err
	}
	n.failed, err = env.failedFrom(o.FailedFrom, &n.Selection)
	return n, err
}

// apply looks when it is this run's turn, and does what is approved.
func (s *session) apply(looking, acting context.Context, o ApplyOptions) error {
	p, err := s.lookWhenFree(looking, o.Locking, worked, func(ctx context.Context) (*plan.Plan, error) { return s.look(ctx, "") })
	if err != nil {
		return err
	}
	if err := errors.Join(
		checkNamed("ask-password", o.AskPasswords, p, s.namesOf),
		checkNamed("force-busy", s.engine.Selection.ForceBusy, p, func(h plan.Host) []string { return []string{h.Name} }),
		s.checkApproval(), s.checkCluster(p)); err != nil {
		return err
	}
	s.sayApproval(p)
	s.sayGone(p)
	s.sayMeant()
	return s.perform(acting, p, o.Approve || s.approved != nil)
}

// perform shows a plan, asks unless it is approved, and does what it holds, under a record.
// A plan without an action that can run needs no second comparison.
func (s *session) perform(ctx context.Context, p *plan.Plan, approved bool) error {
	env := s.env
	env.stream.Plan(p)
	env.outText().Group("Plan", func() { env.outText().Plan(p, view.PlanForm{Full: s.full, Config: s.config}) })
	if err := env.unwritten(); err != nil {
		return fmt.Errorf("%w; the plan was not shown, so nothing was changed", err)
	}
	idle := len(p.Runnable()) == 0
	switch question, d := view.Question(p, s.config.Fleets), s.engine.Selection.Departs; {
	case d != nil && (!idle || d.Replace):
		if err := env.departing(p, d, approved, question); err != nil {
			return err
		}
	case !idle || len(engine.Unpinned(p)) > 0:
		if err := env.ask(approved, question); err != nil {
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
			env.outText().Group("Progress", func() {
				r, err = showing(s, env.Out, p, func() (engine.Result, error) { return s.engine.Apply(ctx, p) })
			})
			env.stream.Applied(r)
		}
		left := env.record.Load().Unfinished(r)
		env.ended(idle, r, left, err)
		if !idle || len(r.Failures) > 0 {
			env.outText().Applied(p, r, left)
		}
		if d := s.engine.Selection.Departs; d != nil {
			env.outText().Departing(*d, r.After)
		}
		if err == nil && s.Rollback {
			env.outText().Say("The configuration still names the newer version, so the next apply without --rollback installs it again; pin the older version there to keep it.")
		}
		return r, err
	})
}

// ended notes what a run came to, for the line that ends the command. With an error it is unknown what is left.
func (env *Env) ended(idle bool, r engine.Result, left []runlog.LeftHost, err error) {
	if env.ending == nil {
		return
	}
	env.ending.Changed, env.ending.Result, env.ending.Left = true, r, left
	switch {
	case err != nil:
		env.ending.What = "not verified"
	case idle && r.Converged():
		env.ending.What = "nothing to do"
	case idle:
		env.ending.What = "nothing could be changed"
	case r.Lost != nil:
		env.ending.What = "lock lost"
	case errors.Is(r.Stopped, engine.ErrDeadline):
		env.ending.What = "deadline passed"
	case r.Interrupted:
		env.ending.What = "stopped"
	}
}

// conclude prints the line that ends a command which applies, whatever came of it.
func (env *Env) conclude(code int, err error) {
	e := env.ending
	if e == nil {
		return
	}
	var held *lock.HeldError
	switch {
	case code == ExitLeft:
		e.What, e.Changed = "aborted", env.acting.Load() // what ran may be half done: the error names it
	case e.What != "":
	case errors.Is(err, errCancelled):
		e.What = "cancelled"
	case errors.As(err, &held):
		e.What = "lock not acquired"
	case env.stop.Err() != nil:
		e.What = "interrupted"
	case code == ExitError:
		e.What = "error"
	}
	if code == ExitLeft || err != nil && !e.Changed {
		e.Result, e.Left = engine.Result{}, nil
	}
	e.Took, e.Exit = time.Since(env.this.Started), code
	env.outText().Result(*e)
}

// approvable refuses a command that needs approval where there is no terminal, or its output is a form without prompts.
func (env *Env) approvable(what string, approved, askable bool, fix string) error {
	return refuse(!approved && !(askable && env.interactive()), "%s needs approval and there is no terminal; %s", what, fix)
}

// errCancelled is the error of a command that a person did not approve.
var errCancelled = errors.New("nothing was changed")

// ask prints a question and returns an error unless the answer is yes, or it is approved already.
func (env *Env) ask(approved bool, question string) error {
	return env.askFor(approved, question, "yes")
}

// askFor is ask with the answer that approves.
func (env *Env) askFor(approved bool, question, answer string) error {
	if approved {
		return nil
	}
	t := env.errText()
	t.Print("\n")
	t.Say(question)
	t.Print(fmt.Sprintf("Type %q to continue: ", answer))
	in := env.lines()
	line, err := within(env.stop, bounds{}, func() (string, error) {
		line, _ := in.ReadString('\n') // end of input is not an approval
		return strings.TrimSpace(line), nil
	})
	switch {
	case err != nil:
		return fmt.Errorf("interrupted; %w", errCancelled)
	case line == "":
		return fmt.Errorf("cancelled: no answer; %w", errCancelled)
	case line != answer:
		return fmt.Errorf("cancelled: you typed %q; %w", line, errCancelled)
	}
	return nil
}

// checkNamed returns an error for a name given to a flag that no host of the plan has or should have.
func checkNamed(flag string, names []string, p *plan.Plan, of func(plan.Host) []string) error {
	for _, name := range names {
		if !slices.ContainsFunc(p.Hosts, func(h plan.Host) bool { return slices.Contains(of(h), name) }) {
			return fmt.Errorf("--%s: this run has no host %q", flag, name)
		}
	}
	return nil
}
