package engine_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/plan"
)

// TestHoldDuringARun: someone holds a host while an apply is on it. The action that
// has started by the time the run finds out is finished, and the hold is not lost. A run
// that comes to the host only after the hold does nothing there.
func TestHoldDuringARun(t *testing.T) {
	t.Parallel()
	cfg := config("production", 1)
	w, first := converged(t, 4, cfg)
	e, other := run(t, w, cfg), run(t, w, cfg)
	e.Pins, other.Pins = first.Pins, first.Pins
	host := planned(t, first).Hosts[0]
	for _, incident := range []string{"hostname-edited", "sleep-enabled"} {
		inject(t, w, host.Name, incident)
	}
	now := time.Now().UTC().Truncate(time.Second)
	hold := &inventory.Hold{Who: "sam@desk", Reason: "its fan", Since: now, Until: now.Add(time.Hour)}
	p := planned(t, e)
	var once sync.Once
	e.Emit = func(ev engine.Event) {
		if ev.Type == engine.Done && ev.Action.Step == "hostname" {
			once.Do(func() { holdIt(t, other, hold) })
		}
	}
	r := performed(t, e, p)
	if r.Done != 2 || len(r.Failures) > 0 {
		t.Fatalf("%+v", r)
	}
	if held := r.After.Hosts[0].ActiveHold(); held == nil || held.Reason != "its fan" || !slices.Contains(held.In, plan.InMarker) {
		t.Fatalf("the hold is gone: %+v", r.After.Hosts[0].Held)
	}

	freed := e.Hold(t.Context(), planned(t, e).Hosts, nil, nil)
	if len(freed) != 1 || !freed[0].Done(nil) {
		t.Fatalf("%+v", freed)
	}
	inject(t, w, host.Name, "hostname-edited")
	if p = planned(t, e); len(p.Runnable()) == 0 {
		t.Fatal("nothing is expected to be done")
	}
	holdIt(t, other, hold)
	r = performed(t, e, p)
	if r.Done != 0 || len(r.Failures) != 1 || !strings.Contains(r.Failures[0].Err.Error(), "held: it is held by sam@desk") {
		t.Errorf("%+v", r)
	}
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
	w, _ := world(t, 4)
	cfg := config("production", 1)
	e := run(t, w, cfg)
	p := planned(t, e)
	for name, keys := range map[string]map[string]string{"not in it": {}, "another key": {p.Hosts[0].Server.ID: "SHA256:another"}} {
		e.Approved = &plan.Approved{Digests: p.Approve().Digests, Keys: keys}
		now := planned(t, e)
		if r := performed(t, e, now); r.Done != 0 || len(now.Runnable()) > 0 || len(engine.Unpinned(now)) > 0 || r.Converged() {
			t.Errorf("%s: %+v", name, r)
		}
	}
	e.Approved.Keys = p.Keys()
	if r := performed(t, e, planned(t, e)); !r.Converged() {
		t.Errorf("the whole file: %+v", r)
	}
}
