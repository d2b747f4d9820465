package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"
)

// observeRatio is how much longer than the bare program macfleet may take. Ten
// hosts are over too soon to be judged.
const (
	observeRatio = 1.25
	judgedFrom   = 50
)

// ssh compares macfleet's observation of real OpenSSH servers with that of a
// bare Go program.
func (b *bench) ssh(ctx context.Context) (rows []row, err error) {
	for _, n := range b.hosts {
		more, err := b.sshOf(ctx, n)
		rows = append(rows, more...)
		if err != nil {
			return rows, err
		}
	}
	return rows, nil
}

// sshOf compares the two on n hosts, near and, with the most hosts, far.
func (b *bench) sshOf(ctx context.Context, n int) (rows []row, err error) {
	f, stop, err := startFleet(ctx, filepath.Join(b.dir, fmt.Sprintf("ssh-%d", n)), n, "")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	f.Parallelism = b.parallelism
	return b.compare(ctx, fmt.Sprintf("ssh %d hosts", n), f)
}

// compare alternates the two programs; who goes first changes each round. The
// first round only warms up.
func (b *bench) compare(ctx context.Context, what string, f *sshFleet) ([]row, error) {
	b.say("%s: %d rounds", what, b.rounds)
	ours, bare := &side{kind: "macfleet"}, &side{kind: "bare"}
	for round := range b.rounds + 1 {
		order := []*side{ours, bare}
		if round%2 == 1 {
			order = []*side{bare, ours}
		}
		for _, s := range order {
			if err := b.once(ctx, s, f, round > 0); err != nil {
				return nil, err
			}
		}
	}
	if ours.last.Answers != bare.last.Answers || ours.last.Answers == 0 {
		return nil, fmt.Errorf("macfleet got %d answers and the bare program %d: they did not do the same", ours.last.Answers, bare.last.Answers)
	}
	var ratios, cpu []float64
	for i := range ours.walls {
		ratios = append(ratios, ours.walls[i].Seconds()/bare.walls[i].Seconds())
		cpu = append(cpu, ours.cpus[i].Seconds()/bare.cpus[i].Seconds())
	}
	n := float64(len(f.Addresses))
	what += ": macfleet / bare program"
	first := judged(what, medianFloat(ratios), observeRatio, times)
	if n < judgedFrom {
		first = shown(what, "%.2fx", medianFloat(ratios))
	}
	return []row{first, ours.row(), bare.row(),
		shown("  client CPU, macfleet / bare program", "%.2fx", medianFloat(cpu)),
		shown("  a host", "%.0f questions, 1 exec, %.1f round trips (bare %.1f), %.1f kB sent", float64(ours.last.Answers)/n,
			float64(ours.last.Turns)/n, float64(bare.last.Turns)/n, float64(ours.last.Sent)/1000/n)}, nil
}

// side is one of two programs that are compared.
type side struct {
	kind  string
	walls []time.Duration
	cpus  []time.Duration
	peaks []float64
	last  result
}

func (b *bench) once(ctx context.Context, s *side, f *sshFleet, counts bool) error {
	r, u, err := b.do(ctx, job{Kind: s.kind, Fleet: f})
	if err != nil {
		return err
	}
	s.last = r
	if counts {
		s.walls, s.cpus, s.peaks = append(s.walls, r.Wall), append(s.cpus, u.cpu), append(s.peaks, megabytes(u.peak))
	}
	return nil
}

func (s *side) row() row {
	return shown("  "+s.kind, "%.2f s, client CPU %.0f ms, %.0f MB", medianTime(s.walls).Seconds(),
		float64(medianTime(s.cpus).Milliseconds()), medianFloat(s.peaks))
}
