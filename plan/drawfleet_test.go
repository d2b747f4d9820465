package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// drawFleet makes working fleets: most hosts are as macfleet left them, and a few have something wrong. In drawWorld so
// much is wrong at once that few hosts change, and no limit is reached.
func drawFleet(t *rapid.T) *world {
	replicas := rapid.IntRange(0, 5)
	w := newWorld(replicas.Draw(t, "macos.m2"), 0, replicas.Draw(t, "runners.m2"))
	w.join()
	w.working = true
	w.snap.Taken = noon
	w.snap.Catalogue = offered("Tahoe", "Sequoia")
	for n := range rapid.IntRange(2, 9).Draw(t, "servers") {
		if n++; rapid.IntRange(0, 4).Draw(t, "free") == 0 {
			w.free(n)
			continue
		}
		drawMember(t, w, n)
	}
	w.sel.AllowOrphans = rapid.IntRange(0, 3).Draw(t, "orphans") == 0
	switch rapid.IntRange(0, 19).Draw(t, "lists") {
	case 0:
		w.snap.Nodes = inventory.Unread[[]inventory.Node]("no rights")
	case 1:
		w.podsUnread()
	case 2:
		w.snap.Catalogue = nil
	case 3:
		w.snap.Catalogue = offered("Sequoia")
	case 4:
		w.observe(func(c *inventory.Cluster) { c.Identities = inventory.Unread[[]inventory.Identity]("no rights") })
	}
	if rapid.IntRange(0, 9).Draw(t, "departs") == 0 {
		d := &plan.Departure{Name: rapid.SampledFrom(w.snap.Servers).Draw(t, "who").Name, Replace: rapid.Bool().Draw(t, "replace")}
		if sel, err := plan.CheckLists(w.cfg, w.snap, plan.Selection{Departs: d, AllowOrphans: w.sel.AllowOrphans}); err == nil {
			w.sel, w.snap.Asked = sel, sel.Departs.Asked()
		}
	}
	for _, s := range w.snap.Servers {
		w.snap.Hosts[s.ID] = w.hosts[s.ID]
	}
	return w
}

// drawMember adds a member, mostly as it should be. What is seen of its step alpha says how much a correction disrupts.
func drawMember(t *rapid.T, w *world, n int) {
	in := rapid.SampledFrom([]string{"macos", "macos", "runners", "runners", "deleted"}).Draw(t, "fleet")
	if in == "deleted" && rapid.IntRange(0, 3).Draw(t, "keeps its fleet") > 0 {
		in = "macos"
	}
	s := w.member(in, "m2", n)
	name := s.Name
	s.Created = time.Unix(rapid.Int64Range(0, 3).Draw(t, "created"), 0)
	s.OSFamily = map[string]string{"macos": "Tahoe", "deleted": "Tahoe", "runners": "Sequoia"}[in]
	w.pin(n, name)
	pin := &w.snap.Pins[len(w.snap.Pins)-1]
	pin.Stage = rapid.SampledFrom(append(plan.Stages(), slices.Repeat([]plan.Stage{plan.Stays}, 12)...)).Draw(t, "stage")
	m := w.marker(in, "m2", n).With("gamma", plan.DigestOf(good, good))
	w.change(n, func(h *plan.HostSeen) {
		h.Marker = inventory.Present(m)
		disrupts := []plan.Disruption{plan.Restart, plan.Drain, plan.Reboot, plan.Wipe}
		if rapid.IntRange(0, 2).Draw(t, "differs") == 0 {
			h.Facts["alpha.get"] = inventory.Present(plan.Answer{Stdout: rapid.SampledFrom(disrupts).Draw(t, "by").String()})
		}
	})
	w.answers(n, good)
	w.works(n, "")
	if in == "macos" {
		w.identity(name)
		w.node(n, name, inventory.Ready)
	}
	if rapid.IntRange(0, 1).Draw(t, "well") == 0 {
		drawWrong(t, w, n, s, pin)
	}
}

// works sets the virtual machines that run on a host.
func (w *world) works(n int, vms string) {
	w.change(n, func(h *plan.HostSeen) { h.Facts["work.get"] = inventory.Present(plan.Answer{Stdout: vms}) })
}

// drawWrong lets one thing be wrong with a member.
func drawWrong(t *rapid.T, w *world, n int, s *inventory.Server, pin *plan.Pin) {
	name := s.Name
	node := func(edit func(*inventory.Node)) {
		all, _ := w.snap.Nodes.Get()
		for i := range all {
			if all[i].Name == name {
				edit(&all[i])
			}
		}
	}
	runs := func(controller string) {
		if !hasNode(w, name) {
			return
		}
		w.observe(func(c *inventory.Cluster) {
			all, _ := c.Pods.Get()
			c.Pods = inventory.Present(append(slices.Clone(all), inventory.Pod{Namespace: "ci", Name: fmt.Sprint("job-", n), UID: fmt.Sprint(n), Node: name,
				Phase: "Running", Controller: controller}))
		})
	}
	away := func(code plan.Code) { w.hosts[serverID(n)] = plan.HostSeen{Trouble: code.Trouble("t", "r")} }
	hold := &inventory.Hold{Who: "sam@desk", Reason: "its fan is checked", Until: noon.Add(time.Duration(rapid.IntRange(-1, 1).Draw(t, "until")) * time.Hour)}
	repairs := &inventory.Repairs{Failed: 3, Reason: "r", Who: "sam@desk", Since: noon}
	switch rapid.IntRange(0, 19).Draw(t, "wrong") {
	case 0:
		w.mark(n, func(m *plan.Marker) { m.Hold = hold })
	case 1:
		node(func(n *inventory.Node) { n.Hold = hold })
	case 2:
		w.mark(n, func(m *plan.Marker) { m.Repairs = repairs })
	case 3:
		node(func(n *inventory.Node) { n.Repairs = repairs })
	case 4:
		away(plan.CodeUnreachable)
	case 5:
		away(plan.CodeWrongHostKey)
	case 6:
		away(plan.CodeUnreachable)
		node(func(n *inventory.Node) { n.Ready = inventory.NotReady })
	case 7:
		node(func(n *inventory.Node) { n.Ready = inventory.NotReady })
		w.works(n, "ci-job")
	case 8:
		runs("ReplicaSet")
	case 9:
		runs("")
	case 10:
		w.works(n, "by-hand")
	case 11:
		w.unmark(n)
		node(func(n *inventory.Node) { n.ProviderID = serverProvider(11) })
	case 12:
		w.mark(n, func(m *plan.Marker) { m.Environment = "staging" })
	case 13:
		at, _ := w.cfg.Parse(name)
		if _, g, known := w.cfg.Group(at.Fleet, at.Group); known {
			w.list(fleet.Listed{Name: name, ServerID: serverID(n), Fleet: at.Fleet, Group: at.Group, Spec: g.Spec})
		}
	case 14:
		s.Status = rapid.SampledFrom([]string{"starting", "rebooting", "locked", "error", "unknown_status"}).Draw(t, "status")
	case 15:
		s.DeletionScheduled = true
	case 16:
		s.Name = "renamed-by-hand"
	case 17:
		w.snap.Pins = slices.DeleteFunc(w.snap.Pins, func(p plan.Pin) bool { return p.ServerID == serverID(n) })
	case 18:
		w.change(n, func(h *plan.HostSeen) { delete(h.Facts, "work.get") })
	case 19:
		pin.Pooled = fmt.Sprintf("acme-pool-%02d", rapid.IntRange(1, 9).Draw(t, "pooled"))
	}
}

// working is a step whose correction disrupts as much as what is seen of it says, on a host whose work it reads.
type working struct{ fakeStep }

// Probes are those of the step, and of the work.
func (s working) Probes() []plan.Probe {
	return append(s.fakeStep.Probes(), plan.Probe{ID: "work.get"})
}

// Diff finds what the step finds.
func (s working) Diff(v plan.View) plan.Finding {
	f := s.fakeStep.Diff(v)
	if a, read := v.Facts.Get("work.get").Get(); read {
		for _, vm := range strings.Fields(a.Stdout) {
			f.Busy = append(f.Busy, plan.Task{VM: vm, Text: vm})
		}
		f.Running = inventory.Present(f.Busy)
	} else {
		f.Running = inventory.Unread[[]plan.Task]("t")
	}
	for i := range f.Changes {
		for d := plan.NoDisruption; d <= plan.Wipe; d++ {
			if f.Changes[i].Fields[0].Before == d.String() {
				f.Changes[i].Disruption = d
			}
		}
	}
	return f
}
