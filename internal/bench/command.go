package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// The budgets of the command itself.
const (
	versionMilliseconds = 50.0
	sandboxSeconds      = 2.0
	sandboxMegabytes    = 200.0
)

// version measures how long the command takes to start and end.
func (b *bench) version(ctx context.Context) ([]row, error) {
	binary, err := b.binary()
	if err != nil {
		return nil, err
	}
	b.say("version: %d starts", b.starts)
	var walls []time.Duration
	for range b.starts {
		_, u, err := execute(ctx, nil, nil, binary, "version")
		if err != nil {
			return nil, err
		}
		walls = append(walls, u.wall)
	}
	info, err := os.Stat(binary)
	if err != nil {
		return nil, err
	}
	return []row{judged(fmt.Sprintf("macfleet version, %d starts", b.starts), float64(medianTime(walls).Microseconds())/1000, versionMilliseconds, " ms"),
		judged("  the binary", megabytes(info.Size()), 60, " MB")}, nil
}

// simulatedFleet is the configuration of the simulated hosts.
const simulatedFleet = `macfleet {
  name = "acme"
}

variable "hosts" {
  type = number
}

scaleway {
  zones       = ["fr-par-1"]
  pool_prefix = "spare-"
}

kubernetes {
  namespace = "macfleet"
}

ssh {
  user        = "m1"
  private_key = secret("k8s://macfleet/fleet-ssh/id_ed25519")
}

fleet "macos" {
  os = "Tahoe"
  hostname {}
  power {}
  group "m2" {
    type     = "M2-L"
    replicas = var.hosts
  }
}
`

// sandbox measures a no-change plan of a simulated fleet: the very command, with
// the simulated Macs, Scaleway and Kubernetes in the same process.
func (b *bench) sandbox(ctx context.Context) ([]row, error) {
	binary, err := b.binary()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(b.cache, fmt.Sprintf("simulated-%d", b.simulated))
	macfleet := func(args ...string) []string {
		return append([]string{binary, "-C", dir, "--sandbox=" + filepath.Join(dir, "world"), "--var", "hosts=" + strconv.Itoa(b.simulated),
			// A few servers of a world are of other types.
			"--sandbox-hosts", strconv.Itoa(b.simulated + b.simulated/10 + 4), "--parallelism", strconv.Itoa(b.parallelism)}, args...)
	}
	if err := b.prepare(ctx, dir, macfleet("apply", "--auto-approve")); err != nil {
		return nil, err
	}
	b.say("sandbox: plan of %d simulated hosts", b.simulated)
	var walls, peaks, cpus []float64
	for range b.rounds {
		_, u, err := execute(ctx, nil, nil, macfleet("plan", "--detailed-exitcode")...)
		if err != nil {
			return nil, err
		}
		walls, peaks, cpus = append(walls, u.wall.Seconds()), append(peaks, megabytes(u.peak)), append(cpus, u.cpu.Seconds())
	}
	return []row{
		judged(fmt.Sprintf("macfleet plan, %d simulated hosts", b.simulated), medianFloat(walls), sandboxSeconds, " s"),
		judged("  memory at its peak, simulator included", medianFloat(peaks), sandboxMegabytes, " MB"),
		shown("  CPU, simulator included", "%.2f s", medianFloat(cpus))}, nil
}

// prepare converges the simulated fleet, which takes a minute the first time:
// Scaleway takes so many renames a second and no more. A world that another
// version left and that does not converge is made anew.
func (b *bench) prepare(ctx context.Context, dir string, apply []string) error {
	for again := range 2 {
		if again > 0 {
			if err := os.RemoveAll(dir); err != nil {
				return err
			}
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, "fleet.fleet.hcl"), []byte(simulatedFleet), 0o644); err != nil {
			return err
		}
		b.say("sandbox: converging %d simulated hosts in %s", b.simulated, dir)
		_, _, err := execute(ctx, nil, nil, apply...)
		if err == nil || again > 0 || ctx.Err() != nil {
			return err
		}
	}
	return nil
}
