package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/macfleet/macfleet/internal/view"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps"
)

type explainOptions struct {
	json     bool
	script   bool
	snapshot string
}

func (a *app) explainCmd() *cobra.Command {
	var o explainOptions
	c := &cobra.Command{Use: "explain HOST [STEP]", Short: "Say everything about one host: each value with its place, what was seen, what would be done and why",
		Args: cobra.RangeArgs(1, 2),
		Long: "explain looks at one host and changes nothing. For each step it shows every value that counts\n" +
			"with the file and line it was written at, what was seen, what differs, what would be done and\n" +
			"why, and the last proof. HOST is a name that `macfleet hosts` or `macfleet plan` shows, or\n" +
			"the server's present one.",
		RunE: func(c *cobra.Command, args []string) error {
			return a.explain(c.Context(), args[0], plan.StepID(append(args, "")[1]), o)
		}}
	c.Flags().BoolVar(&o.json, "json", false, "print one JSON document")
	c.Flags().StringVar(&o.snapshot, "snapshot", "", "look at a `FILE` that plan --record made, without network or credentials")
	c.Flags().BoolVar(&o.script, "script", false, "print the exact scripts that would run")
	return c
}

func (a *app) explain(ctx context.Context, host string, step plan.StepID, o explainOptions) error {
	if o.json && o.script {
		return errors.New("--json and --script exclude each other: a document holds no scripts; run macfleet explain with one of them")
	}
	if err := a.oneHost("explain"); err != nil {
		return err
	}
	x, err := a.explanation(ctx, host, o.snapshot)
	if err != nil {
		return err
	}
	if step != "" {
		if _, err := x.Step(step); err != nil {
			return err
		}
	}
	switch {
	case o.json:
		return view.WriteExplanation(a.out, x, step)
	case o.script:
		a.outText().Scripts(x, step)
	default:
		a.outText().Explain(x, step)
	}
	return nil
}

// explanation looks at one host, in the world or in a recorded observation. The
// first Ctrl-C ends it.
func (a *app) explanation(ctx context.Context, host, file string) (plan.Explanation, error) {
	if file != "" {
		config, _, snap, err := a.recorded(file)
		if err != nil {
			return plan.Explanation{}, err
		}
		return plan.ExplainHost(config, steps.For, snap, host)
	}
	ctx, done := a.untilStopped(ctx)
	defer done()
	s, err := a.openToLook(ctx)
	if err != nil {
		return plan.Explanation{}, err
	}
	defer s.close()
	show, done := a.progress(a.err)
	defer done()
	s.engine.Emit = s.timed(show)
	snap, err := s.engine.ObserveHost(ctx, host)
	if err != nil {
		return plan.Explanation{}, err
	}
	return plan.ExplainHost(s.config, steps.For, snap, host)
}

// oneHost refuses selections where a command looks at one host: to take and
// ignore them would look like an answer about something else.
func (a *app) oneHost(command string) error {
	if len(a.on)+len(a.exclude)+len(a.steps) > 0 {
		return fmt.Errorf("%s looks at the one host that it is given: leave out --on, --exclude and --step", command)
	}
	return nil
}
