package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/drift"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/view"
	"github.com/macfleet/macfleet/internal/wire"
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
	env.stream.Plan(p)
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

// compared compares a report with the look before, where one is named.
func (o DriftOptions) compared(r drift.Report) (drift.Report, error) {
	if o.Since != "" {
		return after("--since", o.Since, r)
	}
	if o.Remember == "" {
		return r, nil
	}
	if r.Narrowed {
		return r, errors.New("--remember: only looks at all hosts and steps can be compared; leave out --on, --exclude and --step")
	}
	info, err := os.Stat(o.Remember)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return r, nil // the first look
	case err == nil && !info.Mode().IsRegular():
		return r, fmt.Errorf("--remember %s: it is no regular file, and this look could not take its place", o.Remember)
	}
	return after("--remember", o.Remember, r)
}

// remembered keeps the look for the next one. It is written after it was shown: of
// what nobody was told, the next look tells.
func (o DriftOptions) remembered(p *plan.Plan, r drift.Report) error {
	if o.Remember == "" {
		return nil
	}
	if err := replaceFile(o.Remember, func(w io.Writer) error { return view.WriteDrift(w, p, r) }); err != nil {
		return fmt.Errorf("--remember %s: %w", o.Remember, err)
	}
	return nil
}

// anew says how to go on without an earlier look.
func anew(flag string) string {
	if flag == "--remember" {
		return "remove it to begin anew"
	}
	return "make one with macfleet drift --format json"
}

// after compares a report with an earlier document of the same configuration.
func after(flag, file string, r drift.Report) (drift.Report, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return r, fmt.Errorf("%s: %w; make one with macfleet drift --format json", flag, err)
	}
	var d struct { // of the document, what counts for the next look
		wire.OwnedHead
		Drift *drift.Report `json:"drift"`
	}
	if err := json.Unmarshal(content, &d); err != nil {
		return r, fmt.Errorf("%s %s: it is no document of macfleet drift --format json: %w; %s", flag, file, err, anew(flag))
	}
	major, _, _ := strings.Cut(d.FormatVersion, ".")
	ours, _, _ := strings.Cut(wire.Format, ".")
	switch {
	case d.Drift == nil:
		return r, fmt.Errorf("%s %s: it tells of no drift; make one with macfleet drift --format json", flag, file)
	case major != ours:
		return r, fmt.Errorf("%s %s: it has format version %q, and this macfleet reads %s", flag, file, d.FormatVersion, wire.Format)
	case d.Configuration != r.Owner.Name || d.Environment != r.Owner.Environment:
		return r, fmt.Errorf("%s %s: it is of %s %s, and this is %s", flag, file, d.Configuration, d.Environment, r.Owner)
	case d.Drift.Narrowed || r.Narrowed:
		return r, fmt.Errorf("%s %s: only looks at all hosts and steps can be compared; leave out --on, --exclude and --step", flag, file)
	}
	return r.After(d.Drift.Known()), nil
}
