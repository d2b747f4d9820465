package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/internal/wholefile"
	"github.com/macfleet/macfleet/internal/wire"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps"
)

// Source says where an observation comes from, and whether it is kept.
type Source struct {
	Record   string // file to keep it in; empty: it is not kept
	Snapshot string // file it is read from; empty: it is observed
}

func (o Source) check() error {
	return cmp.Or(
		refuse(o.Record != "" && o.Snapshot != "", "--record and --snapshot exclude each other: use one of them"),
		refuse(o.Record == "-" || o.Snapshot == "-", "--record and --snapshot need a file name: standard output is used for the plan"))
}

// looked is the result of an observation.
type looked struct {
	plan   *plan.Plan
	config *fleet.Config // set also where a provider was away
	taken  time.Time
}

// look observes everything, or reads it from a file, and computes the plan. The first Ctrl-C ends it.
func (env *Env) look(ctx context.Context, from Source, n need) (looked, error) {
	if err := from.check(); err != nil {
		return looked{}, err
	}
	config, err := env.config(n.reading)
	if err == nil && len(n.whatIf) > 0 {
		if config, n.WhatIf, err = config.WhatIf(n.whatIf); err != nil {
			err = fmt.Errorf("--what-if %w", err)
		}
	}
	if err != nil {
		return looked{}, err
	}
	if from.Snapshot != "" {
		sel, r, err := env.recorded(from.Snapshot, config, n.Selection)
		if err != nil {
			return looked{}, err
		}
		bounds, err := n.bounds.of(config, env.Call)
		if err != nil {
			return looked{}, err
		}
		p := plan.Compute(config, steps.For, r.Snapshot, sel)
		if bounds != nil {
			bounds.Now = r.Taken
			engine.Bound(config, steps.For, p, *bounds, env.outlook(config.Owner), nil)
		}
		return looked{p, config, r.Taken}, nil
	}
	n.config, n.readOnly = config, true
	out := looked{config: config}
	err = env.with(ctx, n, func(looking context.Context, s *session) (err error) {
		out.plan, err = s.look(looking, from.Record)
		return err
	})
	out.taken = env.Now()
	return out, err
}

// largestRecord is how many bytes of an observation, or of a document of drift, are read: that of 10,000 hosts has a fifth.
const largestRecord = 1 << 30

// recorded reads a recorded observation, and says what it lacks. It opens nothing but the file.
func (env *Env) recorded(file string, config *fleet.Config, of Selection) (plan.Selection, wire.Record, error) {
	sel, err := of.parsed(config)
	if err != nil {
		return sel, wire.Record{}, err
	}
	content, err := wholefile.Read(env.stop, file, largestRecord)
	if err != nil {
		return sel, wire.Record{}, fmt.Errorf("snapshot: %w; record one: macfleet plan --record %s", err, file)
	}
	r, err := wire.DecodeRecord(content)
	if err == nil {
		err = r.Check(config.Owner)
	}
	if err == nil {
		sel, err = plan.CheckLists(config, r.Snapshot, sel)
	}
	if err != nil {
		return sel, r, fmt.Errorf("snapshot %s: %w", file, err)
	}
	env.errText().Recalled(file, r.Taken, plan.GapsOf(config, steps.For, r.Snapshot, sel))
	return sel, r, nil
}

// look observes everything, keeps it in a file if one is named, and returns the plan.
func (s *session) look(ctx context.Context, file string) (*plan.Plan, error) {
	s.warnInterrupted()
	snap, p, err := s.observe(ctx)
	if err != nil {
		return nil, err
	}
	if file == "" {
		return p, nil
	}
	content, err := wire.NewRecord(s.config.Owner, snap).Encode()
	if err != nil {
		return nil, fmt.Errorf("record %s: %w", file, err)
	}
	return p, s.env.keepAnswers(file, content)
}

func (s *session) observe(ctx context.Context) (snap plan.Snapshot, p *plan.Plan, err error) {
	p, err = showing(s, s.env.Err, nil, func() (p *plan.Plan, err error) {
		snap, p, err = s.engine.Observe(ctx)
		return p, err
	})
	return snap, p, err
}

// keepAnswers writes what hosts answered into a file. It could hold a secret that is too
// short to be found there: then nothing is written.
func (env *Env) keepAnswers(file string, content []byte) error {
	if env.secrets.Short() {
		return shortSecret(file)
	}
	if err := replaceFile(file, wholefile.Text(content)); err != nil {
		return fmt.Errorf("record %s: %w; nothing was recorded", file, err)
	}
	return nil
}

func shortSecret(file string) error {
	return fmt.Errorf("record %s: a secret of this run is shorter than %d characters and cannot be recognised in text, "+
		"so nothing was recorded; use a longer secret", file, secret.Shortest)
}

// replaceFile writes a file that only its owner may read. It appears, or replaces an older one, only
// when all of it is on the disk.
func replaceFile(name string, write func(io.Writer) error) error {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return &fs.PathError{Op: "write", Path: name, Err: errors.New("it exists and is not a regular file")}
	}
	return wholefile.Replace(name, 0o600, write)
}

// checkNewFile refuses to take a file's place without --force.
func checkNewFile(flag, name string, force bool) error {
	_, err := os.Lstat(name)
	return refuse(name != "" && err == nil && !force, "%s %s: %w; name another file, or add --force", flag, name, fs.ErrExist)
}
