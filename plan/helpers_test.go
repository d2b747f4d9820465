package plan_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/plan/plantest"
)

// whole compares values with all their fields, unexported ones too.
var whole = cmp.Exporter(func(reflect.Type) bool { return true })

// fakeStep wants one text and reads one answer.
type fakeStep struct {
	id      plan.StepID
	desired string
}

func (s fakeStep) ID() plan.StepID { return s.id }

func (s fakeStep) probe() string { return string(s.id) + ".get" }

func (s fakeStep) Probes() []plan.Probe { return []plan.Probe{{ID: s.probe()}} }

func (s fakeStep) Wanted() string {
	if s.desired == "" {
		return ""
	}
	return "it=" + s.desired
}

func (s fakeStep) Diff(v plan.View) plan.Finding {
	if s.desired == "" {
		return plan.Finding{}
	}
	seen := v.Facts.Get(s.probe())
	a, ok := seen.Get()
	if !ok {
		return plan.Finding{Unread: []plan.Unread{{Probe: s.probe(), Why: seen.Why()}}}
	}
	f := plan.Finding{Facts: "it=" + a.Stdout}
	if s.id == "alpha" { // which reads that nothing runs
		f.Running = inventory.Present[[]plan.Task](nil)
	}
	if a.Exit != 0 {
		f.Refused = &plan.Trouble{Code: plantest.Code("disk-full"), Text: "the disk is full", Remedy: "delete something"}
	}
	if s.Wanted() != f.Facts {
		f.Changes = []plan.Change{{
			Reason:  plan.Reason{Code: plantest.Code(string(s.id) + "-off"), Text: "it is " + a.Stdout},
			Fields:  []plan.Field{{Name: string(s.id), Before: a.Stdout, After: s.desired}},
			Command: plan.Command{Name: string(s.id) + "-set", Script: "true\n", As: plan.Root},
		}}
	}
	return f
}

var (
	noon  = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	night = must(fleet.ParseWindow("daily 22:00-04:00"))
)

const good = "good"

// world is the configuration, what the providers list, and the hosts as they would
// answer if asked.
type world struct {
	cfg     *fleet.Config
	snap    plan.Snapshot
	hosts   map[string]plan.HostSeen
	sel     plan.Selection
	desired map[plan.StepID]string
	kubelet func(plan.View, *plan.Finding) // what the kubelet's step finds; nil: as it is
	asked   [][]string                     // names of the servers asked, by round
	working bool                           // alpha reads the work of its host, and disrupts it
}

// newWorld has the fleets macos (m2, m4) and runners (m2) and no server.
func newWorld(macosM2, macosM4, runnersM2 int) *world {
	return &world{
		cfg: &fleet.Config{
			Owner:    fleet.Owner{Name: "acme", Environment: "prod"},
			Scaleway: fleet.Scaleway{Zones: []string{"fr-par-1"}, PoolPrefix: "acme-pool-"},
			SSH:      fleet.SSH{User: "m1"},
			Fleets: []fleet.Fleet{
				{Name: "macos", OS: "Tahoe", Groups: []fleet.Group{
					{Name: "m2", Type: "M2-L", Replicas: macosM2}, {Name: "m4", Type: "M4-M", Replicas: macosM4}}},
				{Name: "runners", OS: "Sequoia", Groups: []fleet.Group{{Name: "m2", Type: "M2-L", Replicas: runnersM2}}},
			},
		},
		snap:    plan.Snapshot{Nodes: inventory.Present([]inventory.Node{}), Hosts: make(map[string]plan.HostSeen)},
		hosts:   make(map[string]plan.HostSeen),
		desired: map[plan.StepID]string{"alpha": good, "beta": good},
		sel:     plan.Selection{Decisions: plan.Decisions{ReleaseSurplus: 100}}, // most tests are not about why a group has too many
	}
}

// offered is a catalogue with systems of some families.
func offered(families ...string) *inventory.Catalogue {
	var c inventory.Catalogue
	for _, f := range families {
		c.Systems = append(c.Systems, inventory.System{ID: "os-" + f, Name: "macos-" + f, Family: f, Version: "26.3", Zone: "fr-par-1",
			Types: []string{"M2-L", "M4-M"}})
	}
	return &c
}

// steps of a host want what the world configures, and of alpha what the host's own
// specification says (see own).
func (w *world) steps(h fleet.Host) []plan.Step {
	alpha := w.desired["alpha"]
	if h.Spec.Power != nil {
		alpha = fmt.Sprint(*h.Spec.Power.Sleep)
	}
	out := []plan.Step{fakeStep{"alpha", alpha}, fakeStep{"beta", w.desired["beta"]}}
	if w.working {
		out[0] = working{fakeStep{"alpha", alpha}}
	}
	if h.Spec.JoinsCluster() {
		out = append(out, kubeletStep{w.desired["gamma"], w.kubelet})
	}
	return out
}

// own is a specification by which a host's step alpha wants a number.
func own(n int) fleet.Spec { return fleet.Spec{Power: &fleet.Power{Sleep: &n}} }

// legacy is the name of an adopted server, which no grammar made.
const legacy = "acme-legacy-01"

// adopt lists a server under a name as a member of macos.m2.
func (w *world) adopt(n int, name string) *fleet.Listed {
	return w.list(fleet.Listed{Name: name, ServerID: serverID(n), Fleet: "macos", Group: "m2"})
}

func (w *world) list(l fleet.Listed) *fleet.Listed {
	w.cfg.Hosts = append(w.cfg.Hosts, l)
	return &w.cfg.Hosts[len(w.cfg.Hosts)-1]
}

// outside adds a server that is in no pool, as it came.
func (w *world) outside(n int, name string) *inventory.Server {
	w.hosts[serverID(n)] = clean(n)
	return w.server(n, name)
}

// adoptedMember adds a converged host that was adopted under a name.
func (w *world) adoptedMember(n int, name string) *inventory.Server {
	s := w.member("macos", "m2", n)
	s.Name = name
	m := w.marker("macos", "m2", n)
	m.Name = name
	w.marked(n, m)
	w.adopt(n, name)
	return s
}

// serverID makes an id whose first five characters tell n.
func serverID(n int) string { return fmt.Sprintf("%05x000-0000-4000-8000-%012x", n, n) }

// server adds a server of the type and OS of macos.m2.
func (w *world) server(n int, name string) *inventory.Server {
	w.snap.Servers = append(w.snap.Servers, inventory.Server{ID: serverID(n), Name: name, Type: "M2-L", Zone: "fr-par-1",
		Address: fmt.Sprintf("192.0.2.%d", n%250), OSFamily: "Tahoe", Status: "ready", Delivered: true,
		Created: time.Date(2026, 1, 1, 0, n, 0, 0, time.UTC)})
	return &w.snap.Servers[len(w.snap.Servers)-1]
}

func facts(alpha, beta string) plan.Facts {
	return plan.Facts{
		"alpha.get": inventory.Present(plan.Answer{Stdout: alpha}),
		"beta.get":  inventory.Present(plan.Answer{Stdout: beta}),
	}
}

// clean is a host without work.
func clean(n int) plan.HostSeen {
	return plan.HostSeen{Key: fmt.Sprintf("ssh-ed25519 %d", n), Fingerprint: "SHA256:x", Root: true,
		Serial:    inventory.Present(fmt.Sprintf("C07%05d", n)),
		OSVersion: inventory.Present("26.3"),
		Marker:    inventory.Absent[plan.Marker](),
		Claim:     inventory.Absent[plan.Claim](),
		Facts:     facts("factory", "factory")}
}

// free adds a clean server of the pool; its name sorts by n.
func (w *world) free(n int) *inventory.Server {
	w.hosts[serverID(n)] = clean(n)
	return w.server(n, fmt.Sprintf("acme-pool-%02d", n))
}

// verifiedAs is the digests of a step whose facts are as configured.
func verifiedAs(wanted, facts string) plan.Digest {
	return plan.DigestOf("it="+wanted, "it="+facts)
}

func (w *world) marker(fleetName, group string, n int) plan.Marker {
	return plan.Marker{Configuration: w.cfg.Name, Environment: w.cfg.Environment, Name: w.cfg.HostName(fleetName, group, serverID(n)),
		Fleet: fleetName, Group: group, ServerID: serverID(n), Serial: fmt.Sprintf("C07%05d", n), Version: fleet.Version,
		Steps: map[plan.StepID]plan.Digest{"alpha": verifiedAs(good, good), "beta": verifiedAs(good, good)}}
}

// member adds a converged host of a group, without a Node or a pin.
func (w *world) member(fleetName, group string, n int) *inventory.Server {
	seen := clean(n)
	seen.Pinned = true
	seen.Marker = inventory.Present(w.marker(fleetName, group, n))
	seen.Facts = facts(good, good)
	if fleetName == "runners" {
		seen.OSVersion = inventory.Present("15.7") // as the fleet wants
	}
	w.hosts[serverID(n)] = seen
	return w.server(n, w.cfg.HostName(fleetName, group, serverID(n)))
}

// members has a number of converged hosts in macos.m2, which wants some.
func members(wanted, are int) *world {
	w := newWorld(wanted, 0, 0)
	for n := 1; n <= are; n++ {
		w.member("macos", "m2", n)
	}
	return w
}

// change edits a host's answers.
func (w *world) change(n int, edit func(*plan.HostSeen)) {
	seen := w.hosts[serverID(n)]
	edit(&seen)
	w.hosts[serverID(n)] = seen
}

// mark edits a host's marker.
func (w *world) mark(n int, edit func(*plan.Marker)) {
	w.change(n, func(h *plan.HostSeen) {
		m, _ := h.Marker.Get()
		edit(&m)
		h.Marker = inventory.Present(m)
	})
}

func (w *world) marked(n int, m plan.Marker) { w.mark(n, func(is *plan.Marker) { *is = m }) }

func (w *world) unmark(n int) {
	w.change(n, func(h *plan.HostSeen) { h.Marker = inventory.Absent[plan.Marker]() })
}

// found sets what a host's two steps find.
func (w *world) found(n int, alpha, beta string) {
	w.change(n, func(h *plan.HostSeen) { h.Facts = facts(alpha, beta) })
}

// away lets a host not answer.
func (w *world) away(n int, code plan.Code) {
	w.hosts[serverID(n)] = plan.HostSeen{Trouble: code.Trouble("no answer")}
}

func (w *world) pin(n int, name string) {
	w.snap.Pins = append(w.snap.Pins, plan.Pin{ServerID: serverID(n), Name: name, Key: "ssh-ed25519 x"})
}

// node adds a Node; with an id it has the provider id of that server.
func (w *world) node(n int, name string, ready inventory.Readiness) {
	list, _ := w.snap.Nodes.Get()
	s := inventory.Server{ID: serverID(n), Zone: "fr-par-1"}
	w.snap.Nodes = inventory.Present(append(list, inventory.Node{Name: name, ProviderID: s.ProviderID(), Ready: ready}))
}

func (w *world) compute() *plan.Plan { return plan.Compute(w.cfg, w.steps, w.snap, w.sel) }

// plan asks hosts as an engine does, round by round, and computes.
func (w *world) plan(t testing.TB) *plan.Plan {
	t.Helper()
	for range len(w.snap.Servers) + 1 {
		next := plan.Next(w.cfg, w.snap, w.sel)
		if len(next) == 0 {
			return w.compute()
		}
		var round []string
		for _, s := range next {
			if _, twice := w.snap.Hosts[s.ID]; twice {
				t.Fatalf("%s is queried twice", s.Name)
			}
			w.snap.Hosts[s.ID] = w.hosts[s.ID]
			round = append(round, s.Name)
		}
		w.asked = append(w.asked, round)
	}
	t.Fatal("Next does not end")
	return nil
}

// released are the hosts that a plan returns to the pool.
func released(p *plan.Plan) []string {
	var out []string
	for _, a := range p.Actions {
		if a.Kind == plan.ReleaseServer {
			out = append(out, a.Host)
		}
	}
	return out
}

// what is the step of an action, or its kind.
func what(a plan.Action) string {
	if a.Kind == plan.RunStep {
		return string(a.Step)
	}
	return string(a.Kind)
}

// lines are a plan's actions, one short line each: D and P say where the
// difference comes from, "!" that it is refused.
func lines(p *plan.Plan) []string {
	var out []string
	for _, a := range p.Actions {
		origin := ""
		if a.Origin.Drift {
			origin += "D"
		}
		if a.Origin.NotKnown {
			origin += "?"
		}
		if a.Origin.Pending {
			origin += "P"
		}
		line := fmt.Sprintf("%s %s %s %s", a.Host, what(a), a.Reason.Code, origin)
		if a.Refusal != nil {
			line += " !" + a.Refusal.Code.String()
		}
		out = append(out, line)
	}
	return out
}

// must returns what a call of the set-up returns, which never fails.
func must[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}

func expect(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got, whole); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// claimed are the servers that a plan claims, as "pool name > final name".
func claimed(p *plan.Plan) []string {
	var out []string
	for _, a := range p.Actions {
		if a.Kind == plan.ClaimServer {
			h, _ := p.HostByServer(a.ServerID)
			out = append(out, h.Server.Name+" > "+a.Host)
		}
	}
	return out
}

// each returns the text of each element.
func each[T any](all []T, text func(T) string) []string {
	var out []string
	for _, x := range all {
		out = append(out, text(x))
	}
	return out
}

// rejected are the servers considered and not taken, as "name code".
func rejected(p *plan.Plan) []string {
	return each(p.Rejected, func(r plan.Rejected) string { return r.Server.Name + " " + r.Trouble.Code.String() })
}

func strays(p *plan.Plan) []string {
	return each(p.Strays, func(s inventory.Server) string { return s.Name })
}

func orphans(p *plan.Plan) []string {
	return each(p.Orphans, func(o plan.Orphan) string { return o.Name })
}

// missing counts the servers that a plan lacks.
func missing(p *plan.Plan) (n int) {
	for _, s := range p.Shortages {
		n += s.Missing
	}
	return n
}

// oneHost returns the plan's only host.
func oneHost(t *testing.T, p *plan.Plan) plan.Host {
	t.Helper()
	if len(p.Hosts) != 1 {
		t.Fatalf("the plan has %d hosts, want 1", len(p.Hosts))
	}
	return p.Hosts[0]
}

// codeOf is the code of a trouble, or "".
func codeOf(tr *plan.Trouble) string {
	if tr == nil {
		return ""
	}
	return tr.Code.String()
}

// explained checks that a trouble has a cause and a fix.
func explained(t *testing.T, tr *plan.Trouble) {
	t.Helper()
	if tr == nil || tr.Code.String() == "" || strings.TrimSpace(tr.Text) == "" || strings.TrimSpace(tr.Remedy) == "" {
		t.Errorf("the trouble %+v does not say what happened and what to do", tr)
	}
}
