package engine_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/enginetest"
	"github.com/macfleet/macfleet/plan"
)

// breaks makes a host's kubelet exit at once, whatever a run does.
func (w *nodesInMemory) breaks(host string) {
	w.Change(func() { w.Member(host).Refuses = w.Member(host).State["agent"] })
	w.dies([]string{host})
}

// hostOf is what the next plan has of a host.
func (w *nodesInMemory) hostOf(t *testing.T, name string) plan.Host {
	t.Helper()
	h, _ := planned(t, w.engine).HostByServer(w.Member(name).Server.ID)
	return h
}

func (w *nodesInMemory) nodeOf(t *testing.T, name string) inventory.Node {
	t.Helper()
	h := w.hostOf(t, name)
	n, there := h.Node.Get()
	if !there {
		t.Fatalf("%s has no Node", name)
	}
	return n
}

// TestQuarantine: the third failed repair in a row closes a host. A server of the pool takes its place, no
// run changes the host or releases its server, and the end of the quarantine uncordons it.
func TestQuarantine(t *testing.T) {
	t.Parallel()
	limits := fleet.Rollout{MaxUnavailable: fleet.Share{Percent: 100}, QuarantineAfter: 3}
	inMemory(t, 3, limits, func(t *testing.T, w *nodesInMemory) {
		group := &w.Config.Fleets[0].Groups[0]
		group.Replicas = 2
		names := w.atWork(t)
		sick := names[0]
		w.breaks(sick)
		for run := 1; run <= 3; run++ {
			r := apply(t, w.engine)
			if len(r.Failures) != 1 || len(r.Quarantined) != run/3 {
				t.Fatalf("run %d: failures %+v, quarantined %+v", run, r.Failures, r.Quarantined)
			}
			if run == 3 && (len(r.LeftCordoned) > 0 || r.Quarantined[0].Host != sick || r.Quarantined[0].Repairs.Failed != 3) {
				t.Errorf("%+v", r)
			}
		}
		if n := w.nodeOf(t, sick); !n.Cordoned || n.CordonedBy != engine.QuarantineCordon || n.CordonRun != "" || !n.Repairs.Quarantined() {
			t.Errorf("its Node: %+v", n)
		}
		h := w.hostOf(t, sick)
		if h.Refused == nil || h.Refused.Code != plan.CodeQuarantined || !strings.Contains(h.Refused.Text, "3 failed repairs") || !strings.Contains(h.Refused.Remedy, "macfleet unquarantine "+sick) {
			t.Errorf("refused %+v", h.Refused)
		}
		if marker, _ := h.Seen.Marker.Get(); !marker.Repairs.Quarantined() {
			t.Errorf("its marker: %+v", marker)
		}

		w.events = nil
		apply(t, w.engine) // another server takes its place
		if slices.Contains(w.happened(engine.Started), "started "+sick) {
			t.Error("an action started on the quarantined host")
		}
		if now := hostNames(planned(t, w.engine)); len(now) != 3 || !slices.Contains(now, sick) {
			t.Errorf("hosts %q", now)
		}

		group.Replicas = 1
		leaving := releases(planned(t, w.engine))
		if len(leaving) != 2 || leaving[0] != sick && leaving[1] != sick {
			t.Errorf("%q leave with replicas = 1", leaving)
		}
		group.Replicas = 2
		if leaving := releases(planned(t, w.engine)); len(leaving) > 0 {
			t.Errorf("%q leave although the quarantined host is not counted", leaving)
		}

		w.Change(func() { w.Member(sick).Refuses = "" })
		w.unquarantine(t, sick)
		if h := w.hostOf(t, sick); h.FailedRepairs != nil || h.Refused != nil {
			t.Errorf("after the quarantine: %+v", h)
		}
		p := planned(t, w.engine)
		surplus := slices.ContainsFunc(p.Hosts, func(h plan.Host) bool {
			return slices.ContainsFunc(h.Warnings, func(x plan.StepWarning) bool { return x.Code.String() == "surplus" })
		})
		if leaving := releases(p); len(leaving) > 0 || !surplus {
			t.Errorf("%q leave after the quarantine, surplus %t", leaving, surplus)
		}
	})
}

func releases(p *plan.Plan) (out []string) {
	for _, a := range p.Actions {
		if a.Kind == plan.ReleaseServer {
			out = append(out, a.Host)
		}
	}
	return out
}

func (w *nodesInMemory) unquarantine(t *testing.T, host string) {
	t.Helper()
	nodes := engine.NodeRepairs{Set: w.engine.Cluster.SetRepairs}
	for _, q := range w.engine.Quarantine(t.Context(), []plan.Host{w.hostOf(t, host)}, nil, nodes) {
		if !q.Done(false) {
			t.Errorf("%+v", q)
		}
	}
}

// TestRepairsAreForgotten: a repair that succeeds starts the count again.
func TestRepairsAreForgotten(t *testing.T) {
	t.Parallel()
	inMemory(t, 2, fleet.Rollout{MaxUnavailable: fleet.Share{Percent: 100}, QuarantineAfter: 2}, func(t *testing.T, w *nodesInMemory) {
		sick := w.atWork(t)[0]
		w.breaks(sick)
		apply(t, w.engine)
		if n := w.nodeOf(t, sick); n.Repairs == nil || n.Repairs.Failed != 1 || n.Repairs.Quarantined() {
			t.Fatalf("its Node: %+v", n.Repairs)
		}
		w.Change(func() { w.Member(sick).Refuses = "" })
		apply(t, w.engine)
		if n := w.nodeOf(t, sick); n.Repairs != nil {
			t.Errorf("its Node still has %+v", n.Repairs)
		}
		w.breaks(sick)
		if r := apply(t, w.engine); len(r.Failures) == 0 || len(r.Quarantined) > 0 {
			t.Errorf("after one failure: %+v", r)
		}
	})
}

// TestHealthyHostsAreNotQuarantined: what a rollout breaks on a healthy host does not count.
func TestHealthyHostsAreNotQuarantined(t *testing.T) {
	t.Parallel()
	inMemory(t, 2, fleet.Rollout{MaxUnavailable: fleet.Share{Percent: 100}, FailureBudget: 2, QuarantineAfter: 1}, func(t *testing.T, w *nodesInMemory) {
		w.atWork(t)
		w.want["plain"] = "b"
		w.everyMac(func(m *enginetest.Machine) { m.FullDisk = true })
		if r := apply(t, w.engine); len(r.Failures) == 0 || len(r.Quarantined) > 0 {
			t.Errorf("failures %+v, quarantined %+v", r.Failures, r.Quarantined)
		}
	})
}
