package plan_test

import (
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// TestRebootOfANode: only where its server is certainly the host, and nothing runs there that a drain or a fence does not end.
func TestRebootOfANode(t *testing.T) {
	t.Parallel()
	server := inventory.Server{ID: serverID(1), Name: first, Zone: "fr-par-1", Status: "ready", Delivered: true}
	other := inventory.Node{Name: first, ProviderID: serverProvider(2), Ready: inventory.NotReady}
	silent := func(edit func(*plan.Host)) func(*plan.Host) {
		return func(h *plan.Host) { h.Unknown = plan.CodeUnreachable.Trouble("no route"); edit(h) }
	}
	pod := func(controller string, ready inventory.Readiness) func(*plan.Host) {
		return func(h *plan.Host) {
			h.Node = inventory.Present(inventory.Node{Name: first, ProviderID: server.ProviderID(), Ready: ready})
			h.Pods = inventory.Present([]inventory.Pod{{Name: "ci", Phase: "Running", Controller: controller}})
		}
	}
	builder := func(edit func(*plan.Host)) func(*plan.Host) { // a run fences its agent first
		return func(h *plan.Host) {
			h.Spec.Spec, h.Node = fleet.Spec{GithubRunner: &fleet.GithubRunner{}}, inventory.Seen[inventory.Node]{}
			h.Peers = []plan.HostPeer{{Works: true, Seen: &plan.PeerSeen{Listing: inventory.Listing{Agents: new(inventory.AgentService)}}, Entry: new(inventory.Entry)}}
			edit(h)
		}
	}
	for name, tc := range map[string]struct {
		change func(*plan.Host)
		want   string
	}{
		"a builder":                 {builder(func(*plan.Host) {}), ""},
		"a builder, silent":         {builder(func(h *plan.Host) { h.Unknown = plan.CodeUnreachable.Trouble("no route") }), "server-not-verified"},
		"a builder without entry":   {builder(func(h *plan.Host) { h.Peers[0].Entry = nil }), "host-may-be-busy"},
		"a builder, read-only":      {builder(func(h *plan.Host) { h.Peers[0].Seen.Agents.ReadOnly = true }), "host-may-be-busy"},
		"a builder, service unread": {builder(func(h *plan.Host) { h.Peers[0].Seen.Trouble = plan.CodeUnreachable.Trouble("no answer") }), "host-may-be-busy"},
		"idle":                      {func(*plan.Host) {}, ""},
		"a Pod":                     {pod("ReplicaSet", inventory.Ready), ""},
		"a Pod that nothing makes":  {pod("", inventory.Ready), "host-may-be-busy"},
		"a Pod, not Ready":          {pod("ReplicaSet", inventory.NotReady), "host-may-be-busy"},
		"Pods unread":               {func(h *plan.Host) { h.Pods = inventory.Unread[[]inventory.Pod]("no rights") }, "host-may-be-busy"},
		"Node unread":               {func(h *plan.Host) { h.Node = inventory.Unread[inventory.Node]("no rights") }, "host-may-be-busy"},
		"another server's Node":     {func(h *plan.Host) { h.Node = inventory.Present(other) }, "host-may-be-busy"},
		"a runner of the provider":  {func(h *plan.Host) { h.Server.RunnerConfigurations = "1" }, "host-may-be-busy"},
		"not in the cluster":        {func(h *plan.Host) { h.Spec.Spec = fleet.Spec{} }, "host-may-be-busy"},
		"forced":                    {func(h *plan.Host) { pod("", inventory.Ready)(h); h.ForceBusy = true }, ""},
		"held":                      {func(h *plan.Host) { h.Held = &plan.Held{} }, "held"},
		"its session is unread":     {func(h *plan.Host) { h.Unread = []plan.StepUnread{{Step: "autologin"}} }, "reboot-unsafe"},
		"its server restarts":       {func(h *plan.Host) { h.Server.Status = "rebooting" }, "server-busy"},
		"silent":                    {silent(func(*plan.Host) {}), ""},
		"silent, another's Node":    {silent(func(h *plan.Host) { h.Node = inventory.Present(other) }), "server-not-verified"},
		"silent, without a Node":    {silent(func(h *plan.Host) { h.Node = inventory.Absent[inventory.Node]() }), "server-not-verified"},
		"silent, under a pool name": {silent(func(h *plan.Host) { h.Server.Name = "acme-pool-01" }), "server-not-verified"},
	} {
		h := plan.Host{Name: first, Member: true, Server: server, Spec: fleet.Host{Spec: fleet.Spec{TartKubelet: &fleet.TartKubelet{}}},
			Node: inventory.Present(inventory.Node{Name: first, ProviderID: server.ProviderID(), Ready: inventory.Ready}), Pods: inventory.Present([]inventory.Pod{})}
		tc.change(&h)
		got := codeOf(plan.Rebooting(h, nil, "autologin", nil)[0].Refusal)
		if got != tc.want {
			t.Errorf("%s: refused with %q, want %q", name, got, tc.want)
		}
	}
}

// TestReady: a host takes Pods if its own Node is Ready and its kubelet has no fault.
func TestReady(t *testing.T) {
	t.Parallel()
	own := func(edit func(*inventory.Node)) inventory.Seen[inventory.Node] {
		n := inventory.Node{Name: first, ProviderID: serverProvider(1), Ready: inventory.Ready, LastHeartbeat: noon}
		edit(&n)
		return inventory.Present(n)
	}
	ready := own(func(*inventory.Node) {})
	for name, tc := range map[string]struct {
		node    inventory.Seen[inventory.Node]
		kubelet plan.Kubelet
		want    inventory.Readiness
		known   bool
	}{
		"Ready":                 {ready, plan.Kubelet{Started: noon.Add(-1)}, inventory.Ready, true},
		"no provider id yet":    {own(func(n *inventory.Node) { n.ProviderID = "" }), plan.Kubelet{}, inventory.Ready, true},
		"another server's Node": {own(func(n *inventory.Node) { n.ProviderID = serverProvider(2) }), plan.Kubelet{}, inventory.ReadyUnknown, true},
		"not Ready":             {own(func(n *inventory.Node) { n.Ready = inventory.NotReady }), plan.Kubelet{}, inventory.NotReady, true},
		"a dead kubelet":        {ready, plan.Kubelet{Fault: plan.Reason{Code: plan.CodeTokenRevoked, Text: "t"}}, inventory.NotReady, true},
		"a young kubelet":       {ready, plan.Kubelet{Fault: plan.Reason{Code: plan.CodeKubeletSettling, Text: "t"}}, inventory.ReadyUnknown, true},
		"an older heartbeat":    {ready, plan.Kubelet{Started: noon.Add(1)}, inventory.ReadyUnknown, true},
		"no Node":               {inventory.Absent[inventory.Node](), plan.Kubelet{}, inventory.NotReady, false},
		"Nodes unread":          {inventory.Unread[inventory.Node]("no rights"), plan.Kubelet{}, inventory.ReadyUnknown, false},
	} {
		h := plan.Host{Server: inventory.Server{ID: serverID(1), Zone: "fr-par-1"}, Node: tc.node, Kubelet: inventory.Present(tc.kubelet)}
		if got, _, known := h.Ready(); got != tc.want || known != tc.known {
			t.Errorf("%s: %s, known %t, want %s, known %t", name, got, known, tc.want, tc.known)
		}
	}
}

// TestSettling: a Node may become Ready by itself only while its kubelet is young.
func TestSettling(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 23, 1, 0, 0, 0, time.UTC)
	node := func(heard time.Time) inventory.Seen[inventory.Node] {
		return inventory.Present(inventory.Node{LastHeartbeat: heard})
	}
	runs := func(code plan.Code) inventory.Seen[plan.Kubelet] {
		return inventory.Present(plan.Kubelet{Fault: plan.Reason{Code: code}, Started: at})
	}
	for name, tc := range map[string]struct {
		node    inventory.Seen[inventory.Node]
		kubelet inventory.Seen[plan.Kubelet]
		want    bool
	}{
		"just started":        {node(at.Add(-time.Minute)), runs(plan.Code{}), true},
		"settling":            {inventory.Absent[inventory.Node](), runs(plan.CodeKubeletSettling), true},
		"a heartbeat since":   {node(at.Add(time.Minute)), runs(plan.Code{}), false},
		"crash-looping":       {node(at.Add(-time.Minute)), runs(plan.CodeKubeletCrashLoop), false},
		"no Node":             {inventory.Absent[inventory.Node](), runs(plan.Code{}), false},
		"no kubelet was read": {node(at), inventory.Absent[plan.Kubelet](), false},
	} {
		if got := (plan.Host{Node: tc.node, Kubelet: tc.kubelet}).Settling(); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
