package app

import (
	"cmp"
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
	"github.com/macfleet/macfleet/internal/wholefile"
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
	Remember string // such a file, which this report replaces; empty: none
	ExitZero bool
}

// DriftFormats are the forms in which drift is printed; the first is the default.
func DriftFormats() []string { return []string{"text", "json", "markdown", "prometheus"} }

func (o *DriftOptions) check() error {
	if err := cmp.Or(
		refuse(o.JSON && o.Format != "text" && o.Format != "json", "--json and --format %s exclude each other: use one of them", o.Format),
		refuse(!slices.Contains(DriftFormats(), o.Format), "--format %s: write one of %s", o.Format, strings.Join(DriftFormats(), ", ")),
		refuse(o.Since != "" && o.Remember != "", "--since and --remember exclude each other: use one of them")); err != nil {
		return err
	}
	if o.JSON {
		o.Format = "json"
	}
	return nil
}

// Drift shows what changed outside macfleet.
func Drift(ctx context.Context, env *Env, o DriftOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	if err := env.streamInto(o.JSONInto, o.Format == "json"); err != nil {
		return err
	}
	p, r, err := env.watch(ctx, o.Source)
	if err != nil {
		return err
	}
	if r, err = o.compared(env.stop, r); err != nil {
		return err
	}
	env.stream.Plan(p)
	code := ExitDone
	if ended, ok := result(len(r.Items) > 0, r.Complete).(exit); ok && !o.ExitZero {
		code = int(ended)
	}
	if err := env.printDrift(o.Format, p, r, code); err != nil {
		return err
	}
	if o.Remember != "" { // after it was shown: drift that was not printed must be new in the next report
		if err := replaceFile(o.Remember, func(w io.Writer) error { return view.WriteDrift(w, p, r) }); err != nil {
			return fmt.Errorf("--remember %s: %w", o.Remember, err)
		}
	}
	if code == ExitDone {
		return nil
	}
	return exit(code)
}

func (env *Env) printDrift(format string, p *plan.Plan, r drift.Report, code int) error {
	switch format {
	case "markdown":
		return view.WriteDriftMarkdown(env.Out, r)
	case "prometheus":
		return view.WriteDriftMetrics(env.Out, r)
	}
	return env.answer(format == "json", func(w io.Writer) error { return view.WriteDrift(w, p, r) }, func(t *view.Text) { t.Drift(p, r, code) })
}

// watch observes everything that answers. Unlike in a plan, a provider that is away is part of the
// result. The report of a recorded observation uses its time, also for the dates of ignore blocks.
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
	why := env.secrets.Scrub(away.Provider + ": " + err.Error())
	// Nothing of this plan is known.
	p := &plan.Plan{Owner: l.config.Owner, Unread: []plan.Unread{{Probe: "inventory", Why: why}}}
	p.Fleets = mapped(l.config.Fleets, func(f fleet.Fleet) string { return f.Name })
	return p, drift.Blind(l.config, why, l.taken), nil
}

// compared compares a report with an earlier document of the same configuration, where one is named.
func (o DriftOptions) compared(stop context.Context, r drift.Report) (drift.Report, error) {
	flag, file, fix := "--since", o.Since, "make one with macfleet drift --format json"
	if o.Remember != "" {
		flag, file, fix = "--remember", o.Remember, "remove it to start over"
		info, err := os.Stat(file)
		if err := cmp.Or(refuse(r.Narrowed, "--remember: only a complete report can be compared: remove --on, --exclude and --step"),
			refuse(err == nil && !info.Mode().IsRegular(), "--remember %s: it is not a regular file, so it cannot be replaced", file)); err != nil {
			return r, err
		}
		if errors.Is(err, fs.ErrNotExist) {
			return r, nil // the first report
		}
	}
	if file == "" {
		return r, nil
	}
	content, err := wholefile.Read(stop, file, largestRecord)
	if err != nil {
		return r, fmt.Errorf("%s: %w; make one with macfleet drift --format json", flag, err)
	}
	var d struct { // the parts of the document that the next report needs
		wire.OwnedHead
		Drift *drift.Report `json:"drift"`
	}
	if err := json.Unmarshal(content, &d); err != nil {
		return r, fmt.Errorf("%s %s: not a document of macfleet drift --format json: %w; %s", flag, file, err, fix)
	}
	major, _, _ := strings.Cut(d.FormatVersion, ".")
	ours, _, _ := strings.Cut(wire.Format, ".")
	if err := cmp.Or(refuse(d.Drift == nil, "it holds no drift; make one with macfleet drift --format json"),
		refuse(major != ours, "it has format version %q; this macfleet reads %s", d.FormatVersion, wire.Format),
		refuse(d.Configuration != r.Owner.Name || d.Environment != r.Owner.Environment,
			"it is for %s %s; this is %s", d.Configuration, d.Environment, r.Owner),
		refuse(r.Narrowed || d.Drift != nil && d.Drift.Narrowed, "only a complete report can be compared: remove --on, --exclude and --step")); err != nil {
		return r, fmt.Errorf("%s %s: %w", flag, file, err)
	}
	return r.After(d.Drift.Known()), nil
}
