package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/drift"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/internal/view"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/providers/kubernetes"
)

type driftOptions struct {
	source
	format   string // one of driftFormats
	json     bool   // an alias
	since    string // file of an earlier document; empty: none
	remember string // such a file that is replaced by this look's; empty: none
	exitZero bool
}

// driftFormats are the values of drift --format.
func driftFormats() []string { return []string{"text", "json", "markdown", "prometheus"} }

func (a *app) driftCmd() *cobra.Command {
	var o driftOptions
	c := &cobra.Command{Use: "drift", Short: "Show what changed behind our back", Args: cobra.NoArgs,
		Long: "drift looks at everything and changes nothing. What the configuration wants and was never\n" +
			"applied is counted and is no drift. What an ignore block names raises no alarm until its day;\n" +
			"apply mends it all the same. A provider that does not answer makes it incomplete, never clean.\n\n" + exitCodes,
		RunE: func(c *cobra.Command, _ []string) error { return a.drift(c.Context(), o) }}
	c.Flags().StringVar(&o.format, "format", "text", "print it as `FORMAT`: text, json, markdown (the text of one issue) or prometheus (for its textfile collector)")
	c.Flags().BoolVar(&o.json, "json", false, "print one JSON document, as --format json")
	c.Flags().StringVar(&o.since, "since", "", "compare with a `FILE` that --format json made: say what is new and what recovered, and keep what was known of hosts that cannot be asked now")
	c.Flags().StringVar(&o.remember, "remember", "", "as --since with a `FILE` that need not be there yet, and put this look's document in its place")
	c.Flags().BoolVar(&o.exitZero, "exit-zero", false, "exit 0 also with drift and when incomplete; errors stay errors")
	o.flags(c)
	a.jsonIntoFlag(c)
	_ = c.RegisterFlagCompletionFunc("format", words(func([]string, string) []string { return driftFormats() })) // it has more forms than a plan
	return c
}

func (o *driftOptions) check(jsonInto string) error {
	switch {
	case o.json && o.format != "text" && o.format != "json":
		return fmt.Errorf("--json and --format %s exclude each other; leave one of them out", o.format)
	case o.json:
		o.format = "json"
	case !slices.Contains(driftFormats(), o.format):
		return fmt.Errorf("--format %s: write one of %s", o.format, strings.Join(driftFormats(), ", "))
	}
	if o.since != "" && o.remember != "" {
		return errors.New("--since and --remember exclude each other: each names the look before; leave one of them out")
	}
	if o.format == "json" && jsonInto != "" {
		return errTwoJSON
	}
	return nil
}

func (a *app) drift(ctx context.Context, o driftOptions) error {
	if err := o.check(a.jsonInto); err != nil {
		return err
	}
	if err := a.openInto(); err != nil {
		return err
	}
	p, r, err := a.watch(ctx, o.source)
	if err != nil {
		return err
	}
	if r, err = o.compared(r); err != nil {
		return err
	}
	a.planInto(p)
	if err := a.showDrift(o.format, p, r); err != nil {
		return err
	}
	if err := o.remembered(p, r); err != nil || o.exitZero {
		return err
	}
	return result(len(r.Items) > 0, r.Complete)
}

func (a *app) showDrift(format string, p *plan.Plan, r drift.Report) error {
	switch format {
	case "json":
		return view.WriteDrift(a.out, p, r)
	case "markdown":
		return view.WriteDriftMarkdown(a.out, r)
	case "prometheus":
		return view.WriteDriftMetrics(a.out, r)
	}
	a.outText().Drift(p, r)
	return nil
}

// watch looks at everything that can be asked. Unlike for a plan, a provider that is
// away is part of the answer.
func (a *app) watch(ctx context.Context, from source) (*plan.Plan, drift.Report, error) {
	if err := from.check(); err != nil {
		return nil, drift.Report{}, err
	}
	if from.snapshot != "" {
		return a.recallDrift(from.snapshot)
	}
	looking, done := a.untilStopped(ctx)
	defer done()
	s := &session{app: a, started: time.Now(), readOnly: true}
	p, err := s.watch(looking, from.record)
	var away *engine.AwayError
	switch now := clockOf(ctx)(); {
	case err == nil:
		r, err := drift.Of(p, s.config.Ignores, now)
		return p, r, err
	case from.record != "", s.config == nil, looking.Err() != nil, !errors.As(err, &away):
		return nil, drift.Report{}, err
	default:
		why := a.secrets.Scrub(away.Provider + " could not be asked: " + err.Error())
		return blindPlan(s.config, why), drift.Blind(s.config, why, now), nil
	}
}

func (s *session) watch(ctx context.Context, file string) (*plan.Plan, error) {
	if _, err := s.app.openAs(ctx, ctx, s); err != nil {
		return nil, err
	}
	defer s.close()
	s.engine.Watching = true
	return s.look(ctx, file)
}

// keyAway says that the fleet's key is in a cluster that does not answer, where that
// is why it cannot be had.
func keyAway(ref secret.Ref, err error) error {
	if ref.Scheme == secret.Kubernetes && kubernetes.Unanswered(err) {
		return &engine.AwayError{Provider: engine.Kubernetes, Err: err}
	}
	return err
}

// blindPlan is the plan of which nobody knows anything.
func blindPlan(cfg *fleet.Config, why string) *plan.Plan {
	p := &plan.Plan{Owner: cfg.Owner, Unread: []plan.Unread{{Probe: "inventory", Why: why}}}
	for _, f := range cfg.Fleets {
		p.Fleets = append(p.Fleets, f.Name)
	}
	return p
}

// recallDrift makes the report from a record. It is as it was when that was made: the
// days of ignore blocks too.
func (a *app) recallDrift(file string) (*plan.Plan, drift.Report, error) {
	p, config, taken, err := a.recallWith(file)
	if err != nil {
		return nil, drift.Report{}, err
	}
	r, err := drift.Of(p, config.Ignores, taken)
	return p, r, err
}

// clockKey is under which a context has a clock of its own: that of a simulated
// week, in tests.
type clockKey struct{}

func clockOf(ctx context.Context) func() time.Time {
	if now, ok := ctx.Value(clockKey{}).(func() time.Time); ok {
		return now
	}
	return time.Now
}
