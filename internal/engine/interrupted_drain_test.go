package engine_test

import (
	"testing"
	"time"

	"github.com/macfleet/macfleet/internal/engine"
)

// drainer is a Mac whose Tart is exchanged to and fro, each time below a Pod running.
type drainer struct {
	*victim
	second bool
}

func newDrainer(t *testing.T) *drainer {
	t.Helper()
	declares(t, 1000, "one Mac is changed to and fro")
	d := &drainer{victim: victimIn(t, prepared(t, 3, nodes(1)))}
	run := thisRun()
	run.Epoch = 1 // the cluster keeps its lock, so what it entered says nothing of its life
	d.engine.Run, d.engine.Drain = run, engine.Drain{Within: time.Minute, Every: 5 * time.Millisecond}
	return d
}

func (d *drainer) configure() {
	version := map[bool]string{false: "2.32.1", true: "2.33.0"}[d.second]
	d.spec.Tart.Artifact = sample("tart", version, "tart-"+version+".tar.gz")
}

// next wants the other Tart, and has a Pod run.
func (d *drainer) next(t *testing.T) {
	t.Helper()
	d.second = !d.second
	d.configure()
	must(t, d.world.RunPod(member(t, d.world), "default", "job"))
	if p := planned(t, d.engine); len(p.Actions) != 1 || !p.Actions[0].Drains || p.Actions[0].Evicts != 1 {
		t.Fatalf("%q, evicts %d", codesOf(p, p.Hosts[0].Name), p.Actions[0].Evicts)
	}
}

// TestDrainInterrupted interrupts an exchange of Tart below a Pod running on its host. The next run
// converges, and no one's cordon is left. TestRollInterrupted has each interruption without a Pod, and
// TestFaultMatrix what hits the cluster and macfleet meanwhile.
func TestDrainInterrupted(t *testing.T) {
	t.Parallel()
	for name, interruption := range interruptions() {
		parallel(t, name, func(t *testing.T) {
			d := newDrainer(t)
			for n, step := shard(); ; n += step {
				d.next(t)
				fell := d.interruptedAt(t, n, interruption, nil)
				isOpen(t, d.engine, member(t, d.world), 0)
				if !fell {
					return
				}
			}
		})
	}
}
