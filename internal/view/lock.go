package view

import (
	"fmt"
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/lock"
	"github.com/macfleet/macfleet/plan"
)

// WaitingLine says of a lock that is waited for who has it, where, since when, and how
// long that may still take. of is whose lock it is.
func WaitingLine(of string, w lock.Waiting) string {
	left := w.Record.Lasts - w.Still
	return listed("; ",
		fmt.Sprintf("Waiting for the lock of %s: %s has it since %s (run %s, on %s)", of, w.Record.Run.Who, moment(w.Record.Since), w.Record.Run.ID, w.Record.Machine),
		given(w.Still > w.Record.Lasts/2 && left > 0, "it is not renewed, and free in %s unless it is", seconds(left)),
		given(w.Err != nil, "the last look failed: %v", w.Err), fmt.Sprintf("given up in %s.", seconds(w.Left)))
}

func seconds(d time.Duration) string { return d.Round(time.Second).String() }

// LockStatus is what is known of a lock.
type LockStatus struct {
	Of     string        // whose it is
	Where  string        // what keeps it: a Lease, or a host
	There  bool          // somebody has had it
	Record lock.Record   // who has it, or had it last
	Age    time.Duration // since it was renewed, by the clock of who keeps it
	Dead   bool          // for too long
}

// Lock shows a lock.
func (t *Text) Lock(s LockStatus) {
	r := s.Record
	switch {
	case !s.There:
		t.sayf("%s: nobody has the lock (%s).", s.Of, s.Where)
		return
	case !r.Held:
		t.sayf("%s: nobody has the lock (%s). %s had it last, until %s (run %s, epoch %d).", s.Of, s.Where, r.Run.Who, moment(r.Renewed), r.Run.ID, r.Run.Epoch)
		return
	}
	t.sayf("%s: %s has the lock (%s).", s.Of, r.Run.Who, s.Where)
	t.pair(2, 6, "run", r.Run.ID)
	if r.Machine != "" {
		t.pair(2, 6, "on", r.Machine)
	}
	t.pair(2, 6, "since", moment(r.Since))
	t.pair(2, 6, "epoch", fmt.Sprint(r.Run.Epoch))
	alive := "it is valid: its run lives, or ended less than that ago"
	if s.Dead {
		alive = "it has expired: the next apply takes it over"
	}
	t.line(2, "", fmt.Sprintf("last sign of life %s ago, it counts for %s without one: %s", seconds(s.Age), seconds(r.Lasts), alive))
}

// ReleaseQuestion is what a person is asked before a lock is taken from a run.
func ReleaseQuestion(s LockStatus) string {
	alive := "It gives signs of life. It finishes what it is doing and starts nothing more; another apply that begins meanwhile may meet it on the same host."
	if s.Dead {
		alive = fmt.Sprintf("It gave no sign of life for %s.", seconds(s.Age))
	}
	return fmt.Sprintf("Take the lock of %s from %s (run %s)? %s", s.Of, s.Record.Run.Who, s.Record.Run.ID, alive)
}

// HostLock is the lock that a host keeps for the run which entered it last.
func HostLock(name string, e plan.Entered, span time.Duration) LockStatus {
	return LockStatus{Of: name, Where: "kept by the host", There: true, Age: e.Idle,
		Record: lock.Record{Held: e.Held, Run: plan.Run{ID: e.ID, Who: e.Who, Epoch: e.Epoch}, Since: e.At, Renewed: e.At, Lasts: span}}
}

// Holding says where a hold was written, or taken away where there is none, a line
// for each host, and why it was not elsewhere.
func (t *Text) Holding(all []engine.Holding, hold *inventory.Hold) {
	done, failed := "no longer held", "still held"
	if hold != nil {
		done, failed = "held "+plan.Held{Hold: *hold}.String(), "not held"
	}
	for _, h := range all {
		in := listed(", ", given(h.Marker == nil, plan.InMarker), given(h.Node == nil, plan.InNode))
		sign, text := "", h.Host.Name+": "+done+" ("+in+")"
		if !h.Done(hold) {
			sign, text = signRefused, h.Host.Name+": "+failed
		}
		t.line(0, sign, text)
		if h.Marker != nil {
			t.line(4, "", fmt.Sprintf("%s: %v", plan.InMarker, h.Marker))
		}
		if h.Node != nil {
			t.line(4, "", fmt.Sprintf("%s: %v", plan.InNode, h.Node))
		}
	}
}
