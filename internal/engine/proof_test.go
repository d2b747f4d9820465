package engine_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/enginetest"
)

// TestChangeWithoutEffect: a script that exits with 0 verifies nothing. What is as it was before
// is a failure, and no verification of it enters the marker.
func TestChangeWithoutEffect(t *testing.T) {
	t.Parallel()
	inMemory(t, 1, everyoneAtOnce, func(t *testing.T, w *nodesInMemory) {
		w.atWork(t)
		before := planned(t, w.engine).Hosts[0].Verified["plain"]
		w.want["plain"] = "b"
		p := planned(t, w.engine)
		w.OnCall = faultAt("RunChange", enginetest.Fault{After: func() { w.Change(func() { w.Machines[0].State["plain"] = "a" }) }})
		r := performed(t, w.engine, p)
		if r.Done != 0 || len(r.Failures) != 1 || !strings.Contains(r.Failures[0].Err.Error(), "the change had no effect") {
			t.Errorf("%d done, failures %+v", r.Done, r.Failures)
		}
		marker, _ := r.After.Hosts[0].Seen.Marker.Get()
		if !marker.Steps["plain"].Same(before) {
			t.Errorf("the marker has a verification of it: %+v", marker.Steps["plain"])
		}
	})
}

// TestUnreadIsNotVerified: a host whose answer cannot be read after a change has failed, and its Node stays cordoned.
func TestUnreadIsNotVerified(t *testing.T) {
	t.Parallel()
	busyInMemory(t, 1, everyoneAtOnce, func(t *testing.T, w *nodesInMemory, names []string) {
		changed := false
		w.OnCall = func(c enginetest.Call) enginetest.Fault {
			changed = changed || c.What == "RunChange"
			return enginetest.Fault{Garbled: changed && c.What == "probe"}
		}
		r := performed(t, w.engine, planned(t, w.engine))
		if n, _ := w.Node(names[0]); r.Done != 0 || len(r.Failures) != 1 || !n.Cordoned || len(r.LeftCordoned) != 1 {
			t.Errorf("%d done, failures %+v, its Node %+v", r.Done, r.Failures, n)
		}
	})
}

// TestHeldInTheMiddle: a hold that is put on a host while a step's verification is written is kept,
// and ends the work there.
func TestHeldInTheMiddle(t *testing.T) {
	t.Parallel()
	inMemory(t, 1, everyoneAtOnce, func(t *testing.T, w *nodesInMemory) {
		w.atWork(t)
		w.want["plain"], w.want["agent"] = "b", "v2"
		p, other := planned(t, w.engine), w.Engine()
		holds := sync.OnceFunc(func() { holdIt(t, other, anHour()) })
		w.engine.Emit = func(ev engine.Event) {
			if ev.Type == engine.Started && ev.Action.Step == "plain" {
				w.OnCall = faultAt("RunChange", enginetest.Fault{After: holds})
			}
		}
		r := performed(t, w.engine, p)
		if r.Done != 1 || len(r.Failures) != 1 || !strings.Contains(r.Failures[0].Err.Error(), "held: it is held by sam@desk") {
			t.Errorf("%d done, failures %+v", r.Done, r.Failures)
		}
		if w.Machines[0].State["plain"] != "b" || w.Machines[0].State["agent"] != "v1" {
			t.Errorf("the host has %v", w.Machines[0].State)
		}
	})
}
