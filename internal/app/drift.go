package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/drift"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/view"
	"github.com/macfleet/macfleet/plan"
)

// DriftOptions are the flags of drift.
type DriftOptions struct {
	Source
	Format   string // one of DriftFormats
	JSON     bool   // an alias
	JSONInto string // file; empty: none
	Since    string // file of an earlier document; empty: none
	Remember string // such a file that is replaced by this look's; empty: none
	ExitZero bool
}

// DriftFormats are the forms in which drift is printed; the first is the default.
func DriftFormats() []string { return []string{"text", "json", "markdown", "prometheus"} }

func (o *DriftOptions) check() error {
	switch {
	case o.JSON && o.Format != "text" && o.Format != "json":
		return fmt.Errorf("--json and --format %s exclude each other; leave one of them out", o.Format)
	case o.JSON:
		o.Format = "json"
	case !slices.Contains(DriftFormats(), o.Format):
		return fmt.Errorf("--format %s: write one of %s", o.Format, strings.Join(DriftFormats(), ", "))
	}
	if o.Since != "" && o.Remember != "" {
		return errors.New("--since and --remember exclude each other: each names the look before; leave one of them out")
	}
	if o.Format == "json" && o.JSONInto != "" {
		return errTwoJSON
	}
	return nil
}

// Drift shows what changed outside of macfleet.
func Drift(ctx context.Context, env *Env, o DriftOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	if err := env.openStream(false, o.JSONInto); err != nil {
		return err
	}
	p, r, err := env.watch(ctx, o.Source)
	if err != nil {
		return err
	}
	if r, err = o.compared(r); err != nil {
		return err
	}
	if env.stream != nil {
		env.stream.Plan(p)
	}
	if err := env.printDrift(o.Format, p, r); err != nil {
		return err
	}
	if err := o.remembered(p, r); err != nil || o.ExitZero {
		return err
	}
	return result(len(r.Items) > 0, r.Complete)
}

func (env *Env) printDrift(format string, p *plan.Plan, r drift.Report) error {
	switch format {
	case "markdown":
		return view.WriteDriftMarkdown(env.Out, r)
	case "prometheus":
		return view.WriteDriftMetrics(env.Out, r)
	}
	return env.answer(format == "json", func(w io.Writer) error { return view.WriteDrift(w, p, r) }, func(t *view.Text) { t.Drift(p, r) })
}

// watch looks at everything that can be asked. Unlike for a plan, a provider that is
// away is part of the answer. The report of a record is as it was when that was made: the
// days of ignore blocks too.
func (env *Env) watch(ctx context.Context, from Source) (*plan.Plan, drift.Report, error) {
	l, err := env.look(ctx, from, need{Selection: env.Selection, watching: true})
	var away *engine.AwayError
	switch {
	case err == nil:
		r, err := drift.Of(l.plan, l.config.Ignores, l.taken)
		return l.plan, r, err
	case from.Record != "", l.config == nil, env.stop.Err() != nil, ctx.Err() != nil, !errors.As(err, &away):
		return nil, drift.Report{}, err
	}
	why := env.secrets.Scrub(away.Provider + " could not be asked: " + err.Error())
	return blindPlan(l.config, why), drift.Blind(l.config, why, l.taken), nil
}

// blindPlan is the plan of which nobody knows anything.
func blindPlan(cfg *fleet.Config, why string) *plan.Plan {
	p := &plan.Plan{Owner: cfg.Owner, Unread: []plan.Unread{{Probe: "inventory", Why: why}}}
	for _, f := range cfg.Fleets {
		p.Fleets = append(p.Fleets, f.Name)
	}
	return p
}
