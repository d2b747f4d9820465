package app

import (
	"context"
	"io"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/doctor"
	"github.com/macfleet/macfleet/internal/view"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps"
)

// DoctorOptions are the arguments and flags of doctor.
type DoctorOptions struct {
	Host   string
	JSON   bool
	Record string // file to keep the answers in; empty: they are not kept
	Force  bool
}

// Doctor looks at one host and says what is wrong with it.
func Doctor(ctx context.Context, env *Env, o DoctorOptions) error {
	if err := env.oneHost("doctor"); err != nil {
		return err
	}
	if err := checkNewFile("record", o.Record, o.Force); err != nil {
		return err
	}
	return env.with(ctx, need{readOnly: true}, func(looking context.Context, s *session) error {
		var server inventory.Server
		var snap plan.Snapshot
		err := s.showing(env.Err, func() (err error) {
			server, snap, err = s.engine.Examine(looking, o.Host, doctor.ClockProbe())
			return err
		})
		if err != nil {
			return err
		}
		checkup := doctor.Examine(s.config, steps.For, snap, server.ID)
		err = env.answer(o.JSON, func(w io.Writer) error { return view.WriteCheckup(w, checkup) }, func(t *view.Text) { t.Checkup(checkup) })
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
	env.errText().Say("Recorded the answers in " + file + ". Read it before you give it away.")
	return nil
}
