package plan_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/plan/plantest"
)

// TestRecordedFleets shows that the benchmarks plan what they say.
func TestRecordedFleets(t *testing.T) {
	t.Parallel()
	const n = 41
	cfg, stepsFor, snap := plantest.Recorded(n)
	p := plan.Compute(cfg, stepsFor, snap, plan.Selection{})
	expect(t, "recorded", plan.Summary{Hosts: n, Change: n * (plantest.Steps - 1), Refused: n, Drift: n * plantest.Steps}, p.Summarise())
	if next := plan.Next(cfg, snap, plan.Selection{}); next != nil {
		t.Errorf("%d hosts are still to be contacted", len(next))
	}
	cfg, stepsFor, snap = plantest.Converged(n)
	p = plan.Compute(cfg, stepsFor, snap, plan.Selection{})
	expect(t, "converged", plan.Summary{Hosts: n, Converged: n}, p.Summarise())
	for _, h := range p.Hosts {
		if len(h.Verified) != plantest.Steps || h.MarkerStale() {
			t.Fatalf("%s: %d records, lost %t", h.Name, len(h.Verified), h.MarkerStale())
		}
	}
	cfg, stepsFor, snap = plantest.Joining(n)
	p = plan.Compute(cfg, stepsFor, snap, plan.Selection{})
	expect(t, "joining", plan.Summary{Hosts: n, Add: n, Change: n * plantest.Steps, Pending: n * (plantest.Steps + 1)}, p.Summarise())
}

// TestComputeAllocates bounds what planning a host costs, by what it allocates: unlike seconds, that does not depend on the
// machine. The budget of seconds is internal/bench's.
func TestComputeAllocates(t *testing.T) { // not in parallel: the counts are those of the whole process
	const n = 500 // the race detector adds some bytes to a host, a parse that is not shared 100 objects
	for _, tc := range []struct {
		name           string
		record         recording
		objects, bytes uint64
	}{
		{"everything differs", plantest.Recorded, 760, 105_000},
		{"nothing differs", plantest.Converged, 680, 97_000},
	} {
		cfg, stepsFor, snap := tc.record(n)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		compute(cfg, stepsFor, snap)
		runtime.ReadMemStats(&after)
		objects, bytes := (after.Mallocs-before.Mallocs)/n, (after.TotalAlloc-before.TotalAlloc)/n
		if objects > tc.objects || bytes > tc.bytes {
			t.Errorf("%s: %d objects and %d bytes for each host, more than %d and %d", tc.name, objects, bytes, tc.objects, tc.bytes)
		}
	}
}

type recording func(int) (*fleet.Config, plan.StepsFor, plan.Snapshot)

func sizes(b *testing.B, record recording, run func(*fleet.Config, plan.StepsFor, plan.Snapshot)) {
	for _, n := range []int{1_000, 10_000, 20_000} {
		b.Run(fmt.Sprintf("hosts=%d", n), func(b *testing.B) {
			cfg, stepsFor, snap := record(n)
			runtime.GC()
			b.ReportAllocs()
			for b.Loop() {
				run(cfg, stepsFor, snap)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/host")
		})
	}
}

func compute(cfg *fleet.Config, stepsFor plan.StepsFor, snap plan.Snapshot) {
	plan.Compute(cfg, stepsFor, snap, plan.Selection{})
}

// BenchmarkCompute plans hosts on which every step differs. The budget is 10,000
// hosts of 14 steps in a second and 500 MB; the time per host must not grow with
// the fleet.
func BenchmarkCompute(b *testing.B) { sizes(b, plantest.Recorded, compute) }

// BenchmarkComputeConverged plans hosts on which nothing differs.
func BenchmarkComputeConverged(b *testing.B) { sizes(b, plantest.Converged, compute) }

// BenchmarkNext is the other half of a round.
func BenchmarkNext(b *testing.B) {
	sizes(b, plantest.Recorded, func(cfg *fleet.Config, _ plan.StepsFor, snap plan.Snapshot) { plan.Next(cfg, snap, plan.Selection{}) })
}
