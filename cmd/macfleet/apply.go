package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/view"
	"github.com/macfleet/macfleet/plan"
)

type applyOptions struct {
	json         bool
	approve      bool
	askPasswords []string
	deadline     time.Duration
	failedFrom   string
	lock         lockingOptions
}

func (a *app) applyCmd() *cobra.Command {
	var o applyOptions
	c := &cobra.Command{Use: "apply [FILE]", Short: "Make it so, then look again", Args: cobra.MaximumNArgs(1),
		Long: "apply shows the plan, asks, performs it, and observes again. A run that did not converge is a\n" +
			"failure. Applying again goes on where a run broke off.\n\n" +
			"With a FILE that plan --out made it asks nobody, and does exactly what that approves: it looks again,\n" +
			"leaves what the file does not hold, and says so. A file is good for the configuration, the environment\n" +
			"and the version that it was made with, and for a day.\n\n" +
			"With --rollback the hosts of --on go back to the version that they had before of everything that they get\n" +
			"as an artifact (they have kept it), and stay there until an apply without --rollback. The configuration\n" +
			"still wants the newer one then: let it name the older.\n\n" + exitCodes,
		RunE: func(c *cobra.Command, args []string) error {
			return a.apply(c.Context(), o, args...)
		}}
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		if strings.Contains(err.Error(), "--record") || strings.Contains(err.Error(), "--snapshot") {
			return fmt.Errorf("%w: apply looks at the world itself and keeps nothing; macfleet plan has --record and --snapshot", err)
		}
		return err
	})
	c.Flags().BoolVar(&o.json, "json", false, "print one JSON object a line, errors too; needs --auto-approve")
	a.rollbackFlag(c)
	a.boundsFlags(c)
	a.idleFlags(c)
	a.jsonIntoFlag(c)
	c.Flags().DurationVar(&o.deadline, "deadline", 0, "start nothing new this `LONG` after the command began, for example 50m; finish what runs, and exit 3")
	c.Flags().StringVar(&o.failedFrom, "failed-from", "", "only the hosts on which an earlier `RUN` left something: its id, or last")
	c.Flags().BoolVar(&o.approve, "auto-approve", false, "do not ask")
	o.lock.flags(c)
	c.Flags().StringArrayVar(&o.askPasswords, "ask-password", nil, "ask for the login password of a `HOST`, where nobody else tells it; from a pipe, a line each")
	return c
}

func (a *app) apply(ctx context.Context, o applyOptions, file ...string) error {
	if o.json {
		a.stream = view.NewStream(a.sink(a.out), time.Now)
	}
	for _, name := range file {
		if err := a.takePlanFile(name); err != nil {
			return err
		}
		o.approve = true // by whoever made the file
	}
	if err := a.prepareApply(o); err != nil {
		return err
	}
	if !o.approve && (o.json || !a.interactive()) {
		return errors.New("apply must be approved and nobody can be asked here; look at macfleet plan, then pass --auto-approve")
	}
	var err error
	if a.asked, err = a.askPasswords(o.askPasswords); err != nil {
		return err
	}
	// Until the first action runs, the first Ctrl-C ends the command.
	looking, done := a.untilStopped(ctx)
	defer done()
	s, err := a.open(looking, ctx)
	if err != nil {
		return err
	}
	defer s.close()
	if err := s.ownFailed(); err != nil {
		return err
	}
	s.limit(o.deadline)
	if err := s.lock(looking, ctx, o.lock); err != nil {
		return err
	}
	defer s.unlock()
	p, err := s.lookWhenFree(looking, o.lock)
	if err != nil {
		return err
	}
	if err := errors.Join(checkAsked(o.askPasswords, p), a.checkForced(p), s.checkApproval()); err != nil {
		return err
	}
	s.sayApproval(p)
	s.sayGone(p)
	if o.json {
		return s.applyStream(ctx, p)
	}
	a.outText().Plan(p)
	a.planInto(p)
	if err := errors.Join(a.unwritten(), a.notInto()); err != nil {
		return unseen(err)
	}
	if len(p.Runnable())+len(engine.Unpinned(p)) > 0 && !o.approve {
		if err := a.ask(view.Question(p, s.config.Fleets)); err != nil {
			return err
		}
	}
	return s.applyText(ctx, p)
}

// prepareApply does what must be done before anything is looked at.
func (a *app) prepareApply(o applyOptions) error {
	switch {
	case o.json && a.jsonInto != "":
		return errTwoJSON
	case a.idling.timeout <= 0:
		return fmt.Errorf("--drain-timeout is %s; it must be more than nothing", a.idling.timeout)
	case o.deadline < 0:
		return fmt.Errorf("--deadline is %s; it must be more than nothing", o.deadline)
	}
	return errors.Join(a.openInto(), a.failedFrom(o.failedFrom))
}

func unseen(err error) error {
	return fmt.Errorf("%w; the plan could not be seen, so nothing was changed", err)
}

// applyText performs a plan and shows it to a person. A plan with no action that
// can run was shown already, and is its own proof.
func (s *session) applyText(ctx context.Context, p *plan.Plan) error {
	return s.underRecord(ctx, p, func() (engine.Result, error) {
		act := s.perform
		if len(p.Runnable()) == 0 {
			act = s.settle
		}
		r, err := act(ctx, p)
		if into := s.app.into; into != nil {
			into.Applied(r)
		}
		if len(p.Runnable()) > 0 || len(r.Failures) > 0 {
			s.app.outText().Applied(r)
		}
		if err == nil {
			s.sayRollback()
		}
		return r, err
	})
}

// sayRollback says what the next apply would do.
func (s *session) sayRollback() {
	if s.app.rollback {
		s.app.outText().Say("The configuration still wants the newer version: the next apply without --rollback installs it again. Let it name the older one.")
	}
}

// settle ends an apply whose plan has no action that can run.
func (s *session) settle(ctx context.Context, p *plan.Plan) (engine.Result, error) {
	s.app.acting.Store(true)
	failures, err := s.engine.Settle(ctx, p)
	return engine.Result{Failures: failures, After: p}, err
}

func (s *session) perform(ctx context.Context, p *plan.Plan) (engine.Result, error) {
	s.app.acting.Store(true)
	show, done := s.app.progress(s.app.out)
	defer done()
	s.engine.Emit = s.timed(show)
	return s.engine.Apply(ctx, p)
}

// applyStream performs a plan and shows it to a program.
func (s *session) applyStream(ctx context.Context, p *plan.Plan) error {
	stream := s.app.stream
	stream.Plan(p)
	if err := s.app.unwritten(); err != nil {
		return unseen(err)
	}
	return s.underRecord(ctx, p, func() (engine.Result, error) {
		if len(p.Runnable()) == 0 {
			r, err := s.settle(ctx, p)
			stream.Outcome(r)
			return r, err
		}
		s.app.acting.Store(true)
		s.engine.Emit = s.timed(stream.Event)
		r, err := s.engine.Apply(ctx, p)
		stream.Applied(r)
		return r, err
	})
}

func outcome(r engine.Result, err error) error {
	if err != nil {
		return err
	}
	return result(false, r.Converged())
}

// ask prints a question and returns an error unless the answer is yes.
func (a *app) ask(question string) error {
	t := a.errText()
	t.Print("\n")
	t.Say(question)
	t.Print("Only \"yes\" goes on: ")
	answer := make(chan string, 1)
	go func() {
		line, _ := a.lines().ReadString('\n')
		answer <- strings.TrimSpace(line)
	}()
	select {
	case <-a.stop.Done():
		return fmt.Errorf("not approved; nothing was changed")
	case text := <-answer:
		if text != "yes" {
			return fmt.Errorf("not approved (the answer was %q); nothing was changed", text)
		}
		return nil
	}
}
