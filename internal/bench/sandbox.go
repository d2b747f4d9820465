package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// The budgets of a no-change plan of simulated hosts.
const (
	sandboxSeconds   = 2.0
	sandboxMegabytes = 200.0
)

// simulation is a simulated fleet to plan.
type simulation struct {
	name   string // of its rows and of its folder
	fixed  int    // hosts that the variable does not count
	number string // the variable of how many hosts there are
	begin  [][]string
	write  func(ctx context.Context, dir string) error // its configuration
}

var simulations = []simulation{
	{"all steps of examples/nodes", 4, "runners", [][]string{{"init", "cluster", "--auto-approve"}}, copyNodes},
	{"names and power alone", 0, "hosts", nil, writeLight},
}

// lightFleet is what a fleet of hosts without Nodes may be.
const lightFleet = `macfleet {
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

func writeLight(_ context.Context, dir string) error {
	return os.WriteFile(filepath.Join(dir, "fleet.fleet.hcl"), []byte(lightFleet), 0o644)
}

// copyNodes copies the example, with the artifact beside it.
func copyNodes(ctx context.Context, dir string) error {
	root, _, err := execute(ctx, nil, nil, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/macfleet/macfleet")
	if err != nil {
		return err
	}
	example := filepath.Join(strings.TrimSpace(root), "examples", "nodes")
	for _, name := range []string{"nodes.fleet.hcl", "dist/tart-kubelet-darwin-arm64"} {
		text, err := os.ReadFile(filepath.Join(example, name))
		if err != nil {
			return err
		}
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

// sandbox measures no-change plans of simulated fleets: the very command, with
// the simulated Macs, Scaleway and Kubernetes in the same process.
func (b *bench) sandbox(ctx context.Context) (rows []row, err error) {
	for _, s := range simulations {
		more, err := b.simulation(ctx, s)
		if rows = append(rows, more...); err != nil {
			return rows, fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return rows, nil
}

func (b *bench) simulation(ctx context.Context, s simulation) ([]row, error) {
	binary, err := b.binary()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(b.cache, fmt.Sprintf("simulated-%s-%d", s.number, b.simulated))
	macfleet := func(args ...string) []string {
		return append([]string{binary, "-C", dir, "--sandbox=" + filepath.Join(dir, "world"), "--var", fmt.Sprintf("%s=%d", s.number, b.simulated-s.fixed),
			// A few servers of a world are of other types.
			"--sandbox-hosts", strconv.Itoa(b.simulated + b.simulated/10 + 4), "--parallelism", strconv.Itoa(b.parallelism)}, args...)
	}
	if err := b.prepare(ctx, s, dir, macfleet); err != nil {
		return nil, err
	}
	b.say("sandbox: plan of %d simulated hosts, %s", b.simulated, s.name)
	var walls, peaks, cpus []float64
	for range b.rounds {
		_, u, err := execute(ctx, nil, nil, macfleet("plan", "--detailed-exitcode")...)
		if err != nil {
			return nil, err
		}
		walls, peaks, cpus = append(walls, u.wall.Seconds()), append(peaks, megabytes(u.peak)), append(cpus, u.cpu.Seconds())
	}
	return []row{
		judged(fmt.Sprintf("macfleet plan, %d simulated hosts, %s", b.simulated, s.name), medianFloat(walls), sandboxSeconds, " s"),
		judged("  memory at its peak, simulator included", medianFloat(peaks), sandboxMegabytes, " MB"),
		shown("  CPU, simulator included", "%.2f s", medianFloat(cpus))}, nil
}

// prepare converges a simulated fleet, which takes minutes the first time:
// Scaleway takes so many renames a second and no more. A world that another
// version left and that does not converge is made anew.
func (b *bench) prepare(ctx context.Context, s simulation, dir string, macfleet func(...string) []string) error {
	b.say("sandbox: converging %d simulated hosts in %s", b.simulated, dir)
	err := s.converge(ctx, dir, macfleet)
	if err == nil || ctx.Err() != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	return s.converge(ctx, dir, macfleet)
}

func (s simulation) converge(ctx context.Context, dir string, macfleet func(...string) []string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := s.write(ctx, dir); err != nil {
		return err
	}
	for _, args := range append(s.begin, []string{"apply", "--auto-approve"}) {
		if _, _, err := execute(ctx, nil, nil, macfleet(args...)...); err != nil {
			return err
		}
	}
	return nil
}
