package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// job is what a child does; it reads it from stdin.
type job struct {
	Kind      string // macfleet, bare: observe a fleet; compute: plan a recorded one; world, slow: serve hosts
	Fleet     *sshFleet
	Hosts     int    // of compute
	Converged bool   // of compute: there is nothing to do
	Dir       string // of world
	Recorded  recorded
}

// result is what a child says on stdout.
type result struct {
	Wall    time.Duration // of the work alone, without start and preparation
	Heap    uint64        // bytes, the largest size the heap had
	Decoded time.Duration // of compute: reading the same snapshot as JSON takes this long
	Answers int           // of the hosts, to all questions
	Sent    int64         // bytes, of macfleet alone
	Turns   int64         // round trips
}

// child does one job.
func child(ctx context.Context, in io.Reader, out io.Writer) error {
	var j job
	if err := json.NewDecoder(in).Decode(&j); err != nil {
		return fmt.Errorf("read the job: %w", err)
	}
	var r result
	var err error
	switch j.Kind {
	case "macfleet":
		r, err = observeMacfleet(ctx, j.Fleet)
	case "bare":
		r, err = observeBare(ctx, j.Fleet)
	case "world":
		return serveWorld(in, out, j.Dir)
	case "slow":
		return serveSlow(in, out, j.Recorded)
	case "compute":
		r, err = compute(j.Hosts, j.Converged)
	default:
		err = fmt.Errorf("no job is called %q", j.Kind)
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(r)
}

// do has a child of its own process do a job.
func (b *bench) do(ctx context.Context, j job) (result, usage, error) {
	var r result
	text, err := json.Marshal(j)
	if err != nil {
		return r, usage{}, err
	}
	// The children work in one process each: of two that are compared neither
	// pays for the other's garbage.
	out, u, err := execute(ctx, bytes.NewReader(text), nil, b.self, childArgument)
	if err != nil {
		return r, u, fmt.Errorf("%s: %w", j.Kind, err)
	}
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		return r, u, fmt.Errorf("%s: read the result: %w", j.Kind, err)
	}
	return r, u, nil
}
