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
	Kind      string // one of jobs, or world: serve simulated hosts until stdin ends
	Fleet     *sshFleet
	Hosts     int    // of compute
	Converged bool   // of compute: there is nothing to do
	Dir       string // of world
}

// result is what a child says on stdout.
type result struct {
	Wall    time.Duration // of the work alone, without start and preparation
	Heap    uint64        // bytes, the largest size the heap had
	Decoded time.Duration // of compute: reading the same snapshot as JSON takes this long
	Answers int           // of the hosts, to all questions; of an upload the files that arrived
	Sent    int64         // bytes, of macfleet alone
	Turns   int64         // round trips, of macfleet alone
}

// jobs are what is measured in processes of their own: of two that are compared
// neither pays for the other's garbage.
var jobs = map[string]func(context.Context, job) (result, error){
	"macfleet": func(ctx context.Context, j job) (result, error) { return observeMacfleet(ctx, j.Fleet) },
	"bare":     func(ctx context.Context, j job) (result, error) { return observeBare(ctx, j.Fleet) },
	"deliver":  func(ctx context.Context, j job) (result, error) { return sendAll(ctx, j.Fleet, true) },
	"cat":      func(ctx context.Context, j job) (result, error) { return sendAll(ctx, j.Fleet, false) },
	"compute":  func(_ context.Context, j job) (result, error) { return compute(j.Hosts, j.Converged) },
}

// child does one job.
func child(ctx context.Context, in io.Reader, out io.Writer) error {
	var j job
	if err := json.NewDecoder(in).Decode(&j); err != nil {
		return fmt.Errorf("read the job: %w", err)
	}
	if j.Kind == "world" {
		return serveWorld(in, out, j.Dir)
	}
	do, known := jobs[j.Kind]
	if !known {
		return fmt.Errorf("no job is called %q", j.Kind)
	}
	r, err := do(ctx, j)
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
	out, u, err := execute(ctx, bytes.NewReader(text), nil, b.self, childArgument)
	if err != nil {
		return r, u, fmt.Errorf("%s: %w", j.Kind, err)
	}
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		return r, u, fmt.Errorf("%s: read the result: %w", j.Kind, err)
	}
	return r, u, nil
}
