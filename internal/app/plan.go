package app

import (
	"context"
	"errors"
	"io"

	"github.com/macfleet/macfleet/internal/view"
	"github.com/macfleet/macfleet/internal/wire"
	"github.com/macfleet/macfleet/plan"
)

// PlanOptions are the flags of plan.
type PlanOptions struct {
	Source
	Form
	Keep
	Bounds
	Rollback    bool
	JSONInto    string // file; empty: none
	Detailed    bool   // the exit code tells of changes
	Scripts     bool
	NoSecrets   bool
	Annotations Annotations
}

func (o *PlanOptions) check(env *Env) error {
	if err := errors.Join(o.Form.check(env.Call), o.Source.check(), o.Annotations.check()); err != nil {
		return err
	}
	switch {
	case o.Format == formatJSON && o.Scripts:
		return errors.New("--json and --show-scripts exclude each other: a document holds no scripts; run macfleet plan with one of them")
	case o.Format == formatMarkdown && o.Scripts:
		return errors.New("--format markdown and --show-scripts exclude each other: a comment holds no scripts; run macfleet plan with one of them")
	case o.NoSecrets && o.Record != "":
		return errors.New("--no-secrets and --record exclude each other: nothing is observed without secrets")
	case o.NoSecrets && o.Out != "":
		return errors.New("--no-secrets and --out exclude each other: a plan that was compared with nothing approves nothing")
	}
	if err := o.Keep.check(env.Call, o.Source); err != nil {
		return err
	}
	if o.Format == formatJSON && o.JSONInto != "" {
		return errTwoJSON
	}
	return nil
}

// Plan shows what would change, and why.
func Plan(ctx context.Context, env *Env, o PlanOptions) error {
	if err := o.check(env); err != nil {
		return err
	}
	if err := env.openStream(false, o.JSONInto); err != nil {
		return err
	}
	l, err := env.planned(ctx, o)
	if err != nil {
		return err
	}
	env.stream.Plan(l.plan)
	if err := o.Annotations.print(env, func(dir string) error { return view.GitHubAnnotations(env.Err, l.plan, l.config, dir) }); err != nil {
		return err
	}
	if err := env.printPlan(l.plan, o); err != nil {
		return err
	}
	if o.Out != "" {
		// Nobody approves what nobody could see.
		if err := env.unwritten(); err != nil {
			return err
		}
		if err := env.keepPlan(o, l); err != nil {
			return err
		}
	}
	if !o.Detailed {
		return nil
	}
	s := l.plan.Summarise()
	return result(s.Changes() > 0, s.Complete())
}

func (env *Env) planned(ctx context.Context, o PlanOptions) (looked, error) {
	n := need{reading: reading{inside: o.NoSecrets}, Selection: env.Selection, bounds: &o.Bounds}
	n.Rollback = o.Rollback
	if !o.NoSecrets || o.Snapshot != "" {
		return env.look(ctx, o.Source, n)
	}
	if n.narrowed() || n.Rollback {
		return looked{}, errors.New("--no-secrets asks nobody, so there is nothing to select: leave out --on, --exclude, --step and --rollback")
	}
	config, err := env.config(n.reading)
	if err != nil {
		return looked{}, err
	}
	return looked{plan: plan.ComputeUnasked(config), config: config}, nil
}

func (env *Env) printPlan(p *plan.Plan, o PlanOptions) error {
	return env.print(o.Form, printed{
		json:     func(w io.Writer) error { return wire.Write(w, wire.PlanOf(p)) },
		markdown: func(m view.Markdown, w io.Writer) error { return m.Plan(w, p) },
		text: func(t *view.Text) {
			t.Plan(p)
			if o.Scripts {
				t.PlanScripts(p)
			}
		}})
}
