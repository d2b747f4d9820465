package engine_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/enginetest"
	"github.com/macfleet/macfleet/plan"
)

// TestHoldSinceThePlan: a run that comes to a host after someone held it does nothing there, and keeps the hold.
// TestHeldInTheMiddle has a hold that comes while the run is on the host.
func TestHoldSinceThePlan(t *testing.T) {
	t.Parallel()
	inMemory(t, 1, everyoneAtOnce, func(t *testing.T, w *nodesInMemory) {
		w.atWork(t)
		w.want["plain"] = "b"
		p, now := planned(t, w.engine), time.Now()
		holdIt(t, w.Engine(), &inventory.Hold{Who: "sam@desk", Reason: "its fan", Since: now, Until: now.Add(time.Hour)})
		r := performed(t, w.engine, p)
		if r.Done != 0 || len(r.Failures) != 1 || troubleOf(r.Failures[0].Err).Code.String() != "held" {
			t.Errorf("done %d, failures %+v", r.Done, r.Failures)
		}
		if held := r.After.Hosts[0].ActiveHold(); held == nil || held.Reason != "its fan" || !slices.Contains(held.In, plan.InMarker) {
			t.Errorf("the hold is gone: %+v", r.After.Hosts[0].Held)
		}
		if freed := w.engine.Hold(t.Context(), r.After.Hosts, nil, nil); len(freed) != 1 || !freed[0].Done(nil) {
			t.Errorf("%+v", freed)
		}
		converges(t, w.engine)
	})
}

// TestHoldDuringARun: a hold that comes while a run writes the host's marker is not lost.
func TestHoldDuringARun(t *testing.T) {
	t.Parallel()
	inMemory(t, 1, everyoneAtOnce, func(t *testing.T, w *nodesInMemory) {
		w.atWork(t)
		w.want["plain"] = "b"
		p, now, other, once := planned(t, w.engine), time.Now(), w.Engine(), sync.Once{}
		hold := &inventory.Hold{Who: "sam@desk", Reason: "its fan", Since: now, Until: now.Add(time.Hour)}
		w.OnCall = func(c enginetest.Call) (f enginetest.Fault) {
			if c.What == "RunChange" {
				f.After = func() { once.Do(func() { holdIt(t, other, hold) }) }
			}
			return f
		}
		if r := performed(t, w.engine, p); r.Done != 1 || r.After.Hosts[0].ActiveHold() == nil {
			t.Errorf("done %d, failures %+v, held %+v", r.Done, r.Failures, r.After.Hosts[0].Held)
		}
	})
}

func holdIt(t *testing.T, e *engine.Engine, h *inventory.Hold) {
	t.Helper()
	p, err := e.ObserveToHold(context.Background())
	if err != nil {
		t.Error(err)
		return
	}
	for _, x := range e.Hold(context.Background(), p.Hosts, h, nil) {
		if x.Marker != nil || !x.Done(h) {
			t.Errorf("%+v", x)
		}
	}
}

// TestPlanFileOfAnUnknownHost: an apply of a plan file pins no key and writes no
// marker on a host that is not in it, or that shows another key already.
func TestPlanFileOfAnUnknownHost(t *testing.T) {
	t.Parallel()
	inMemory(t, 1, everyoneAtOnce, func(t *testing.T, w *nodesInMemory) {
		p := planned(t, w.engine)
		for name, keys := range map[string]map[string]string{"not in it": {}, "another key": {p.Hosts[0].Server.ID: "SHA256:another"}} {
			w.engine.Approved = &plan.Approved{Digests: p.Approve().Digests, Keys: keys}
			now := planned(t, w.engine)
			if r := performed(t, w.engine, now); r.Done != 0 || len(now.Runnable()) > 0 || len(engine.Unpinned(now)) > 0 || r.Converged() {
				t.Errorf("%s: %+v", name, r)
			}
		}
		w.engine.Approved.Keys = p.Keys()
		converges(t, w.engine)
	})
}
