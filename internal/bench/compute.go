package main

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/plan/plantest"
)

// The budgets of planning.
const (
	planSeconds   = 1.0
	planMegabytes = 500.0
	planGrowth    = 2.2 // growth for twice as many hosts
)

// compute plans a recorded fleet once, as a command does.
func compute(n int, converged bool) (result, error) {
	record := plantest.Recorded
	if converged {
		record = plantest.Converged
	}
	debug.SetGCPercent(50) // as macfleet itself does
	config, steps, snapshot := record(n)
	runtime.GC()
	began := time.Now()
	p := plan.Compute(config, steps, snapshot, plan.Selection{})
	r := result{Wall: time.Since(began)}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	r.Heap = m.HeapSys
	text, err := json.Marshal(snapshot)
	if err != nil {
		return r, err
	}
	began = time.Now()
	if err := json.Unmarshal(text, new(plan.Snapshot)); err != nil {
		return r, err
	}
	r.Decoded = time.Since(began)
	if s := p.Summarise(); s.Hosts != n || (s.Changes() == 0) != converged {
		return r, fmt.Errorf("the plan of %d recorded hosts (converged: %t) is %+v", n, converged, s)
	}
	return r, nil
}

// plan measures plan.Compute at two sizes.
func (b *bench) plan(ctx context.Context) ([]row, error) {
	var rows []row
	for _, converged := range []bool{false, true} {
		what := "everything differs"
		if converged {
			what = "nothing to do"
		}
		b.say("plan: %d and %d recorded hosts, %s", b.recorded, 2*b.recorded, what)
		var once, twice, growth []float64
		var heap, decodings []float64
		for range b.rounds {
			small, _, err := b.do(ctx, job{Kind: "compute", Hosts: b.recorded, Converged: converged})
			if err != nil {
				return rows, err
			}
			big, _, err := b.do(ctx, job{Kind: "compute", Hosts: 2 * b.recorded, Converged: converged})
			if err != nil {
				return rows, err
			}
			once, twice = append(once, small.Wall.Seconds()), append(twice, big.Wall.Seconds())
			decodings = append(decodings, small.Wall.Seconds()/small.Decoded.Seconds())
			growth = append(growth, big.Wall.Seconds()/small.Wall.Seconds())
			heap = append(heap, megabytes(int64(small.Heap)))
		}
		name := fmt.Sprintf("plan %d hosts x 14 steps, %s", b.recorded, what)
		rows = append(rows,
			judged(name, median(once), planSeconds, " s"),
			shown("  as a multiple of reading the snapshot with encoding/json", "%.2fx", median(decodings)),
			judged("  heap at its peak, snapshot included", median(heap), planMegabytes, " MB"),
			shown(fmt.Sprintf("  %d hosts", 2*b.recorded), "%.2f s", median(twice)),
			judged("  growth", median(growth), planGrowth, times))
	}
	return rows, nil
}
