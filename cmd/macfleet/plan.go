package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/macfleet/macfleet/internal/view"
	"github.com/macfleet/macfleet/plan"
)

type planOptions struct {
	source
	formatOptions
	keepOptions
	detailed  bool
	scripts   bool
	noSecrets bool
	notes     annotations
}

func (a *app) planCmd() *cobra.Command {
	var o planOptions
	c := &cobra.Command{Use: "plan", Short: "Show what would change, and why", Args: cobra.NoArgs,
		Long: "plan looks at everything and changes nothing. With --snapshot it looks at a file that --record made.\n" +
			"With --out it keeps the plan in a file: show prints it, and apply FILE does exactly what it approves.\n" +
			"With --no-secrets it needs no credential and asks nobody: it reads the configuration, and compares it\n" +
			"with a --snapshot or with nothing.\n\n" + exitCodes,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.check(c); err != nil {
				return err
			}
			return a.plan(c.Context(), o)
		}}
	o.formatOptions.flags(c)
	c.Flags().BoolVar(&o.scripts, "show-scripts", false, "print the exact scripts that would run, too")
	o.source.flags(c)
	o.keepOptions.flags(c)
	a.rollbackFlag(c)
	a.boundsFlags(c)
	a.jsonIntoFlag(c)
	c.Flags().BoolVar(&o.detailed, "detailed-exitcode", false, "exit 2 with changes, 3 when incomplete")
	c.Flags().BoolVar(&o.noSecrets, "no-secrets", false, "resolve no secret, use no credential and ask nobody")
	o.notes.flags(c)
	return c
}

func (o *planOptions) check(c *cobra.Command) error {
	if err := errors.Join(o.formatOptions.check(c), o.source.check(), o.notes.check()); err != nil {
		return err
	}
	switch {
	case o.format == formatJSON && o.scripts:
		return errors.New("--json and --show-scripts exclude each other: a document holds no scripts; run macfleet plan with one of them")
	case o.format == formatMarkdown && o.scripts:
		return errors.New("--format markdown and --show-scripts exclude each other: a comment holds no scripts; run macfleet plan with one of them")
	case o.noSecrets && o.record != "":
		return errors.New("--no-secrets and --record exclude each other: nothing is observed without secrets")
	case o.noSecrets && o.out != "":
		return errors.New("--no-secrets and --out exclude each other: a plan that was compared with nothing approves nothing")
	}
	return o.keepOptions.check(c, o.source)
}

func (a *app) plan(ctx context.Context, o planOptions) error {
	if o.format == formatJSON && a.jsonInto != "" {
		return errTwoJSON
	}
	if err := a.openInto(); err != nil {
		return err
	}
	p, err := a.planned(ctx, o)
	if err != nil {
		return err
	}
	a.planInto(p)
	if o.notes != "" {
		dir, err := a.folder()
		if err != nil {
			return err
		}
		if err := view.GitHubAnnotations(a.err, p, a.loaded, dir); err != nil {
			return err
		}
	}
	if err := a.printPlan(p, o); err != nil {
		return err
	}
	if o.out != "" {
		// Nobody approves what nobody could see.
		if err := a.unwritten(); err != nil {
			return err
		}
		if err := a.keep(o.keepOptions, p, a.loaded); err != nil {
			return err
		}
	}
	if !o.detailed {
		return nil
	}
	s := p.Summarise()
	return result(s.Changes() > 0, s.Complete())
}

func (a *app) planned(ctx context.Context, o planOptions) (*plan.Plan, error) {
	a.inside = o.noSecrets
	if !o.noSecrets || o.snapshot != "" {
		return a.look(ctx, o.source)
	}
	if len(a.on)+len(a.exclude)+len(a.steps) > 0 || a.rollback {
		return nil, errors.New("--no-secrets asks nobody, so there is nothing to select: leave out --on, --exclude, --step and --rollback")
	}
	cfg, err := a.config()
	if err != nil {
		return nil, err
	}
	return plan.ComputeUnasked(cfg), nil
}

func (a *app) printPlan(p *plan.Plan, o planOptions) error {
	switch o.format {
	case formatJSON:
		return view.WriteDocument(a.out, p)
	case formatMarkdown:
		m, err := view.NewMarkdown(o.limit)
		if err != nil {
			return err
		}
		return m.Plan(a.sink(a.out), p)
	}
	a.outText().Plan(p)
	if o.scripts {
		a.outText().PlanScripts(p)
	}
	return nil
}

// rollbackFlag adds the flag of plan and apply by which hosts go back.
func (a *app) rollbackFlag(c *cobra.Command) {
	c.Flags().BoolVar(&a.rollback, "rollback", false, "of what hosts get as artifacts, go back to the version before; needs --on")
}

// look observes everything and returns the plan. The first Ctrl-C ends it:
// nothing is half done.
func (a *app) look(ctx context.Context, from source) (*plan.Plan, error) {
	if err := from.check(); err != nil {
		return nil, err
	}
	if from.snapshot != "" {
		return a.recall(from.snapshot)
	}
	ctx, done := a.untilStopped(ctx)
	defer done()
	s, err := a.openToLook(ctx)
	if err != nil {
		return nil, err
	}
	defer s.close()
	return s.look(ctx, from.record)
}

// result returns the exit code of a comparison: a difference beats
// incompleteness, which is said elsewhere.
func result(different, complete bool) error {
	switch {
	case different:
		return exit(exitDifferent)
	case !complete:
		return exit(exitIncomplete)
	}
	return nil
}
