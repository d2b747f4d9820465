package engine_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/macfleet/macfleet/internal/engine"
)

// drainer is a Mac whose Tart is exchanged to and fro, each time below a Pod at work.
type drainer struct {
	*victim
	second bool
}

func newDrainer(t *testing.T) *drainer {
	t.Helper()
	w, dir := world(t, 3)
	converges(t, run(t, w, hostCore("production", 1)))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	d := &drainer{victim: victimIn(t, dir)}
	d.engine.Run, d.engine.Drain = thisRun(), engine.Drain{Within: 2 * time.Second, Every: 5 * time.Millisecond}
	d.wish()
	converges(t, d.engine)
	for range 4 { // the first of each knows no version from before
		d.next(t)
		converges(t, d.engine)
	}
	return d
}

func (d *drainer) wish() {
	version := map[bool]string{false: "2.32.1", true: "2.33.0"}[d.second]
	d.spec.Tart.Artifact = sample("tart", version, "tart-"+version+".tar.gz")
}

// next wants the other Tart, and has a Pod run.
func (d *drainer) next(t *testing.T) {
	t.Helper()
	d.second = !d.second
	d.wish()
	if err := d.world.RunPod(member(t, d.world), "default", "job"); err != nil {
		t.Fatal(err)
	}
	if p := planned(t, d.engine); len(p.Actions) != 1 || !p.Actions[0].Drains || p.Actions[0].Evicts != 1 {
		t.Fatalf("%q, evicts %d", whatIsSaid(p, p.Hosts[0].Name), p.Actions[0].Evicts)
	}
}

// TestDrainStruck strikes an exchange of Tart below a Pod at work anywhere: as its Node is
// closed, drained, changed and opened. The next run converges, and nobody's cordon is left.
func TestDrainStruck(t *testing.T) {
	t.Parallel()
	for name, strike := range strikes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, step := newDrainer(t), 3
			if name == "killed" || name == "the line breaks" { // TestRollStruck has all of these
				step = 7
			}
			everywhere(t, 0, step, func(t *testing.T, n int) bool {
				d.next(t)
				fell := d.struckAt(t, n, strike, nil)
				isOpen(t, d.engine, member(t, d.world), 0)
				return fell
			})
		})
	}
	for _, behind := range []bool{false, true} {
		t.Run(fmt.Sprintf("macfleet is killed, %t", behind), func(t *testing.T) {
			t.Parallel()
			d, left := newDrainer(t), 0
			everywhere(t, 0, 1, func(t *testing.T, n int) bool {
				d.next(t)
				fell, closed := d.killedAt(t, n, behind)
				isOpen(t, d.engine, member(t, d.world), 0)
				if closed {
					left++
				}
				return fell
			})
			if left == 0 {
				t.Error("no run ever left a cordon behind")
			}
		})
	}
}

// What is left on the host is compared where no run enters it (TestRollStruck).

// killedAt lets macfleet die at a call of the cluster, and another run come after it: it
// takes over what the first left. closed says that this was a cordon.
func (v *victim) killedAt(t *testing.T, n int, behind bool) (fell, closed bool) {
	t.Helper()
	first := named(fmt.Sprint("first", n), int64(100+2*n)) // above those that newDrainer was given
	v.engine.Run = first
	p := planned(t, v.engine)
	ctx, die := context.WithCancel(t.Context())
	defer die()
	v.line.behind.Store(behind)
	v.line.killed = die
	v.line.left.Store(int64(n) + 1)
	r, err := v.engine.Apply(ctx, p)
	fell = v.line.dead.Swap(false)
	v.line.left.Store(0)
	v.line.killed = nil
	if !fell {
		if err != nil || !r.Converged() {
			t.Errorf("not killed after %d: %v, failures %+v", n, err, r.Failures)
		}
		return false, false
	}
	node := nodeOf(t, v.engine, p.Hosts[0].Name)
	if closed = node.Cordoned; closed && node.CordonRun != first.ID {
		t.Errorf("killed after %d: the cordon is nobody's: %+v", n, node)
	}
	v.engine.Run = named(fmt.Sprint("second", n), first.Epoch+1)
	if r := apply(t, v.engine); !r.Converged() {
		t.Errorf("killed after %d: %q is left, failures %+v", n, whatIsSaid(r.After, r.After.Hosts[0].Name), r.Failures)
	}
	return true, closed
}
