package engine_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/enginetest"
	"github.com/macfleet/macfleet/plan"
)

const legacy = "acme-legacy-01"

// adopting wants one server of two under its present name, which no grammar made, and the other one from the pool.
func adopting(t *testing.T, f func(t *testing.T, w *nodesInMemory, adopted *enginetest.Machine)) {
	t.Helper()
	inMemory(t, 2, everyoneAtOnce, func(t *testing.T, w *nodesInMemory) {
		m := w.Machines[0]
		m.Server.Name = legacy
		w.Config.Hosts = []fleet.Listed{{Name: legacy, ServerID: m.Server.ID, Fleet: "f0", Group: "m2", Spec: w.Config.Fleets[0].Groups[0].Spec}}
		f(t, w, m)
	})
}

// TestAdopt takes over a server under its present name, while another one is claimed. An adoption that was interrupted is still one
// in the next plan. Renamed by hand the host gets its name back.
func TestAdopt(t *testing.T) {
	t.Parallel()
	adopting(t, func(t *testing.T, w *nodesInMemory, adopted *enginetest.Machine) {
		p := planned(t, w.engine)
		_, err := w.engine.Settle(t.Context(), p)
		if pins, perr := w.engine.Pins.All(); err != nil || perr != nil || len(pins) > 0 {
			t.Errorf("pinned before its first action: %+v, %v, %v", pins, err, perr)
		}
		w.Change(func() { adopted.Away = true })
		if r := performed(t, w.engine, p); len(r.Failures) != 1 || r.Failures[0].Action.Host != legacy {
			t.Fatalf("failures %v", r.Failures)
		}
		w.Change(func() { adopted.Away = false })
		p = planned(t, w.engine)
		codes := codesOf(p, legacy)
		if !slices.Contains(codes, "pending adopted") || slices.ContainsFunc(p.Actions, func(a plan.Action) bool { return a.Origin.Drift }) {
			t.Errorf("it says %q", codes)
		}
		converges(t, w.engine)
		marked := func(line string) bool { return strings.HasPrefix(line, legacy+" is marked as "+legacy+" of acme") }
		if !slices.ContainsFunc(w.Lasting(), marked) {
			t.Errorf("no marker: %q", w.Lasting())
		}
		if p = planned(t, w.engine); len(p.Actions) != 0 || len(p.Hosts) != 2 {
			t.Errorf("the second plan has %d hosts and actions %+v", len(p.Hosts), p.Actions)
		}
		w.Change(func() { adopted.Server.Name = "acme-pool-99" })
		converges(t, w.engine)
		if adopted.Server.Name != legacy {
			t.Errorf("it is called %s", adopted.Server.Name)
		}
	})
}

// TestAdoptOnlyWaitsForNoNode: the first apply of an adopted host writes its marker and pins its key. The host is
// not a Node yet, and no other host is contacted.
func TestAdoptOnlyWaitsForNoNode(t *testing.T) {
	t.Parallel()
	adopting(t, func(t *testing.T, w *nodesInMemory, _ *enginetest.Machine) {
		w.engine.Selection = plan.Selection{Decisions: plan.Decisions{AdoptOnly: true}, Steps: []plan.StepID{"sudo"}}
		w.OnCall = func(c enginetest.Call) (f enginetest.Fault) {
			if c.Place == enginetest.OnHost && c.Name != legacy {
				t.Errorf("%s of %s", c.What, c.Name)
			}
			return f
		}
		started := time.Now()
		r := apply(t, w.engine)
		if len(r.Failures) > 0 || r.After == nil || len(r.After.Actions) > 0 || time.Since(started) > time.Minute || len(w.happened(engine.Waiting)) > 0 {
			t.Fatalf("failures %+v, left %+v", r.Failures, r.After)
		}
		if h := r.After.Hosts[0]; h.Seen.Marker.IsAbsent() || !h.Node.IsAbsent() {
			t.Errorf("marker %+v, Node %+v", h.Seen.Marker, h.Node)
		}
		pins, err := w.engine.Pins.All()
		if err != nil || len(pins) != 1 || pins[0].Name != legacy || pins[0].Unfinished {
			t.Errorf("pins %+v, %v", pins, err)
		}
	})
}

// TestOneHostsStep gives one host a step that no group has: its probes are read, and no other host is changed.
func TestOneHostsStep(t *testing.T) {
	t.Parallel()
	inMemory(t, 2, everyoneAtOnce, func(t *testing.T, w *nodesInMemory) {
		host := w.atWork(t)[1]
		own := w.Config.Fleets[0].Groups[0].Spec
		own.Power = &fleet.Power{}
		w.Config.Hosts = []fleet.Listed{{Name: host, Fleet: "f0", Group: "m2", Spec: own}}
		things := w.Things
		w.Things = func(h fleet.Host) []enginetest.Thing {
			if h.Spec.Power == nil {
				return things(h)
			}
			return append(things(h), enginetest.Thing{Key: "power", Value: "on"})
		}
		p := planned(t, w.engine)
		if s := p.Summarise(); s.Change != 1 || s.Unread != 0 || s.Converged != 1 || p.Actions[0].Host != host || p.Actions[0].Step != "power" {
			t.Fatalf("summary %+v, actions %+v", s, p.Actions)
		}
		converges(t, w.engine)
	})
}
