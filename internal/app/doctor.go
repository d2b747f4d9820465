package app

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/doctor"
	"github.com/macfleet/macfleet/internal/view"
	"github.com/macfleet/macfleet/internal/wire"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps"
)

// DoctorOptions are the flags of doctor.
type DoctorOptions struct {
	JSON    bool
	Verbose bool   // list the checks that are ok, too
	Record  string // file to keep the answers in; empty: they are not kept
	Force   bool
}

// Doctor checks one host and says what is wrong with it.
func Doctor(ctx context.Context, env *Env, o DoctorOptions) error {
	if err := cmp.Or(env.oneHost(), checkNewFile("record", o.Record, o.Force)); err != nil {
		return err
	}
	return env.with(ctx, need{readOnly: true}, func(looking context.Context, s *session) error {
		var server inventory.Server
		var p *plan.Plan
		snap, err := showing(s, env.Err, nil, func() (snap plan.Snapshot, err error) {
			server, snap, p, err = s.engine.Examine(looking, env.Args[0], doctor.ClockProbe())
			return snap, err
		})
		if err != nil {
			return err
		}
		checkup := doctor.Examine(s.config, steps.For, snap, server.ID, p)
		err = env.answer(o.JSON, func(w io.Writer) error { return view.WriteCheckup(w, checkup) }, func(t *view.Text) { t.Checkup(checkup, o.Verbose) })
		if err == nil && o.Record != "" {
			err = env.recordAnswers(o.Record, server, snap.Hosts[server.ID])
		}
		if err != nil {
			return err
		}
		return result(false, checkup.Healthy)
	})
}

// recordAnswers keeps what one host answered in a file, without what names it.
func (env *Env) recordAnswers(file string, server inventory.Server, seen plan.HostSeen) error {
	text, err := plan.EncodeRecording(server, seen)
	if err != nil {
		return err
	}
	if err := env.keepAnswers(file, text); err != nil {
		return err
	}
	env.errText().Say("Recorded the answers in " + file + ". Review it before you share it.")
	return nil
}

// ExplainOptions are the flags of explain.
type ExplainOptions struct {
	JSON, Script bool
	Schema       bool   // the configuration language, and no host
	Snapshot     string // file; empty: the world is observed
}

// Explain describes one host, in the world or in a recorded observation. With --schema it describes the
// configuration language, and for the name of a reason code that code.
func Explain(ctx context.Context, env *Env, o ExplainOptions) error {
	if o.Schema {
		return env.explainSchema(o)
	}
	codes := make([]string, len(plan.Codes()))
	for i, c := range plan.Codes() {
		codes[i] = c.String()
	}
	if i := slices.Index(codes, env.Args[0]); i >= 0 && len(env.Args) == 1 {
		if err := refuse(o != ExplainOptions{}, "%s is a reason code; explain takes no flags for it", env.Args[0]); err != nil {
			return err
		}
		return env.answer(false, nil, func(t *view.Text) { t.Code(plan.Codes()[i]) })
	}
	if err := cmp.Or(env.oneHost(), refuse(o.JSON && o.Script,
		"--json and --script exclude each other: use one of them")); err != nil {
		return err
	}
	x, err := env.explanation(ctx, env.Args[0], o.Snapshot)
	if near := fleet.Nearest(env.Args[0], codes); err != nil && near != "" {
		return fmt.Errorf("%w; did you mean the reason code %s?", err, near)
	}
	if err != nil {
		return err
	}
	var step plan.StepID // empty: all of them
	for _, name := range env.Args[1:] {
		step = plan.StepID(name)
		if _, err := x.Step(step); err != nil {
			return err
		}
	}
	return env.answer(o.JSON, func(w io.Writer) error { return view.WriteExplanation(w, x, step) }, func(t *view.Text) {
		if o.Script {
			t.Scripts(x, step)
		} else {
			t.Explain(x, step)
		}
	})
}

func (env *Env) explanation(ctx context.Context, host, file string) (doctor.Explanation, error) {
	config, err := env.config(reading{})
	if err != nil {
		return doctor.Explanation{}, err
	}
	var snap plan.Snapshot
	if file != "" {
		var r wire.Record
		_, r, err = env.recorded(file, config, Selection{})
		snap = r.Snapshot
	} else {
		err = env.with(ctx, need{config: config, readOnly: true}, func(looking context.Context, s *session) (err error) {
			snap, err = showing(s, env.Err, nil, func() (plan.Snapshot, error) { return s.engine.ObserveHost(looking, host) })
			return err
		})
	}
	if err != nil {
		return doctor.Explanation{}, err
	}
	return doctor.Explain(config, steps.For, snap, host)
}
