package plan_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// TestLimitsHold plans working fleets within drawn limits, as a run does: it plans, performs, and plans again for what is
// left. Each plan is the same twice, exceeds no limit, releases no host that must stay, and changes none that a person or
// another owner keeps. What the run did counts against its limits afterwards.
func TestLimitsHold(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := drawFleet(t)
		b := drawBounds(t)
		p := w.compute()
		p.Defer(b, w.steps, nil)
		checkPlan(t, w, p)
		checkAtWork(t, w, p)
		spent := checkBounds(t, w, p, b, nil)
		again := w.compute()
		again.Defer(b, w.steps, nil)
		if one, two := deferredLines(p), deferredLines(again); !slices.Equal(one, two) {
			t.Fatalf("first %v\nthen %v", one, two)
		}
		w.perform(p)
		w.sel.Departs = w.sel.Departs.Including(p)
		after := w.compute()
		after.Defer(b, w.steps, p)
		checkAtWork(t, w, after)
		checkBounds(t, w, after, b, spent)
	})
}

// drawBounds draws what one run may do.
func drawBounds(t *rapid.T) plan.Bounds {
	few := rapid.IntRange(0, 3)
	g := fleet.Guardrails{MaxHosts: few.Draw(t, "max hosts"), MaxWipes: few.Draw(t, "max wipes")}
	switch rapid.IntRange(0, 2).Draw(t, "disrupted") {
	case 1:
		g.MaxDisrupted.Count = few.Draw(t, "max disrupted")
	case 2:
		g.MaxDisrupted.Percent = rapid.SampledFrom([]int{25, 50}).Draw(t, "percent")
	}
	b := plan.Bounds{Guardrails: g, Now: noon}
	if rapid.IntRange(0, 2).Draw(t, "windows") == 0 {
		b.Guardrails.Windows = []fleet.Window{night}
		b.Now = noon.Add(time.Duration(rapid.SampledFrom([]int{0, 12}).Draw(t, "at")) * time.Hour)
		b.AnyTime = rapid.IntRange(0, 4).Draw(t, "any time") == 0
	}
	return b
}

// deferredLines are the actions of a plan with why they are deferred.
func deferredLines(p *plan.Plan) []string {
	out := lines(p)
	for i, a := range p.Actions {
		if a.Deferral != nil {
			out[i] += " deferred " + a.Deferral.Code.String()
		}
	}
	return out
}

// spent are the servers that runs changed, by what the limits count.
type spent struct{ hosts, wiped, disrupted map[string]bool }

// checkBounds counts by itself what a plan does on top of what its run did, and returns the sum.
func checkBounds(t *rapid.T, w *world, p *plan.Plan, b plan.Bounds, before *spent) *spent {
	now := spent{make(map[string]bool), make(map[string]bool), make(map[string]bool)}
	if before != nil {
		now = *before
	}
	open, _ := b.Guardrails.Open(b.Now)
	for _, actions := range p.Runnable() {
		id := actions[0].ServerID
		h, known := p.HostByServer(id)
		n, isNode := h.Node.Get()
		broken := isNode && (n.Ready != inventory.Ready || n.ProviderID != h.Server.ProviderID()) && !h.Leaves
		if !known || broken || h.Stage.Final() { // repairs and the rest of a release are never deferred
			continue
		}
		worst := plan.Worst(actions)
		if h.Leaves {
			worst = plan.Wipe
			if i := slices.IndexFunc(p.Actions, func(a plan.Action) bool { return a.ServerID == id && !a.Runs() }); i >= 0 {
				t.Fatalf("%s is released in part: not %+v", h.Name, p.Actions[i])
			}
		}
		if worst >= plan.Drain && !open && !b.AnyTime {
			t.Fatalf("%s is disrupted outside of the window: %v", h.Name, lines(p))
		}
		now.hosts[id] = true
		if worst == plan.Wipe {
			now.wiped[id] = true
		}
		if worst >= plan.Drain && h.Member && (isNode || !h.Node.IsUnread() && h.Seen.Trouble == nil) && w.isReady(h) {
			now.disrupted[h.Fleet+" "+id] = true
		}
	}
	g := b.Guardrails
	if g.MaxHosts > 0 && len(now.hosts) > g.MaxHosts {
		t.Fatalf("%d hosts are changed, max_hosts is %d", len(now.hosts), g.MaxHosts)
	}
	if len(now.wiped) > max(1, g.MaxWipes) {
		t.Fatalf("%d hosts are wiped, max_wipes is %d", len(now.wiped), g.MaxWipes)
	}
	for _, f := range w.cfg.Fleets {
		ready, disrupted := w.readyOf(p, f.Name), 0
		for id := range now.disrupted {
			if strings.HasPrefix(id, f.Name+" ") {
				disrupted++
			}
		}
		if most := g.MaxDisrupted; before == nil && most != (fleet.Share{}) && disrupted > most.Of(ready) {
			t.Fatalf("%d of %d Ready hosts of %s are disrupted, max_disrupted is %+v", disrupted, ready, f.Name, most)
		}
	}
	return &now
}

// isReady reports whether a host's Node is Ready and its own.
func (w *world) isReady(h plan.Host) bool {
	n, isNode := h.Node.Get()
	return isNode && n.Ready == inventory.Ready && n.ProviderID == h.Server.ProviderID() && !h.FailedRepairs.Quarantined()
}

// readyOf counts the Ready members of a fleet.
func (w *world) readyOf(p *plan.Plan, name string) int {
	n := 0
	for _, h := range p.Hosts {
		if h.Fleet == name && h.Member && w.isReady(h) {
			n++
		}
	}
	return n
}

// checkAtWork: no host leaves that its group needs; none is erased that is held, adopted, busy or perhaps another's; none in
// quarantine is changed; and no server is claimed in place of an orphaned member.
func checkAtWork(t *rapid.T, w *world, p *plan.Plan) {
	for _, f := range w.cfg.Fleets {
		for _, g := range f.Groups {
			members, leave := 0, 0
			for _, h := range p.Hosts {
				if h.Fleet != f.Name || h.Group != g.Name || !h.Member || h.Stage.Final() || h.Stage == plan.Replaced || h.Asked {
					continue
				}
				if members++; h.Leaves {
					leave++
				}
			}
			if w.sel.Departs == nil && leave > max(0, members-g.Replicas) { // else the plan has not all members
				t.Fatalf("%d of %d members of %s.%s leave, for %d replicas", leave, members, f.Name, g.Name, g.Replicas)
			}
		}
	}
	held := slices.ContainsFunc(p.Orphans, func(o plan.Orphan) bool { return o.Fleet == "deleted" })
	for _, a := range p.Actions {
		if !a.Runs() || a.OfCluster() {
			continue
		}
		h, _ := p.HostByServer(a.ServerID)
		if a.Kind == plan.ClaimServer && held && !w.sel.AllowOrphans {
			t.Fatalf("%+v, and the orphans are %v", a, orphans(p))
		}
		if !h.Leaves && h.FailedRepairs.Quarantined() && a.Kind != plan.ReleasePods {
			t.Fatalf("%+v on a host in quarantine", a)
		}
		if !h.Leaves || h.Stage.Final() {
			continue
		}
		checkLeaves(t, w, a, h)
	}
}

// checkLeaves: what is done to a host that leaves is done only to one that is not needed, held or owned by others.
func checkLeaves(t *rapid.T, w *world, a plan.Action, h plan.Host) {
	if slices.ContainsFunc(w.cfg.Hosts, func(l fleet.Listed) bool { return l.ServerID == h.Server.ID }) {
		t.Fatalf("%+v of a listed host", a)
	}
	if !h.Server.Usable() {
		t.Fatalf("%+v, and the server is %s", a, h.Server.Status)
	}
	m, marked := h.Seen.Marker.Get()
	n, isNode := h.Node.Get()
	if marked && (m.Owner() != w.cfg.Owner || m.ServerID != h.Server.ID) || isNode && n.ProviderID != h.Server.ProviderID() {
		t.Fatalf("%+v of another's host: marker %+v, Node %+v", a, m, n)
	}
	if h.Spec.Spec.JoinsCluster() && (h.Node.IsUnread() || h.Identity.IsUnread() || h.Pods.IsUnread() && isNode) {
		t.Fatalf("%+v, and the cluster was not read", a)
	}
	facts, read := w.snap.Hosts[h.Server.ID].Facts.Get("work.get").Get()
	if h.Seen.Trouble == nil && !read {
		t.Fatalf("%+v, and it is unknown what runs there", a)
	}
	for _, vm := range strings.Fields(facts.Stdout) {
		if !slices.ContainsFunc(w.podsOf(h), func(p inventory.Pod) bool { return p.VM() == vm }) {
			t.Fatalf("%+v under %s", a, vm)
		}
	}
	if works := slices.ContainsFunc(w.podsOf(h), func(p inventory.Pod) bool { return p.Works() && (p.Controller == "" || !w.isReady(h)) }); works {
		t.Fatalf("%+v under %+v", a, w.podsOf(h))
	}
	drained := h.Stage == plan.Leaving && h.Spec.Spec.JoinsCluster() && h.Node.IsAbsent()
	if away := h.Seen.Trouble; away != nil && (away.Code != plan.CodeUnreachable || !drained && (!isNode || n.Ready == inventory.Ready)) {
		t.Fatalf("%+v, and its host does not answer", a)
	}
}

// checkRelease: a server is erased only if it is certainly this configuration's and no work runs on it, or if an earlier
// run has erased it, and it gets a name of the pool that no other server has.
func checkRelease(t *rapid.T, w *world, a plan.Action, h plan.Host) {
	if a.Kind != plan.ReinstallServer && a.Kind != plan.ReleaseServer {
		return
	}
	switch twice := slices.ContainsFunc(w.snap.Servers, func(s inventory.Server) bool { return s.Name == a.Reset.Pool && s.ID != h.Server.ID }); {
	case !h.Leaves, twice, !strings.HasPrefix(a.Reset.Pool, "acme-pool-"):
		t.Fatalf("%+v of %+v", a, h)
	case h.Stage.Final():
		return
	}
	m, marked := h.Seen.Marker.Get()
	if strings.HasPrefix(h.Server.Name, "acme-pool-") && !marked { // with a marker, a person has only renamed it
		t.Fatalf("%s is free and is erased", h.Server.Name)
	}
	n, isNode := h.Node.Get()
	owned := marked && m.ServerID == h.Server.ID && m.Owner() == w.cfg.Owner || isNode && n.ProviderID == h.Server.ProviderID() || h.Stage == plan.Leaving
	works := slices.ContainsFunc(w.podsOf(h), inventory.Pod.Works) && !h.Drainable()
	if !owned || works || !h.Server.Usable() || h.Unknown != nil && h.Unknown.Code != plan.CodeUnreachable && h.Unknown.Code != plan.CodeHostDown {
		t.Fatalf("%+v is erased: owned %t, works %t", h, owned, works)
	}
}

// podsOf returns the Pods on a host's Node.
func (w *world) podsOf(h plan.Host) []inventory.Pod {
	all, _ := h.Pods.Get()
	return all
}

// settle forgets the stages that mean nothing any more, and those of servers that are claimed.
func (w *world) settle(p *plan.Plan) {
	left := p.Left
	w.snap.Pins = slices.DeleteFunc(slices.Clone(w.snap.Pins), func(pin plan.Pin) bool { return slices.Contains(left, pin.ServerID) })
	for i := range w.snap.Pins {
		pin := &w.snap.Pins[i]
		*pin = p.Keep(*pin)
		for _, a := range p.Actions {
			if a.Kind == plan.ClaimServer && a.ServerID == pin.ServerID {
				pin.Stage, pin.Name = plan.Stays, a.Host
			}
		}
	}
}

// release erases a server and returns it to the pool. What the cluster still has of it goes first.
func (w *world) release(h plan.Host, a plan.Action) {
	i := slices.IndexFunc(w.snap.Servers, func(s inventory.Server) bool { return s.ID == h.Server.ID })
	w.snap.Servers[i].Name, w.snap.Servers[i].Status = a.Reset.Pool, "ready"
	w.snap.Pins = slices.DeleteFunc(w.snap.Pins, func(p plan.Pin) bool { return p.ServerID == h.Server.ID })
	w.snap.Hosts[h.Server.ID] = clean(i + 1)
	delete(w.cfg.SSH.HostKeys, h.Server.ID)
	if nodes, read := w.snap.Nodes.Get(); read {
		w.snap.Nodes = inventory.Present(slices.DeleteFunc(slices.Clone(nodes), func(n inventory.Node) bool { return n.ProviderID == h.Server.ProviderID() }))
	}
}
