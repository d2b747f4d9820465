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
	json     bool
	detailed bool
	scripts  bool
}

func (a *app) planCmd() *cobra.Command {
	var o planOptions
	c := &cobra.Command{Use: "plan", Short: "Show what would change, and why", Args: cobra.NoArgs,
		Long: "plan looks at everything and changes nothing. With --snapshot it looks at a file that --record made.\n\n" + exitCodes,
		RunE: func(c *cobra.Command, _ []string) error { return a.plan(c.Context(), o) }}
	c.Flags().BoolVar(&o.json, "json", false, "print one JSON document")
	c.Flags().BoolVar(&o.scripts, "show-scripts", false, "print the exact scripts that would run, too")
	o.flags(c)
	a.rollbackFlag(c)
	c.Flags().BoolVar(&o.detailed, "detailed-exitcode", false, "exit 2 with changes, 3 when incomplete")
	return c
}

func (a *app) plan(ctx context.Context, o planOptions) error {
	if o.json && o.scripts {
		return errors.New("--json and --show-scripts exclude each other: a document holds no scripts; run macfleet plan with one of them")
	}
	p, err := a.look(ctx, o.source)
	if err != nil {
		return err
	}
	if o.json {
		err = view.WriteDocument(a.out, p)
	} else {
		a.outText().Plan(p)
		if o.scripts {
			a.outText().PlanScripts(p)
		}
	}
	if err != nil || !o.detailed {
		return err
	}
	s := p.Summarise()
	return result(s.Changes() > 0, s.Complete())
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
