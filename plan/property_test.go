package plan_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// drawWorld makes a small world in which everything that can go wrong does, and
// in which names, ids, pins and Nodes collide.
func drawWorld(t *rapid.T) *world {
	size := rapid.IntRange(0, 3)
	w := newWorld(size.Draw(t, "macos.m2"), size.Draw(t, "macos.m4"), size.Draw(t, "runners.m2"))
	w.cfg.Fleets[1].OS = rapid.SampledFrom([]string{"Tahoe", "Sequoia"}).Draw(t, "os")
	for n := range rapid.IntRange(0, 9).Draw(t, "servers") {
		drawServer(t, w, n+1)
	}
	for range rapid.IntRange(0, 4).Draw(t, "pins") {
		n := rapid.IntRange(1, 11).Draw(t, "pinned")
		w.pin(n, drawName(t, w, n))
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
	if on := rapid.SampledFrom([]string{"", "", "", "fleet=macos", "group=m2", "ready=true", "name=*1"}).Draw(t, "on"); on != "" {
		s, err := plan.ParseSelector(on)
		if err != nil {
			t.Fatal(err)
		}
		w.sel.On = []plan.Selector{s}
	}
	return w
}

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
	case 3, 4, 5:
		s.Name = drawName(t, w, n)
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
		return plan.HostSeen{Trouble: &plan.Trouble{Code: "unreachable", Text: "t", Remedy: "r"}}
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
		if rapid.IntRange(0, 4).Draw(t, "foreign") == 0 {
			m.Environment = "staging"
		}
		h.Marker = inventory.Present(m)
	}
	return h
}

// TestPlanningHolds checks what every plan must keep, over drawn worlds, through
// the rounds of asking.
func TestPlanningHolds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		for round := 0; ; round++ {
			next := plan.Next(w.cfg, w.snap, w.sel)
			if len(next) == 0 {
				break
			}
			if round > len(w.snap.Servers) {
				t.Fatal("Next does not end")
			}
			checkPlan(t, w, w.compute())
			for _, s := range next {
				if _, twice := w.snap.Hosts[s.ID]; twice {
					t.Fatalf("%s is asked twice", s.ID)
				}
				w.snap.Hosts[s.ID] = w.hosts[s.ID]
			}
		}
		p := w.compute()
		checkPlan(t, w, p)
		for _, h := range p.Hosts {
			if h.Unknown != nil && h.Unknown.Code == "not-asked" {
				t.Fatalf("%s was not asked and nothing more is to be asked", h.Name)
			}
		}
	})
}

func checkPlan(t *rapid.T, w *world, p *plan.Plan) {
	members := make(map[string]bool)
	count := make(map[[2]string]int) // members, claims and lost servers
	for _, h := range p.Hosts {
		if h.Member {
			members[h.Server.ID] = true
			count[[2]string{h.Fleet, h.Group}]++
		}
		if at, ok := w.cfg.Parse(h.Name); !ok || at.Fleet != h.Fleet || at.Group != h.Group || at.Suffix != h.Server.ID[:5] {
			t.Fatalf("server %s gets the name %q in %s.%s", h.Server.ID, h.Name, h.Fleet, h.Group)
		}
	}
	for _, l := range p.Lost {
		at, _ := w.cfg.Parse(l.Name)
		count[[2]string{at.Fleet, at.Group}]++
	}
	claims := make(map[[2]string]bool)
	taken, names := make(map[string]bool), make(map[string]bool)
	for _, a := range p.Actions {
		if a.Kind != plan.ClaimServer {
			continue
		}
		if members[a.Server.ID] || taken[a.Server.ID] || names[a.Host] {
			t.Fatalf("%s is claimed as %s: member %t, taken %t, name taken %t", a.Server.ID, a.Host, members[a.Server.ID], taken[a.Server.ID], names[a.Host])
		}
		if !a.Server.Usable() || a.Server.Name[:len("acme-pool-")] != "acme-pool-" {
			t.Fatalf("%+v is claimed", a.Server)
		}
		taken[a.Server.ID], names[a.Host] = true, true
		claims[[2]string{a.Fleet, a.Group}] = true
		count[[2]string{a.Fleet, a.Group}]++
	}
	for _, f := range w.cfg.Fleets {
		for _, g := range f.Groups {
			if key := [2]string{f.Name, g.Name}; claims[key] && count[key] > g.Replicas {
				t.Fatalf("%v has %d members, claims and lost servers for %d replicas", key, count[key], g.Replicas)
			}
		}
	}
	checkStrays(t, p, members, taken)
	checkActions(t, p)
}

// checkStrays: a server has one role.
func checkStrays(t *rapid.T, p *plan.Plan, members, taken map[string]bool) {
	for _, s := range p.Strays {
		if members[s.ID] || taken[s.ID] {
			t.Fatalf("the stray %s is a host too", s.ID)
		}
	}
	for _, r := range p.Rejected {
		if members[r.Server.ID] {
			t.Fatalf("the member %s is rejected as a candidate", r.Server.ID)
		}
	}
}

// checkActions: what must not be touched has no action that runs, what runs is
// grouped by host, and the summary counts each once.
func checkActions(t *rapid.T, p *plan.Plan) {
	hosts := make(map[string]plan.Host)
	for _, h := range p.Hosts {
		hosts[h.Server.ID] = h
		if (h.Converged == plan.Converged) && (h.Unknown != nil || h.Refused != nil || len(h.Unread) > 0) {
			t.Fatalf("%s is converged, and unknown %v, refused %v, unread %v", h.Name, h.Unknown, h.Refused, h.Unread)
		}
	}
	total := 0
	grouped := make(map[string]bool)
	for _, host := range p.Runnable() {
		id := host[0].Server.ID
		if grouped[id] {
			t.Fatalf("the actions of %s are in two groups", id)
		}
		grouped[id] = true
		for _, a := range host {
			total++
			if h := hosts[a.Server.ID]; a.Server.ID != id || a.Refusal != nil || h.Unknown != nil || h.Refused != nil || a.Host != h.Name {
				t.Fatalf("%+v runs on %+v", a, h)
			}
			if !a.Origin.Drift && !a.Origin.Pending {
				t.Fatalf("%+v comes from nowhere", a)
			}
		}
	}
	if s := p.Summarise(); s.Changes() != total || s.Complete() && !s.Compared() {
		t.Fatalf("%d actions run, summary %+v", total, s)
	}
}

// TestComputeIgnoresOrder: the order of servers, Nodes and pins says nothing,
// and the same input gives the same plan.
func TestComputeIgnoresOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		for _, s := range w.snap.Servers {
			if rapid.IntRange(0, 3).Draw(t, "asked") > 0 {
				w.snap.Hosts[s.ID] = w.hosts[s.ID]
			}
		}
		want, next := w.compute(), plan.Next(w.cfg, w.snap, w.sel)
		checkSame(t, w, want, next)
		w.snap.Servers = rapid.Permutation(w.snap.Servers).Draw(t, "servers")
		w.snap.Pins = rapid.Permutation(w.snap.Pins).Draw(t, "pins")
		if nodes, ok := w.snap.Nodes.Get(); ok {
			w.snap.Nodes = inventory.Present(rapid.Permutation(nodes).Draw(t, "nodes"))
		}
		checkSame(t, w, want, next)
	})
}

func checkSame(t *rapid.T, w *world, want *plan.Plan, next []inventory.Server) {
	if diff := cmp.Diff(want, w.compute(), whole); diff != "" {
		t.Fatalf("another plan (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(next, plan.Next(w.cfg, w.snap, w.sel), whole); diff != "" {
		t.Fatalf("other servers to ask (-want +got):\n%s", diff)
	}
}

// TestComputeLeavesItsInputAlone: a snapshot is planned more than once.
func TestComputeLeavesItsInputAlone(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		for _, s := range w.snap.Servers {
			w.snap.Hosts[s.ID] = w.hosts[s.ID]
		}
		nodes, isRead := w.snap.Nodes.Get()
		before := plan.Snapshot{Servers: slices.Clone(w.snap.Servers), Pins: slices.Clone(w.snap.Pins)}
		nodes = slices.Clone(nodes)
		w.compute()
		_ = plan.CheckInventory(w.cfg, w.snap)
		_ = plan.CheckSelection(w.cfg, w.snap, w.sel)
		plan.Next(w.cfg, w.snap, w.sel)
		if diff := cmp.Diff(before.Servers, w.snap.Servers) + cmp.Diff(before.Pins, w.snap.Pins); diff != "" {
			t.Fatalf("the snapshot changed:\n%s", diff)
		}
		if after, _ := w.snap.Nodes.Get(); isRead && !slices.Equal(nodes, after) {
			t.Fatalf("the Nodes changed: %v, %v", nodes, after)
		}
	})
}

// TestApplyingAPlanConverges performs a plan in the model: names are given,
// markers written, steps proven. Nothing may be left for those hosts, and the
// claimed ones must be members. Others may have work: a name that a renamed
// server gave back is free for a claim.
func TestApplyingAPlanConverges(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		for _, s := range w.snap.Servers {
			w.snap.Hosts[s.ID] = w.hosts[s.ID]
		}
		p := w.compute()
		w.perform(p)
		w.sel = plan.Selection{} // a name may have moved out of what was selected
		again := w.compute()
		done := make(map[string]bool)
		for _, host := range p.Runnable() {
			id := host[0].Server.ID
			done[id] = true
			if h, ok := again.HostByServer(id); !ok || !h.Member || h.Name != host[0].Host {
				t.Fatalf("%s was worked on and is now %q, member %t", host[0].Host, h.Name, h.Member)
			}
		}
		for _, host := range again.Runnable() {
			if done[host[0].Server.ID] {
				t.Fatalf("first %v\nthen %v", lines(p), lines(again))
			}
		}
	})
}

// perform does what a run does, to the snapshot.
func (w *world) perform(p *plan.Plan) {
	for _, host := range p.Runnable() {
		h, _ := p.HostByServer(host[0].Server.ID)
		seen := w.snap.Hosts[h.Server.ID]
		marker, ok := seen.Marker.Get()
		if !ok {
			marker = plan.Marker{Configuration: w.cfg.Name, Environment: w.cfg.Environment, Name: h.Name, ServerID: h.Server.ID,
				Version: fleet.Version, Steps: h.Proven}
		}
		for _, a := range host {
			switch a.Kind {
			case plan.ClaimServer, plan.RenameServer:
				i := slices.IndexFunc(w.snap.Servers, func(s inventory.Server) bool { return s.ID == h.Server.ID })
				w.snap.Servers[i].Name = a.Host
			case plan.RunStep:
				answer := inventory.Present(plan.Answer{Stdout: a.Fields[0].After})
				if seen.Facts == nil {
					seen.Facts = make(plan.Facts)
				}
				seen.Facts[string(a.Step)+".get"] = answer
				marker = marker.With(a.Step, proof(good, good))
			}
		}
		seen.Marker = inventory.Present(marker)
		w.snap.Hosts[h.Server.ID] = seen
	}
}
