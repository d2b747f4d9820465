package plan_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/plan/plantest"
)

// drawWorld makes a small world in which everything that can go wrong does, and
// in which names, ids, pins and Nodes collide.
func drawWorld(t *rapid.T) *world {
	size := rapid.IntRange(0, 3)
	w := newWorld(size.Draw(t, "macos.m2"), size.Draw(t, "macos.m4"), size.Draw(t, "runners.m2"))
	w.snap.Catalogue = offered("Tahoe", "Sequoia")
	w.cfg.Fleets[1].OS = rapid.SampledFrom([]string{"Tahoe", "Sequoia"}).Draw(t, "os")
	for n := range rapid.IntRange(0, 9).Draw(t, "servers") {
		drawServer(t, w, n+1)
	}
	for range rapid.IntRange(0, 4).Draw(t, "pins") {
		n := rapid.IntRange(1, 11).Draw(t, "pinned")
		w.pin(n, drawName(t, w, n))
		w.snap.Pins[len(w.snap.Pins)-1].Stage = rapid.SampledFrom(append(plan.Stages(), plan.Stays, plan.Stays, plan.Stays)).Draw(t, "stage")
		w.snap.Pins[len(w.snap.Pins)-1].Since = time.Unix(rapid.Int64Range(0, 2).Draw(t, "since"), 0)
	}
	for i := range rapid.IntRange(0, 4).Draw(t, "nodes") {
		n := rapid.IntRange(1, 11).Draw(t, "of")
		ready := rapid.SampledFrom([]inventory.Readiness{inventory.Ready, inventory.NotReady}).Draw(t, "ready")
		// A cluster has one Node of a name; a server may have several.
		if name := drawName(t, w, n); !hasNode(w, name) {
			w.node(n, name, ready)
		} else {
			w.node(n, fmt.Sprintf("node-%d", i), ready)
		}
	}
	switch rapid.IntRange(0, 9).Draw(t, "cluster") {
	case 0:
		w.snap.Nodes = inventory.Absent[[]inventory.Node]()
	case 1:
		w.snap.Nodes = inventory.Unread[[]inventory.Node]("no rights")
	}
	drawListed(t, w)
	if _, read := w.snap.Nodes.Get(); read && rapid.Bool().Draw(t, "joins") {
		drawCluster(t, w)
	}
	drawHolds(t, w)
	if on := rapid.SampledFrom([]string{"", "", "", "fleet=macos", "group=m2", "ready=true", "name=*1", "name=acme-legacy-*"}).Draw(t, "on"); on != "" {
		w.sel.On = only(on)
	}
	w.sel.AllowOrphans = rapid.IntRange(0, 3).Draw(t, "orphans") > 0 // else few worlds claim anything
	if rapid.IntRange(0, 4).Draw(t, "limited") == 0 {
		w.sel.Steps = []plan.StepID{"alpha"}
	}
	return w
}

// drawHolds lets people hold some of the hosts, in the marker, on the Node or both.
func drawHolds(t *rapid.T, w *world) {
	w.snap.Taken = time.Unix(2, 0).UTC()
	hold := func() *inventory.Hold {
		if rapid.IntRange(0, 5).Draw(t, "held") > 0 {
			return nil
		}
		return &inventory.Hold{Who: "sam@desk", Reason: "its fan is checked", Until: time.Unix(rapid.Int64Range(1, 3).Draw(t, "until"), 0).UTC()}
	}
	nodes, _ := w.snap.Nodes.Get()
	for i := range nodes {
		if nodes[i].Hold = hold(); rapid.IntRange(0, 9).Draw(t, "unread") == 0 {
			nodes[i].HoldUnread = "no JSON"
		}
	}
	for _, id := range slices.Sorted(maps.Keys(w.hosts)) {
		h := w.hosts[id]
		if m, ok := h.Marker.Get(); ok {
			m.Hold = hold()
			h.Marker = inventory.Present(m)
			w.hosts[id] = h
		}
	}
}

// drawSeenWorld is drawWorld in which every host was contacted.
func drawSeenWorld(t *rapid.T) *world {
	w := drawWorld(t)
	for _, s := range w.snap.Servers {
		w.snap.Hosts[s.ID] = w.hosts[s.ID]
	}
	return w
}

// drawCluster makes the hosts of macos.m2 Nodes, of a cluster that knows some of
// them by halves.
func drawCluster(t *rapid.T, w *world) {
	w.join()
	for _, id := range slices.Sorted(maps.Keys(w.hosts)) {
		if h := w.hosts[id]; len(h.Facts) > 0 {
			h.Facts["gamma.get"] = inventory.Present(plan.Answer{Stdout: rapid.SampledFrom([]string{good, "old", "good vms ci-pod-0"}).Draw(t, "gamma")})
			w.hosts[id] = h
		}
	}
	host := func() string { return drawName(t, w, rapid.IntRange(1, 9).Draw(t, "of")) }
	flag := func(what string) bool { return rapid.IntRange(0, 3).Draw(t, what) > 0 }
	w.observe(func(c *inventory.Cluster) {
		c.Identities = drawPart(t, "identities", func(int) inventory.Identity {
			return inventory.Identity{Host: host(), ServiceAccount: "sa", Secret: "s", Issued: flag("issued"), Bound: flag("bound")}
		})
		c.Pods = drawPart(t, "pods", func(i int) inventory.Pod {
			p := inventory.Pod{Namespace: "ci", Name: fmt.Sprintf("pod-%d", i), Node: host(), Overdue: flag("overdue"),
				Phase: rapid.SampledFrom([]string{"Running", "Failed", "Pending"}).Draw(t, "phase")}
			if flag("held") {
				p.Finalizers = []string{inventory.VMFinalizer}
			}
			return p
		})
		c.Objects = drawPart(t, "objects", func(i int) inventory.Object {
			state := rapid.SampledFrom([]inventory.ObjectState{inventory.ObjectKept, inventory.ObjectKept, inventory.ObjectMissing, inventory.ObjectDiffers,
				inventory.ObjectSurplus, inventory.ObjectForeign, inventory.ObjectUnread})
			gates := rapid.SampledFrom([]inventory.Gate{inventory.GateNothing, inventory.GateNodes, inventory.GatePods})
			return inventory.Object{Kind: "ClusterRole", Name: fmt.Sprint(i), State: state.Draw(t, "state"), Prepared: !flag("own"),
				Gates: gates.Draw(t, "gates"), Void: flag("void")}
		})
	})
	w.snap.Nodes = maybe(t, w.snap.Nodes)
}

// drawPart draws a few of something, or that it could not be read.
func drawPart[T any](t *rapid.T, what string, one func(int) T) inventory.Seen[[]T] {
	if rapid.IntRange(0, 9).Draw(t, what+" unread") == 0 {
		return inventory.Unread[[]T]("forbidden")
	}
	all := []T{}
	for i := range rapid.IntRange(0, 4).Draw(t, what) {
		all = append(all, one(i))
	}
	return inventory.Present(all)
}

// maybe takes provider ids from some Nodes.
func maybe(t *rapid.T, nodes inventory.Seen[[]inventory.Node]) inventory.Seen[[]inventory.Node] {
	list, ok := nodes.Get()
	if !ok {
		return nodes
	}
	for i := range list {
		switch rapid.IntRange(0, 3).Draw(t, "provider id") {
		case 0:
			list[i].ProviderID = ""
		case 1:
			list[i].ProviderID = serverProvider(11)
		}
	}
	return inventory.Present(list)
}

// drawListed adopts servers that exist or not, under their names or others,
// and gives hosts their own values. No two blocks have one name or server.
func drawListed(t *rapid.T, w *world) {
	known := make(map[string]bool)
	for range rapid.IntRange(0, 3).Draw(t, "listed") {
		n := rapid.IntRange(1, 11).Draw(t, "listed server")
		l := fleet.Listed{ServerID: serverID(n), Fleet: "macos", Group: rapid.SampledFrom([]string{"m2", "m4"}).Draw(t, "listed group"),
			Name: rapid.SampledFrom([]string{legacyName(n), drawName(t, w, n), "somebody-else", nameOf(w, serverID(n))}).Draw(t, "listed name")}
		if rapid.Bool().Draw(t, "own") {
			l.Spec = own(rapid.IntRange(0, 1).Draw(t, "value"))
		}
		if rapid.IntRange(0, 3).Draw(t, "override") == 0 {
			l.ServerID, l.Name = "", w.cfg.HostName(l.Fleet, l.Group, serverID(n))
		}
		pooled := strings.HasPrefix(l.Name, "acme-pool-") // which the loader refuses
		if pooled || known[l.Name] || l.ServerID != "" && known[l.ServerID] {
			continue
		}
		known[l.Name], known[l.ServerID] = true, true
		w.list(l)
	}
}

// nameOf returns a server's present name.
func nameOf(w *world, id string) string {
	for _, s := range w.snap.Servers {
		if s.ID == id {
			return s.Name
		}
	}
	return "nobody"
}

func legacyName(n int) string { return fmt.Sprintf("acme-legacy-%02d", n) }

func hasNode(w *world, name string) bool {
	list, _ := w.snap.Nodes.Get()
	return slices.ContainsFunc(list, func(n inventory.Node) bool { return n.Name == name })
}

func drawName(t *rapid.T, w *world, n int) string {
	f := rapid.SampledFrom([]string{"macos", "macos", "runners", "deleted"}).Draw(t, "fleet")
	g := rapid.SampledFrom([]string{"m2", "m2", "m4"}).Draw(t, "group")
	return w.cfg.HostName(f, g, serverID(n))
}

func drawServer(t *rapid.T, w *world, n int) {
	s := w.server(n, "")
	switch rapid.IntRange(0, 9).Draw(t, "name") {
	case 0:
		s.Name = "somebody-else"
	case 1:
		s.Name = "acme-staging-macos-m2-" + serverID(n)[:5]
	case 2:
		s.Name = drawName(t, w, max(1, n-1)) // another's name
	case 3, 4:
		s.Name = drawName(t, w, n)
	case 5:
		s.Name = legacyName(n)
	default:
		s.Name = fmt.Sprintf("acme-pool-%d", rapid.IntRange(0, 3).Draw(t, "pool"))
	}
	if rapid.IntRange(0, 7).Draw(t, "alike") == 0 {
		s.ID = fmt.Sprintf("00001fff-0000-4000-8000-%012x", n)
	}
	s.Type = rapid.SampledFrom([]string{"M2-L", "M2-L", "M2-L", "M4-M"}).Draw(t, "type")
	s.OSFamily = rapid.SampledFrom([]string{"Tahoe", "Tahoe", "Sequoia"}).Draw(t, "family")
	s.Status = rapid.SampledFrom([]string{"ready", "ready", "ready", "starting"}).Draw(t, "status")
	s.Created = time.Unix(rapid.Int64Range(0, 3).Draw(t, "created"), 0)
	w.hosts[s.ID] = drawHost(t, w, s.ID, n)
}

func drawHost(t *rapid.T, w *world, id string, n int) plan.HostSeen {
	h := clean(n)
	value := rapid.SampledFrom([]string{good, good, "other"})
	h.Facts = facts(value.Draw(t, "alpha"), value.Draw(t, "beta"))
	h.Pinned = rapid.Bool().Draw(t, "pinned")
	switch rapid.IntRange(0, 9).Draw(t, "host") {
	case 0:
		return plan.HostSeen{Trouble: &plan.Trouble{Code: plantest.Code("unreachable"), Text: "t", Remedy: "r"}}
	case 1:
		h.Root = false
	case 2:
		h.Marker = inventory.Unread[plan.Marker]("garbage")
	case 3:
		h.Claim = inventory.Present(plan.ClaimOf(w.cfg.Owner, drawName(t, w, n), id))
	case 4:
		h.Facts = nil
	case 5, 6:
		m := w.marker("macos", "m2", n)
		m.Name, m.ServerID = drawName(t, w, n), id
		if rapid.IntRange(0, 2).Draw(t, "was adopted") == 0 {
			m.Name = legacyName(n)
		}
		if rapid.IntRange(0, 4).Draw(t, "foreign") == 0 {
			m.Environment = "staging"
		}
		h.Marker = inventory.Present(m)
	}
	return h
}

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
		if sel, err := plan.CheckLists(w.cfg, w.snap, plan.Selection{Departs: d, Decisions: w.sel.Decisions}); err == nil {
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
