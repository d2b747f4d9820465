package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
)

// observeRatio is how many times as long as the bare program macfleet may take. Ten hosts are too few
// to judge.
const (
	observeRatio = 1.25
	judgedFrom   = 50
)

// ssh compares macfleet's observation of real OpenSSH servers with a bare Go program's.
func (b *bench) ssh(ctx context.Context) (_ []row, err error) {
	f, stop, err := startFleet(ctx, filepath.Join(b.dir, "ssh"), b.hosts, "")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	f.Parallelism = parallelism
	ours, rows, err := b.compare(ctx, fmt.Sprintf("ssh %d hosts: macfleet / bare program", b.hosts), f, "macfleet", "bare", observeRatio)
	if err != nil {
		return nil, err
	}
	n := float64(b.hosts)
	return append(rows, shown("  a host", "%.0f questions, 1 exec, %.1f round trips, %.1f kB sent", float64(ours.last.Answers)/n,
		float64(ours.last.Turns)/n, float64(ours.last.Sent)/1000/n)), nil
}

// compare alternates macfleet's job and the bare program's. Which goes first changes each round. The
// first round only warms up. Without a budget the ratio is only shown.
func (b *bench) compare(ctx context.Context, what string, f *sshFleet, own, other string, budget float64) (*side, []row, error) {
	b.say("%s: %d rounds", what, b.rounds)
	ours, bare := &side{kind: own}, &side{kind: other}
	for round := range b.rounds + 1 {
		order := []*side{ours, bare}
		if round%2 == 1 {
			order = []*side{bare, ours}
		}
		for _, s := range order {
			if err := b.once(ctx, s, f, round > 0); err != nil {
				return nil, nil, err
			}
		}
	}
	if ours.last.Answers != bare.last.Answers || ours.last.Answers == 0 {
		return nil, nil, fmt.Errorf("%s counts %d and %s %d: they did different work", own, ours.last.Answers, other, bare.last.Answers)
	}
	var ratios, cpus []float64
	for i := range ours.walls {
		ratios = append(ratios, ours.walls[i]/bare.walls[i])
		cpus = append(cpus, ours.cpus[i]/bare.cpus[i])
	}
	first := shown(what, "%.2fx", median(ratios))
	if budget > 0 && f.Hosts >= judgedFrom {
		first = judged(what, median(ratios), budget, times)
	}
	return ours, []row{first, ours.row(), bare.row(), shown("  client CPU, macfleet / bare program", "%.2fx", median(cpus))}, nil
}

// side is what was measured of one program.
type side struct {
	kind  string
	walls []float64 // seconds
	cpus  []float64 // milliseconds
	peaks []float64 // megabytes
	last  result
}

func (b *bench) once(ctx context.Context, s *side, f *sshFleet, counts bool) error {
	r, u, err := b.do(ctx, job{Kind: s.kind, Fleet: f})
	if err != nil {
		return err
	}
	s.last = r
	if counts {
		s.walls, s.cpus, s.peaks = append(s.walls, r.Wall.Seconds()), append(s.cpus, milliseconds(u.cpu)), append(s.peaks, megabytes(u.peak))
	}
	return nil
}

func (s *side) row() row {
	return shown("  "+s.kind, "%.2f s, client CPU %.0f ms, %.0f MB", median(s.walls), median(s.cpus), median(s.peaks))
}
