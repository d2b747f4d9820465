package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/plan/lists"
)

// deviceStep makes each host a device; its probe says "ID SUFFIX".
type deviceStep struct{ views *views }

var _ plan.Peer = deviceStep{}

func (deviceStep) ID() plan.StepID              { return "device" }
func (deviceStep) Probes() []plan.Probe         { return []plan.Probe{{ID: "device.get"}} }
func (deviceStep) Wanted() string               { return "device" }
func (deviceStep) Realm() (string, bool)        { return "", true }
func (deviceStep) Leave(plan.View) plan.Finding { return plan.Finding{} }
func (d deviceStep) Diff(v plan.View) plan.Finding {
	d.views.add(v)
	return plan.Finding{Facts: "device"}
}

func (deviceStep) Service() plan.Service {
	return plan.Service{ID: "device", Entry: "device", Noun: "device", Field: "device", Place: "the tailnet", Accept: "tailnet", Idle: "disconnected", LeftOver: plan.CodeFirstSetup,
		Made: func(cfg *fleet.Config, e inventory.Entry) bool { return cfg.Tailnet.Gives(e.Tags) }}
}

func (deviceStep) Said(f plan.Facts) (lists.Said, bool) {
	seen, _ := f.Get("device.get").Get()
	id, suffix, _ := strings.Cut(seen.Stdout, " ")
	return lists.Said{ID: id, Realm: suffix}, id != ""
}

// peers is a world whose hosts are devices of a tailnet and agents of a service.
type peers struct {
	*world
	views *views
}

// newPeers has hosts that say what they are at both services, which list all of them.
func newPeers(hosts int) *peers {
	p := &peers{world: members(hosts, hosts)}
	p.cfg.Tailnet = &fleet.Tailnet{Tags: []string{"tag:mac"}}
	tailnet := &inventory.Tailnet{Suffix: "here.ts.net"}
	var agents []inventory.Agent
	for n := 1; n <= hosts; n++ {
		name := p.cfg.HostName("macos", "m2", serverID(n))
		tailnet.Devices = append(tailnet.Devices, inventory.Device{ID: fmt.Sprint("d", n), Name: name, Connected: true})
		agents = append(agents, inventory.Agent{ID: fmt.Sprint("a", n), Name: name, Online: true})
		p.mark(n, func(m *plan.Marker) { m.Steps["device"], m.Steps["agent"] = plan.Digest{}, plan.Digest{} })
		p.says(n, fmt.Sprintf("d%d here.ts.net", n))
		p.change(n, func(h *plan.HostSeen) {
			h.Facts["agent.get"] = inventory.Present(plan.Answer{Stdout: fmt.Sprint("a", n)})
		})
	}
	p.snap.Peers = plan.PeersSeen{"agent": {scope: {Listing: inventory.Listing{Agents: &inventory.AgentService{Agents: agents}}}}, "device": {"": {Listing: inventory.Listing{Tailnet: tailnet}}}}
	return p
}

// tailnet is what the control server lists.
func (p *peers) tailnet() *inventory.Tailnet { return p.snap.Peers["device"][""].Tailnet }

// says lets the daemon of the n-th server say what device it is.
func (p *peers) says(n int, device string) {
	p.change(n, func(h *plan.HostSeen) { h.Facts["device.get"] = inventory.Present(plan.Answer{Stdout: device}) })
}

func (p *peers) plan(t *testing.T) *plan.Plan {
	t.Helper()
	p.world.plan(t)
	p.views = &views{}
	return plan.Compute(p.cfg, func(h fleet.Host) []plan.Step {
		return append(p.steps(h), agentStep{h.Name, true, p.views}, deviceStep{p.views})
	}, p.snap, p.sel)
}

// TestBelieve: a list that is not shown to be about the hosts reaches no step; every step sees why instead, and a person may accept it by
// its name.
func TestBelieve(t *testing.T) {
	t.Parallel()
	without := func(n int) func(*peers) {
		return func(p *peers) { p.tailnet().Devices = p.tailnet().Devices[n:] }
	}
	another := func(p *peers) {
		*p.tailnet() = inventory.Tailnet{Suffix: "there.ts.net", Devices: []inventory.Device{{ID: "laptop", Name: "laptop"}}}
	}
	agents := func(p *peers, edit func(*inventory.AgentService)) { edit(p.snap.Peers["agent"][scope].Agents) }
	for name, tc := range map[string]struct {
		change          func(*peers)
		tailnet, agents string // the codes for which their lists do not count
	}{
		"all listed":                   {func(*peers) {}, "", ""},
		"two deleted":                  {without(2), "", ""},
		"three deleted":                {without(3), "list-lacks-hosts", ""},
		"all deleted":                  {without(6), "list-lacks-hosts", ""},
		"accepted":                     {func(p *peers) { without(6)(p); p.sel.AcceptLists = []string{"tailnet"} }, "", ""},
		"other accepted":               {func(p *peers) { without(6)(p); p.sel.AcceptLists = []string{"ci.example.com/acme"} }, "list-lacks-hosts", ""},
		"its tailnet got another name": {func(p *peers) { p.tailnet().Suffix = "there.ts.net" }, "", ""},
		"another tailnet":              {another, "other-tailnet", ""},
		"another tailnet, accepted": {func(p *peers) {
			another(p)
			p.sel.AcceptLists = []string{"tailnet"}
		}, "", ""},
		"an empty tailnet":            {func(p *peers) { *p.tailnet() = inventory.Tailnet{} }, "other-tailnet", ""},
		"one host in another tailnet": {func(p *peers) { p.says(1, "d1 there.ts.net") }, "", ""},
		"no host was verified there": {func(p *peers) {
			another(p)
			for n := 1; n <= 6; n++ {
				p.mark(n, func(m *plan.Marker) { delete(m.Steps, "device") })
			}
		}, "", ""},
		"markers of another owner do not count": {func(p *peers) {
			another(p)
			for n := 1; n <= 5; n++ {
				p.says(n, fmt.Sprintf("d%d there.ts.net", n))
				p.mark(n, func(m *plan.Marker) { m.Configuration = "globex" })
			}
		}, "other-tailnet", ""},
		"agents of three are gone": {func(p *peers) { agents(p, func(s *inventory.AgentService) { s.Agents = s.Agents[3:] }) }, "", "list-lacks-hosts"},
		"agents of three were never registered, in a list that changes": {func(p *peers) {
			agents(p, func(s *inventory.AgentService) { s.Agents, s.Churned = s.Agents[3:], true })
			for n := 1; n <= 3; n++ {
				p.change(n, func(h *plan.HostSeen) { h.Facts["agent.get"] = inventory.Present(plan.Answer{}) })
			}
		}, "", ""},
		"agents of two are gone": {func(p *peers) { agents(p, func(s *inventory.AgentService) { s.Agents = s.Agents[2:] }) }, "", ""},
		"agents of three are not in a list that changes": {func(p *peers) {
			agents(p, func(s *inventory.AgentService) { s.Agents, s.Churned = s.Agents[3:], true })
		}, "", "list-churned"},
		"unread already": {func(p *peers) {
			p.snap.Peers["agent"][scope] = plan.PeerSeen{Trouble: plan.CodeRunnerRight.Trouble("no")}
		}, "", "runner-right-missing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPeers(6)
			tc.change(p)
			made := p.plan(t)
			want := slices.DeleteFunc([]string{tc.tailnet, tc.agents}, func(s string) bool { return s == "" })
			warned := []string{}
			for _, s := range made.Services {
				warned = append(warned, s.Code.String())
			}
			slices.Sort(warned)
			expect(t, "warnings", want, warned)
			if len(p.views.all) != 12 && name != "markers of another owner do not count" || len(p.views.all) == 0 {
				t.Fatalf("%d views", len(p.views.all))
			}
			for _, v := range p.views.all {
				service, tailnet := v.Peer("agent"), v.Peer("device")
				churned := service.Trouble == nil && tc.agents == "list-churned" // of a host that is listed
				if got := codeOf(tailnet.Trouble); got != tc.tailnet || tc.tailnet != "" && len(tailnet.Net().Devices) > 0 {
					t.Errorf("%s sees a tailnet with %q, %d devices", v.Server.Name, got, len(tailnet.Net().Devices))
				}
				if got := codeOf(service.Trouble); got != tc.agents && !churned {
					t.Errorf("%s sees a service with %q", v.Server.Name, got)
				}
			}
		})
	}
}

// TestLeftOver: a disconnected device and an offline agent whose hosts are gone are deleted where a released server had their name, and
// otherwise only shown.
func TestLeftOver(t *testing.T) {
	t.Parallel()
	const name = "acme-prod-macos-m2-fffff"
	for was, want := range map[string][]string{"": {"left-over-unknown", "left-over-unknown"}, "acme-prod-macos-m2-ffff0": {"left-over-unknown", "left-over-unknown"}, name: {"forget", "forget"}} {
		p := newPeers(2)
		p.cfg.Tailnet.Tags = []string{"tag:mac"}
		p.tailnet().Devices = append(p.tailnet().Devices, inventory.Device{ID: "d9", Name: name, Tags: []string{"tag:mac"}})
		s := p.snap.Peers["agent"][scope].Agents
		s.Agents = append(s.Agents, inventory.Agent{ID: "a9", Name: name})
		if was != "" {
			p.snap.Released = []plan.Pin{{ServerID: serverID(9), Name: was, Key: key(9), Stage: plan.Released}}
		}
		made := p.plan(t)
		var got []string
		for _, a := range made.Actions {
			got = append(got, string(a.Kind))
		}
		for _, w := range made.Warnings {
			got = append(got, w.Code.String())
		}
		slices.Sort(got)
		expect(t, "left over of a server that was "+was, want, got)
	}
}
