package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/macfleet/macfleet/internal/runlog"
	"github.com/macfleet/macfleet/internal/view"
	"github.com/macfleet/macfleet/internal/wholefile"
	"github.com/macfleet/macfleet/internal/wire"
	"github.com/macfleet/macfleet/plan"
)

// PlanOptions are the flags of plan.
type PlanOptions struct {
	Source
	Form
	Bounds
	Out         string // file to keep the plan in; empty: it is not kept
	Expires     time.Duration
	JSONInto    string // file; empty: none
	Detailed    bool   // the exit code reports changes
	Scripts     bool
	NoSecrets   bool
	WhatIf      []string // FLEET=N or FLEET.GROUP=N: other numbers of servers than configured
	Annotations Annotations
}

func (o *PlanOptions) check(c Call) error {
	if err := errors.Join(o.Form.check(c), o.Source.check(), o.Annotations.check()); err != nil {
		return err
	}
	return cmp.Or(
		refuse(o.Format == formatJSON && o.Scripts, "--json and --show-scripts exclude each other: a document holds no scripts; run macfleet plan with one of them"),
		refuse(o.Format == formatMarkdown && o.Scripts, "--format markdown and --show-scripts exclude each other: a comment holds no scripts; run macfleet plan with one of them"),
		refuse(o.NoSecrets && o.Record != "", "--no-secrets and --record exclude each other: nothing is observed without secrets"),
		refuse(o.NoSecrets && o.Out != "" && o.Snapshot == "", "--no-secrets and --out exclude each other: a plan that was compared with nothing approves nothing; add --snapshot FILE"),
		refuse(len(o.WhatIf) > 0 && o.Out != "", "--what-if and --out exclude each other: such a plan cannot be applied; change replicas in the configuration first"),
		refuse(len(o.WhatIf) > 0 && o.NoSecrets && o.Snapshot == "", "--what-if and --no-secrets exclude each other: nothing is observed without secrets; add --snapshot FILE"),
		refuse(o.Out == "" && c.gave("expires"), "--expires is of --out: it is how long that file is good"),
		refuse(o.Out == "-", "--out needs the name of a file: standard output is the plan's"),
		refuse(o.Out != "" && (o.Expires <= 0 || o.Expires > wire.LongestExpiry), "--expires is %s; it must be positive and at most %s", o.Expires, wire.LongestExpiry))
}

// Plan shows what would change, and why.
func Plan(ctx context.Context, env *Env, o PlanOptions) error {
	if err := o.check(env.Call); err != nil {
		return err
	}
	if err := env.streamInto(o.JSONInto, o.Format == formatJSON); err != nil {
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
	if err := env.print(o.Form, func(w io.Writer) error { return wire.Write(w, wire.PlanOf(l.plan)) },
		func(m view.Markdown, w io.Writer) error { return m.Plan(w, l.plan) },
		func(t *view.Text) {
			t.Plan(l.plan, view.PlanForm{Full: o.Full, Config: l.config})
			if o.Scripts {
				t.PlanScripts(l.plan)
			}
		}); err != nil {
		return err
	}
	if o.Out != "" {
		// A plan that was not shown cannot be approved.
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
	return result(s.Changes()+s.Deferred > 0, s.Complete())
}

func (env *Env) planned(ctx context.Context, o PlanOptions) (looked, error) {
	n := need{reading: reading{inside: o.NoSecrets}, Selection: env.Selection, bounds: &o.Bounds, asksRight: true}
	n.Decisions, n.whatIf = o.Decisions, o.WhatIf
	if !o.NoSecrets || o.Snapshot != "" {
		return env.look(ctx, o.Source, n)
	}
	if n.narrowed() || n.Rollback {
		return looked{}, errors.New("--no-secrets contacts nothing, so there is nothing to select: leave out --on, --exclude, --step, --adopt-only and --rollback")
	}
	config, err := env.config(n.reading)
	if err != nil {
		return looked{}, err
	}
	return looked{plan: plan.ComputeOffline(config), config: config}, nil
}

// keepPlan writes a plan into a file, whole or not, readable only by its owner.
func (env *Env) keepPlan(o PlanOptions, l looked) error {
	if env.secrets.Short() {
		return fmt.Errorf("--out: %w", shortSecret(o.Out))
	}
	f := wire.NewPlanFile(l.plan)
	f.ConfigurationHash, f.MadeBy, f.On, f.Exclude = l.config.Hash(), caller(), env.On, env.Exclude
	f.MadeAt = time.Now().UTC().Truncate(time.Second)
	f.ExpiresAt = f.MadeAt.Add(o.Expires)
	if o.Snapshot != "" {
		// What is approved is what was seen, so its time counts from then. Apply looks by itself, and does nothing else.
		if seen := l.taken.UTC().Truncate(time.Second); seen.Before(f.MadeAt) {
			f.ExpiresAt = seen.Add(o.Expires)
		}
		if !f.ExpiresAt.After(f.MadeAt) {
			return fmt.Errorf("--out: %s was recorded at %s, longer ago than --expires allows (%s); record again, or pass a longer --expires",
				o.Snapshot, l.taken.UTC().Format("2006-01-02 15:04 MST"), o.Expires)
		}
	}
	content, err := f.Encode()
	if err != nil {
		return err
	}
	if err := replaceFile(o.Out, wholefile.Text(content)); err != nil {
		return fmt.Errorf("keep the plan in %s: %w; nothing was kept", o.Out, err)
	}
	env.errText().Kept(o.Out, f)
	return nil
}

// approval is a plan file that is applied.
type approval struct {
	name string
	wire.PlanFile
}

// largestPlanFile is how many bytes of a file are read: that of 500 new hosts has about a tenth.
const largestPlanFile = 64 << 20

// readPlanFile reads a plan file. Whether it may be applied is another question.
func (env *Env) readPlanFile(name string) (wire.PlanFile, error) {
	content, err := wholefile.Read(env.stop, name, largestPlanFile)
	if err != nil {
		return wire.PlanFile{}, fmt.Errorf("plan file: %w; make one: macfleet plan --out FILE", err)
	}
	f, err := wire.DecodePlanFile(content)
	if err != nil {
		return f, fmt.Errorf("plan file %s: %w", name, err)
	}
	return f, nil
}

// takePlanFile makes an apply perform a plan file: its selection counts, and no other is
// taken. Another value of a variable is another configuration, which the file does not fit.
func (env *Env) takePlanFile(name string, sel *Selection) (*approval, error) {
	const cannot = "%s cannot be given with a plan file: what %s was planned for counts; plan again with --out to change that"
	if err := cmp.Or(refuse(len(sel.On) > 0, cannot, "--on", name), refuse(len(sel.Exclude) > 0, cannot, "--exclude", name),
		refuse(len(sel.Steps) > 0, cannot, "--step", name)); err != nil {
		return nil, err
	}
	if given := sel.Decisions.Flags(); len(given) > 0 {
		flag, _, _ := strings.Cut(given[0], " ")
		return nil, fmt.Errorf(cannot, flag, name)
	}
	f, err := env.readPlanFile(name)
	if err != nil {
		return nil, err
	}
	sel.On, sel.Exclude, sel.Decisions = f.On, f.Exclude, f.Plan.Decisions
	if sel.AdoptOnly {
		return &approval{name, f}, nil
	}
	sel.Steps = mapped(f.Steps, func(id plan.StepID) string { return string(id) })
	return &approval{name, f}, nil
}

// checkApproval returns why the plan file must not be applied now. It is checked before anything is
// read, and again before the first change, since a prompt may wait in between.
func (s *session) checkApproval() error {
	if s.approved == nil {
		return nil
	}
	if err := s.approved.Check(s.config, time.Now()); err != nil {
		return fmt.Errorf("plan file %s: %w", s.approved.name, err)
	}
	return nil
}

// checkCluster returns why a plan file must not be applied in this cluster: it was approved only
// for the one that it names.
func (s *session) checkCluster(p *plan.Plan) error {
	if s.approved == nil || s.config.Kubernetes == nil {
		return nil
	}
	made, here := s.approved.Plan.ClusterID, p.ClusterID
	switch {
	case made == nil && here == nil, made != nil && here != nil && made.UID == here.UID:
		return nil
	case made == nil:
		return fmt.Errorf("plan file %s: it does not say for which cluster it was made; plan again with --out", s.approved.name)
	case here == nil:
		return fmt.Errorf("plan file %s: it was made for the cluster %s, and which cluster this is cannot be read; run macfleet plan, which says why", s.approved.name, made)
	}
	return plan.CodeOtherCluster.Trouble(fmt.Sprintf("plan file %s was made for the cluster %s, and this is %s", s.approved.name, made, here),
		"check the context of the kubernetes block and KUBECONFIG; or plan again with --out")
}

// sayApproval says what a plan file approves, and which of its actions are done already.
func (s *session) sayApproval(p *plan.Plan) {
	a := s.approved
	if a == nil {
		return
	}
	done := runlog.DoneBy(s.env.kept("runs"), func(h runlog.Head) bool {
		return h.Configuration == s.config.Name && h.Environment == s.config.Environment && h.Started.After(a.MadeAt)
	})
	by := func(x plan.Action) string { return done[runlog.ActionOf(x).Key()] }
	s.env.stream.Approved(a.name, a.PlanFile, p, by)
	s.env.outText().Approved(a.name, a.PlanFile, p, by)
}

// showPlanFile prints a plan file. It needs no configuration and contacts nothing.
func (env *Env) showPlanFile(name string, o Form) error {
	f, err := env.readPlanFile(name)
	if err != nil {
		return err
	}
	return env.print(o, func(w io.Writer) error { return wire.Write(w, f.Shown(time.Now())) },
		func(m view.Markdown, w io.Writer) error { return m.PlanFile(w, f) },
		func(t *view.Text) { t.PlanFile(f, view.PlanForm{Full: o.Full}, time.Now()) })
}
