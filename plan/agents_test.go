package plan_test

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/plan/lists"
)

const scope = "https://ci.acme.dev/acme"

// agentStep keeps an agent of a service. What its host has registered is in the answer of its probe.
type agentStep struct {
	name  string
	wants bool
	views *views // what it was given
}

// views is safe for concurrent use: a plan compares hosts in parallel.
type views struct {
	mu  sync.Mutex
	all []plan.View
}

func (s *views) add(v plan.View) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, v)
}

var _ plan.AgentKeeper = agentStep{}

func (agentStep) ID() plan.StepID       { return "agent" }
func (agentStep) Probes() []plan.Probe  { return []plan.Probe{{ID: "agent.get"}} }
func (agentStep) Wanted() string        { return "agent" }
func (agentStep) Job(plan.Facts) string { return "" }

func (a agentStep) Agent() (plan.AgentSpec, bool) {
	return plan.AgentSpec{Scope: scope, Name: a.name}, a.wants
}

func (agentStep) Service() plan.Service {
	return plan.Service{ID: "agent", Entry: "CI agent", Noun: "agent", Field: "entry", Idle: "offline", Works: true, LeftOver: plan.CodeFirstSetup}
}

func (a agentStep) Realm() (string, bool) { return scope, a.wants }

func (agentStep) Said(f plan.Facts) (lists.Said, bool) {
	seen, _ := f.Get("agent.get").Get()
	return lists.Said{ID: seen.Stdout, Realm: scope}, seen.Stdout != ""
}

func (a agentStep) Diff(v plan.View) plan.Finding {
	a.views.add(v)
	return plan.Finding{Facts: "agent", Running: inventory.Present([]plan.Task{})}
}

func (a agentStep) Leave(v plan.View) plan.Finding {
	var f plan.Finding
	if said, ok := a.Said(v.Facts); ok {
		id := said.ID
		f.Changes = []plan.Change{{Reason: plan.Reason{Code: plan.CodeFirstSetup, Text: "leaves"}, Fields: []plan.Field{{Name: "agent", Before: id}},
			Peer: &plan.PeerChange{Peer: "agent", Verb: inventory.DeleteEntry, Realm: scope, Entry: inventory.Entry{ID: id}}}}
	}
	return f
}

// agents is a world whose hosts are agents of a service.
type agents struct {
	*world
	views *views
}

func newAgents(w *world) *agents { return &agents{world: w} }

func (a *agents) plan(t *testing.T) *plan.Plan {
	t.Helper()
	a.world.plan(t)
	a.views = &views{}
	return plan.Compute(a.cfg, func(h fleet.Host) []plan.Step { return append(a.steps(h), agentStep{h.Name, true, a.views}) }, a.snap, a.sel)
}

func (a *agents) lists(all ...inventory.Agent) {
	a.snap.Peers = plan.PeersSeen{"agent": {scope: {Listing: inventory.Listing{Agents: &inventory.AgentService{Agents: all}}}}}
}

// says lets the n-th server answer that it is registered with an id.
func (a *agents) says(n int, id string) {
	a.change(n, func(h *plan.HostSeen) { h.Facts["agent.get"] = inventory.Present(plan.Answer{Stdout: id}) })
}

// TestAgentsLeft: the entries whose hosts are gone, and no others.
func TestAgentsLeft(t *testing.T) {
	t.Parallel()
	gone := inventory.Agent{ID: "7", Name: "acme-prod-macos-m2-fffff"}
	for name, tc := range map[string]struct {
		change func(*agents)
		want   int
	}{
		"offline":                {func(*agents) {}, 1},
		"online":                 {func(a *agents) { a.snap.Peers["agent"][scope].Agents.Agents[0].Online = true }, 0},
		"busy":                   {func(a *agents) { a.snap.Peers["agent"][scope].Agents.Agents[0].Busy = true }, 0},
		"another owner's":        {func(a *agents) { a.snap.Peers["agent"][scope].Agents.Agents[0].Name = "acme-canary-macos-m2-fffff" }, 0},
		"no server had the name": {func(a *agents) { a.snap.Released = nil }, 0},
		"by hand":                {func(a *agents) { a.snap.Peers["agent"][scope].Agents.Agents[0].Name = "mini-7" }, 0},
		"a server has the name":  {func(a *agents) { a.server(9, gone.Name) }, 0},
		"a host is silent":       {func(a *agents) { a.away(1, plan.CodeUnreachable) }, 0},
		"narrowed":               {func(a *agents) { a.sel.On = only("fleet=macos") }, 0},
		"read-only":              {func(a *agents) { a.snap.Peers["agent"][scope].Agents.ReadOnly = true }, 0},
		"unread": {func(a *agents) {
			a.snap.Peers["agent"][scope] = plan.PeerSeen{Trouble: plan.CodeUnreachable.Trouble("no answer"), Listing: a.snap.Peers["agent"][scope].Listing}
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAgents(newWorld(1, 0, 0))
			a.member("macos", "m2", 1)
			a.lists(gone)
			a.snap.Released = []plan.Pin{{ServerID: "fffff", Name: gone.Name, Stage: plan.Released}}
			tc.change(a)
			var got []plan.Action
			for _, action := range a.plan(t).Actions {
				if action.Kind == plan.ForgetPeer {
					got = append(got, action)
				}
			}
			if len(got) != tc.want {
				t.Fatalf("%d entries are deleted, want %d", len(got), tc.want)
			}
			if len(got) == 1 && (!got[0].OfCluster() || got[0].Changes[0].Peer.Entry.ID != "7" || got[0].Kind.Sign() != plan.Remove) {
				t.Errorf("%+v", got[0])
			}
		})
	}
}

// TestRetireAgent: the agent of a host that leaves ends before its Node's identity goes, and nothing is erased while the
// service cannot be read.
func TestRetireAgent(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*agents)
		want   []string
	}{
		"registered": {func(*agents) {}, []string{"drain", "retire", "delete-node", "reinstall", "release"}},
		"no agent":   {func(a *agents) { a.says(3, "") }, []string{"drain", "delete-node", "reinstall", "release"}},
		"unread": {func(a *agents) {
			a.snap.Peers["agent"][scope] = plan.PeerSeen{Trouble: plan.CodeUnreachable.Trouble("no answer")}
		},
			[]string{"drain !agent-unknown", "delete-node !agent-unknown", "reinstall !agent-unknown", "release !agent-unknown"}},
		"unread, forced": {func(a *agents) {
			a.snap.Peers["agent"][scope] = plan.PeerSeen{Trouble: plan.CodeUnreachable.Trouble("no answer")}
			a.sel.ForceBusy = []string{third}
		}, []string{"drain", "retire", "delete-node", "reinstall", "release"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAgents(leaver())
			a.lists(inventory.Agent{ID: "3", Name: third})
			a.says(3, "3")
			tc.change(a)
			p := a.plan(t)
			got := leaving(p)
			if strings.HasPrefix(name, "unread") && !strings.HasSuffix(name, "forced") {
				got = slices.DeleteFunc(got, func(s string) bool { return strings.HasPrefix(s, "retire") })
			}
			expect(t, "actions", tc.want, got)
			for _, action := range p.Actions {
				if action.Kind == plan.RetirePeer && (action.Step != "agent" || action.Disruption != plan.Drain) {
					t.Errorf("%+v", action)
				}
			}
		})
	}
}

// TestAgentView: a step gets the entries of its host and nothing of others', the names of servers, and a fence that no
// running run has set.
func TestAgentView(t *testing.T) {
	t.Parallel()
	name := func(a *agents) string { return a.cfg.HostName("macos", "m2", serverID(1)) }
	fenced := func(a *agents) { a.mark(1, func(m *plan.Marker) { m.Fence = &plan.Fence{Run: "run-7"} }) }
	for what, tc := range map[string]struct {
		change func(*agents)
		fence  bool
	}{
		"fenced by an earlier run": {fenced, true},
		"fenced by a running run": {func(a *agents) {
			fenced(a)
			a.snap.Lock = &plan.Lock{Run: plan.Run{ID: "run-7"}, Alive: true}
		}, false},
		"not fenced": {func(*agents) {}, false},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			a := newAgents(newWorld(1, 0, 0))
			a.member("macos", "m2", 1)
			a.says(1, "5")
			a.lists(inventory.Agent{ID: "1", Name: strings.ToUpper(name(a)), Online: true}, inventory.Agent{ID: "4", Name: "another"}, inventory.Agent{ID: "5", Name: "mini-5"})
			tc.change(a)
			p := a.plan(t)
			if len(a.views.all) == 0 {
				t.Fatal("the step was not compared")
			}
			v := a.views.all[0]
			expect(t, "entries", []string{"1", "5"}, each(v.Peer("agent").Agents.Agents, func(a inventory.Agent) string { return a.ID }))
			if !v.Servers[name(a)] || v.Servers["another"] || (v.Fence != nil) != tc.fence {
				t.Errorf("servers %v, fence %v", v.Servers, v.Fence)
			}
			if h := oneHost(t, p); h.Peer("agent").Entry == nil || h.Peer("agent").Entry.ID != "5" || !h.Fenceable() {
				t.Errorf("agent %+v", h.Peer("agent"))
			}
		})
	}
}

// TestServiceWarning: a service that cannot be read is reported once, whatever the number of its hosts.
func TestServiceWarning(t *testing.T) {
	t.Parallel()
	a := newAgents(newWorld(2, 0, 0))
	a.member("macos", "m2", 1)
	a.member("macos", "m2", 2)
	a.snap.Peers = plan.PeersSeen{"agent": {scope: {Trouble: plan.CodeUnreachable.Trouble("no answer")}}}
	p := a.plan(t)
	if len(p.Services) != 1 || p.Services[0].Code != plan.CodeUnreachable || p.Services[0].Scope != scope {
		t.Errorf("%+v", p.Services)
	}
}

// TestCopiedRegistration: an entry with the name of another server is that server's. One with a name that no server has is the host's.
func TestCopiedRegistration(t *testing.T) {
	t.Parallel()
	v := plan.View{Server: inventory.Server{Name: "acme-1"}, Servers: map[string]bool{"acme-1": true, "acme-2": true}}
	for _, tc := range []struct {
		entry, own string
		copied     bool
	}{
		{"acme-1", "acme-1", false}, {"acme-2", "acme-1", true}, {"acme-1", "mac-one", false},
		{"mac-one", "mac-one", false}, {"MAC-ONE", "mac-one", false}, {"acme-2", "ACME-2", false}, {"former-name", "acme-1", false},
	} {
		if got := v.CopiedRegistration(tc.entry, tc.own); got != tc.copied {
			t.Errorf("%+v: copied %t", tc, got)
		}
	}
}
