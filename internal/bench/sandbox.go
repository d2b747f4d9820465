package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/macfleet/macfleet/internal/sandbox"
)

// The budgets of a no-change plan of simulated hosts.
const (
	sandboxMegabytes = 200.0
	hostMilliseconds = 4.0
)

// copyExample copies the example with its artifact. It removes max_hosts, since one run creates the
// whole fleet.
func copyExample(ctx context.Context, dir string) error {
	root, _, err := execute(ctx, nil, nil, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/macfleet/macfleet")
	if err != nil {
		return err
	}
	example := filepath.Join(strings.TrimSpace(root), "examples", "three-fleets")
	for _, name := range []string{"main.fleet.hcl", "fleets.fleet.hcl", "dist/tart-kubelet-darwin-arm64"} {
		text, err := os.ReadFile(filepath.Join(example, name))
		if err != nil {
			return err
		}
		text = bytes.Replace(text, []byte("  max_hosts = 20\n"), nil, 1)
		to := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(to, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// fixedHosts are the hosts of the example that its variable does not count.
const fixedHosts = 4

// sandbox measures a plan of a converged simulated fleet with the real binary, while another process
// serves the simulated Macs, Scaleway and Kubernetes.
func (b *bench) sandbox(ctx context.Context) (_ []row, err error) {
	binary, err := b.binary()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(b.cache, fmt.Sprintf("simulated-%d", b.simulated))
	world := filepath.Join(dir, "world")
	macfleet := func(args ...string) []string {
		return append([]string{binary, "-C", dir, "-e", "production", "--sandbox=" + world, "--var", fmt.Sprintf("runners=%d", b.simulated-fixedHosts),
			// A few servers of a simulated world are of other types.
			"--sandbox-hosts", strconv.Itoa(b.simulated + b.simulated/10 + 4), "--parallelism", strconv.Itoa(parallelism)}, args...)
	}
	if err := b.prepare(ctx, dir, macfleet); err != nil {
		return nil, err
	}
	at, stop, err := b.serve(ctx, world)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	b.say("sandbox: plan of %d simulated hosts", b.simulated)
	var walls, peaks, cpus []float64
	for range b.rounds {
		_, u, err := execute(ctx, nil, []string{sandbox.SharedVariable + "=" + at}, macfleet("plan", "--detailed-exitcode")...)
		if err != nil {
			return nil, err
		}
		walls, peaks, cpus = append(walls, u.wall.Seconds()), append(peaks, megabytes(u.peak)), append(cpus, milliseconds(u.cpu)/float64(b.simulated))
	}
	return []row{
		shown(fmt.Sprintf("macfleet plan, %d simulated hosts, all steps of examples/three-fleets", b.simulated), "%.1f s", median(walls)),
		judged("  CPU a host, the simulator's left out", median(cpus), hostMilliseconds, " ms"),
		judged("  memory at its peak", median(peaks), sandboxMegabytes, " MB")}, nil
}

// prepare converges the fleet, unless an earlier run has.
func (b *bench) prepare(ctx context.Context, dir string, macfleet func(...string) []string) error {
	b.say("sandbox: converging %d simulated hosts in %s", b.simulated, dir)
	err := converge(ctx, dir, macfleet)
	if err == nil || ctx.Err() != nil {
		return err
	}
	// The folder of another version may have a different format.
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	return converge(ctx, dir, macfleet)
}

func converge(ctx context.Context, dir string, macfleet func(...string) []string) error {
	if err := copyExample(ctx, dir); err != nil {
		return err
	}
	for _, args := range [][]string{{"init", "cluster", "--auto-approve"}, {"apply", "--auto-approve"}} {
		if _, _, err := execute(ctx, nil, nil, macfleet(args...)...); err != nil {
			return err
		}
	}
	return nil
}

// serve starts a process that serves a simulated world until stop is called, so that its cost is not
// the measured program's.
func (b *bench) serve(ctx context.Context, dir string) (at string, stop func() error, err error) {
	cmd := exec.CommandContext(ctx, b.self, childArgument)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return "", nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	stop = func() error { return errors.Join(in.Close(), cmd.Wait()) }
	err = json.NewEncoder(in).Encode(job{Kind: "world", Dir: dir})
	if err == nil {
		err = json.NewDecoder(out).Decode(&at)
	}
	if err != nil {
		return "", nil, errors.Join(fmt.Errorf("serve the simulated world: %w", err), stop())
	}
	return at, stop, nil
}

// serveWorld serves the simulated world of a folder, prints its address, and exits when stdin ends.
func serveWorld(in io.Reader, out io.Writer, dir string) (err error) {
	w, err := sandbox.Open(dir, sandbox.Seed{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	at, err := w.Share()
	if err != nil {
		return err
	}
	if err := json.NewEncoder(out).Encode(at); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, in)
	return err
}
