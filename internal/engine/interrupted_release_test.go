package engine_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/worldtest"
	"github.com/macfleet/macfleet/plan"
)

// TestReleaseInterrupted interrupts the release of a Mac that runs a Pod anywhere: at each command on it, and before each
// tool that may change something. The next run finishes the release: the server has its name in the pool and an empty disk,
// and the cluster has nothing of it.
func TestReleaseInterrupted(t *testing.T) {
	t.Parallel()
	releaser := func(t *testing.T) *victim {
		v := installsFast(t, prepared(t, 3, nodes(1)))
		v.engine.Config.Fleets[0].Groups[0].Replicas = 0
		must(t, v.world.RunPod(member(t, v.world), "default", "job"))
		return v
	}
	clean := releaser(t)
	if p := planned(t, clean.engine); p.Actions[0].Evicts != 1 {
		t.Fatalf("%q, evicts %d", codesOf(p, p.Hosts[0].Name), p.Actions[0].Evicts)
	}
	host := member(t, clean.world)
	converges(t, clean.engine)
	want, pool := clean.remains(t), names(t, clean.world)
	if !slices.Equal(pool, []string{"acme-pool-01", "acme-pool-02", "acme-pool-03"}) {
		t.Errorf("a clean run leaves the pool %q", pool)
	}
	for _, file := range want {
		if strings.Contains(file, host) || strings.Contains(file, "macfleet/") && !strings.HasPrefix(file, "kubernetes/") {
			t.Errorf("a clean run leaves %s", file)
		}
	}
	eachInterruption(t, 1, func(t *testing.T, n int, interruption interruption) bool {
		v := releaser(t)
		fell := v.endsAs(t, n, interruption, want)
		pins, err := v.engine.Pins.All()
		if left, _ := plan.WithoutReleased(pins); err != nil || len(left) > 0 || len(pins) != 1 {
			t.Errorf("interrupted after %d: pins %+v, %v", n, pins, err)
		}
		if got := names(t, v.world); !slices.Equal(got, pool) {
			t.Errorf("interrupted after %d: the pool had %q, and has %q", n, pool, got)
		}
		return fell
	})
}

// TestClaimInterrupted interrupts the claim of a server that was released before, up to its first Node, as
// TestReleaseInterrupted does.
func TestClaimInterrupted(t *testing.T) {
	t.Parallel()
	claimer, want := claimers(t)
	eachInterruption(t, 2, func(t *testing.T, n int, interruption interruption) bool {
		return claimer(t).endsAs(t, n, interruption, want)
	})
}

// TestUndoneClaimInterrupted interrupts a claim that is undone, because the server cannot be renamed at its end. When it
// can be, the next run claims it.
func TestUndoneClaimInterrupted(t *testing.T) {
	t.Parallel()
	claimer, want := claimers(t)
	eachInterruption(t, 1, func(t *testing.T, n int, interruption interruption) bool {
		v := claimer(t)
		honest := v.engine.Servers
		v.engine.Servers = keepsNames{honest}
		p := planned(t, v.engine)
		fell := interruption(v, n)
		performed(t, v.engine, p)
		v.engine.Servers = honest
		if !fell() {
			if left := remains(t, v.machine.Root()); slices.ContainsFunc(left, func(file string) bool { return strings.Contains(file, "macfleet") }) {
				t.Errorf("a claim that is undone leaves %q", left)
			}
			return false
		}
		v.recovers(t, n, want)
		return true
	})
}

// keepsNames are servers that cannot be renamed.
type keepsNames struct{ engine.Servers }

// Rename fails.
func (keepsNames) Rename(context.Context, string, string, string, string) error {
	return inventory.ErrDenied
}

// claimers returns worlds in which a server was released and is about to be claimed again, and what a claim leaves.
func claimers(t *testing.T) (claimer func(*testing.T) *victim, want []string) {
	t.Helper()
	before := prepared(t, 3, nodes(1))
	v := installsFast(t, before)
	replicas := &v.engine.Config.Fleets[0].Groups[0].Replicas
	*replicas = 0
	converges(t, v.engine)
	*replicas = 1
	server := planned(t, v.engine).Hosts[0].Server.ID
	must(t, v.world.Close())
	claimer = func(t *testing.T) *victim {
		v := victimOf(t, worldtest.Copied(t, before))
		v.is(t, server)
		return v
	}
	clean := claimer(t)
	converges(t, clean.engine)
	return claimer, clean.remains(t)
}

// installsFast opens a world whose provider installs macOS in no time, and whose servers may be erased.
func installsFast(t *testing.T, dir string) *victim {
	t.Helper()
	v := victimIn(t, dir)
	installs(t, v.world, v.engine)
	v.engine.Drain = engine.Drain{Within: time.Minute, Every: 5 * time.Millisecond}
	return v
}

// endsAs applies with an interruption, and again. Then all is as want says. It reports whether the interruption fell.
func (v *victim) endsAs(t *testing.T, n int, interruption interruption, want []string) bool {
	t.Helper()
	p := planned(t, v.engine)
	fell := interruption(v, n)
	r, err := applying(t, t.Context(), v.engine, p)
	if !fell() {
		if err != nil || !r.Converged() {
			t.Errorf("not interrupted after %d: %v, failures %+v", n, err, r.Failures)
		}
		return false
	}
	v.recovers(t, n, want)
	return true
}

// recovers applies again, when what was cut off has ended on the host: a check of a password that was killed keeps it busy for
// 70 seconds.
func (v *victim) recovers(t *testing.T, n int, want []string) {
	t.Helper()
	must(t, v.machine.Advance(2*time.Minute))
	if r := apply(t, v.engine); !r.Converged() {
		t.Errorf("interrupted after %d: failures %+v, actions left %+v", n, r.Failures, r.After.Actions)
	}
	if got := v.remains(t); !slices.Equal(got, want) {
		t.Errorf("interrupted after %d: (-want +got)\n%s", n, cmp.Diff(want, got))
	}
}
