package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// job is a child's task. It is read from stdin.
type job struct {
	Kind      string // a key of jobs, or world: serve simulated hosts until stdin ends
	Fleet     *sshFleet
	Hosts     int    // of compute
	Converged bool   // of compute: there is nothing to do
	Dir       string // of world
}

// result is a child's output, printed to stdout.
type result struct {
	Wall    time.Duration // of the work, without start and preparation
	Heap    uint64        // bytes, at the heap's peak
	Decoded time.Duration // of compute: how long it takes to read the same snapshot as JSON
	Answers int           // to all probes; of an upload: files that arrived
	Sent    int64         // bytes that macfleet sent
	Turns   int64         // round trips of macfleet
}

// jobs are measured in separate processes, so that none pays for the garbage of another.
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
		return fmt.Errorf("unknown job %q", j.Kind)
	}
	r, err := do(ctx, j)
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(r)
}

// do runs a job in a child process.
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
