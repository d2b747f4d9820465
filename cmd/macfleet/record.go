package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/internal/view"
	"github.com/macfleet/macfleet/internal/wholefile"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps"
)

// source says where an observation comes from, and whether it is kept.
type source struct {
	record   string // file to keep it in; empty: it is not kept
	snapshot string // file it is read from; empty: the world is looked at
}

// flags adds the flags of a command that looks and changes nothing.
func (o *source) flags(c *cobra.Command) {
	c.Flags().StringVar(&o.record, "record", "", "keep what was observed in a `FILE`")
	c.Flags().StringVar(&o.snapshot, "snapshot", "", "look at a `FILE` that --record made, without network or credentials")
}

func (o source) check() error {
	switch {
	case o.record != "" && o.snapshot != "":
		return errors.New("--record and --snapshot exclude each other: what comes from a file is kept there already; leave one of them out")
	case o.record == "-" || o.snapshot == "-":
		return errors.New("--record and --snapshot need the name of a file: standard output is the plan's")
	}
	return nil
}

// recall makes a plan from a recorded observation. It opens nothing but the
// configuration and the file.
func (a *app) recall(file string) (*plan.Plan, error) {
	p, _, _, err := a.recallWith(file)
	return p, err
}

// recallWith returns with the plan what it was made for, and when it was observed.
func (a *app) recallWith(file string) (*plan.Plan, *fleet.Config, time.Time, error) {
	config, selection, r, err := a.recordOf(file)
	if err != nil {
		return nil, nil, time.Time{}, err
	}
	return plan.Compute(config, steps.For, r.Snapshot, selection), config, r.Taken, nil
}

// recorded reads a recorded observation, and says what it lacks.
func (a *app) recorded(file string) (*fleet.Config, plan.Selection, plan.Snapshot, error) {
	config, selection, r, err := a.recordOf(file)
	return config, selection, r.Snapshot, err
}

func (a *app) recordOf(file string) (*fleet.Config, plan.Selection, plan.Record, error) {
	var none plan.Record
	config, err := a.config()
	if err != nil {
		return nil, plan.Selection{}, none, err
	}
	selection, err := a.selection()
	if err != nil {
		return nil, selection, none, err
	}
	r, err := readRecord(file, config.Owner)
	if err != nil {
		return nil, selection, none, err
	}
	if err := plan.CheckLists(config, r.Snapshot, selection); err != nil {
		return nil, selection, none, fmt.Errorf("snapshot %s: %w", file, err)
	}
	a.errText().Recalled(view.Recalled{File: file, Taken: r.Taken, Gaps: plan.GapsOf(config, steps.For, r.Snapshot, selection)})
	return config, selection, r, nil
}

func readRecord(file string, owner fleet.Owner) (plan.Record, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return plan.Record{}, fmt.Errorf("snapshot: %w; record one: macfleet plan --record %s", err, file)
	}
	r, err := plan.DecodeRecord(content)
	if err == nil {
		err = r.Check(owner)
	}
	if err != nil {
		return plan.Record{}, fmt.Errorf("snapshot %s: %w", file, err)
	}
	return r, nil
}

// look observes everything, keeps it in a file if one is named, and returns the
// plan. It shows its progress.
func (s *session) look(ctx context.Context, file string) (*plan.Plan, error) {
	s.tellBroken()
	snap, err := s.observe(ctx)
	if err != nil {
		return nil, err
	}
	if file != "" {
		if err := s.record(file, snap); err != nil {
			return nil, err
		}
	}
	return s.engine.Compute(ctx, snap), nil
}

func (s *session) observe(ctx context.Context) (plan.Snapshot, error) {
	if stream := s.app.stream; stream != nil {
		s.engine.Emit = s.timed(stream.Event)
		return s.engine.Observe(ctx)
	}
	show, done := s.app.progress(s.app.err)
	defer done()
	s.engine.Emit = s.timed(show)
	defer func() { s.engine.Emit = s.timed(func(engine.Event) {}) }()
	return s.engine.Observe(ctx)
}

// record keeps an observation in a file. What a host printed could hold a secret
// that is too short to be found there: such a record is not made.
func (s *session) record(file string, snap plan.Snapshot) error {
	if s.app.secrets.Short() {
		return shortSecret(file)
	}
	content, err := plan.Record{Owner: s.config.Owner, Version: fleet.Version, Taken: snap.Taken, Snapshot: snap}.Encode()
	if err != nil {
		return fmt.Errorf("record %s: %w", file, err)
	}
	if err := replaceFile(file, wholefile.Text(content)); err != nil {
		return fmt.Errorf("record %s: %w; nothing was recorded", file, err)
	}
	return nil
}

func shortSecret(file string) error {
	return fmt.Errorf("record %s: a secret of this run is shorter than %d characters and cannot be told from ordinary text, "+
		"so nothing was recorded; replace it by a longer one", file, secret.Shortest)
}

// replaceFile writes a file that only its owner may read, whole or not at all:
// it appears, or takes the place of an older one, when everything is on the disk.
func replaceFile(name string, write func(io.Writer) error) error {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return &fs.PathError{Op: "write", Path: name, Err: errors.New("it is there and is no regular file")}
	}
	return wholefile.Replace(name, 0o600, write)
}
