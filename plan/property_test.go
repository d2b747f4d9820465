package plan_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

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
					t.Fatalf("%s is queried twice", s.ID)
				}
				w.snap.Hosts[s.ID] = w.hosts[s.ID]
			}
		}
		p := w.compute()
		checkPlan(t, w, p)
		for _, h := range p.Hosts {
			if h.Unknown != nil && h.Unknown.Code.String() == "not-asked" {
				t.Fatalf("%s was not contacted, and no host is left to contact", h.Name)
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
			if !h.Leaves && h.Stage != plan.Replaced && !h.Stage.Final() && !h.FailedRepairs.Quarantined() { // their places are free
				count[[2]string{h.Fleet, h.Group}]++
			}
		}
		if at, ok := w.placeOf(h.Name, h.Server.ID); !h.Asked && !h.Stage.Final() && (!ok || at != [2]string{h.Fleet, h.Group}) {
			t.Fatalf("server %s gets the name %q in %s.%s", h.Server.ID, h.Name, h.Fleet, h.Group)
		}
	}
	for _, l := range p.Lost {
		if l.ServerID != "" && l.Fleet != "" { // no source knows a server, or it vanished while it was erased and holds no place
			at, _ := w.placeOf(l.Name, l.ServerID)
			count[at]++
		}
	}
	claims := make(map[[2]string]bool)
	taken, names := make(map[string]bool), make(map[string]bool)
	for _, a := range p.Actions {
		if a.Kind != plan.ClaimServer {
			continue
		}
		if members[a.ServerID] || taken[a.ServerID] || names[a.Host] {
			t.Fatalf("%s is claimed as %s: member %t, taken %t, name taken %t", a.ServerID, a.Host, members[a.ServerID], taken[a.ServerID], names[a.Host])
		}
		h, _ := p.HostByServer(a.ServerID)
		if !h.Server.Usable() || !strings.HasPrefix(h.Server.Name, "acme-pool-") {
			t.Fatalf("%+v is claimed", h.Server)
		}
		taken[a.ServerID], names[a.Host] = true, true
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
	for _, l := range w.cfg.Hosts {
		if names[l.Name] && l.ServerID != "" {
			t.Fatalf("a claim takes the adopted name %s", l.Name)
		}
	}
	checkStrays(t, p, members, taken)
	checkActions(t, w, p)
	checkTally(t, p)
}

// checkTally: every host is counted once, and those to change are those on which actions run.
func checkTally(t *rapid.T, p *plan.Plan) {
	c, runs := p.Tally(), 0
	for _, of := range p.Runnable() {
		if h, ok := p.HostByServer(of[0].ServerID); ok && (h.Unknown == nil || h.Leaves) && h.Refused == nil {
			runs++
		}
	}
	sum := c.ToChange() + c.Blocked + c.Lost + c.Unreachable + c.Uncompared + c.HeldBack + c.LeftForLater + c.NeedsAttention + c.InSync
	if sum != c.Hosts || runs != c.ToChange() {
		t.Fatalf("%d hosts, %d counted; actions run on %d, and %d are counted as to change: %+v", c.Hosts, sum, runs, c.ToChange(), c)
	}
}

// placeOf returns the fleet and group of a server that has its name by right.
func (w *world) placeOf(name, id string) ([2]string, bool) {
	for _, l := range w.cfg.Hosts {
		if l.ServerID == id {
			return [2]string{l.Fleet, l.Group}, l.Name == name
		}
	}
	at, ok := w.cfg.Parse(name)
	return [2]string{at.Fleet, at.Group}, ok && at.Suffix == id[:5]
}

// checkStrays: a server has one role.
func checkStrays(t *rapid.T, p *plan.Plan, members, taken map[string]bool) {
	for _, s := range p.Strays {
		if members[s.ID] || taken[s.ID] {
			t.Fatalf("the stray %s is a host too", s.ID)
		}
	}
	for _, o := range p.Orphans {
		if members[o.Server.ID] || taken[o.Server.ID] || slices.ContainsFunc(p.Strays, func(s inventory.Server) bool { return s.ID == o.Server.ID }) {
			t.Fatalf("the orphan %s is something else too", o.Server.ID)
		}
		if slices.ContainsFunc(p.Actions, func(a plan.Action) bool { return a.ServerID == o.Server.ID }) {
			t.Fatalf("something is done to the orphan %s", o.Server.ID)
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
func checkActions(t *rapid.T, w *world, p *plan.Plan) {
	hosts := make(map[string]plan.Host)
	for _, h := range p.Hosts {
		hosts[h.Server.ID] = h
		if (h.Converged == plan.Converged) && (h.Unknown != nil || h.Refused != nil && h.Quarantine() == nil || len(h.Unread) > 0) {
			t.Fatalf("%s is converged, and unknown %v, refused %v, unread %v", h.Name, h.Unknown, h.Refused, h.Unread)
		}
	}
	total := 0
	grouped := make(map[string]bool)
	for i, host := range p.Runnable() {
		id := host[0].ServerID
		if host[0].OfCluster() != (id == "") || id == "" && i > 0 {
			t.Fatalf("%+v is worked on as number %d", host[0], i)
		}
		if grouped[id] {
			t.Fatalf("the actions of %s are in two groups", id)
		}
		grouped[id] = true
		for _, a := range host {
			total++
			if a.Kind.Sign() == plan.Replace {
				total++ // it goes and comes
			}
			if held := hosts[id].ActiveHold(); held != nil {
				t.Fatalf("%+v runs on a host that is held %s", a, held)
			}
			checkClusterAction(t, w, a, hosts[id])
			if a.OfCluster() || a.Kind == plan.ReleasePods {
				continue // they touch no machine
			}
			if adopted := slices.ContainsFunc(w.cfg.Hosts, func(l fleet.Listed) bool { return l.ServerID == id }); adopted &&
				(a.Kind == plan.ClaimServer || a.Kind == plan.ReleaseServer) {
				t.Fatalf("%+v for an adopted server", a)
			}
			checkRelease(t, w, a, hosts[id])
			if h := hosts[a.ServerID]; a.ServerID != id || a.Refusal != nil || h.Unknown != nil && !h.Leaves || h.Refused != nil || a.Host != h.Name {
				t.Fatalf("%+v runs on %+v", a, h)
			}
			if limited := len(w.sel.Steps) > 0; limited && a.Kind != plan.CreateMarker && a.Step != "alpha" && a.Kind != plan.IdentifyHost {
				t.Fatalf("%+v in a run of %v", a, w.sel.Steps)
			}
			if a.Origin == (plan.Origin{}) || a.NotKnown && (a.Drift || a.Pending) {
				t.Fatalf("%+v has no reason", a)
			}
		}
	}
	if s := p.Summarise(); s.Changes() != total || s.Complete() && !s.Compared() {
		t.Fatalf("%d actions run, summary %+v", total, s)
	}
}

// checkClusterAction: nothing is done in the cluster for a host that does not join
// it, and nothing is taken that may still run.
func checkClusterAction(t *rapid.T, w *world, a plan.Action, h plan.Host) {
	node, there := h.Node.Get()
	own := there && node.ProviderID == h.Server.ProviderID()
	switch a.Kind {
	case plan.KeepObject, plan.RemoveObject:
		untouched := []inventory.ObjectState{inventory.ObjectForeign, inventory.ObjectUnread}
		if (a.Kind == plan.RemoveObject) != (a.Object.State == inventory.ObjectSurplus) || slices.Contains(untouched, a.Object.State) {
			t.Fatalf("%s of %+v", a.Kind, a.Object)
		}
		if !w.sel.IsAll() || a.Object.State == inventory.ObjectKept || a.Object.Prepared {
			t.Fatalf("%+v in a run of %+v", a, w.sel)
		}
		return
	case plan.ReleasePods:
		if a.OfCluster() { // their host and its Node are gone
			nodes, read := w.snap.Nodes.Get()
			gone := plan.MayExist(w.cfg.Owner, a.Host, w.snap.Servers, nodes) == "" &&
				!slices.ContainsFunc(w.snap.Pins, func(p plan.Pin) bool { return p.Name == a.Host })
			if !read || !gone || !w.sel.IsAll() || slices.ContainsFunc(a.Pods, func(p inventory.Pod) bool { return !p.Held() }) {
				t.Fatalf("%+v of a host that may exist", a)
			}
			return
		}
		for _, p := range a.Pods {
			if !p.Held() || !p.Finished() && (there || h.Unknown != nil || h.Refused != nil) {
				t.Fatalf("%+v runs in spite of %+v", p, h)
			}
		}
		if i, _ := h.Identity.Get(); !h.Spec.Spec.JoinsCluster() && !h.Node.IsAbsent() && i.Host == "" {
			t.Fatalf("Pods of a foreign Node are released: %+v", h)
		}
		return
	case plan.ReplaceNode:
		if pods, read := h.Pods.Get(); own || !there || !read || slices.ContainsFunc(pods, inventory.Pod.Works) {
			t.Fatalf("the Node %+v is replaced", node)
		}
	case plan.DeleteNode:
		if h.Leaves {
			return // checkRelease says whether it may
		}
		if pods, read := h.Pods.Get(); !own || !read || slices.ContainsFunc(pods, inventory.Pod.Works) || h.Spec.Spec.JoinsCluster() {
			t.Fatalf("the Node %+v of %+v is deleted", node, h)
		}
		return
	case plan.RevokeHost:
		if a.OfCluster() && (!w.sel.IsAll() || h.Name != "") || !a.OfCluster() && h.Spec.Spec.JoinsCluster() && !h.Leaves {
			t.Fatalf("%+v in a run of %+v", a, w.sel)
		}
		return
	case plan.SetProviderID:
		if !there || node.ProviderID != "" {
			t.Fatalf("the Node %+v gets a provider id", node)
		}
	case plan.IdentifyHost:
		if i, _ := h.Identity.Get(); i.Complete() || h.Identity.IsUnread() {
			t.Fatalf("%+v is completed", i)
		}
	default:
		return
	}
	if !h.Spec.Spec.JoinsCluster() {
		t.Fatalf("%+v of a host that joins no cluster", a)
	}
}

// TestComputeIgnoresOrder: the order of servers, Nodes and pins says nothing, and neither does the number of goroutines.
// The same input gives the same plan, and is not changed.
func TestComputeIgnoresOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		for _, s := range w.snap.Servers {
			if rapid.IntRange(0, 3).Draw(t, "asked") > 0 {
				w.snap.Hosts[s.ID] = w.hosts[s.ID]
			}
		}
		nodes, _ := w.snap.Nodes.Get()
		servers, pins, before := slices.Clone(w.snap.Servers), slices.Clone(w.snap.Pins), slices.Clone(nodes)
		want, next := w.compute(), plan.Next(w.cfg, w.snap, w.sel)
		_, _ = plan.CheckInventory(w.cfg, w.snap), plan.CheckSelection(w.cfg, w.snap, w.sel)
		for _, workers := range []int{1, 2, 3, 50} {
			if diff := cmp.Diff(want, plan.ComputeOn(w.cfg, w.steps, w.snap, w.sel, workers), whole); diff != "" {
				t.Fatalf("on %d goroutines (-want +got):\n%s", workers, diff)
			}
		}
		if diff := cmp.Diff(servers, w.snap.Servers) + cmp.Diff(pins, w.snap.Pins) + cmp.Diff(before, nodes, whole); diff != "" {
			t.Fatalf("the snapshot changed:\n%s", diff)
		}
		w.snap.Servers = rapid.Permutation(w.snap.Servers).Draw(t, "servers")
		w.snap.Pins = rapid.Permutation(w.snap.Pins).Draw(t, "pins")
		if _, read := w.snap.Nodes.Get(); read {
			w.snap.Nodes = inventory.Present(rapid.Permutation(nodes).Draw(t, "nodes"))
		}
		if diff := cmp.Diff(want, w.compute(), whole) + cmp.Diff(next, plan.Next(w.cfg, w.snap, w.sel), whole); diff != "" {
			t.Fatalf("another plan, or other servers to ask (-want +got):\n%s", diff)
		}
	})
}

// TestAnOverrideAffectsOnlyItsHost: one host's block changes no other host's finding.
func TestAnOverrideAffectsOnlyItsHost(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := drawSeenWorld(t)
		if len(w.cfg.Hosts) == 0 {
			return
		}
		before := w.compute()
		changed := &w.cfg.Hosts[rapid.IntRange(0, len(w.cfg.Hosts)-1).Draw(t, "changed")]
		changed.Spec = own(7)
		after := w.compute()
		if len(before.Hosts) != len(after.Hosts) {
			t.Fatalf("%d hosts, then %d", len(before.Hosts), len(after.Hosts))
		}
		for i, h := range after.Hosts {
			if diff := cmp.Diff(before.Hosts[i], h, whole); diff != "" && h.Name != changed.Name {
				t.Fatalf("%s changed with %s:\n%s", h.Name, changed.Name, diff)
			}
		}
	})
}

// TestApplyingAPlanConverges performs a plan in the model: names are given,
// markers written, steps verified. Nothing may be left for those hosts, and the
// claimed ones must be members. Others may have work: a name that a renamed server released is free for a claim.
func TestApplyingAPlanConverges(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := drawSeenWorld(t)
		p := w.compute()
		w.perform(p)
		w.sel = plan.Selection{Steps: w.sel.Steps} // a name may have moved out of what was selected
		again := w.compute()
		done := make(map[string]bool)
		for _, host := range p.Runnable() {
			id := host[0].ServerID
			done[id] = true
			if host[0].OfCluster() {
				continue
			}
			was, _ := p.HostByServer(id)
			if was.Stage == plan.Replaced { // it leaves as soon as another server has its place
				delete(done, id)
			}
			if was.Leaves {
				if i := slices.IndexFunc(w.snap.Servers, func(s inventory.Server) bool { return s.ID == id }); !strings.HasPrefix(w.snap.Servers[i].Name, "acme-pool-") {
					t.Fatalf("%s was released and is %s", was.Name, w.snap.Servers[i].Name)
				}
				delete(done, id) // another group may need it
				continue
			}
			if h, ok := again.HostByServer(id); !ok || !h.Member || h.Name != host[0].Host {
				t.Fatalf("%s was worked on and is now %q, member %t", host[0].Host, h.Name, h.Member)
			}
		}
		for _, host := range again.Runnable() {
			// Of Pods is spoken only where the host is a member already, and an identity is left over once no server has its name.
			if done[host[0].ServerID] && host[0].Kind != plan.ReleasePods && !(host[0].Kind == plan.RevokeHost && host[0].OfCluster()) {
				t.Fatalf("first %v\nthen %v", lines(p), lines(again))
			}
		}
	})
}

// perform does what a run does, to the snapshot.
func (w *world) perform(p *plan.Plan) {
	w.settle(p)
	for _, host := range p.Runnable() {
		host = slices.DeleteFunc(host, w.performInCluster)
		if len(host) == 0 {
			continue
		}
		h, _ := p.HostByServer(host[0].ServerID)
		seen := w.snap.Hosts[h.Server.ID]
		marker, ok := seen.Marker.Get()
		if !ok {
			marker = plan.Marker{Configuration: w.cfg.Name, Environment: w.cfg.Environment, Name: h.Name, Fleet: h.Fleet, Group: h.Group,
				ServerID: h.Server.ID, Version: fleet.Version, Steps: h.Verified}
		}
		for _, a := range host {
			switch a.Kind {
			case plan.ClaimServer, plan.RenameServer:
				i := slices.IndexFunc(w.snap.Servers, func(s inventory.Server) bool { return s.ID == h.Server.ID })
				w.snap.Servers[i].Name = a.Host
			case plan.RunStep:
				value, verified := good, plan.DigestOf(good, good)
				if len(a.Fields) > 0 {
					value, verified = a.Fields[0].After, verifiedAs(a.Fields[0].After, a.Fields[0].After)
				}
				answer := inventory.Present(plan.Answer{Stdout: value})
				if seen.Facts == nil {
					seen.Facts = make(plan.Facts)
				}
				seen.Facts[string(a.Step)+".get"] = answer
				marker = marker.With(a.Step, verified)
			}
		}
		if h.Leaves {
			w.release(h, host[len(host)-1])
			continue
		}
		seen.Marker, seen.Pinned = inventory.Present(marker), true
		w.snap.Hosts[h.Server.ID] = seen
	}
}

// performInCluster does an action that touches no machine, and reports whether it
// is one.
func (w *world) performInCluster(a plan.Action) bool {
	nodes, _ := w.snap.Nodes.Get()
	isHost := func(i inventory.Identity) bool { return i.Host == a.Host }
	isObject := func(o inventory.Object) bool { return o.Name == a.Object.Name }
	switch a.Kind {
	case plan.IdentifyHost:
		w.observe(func(c *inventory.Cluster) { c.Identities = without(c.Identities, isHost) })
		w.identity(a.Host)
	case plan.SetProviderID:
		for i := range nodes {
			if nodes[i].Name == a.Host {
				nodes[i].ProviderID = a.Fields[0].After
			}
		}
	case plan.RevokeHost:
		w.observe(func(c *inventory.Cluster) { c.Identities = without(c.Identities, isHost) })
	case plan.ReplaceNode, plan.DeleteNode:
		w.snap.Nodes = without(w.snap.Nodes, func(n inventory.Node) bool { return n.Name == a.Host })
	case plan.ReleasePods:
		w.observe(func(c *inventory.Cluster) {
			c.Pods = without(c.Pods, func(p inventory.Pod) bool {
				return slices.ContainsFunc(a.Pods, func(gone inventory.Pod) bool { return gone.Name == p.Name })
			})
		})
	case plan.KeepObject:
		w.observe(func(c *inventory.Cluster) {
			kept := *a.Object
			kept.State = inventory.ObjectKept
			all, _ := without(c.Objects, isObject).Get()
			c.Objects = inventory.Present(append(all, kept))
		})
	case plan.RemoveObject:
		w.observe(func(c *inventory.Cluster) { c.Objects = without(c.Objects, isObject) })
	default:
		return false
	}
	return true
}

// without removes elements from a list that was read.
func without[T any](list inventory.Seen[[]T], is func(T) bool) inventory.Seen[[]T] {
	all, _ := list.Get()
	return inventory.Present(slices.DeleteFunc(slices.Clone(all), is))
}
