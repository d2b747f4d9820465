package engine_test

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"net"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/hosts"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/overssh"
	"github.com/macfleet/macfleet/internal/sandbox"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/plan/plantest"
)

// touch is a step that makes a file and restarts nothing, though it is declared to. On a host
// where it breaks it fails.
type touch struct {
	id     plan.StepID
	breaks bool
}

func (s touch) ID() plan.StepID { return s.id }

func (s touch) Probes() []plan.Probe {
	return []plan.Probe{{ID: string(s.id) + "-file", Command: plan.Command{Name: string(s.id), As: plan.Login,
		Script: `[ -e "$HOME/.acme-$1" ] && echo yes || echo no`, Args: []string{string(s.id)}}}}
}

func (touch) Wanted() string { return "yes" }

func (s touch) Diff(v plan.View) plan.Finding {
	a, ok := v.Facts.Get(string(s.id) + "-file").Get()
	if !ok {
		return plan.Finding{Unread: []plan.Unread{{Probe: string(s.id) + "-file", Why: "it was not read"}}}
	}
	f := plan.Finding{Facts: strings.TrimSpace(a.Stdout)}
	if f.Facts != s.Wanted() {
		f.Changes = []plan.Change{{Reason: plan.Reason{Code: plantest.Code("file-missing"), Text: "it is missing"}, Disruption: plan.Restart,
			Command: plan.Command{Name: string(s.id), As: plan.Login, Script: `[ "$2" = no ] && : >"$HOME/.acme-$1"`, Args: []string{string(s.id), map[bool]string{true: "yes", false: "no"}[s.breaks]}}}}
	}
	return f
}

// The ways in which a host of a crowd fails, other than in a numbered step.
const (
	unreached = 3 // it cannot be dialled any more
	neverBack = 4 // its Node does not become Ready
)

// cluster is one in memory, whose Nodes become Ready when a test wants it.
type cluster struct {
	engine.Cluster // the simulated one, for its uid

	mu    sync.Mutex
	nodes map[string]inventory.Node
	known map[string]inventory.Identity
	late  map[string]inventory.Readiness // what Nodes say of themselves; Ready if not listed
}

func newCluster() *cluster {
	return &cluster{nodes: make(map[string]inventory.Node), known: make(map[string]inventory.Identity), late: make(map[string]inventory.Readiness)}
}

// register does what a kubelet does that starts.
func (c *cluster) register(p *plan.Plan) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, h := range p.Hosts {
		c.nodes[h.Name] = inventory.Node{Name: h.Name, UID: "u-" + h.Name, ProviderID: h.Server.ProviderID(), Ready: inventory.Ready}
	}
}

func (c *cluster) Nodes(context.Context) ([]inventory.Node, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []inventory.Node
	for _, n := range c.nodes {
		if r, ok := c.late[n.Name]; ok {
			n.Ready, n.Why = r, "no heartbeat since 10:00:00 UTC"
		}
		out = append(out, n)
	}
	return out, nil
}

func (c *cluster) Observe(ctx context.Context, _ bool) (inventory.Seen[[]inventory.Node], inventory.Cluster) {
	nodes, _ := c.Nodes(ctx)
	id, err := c.ID(ctx)
	seen := inventory.Present(id)
	if err != nil {
		seen = inventory.Unread[inventory.ClusterID](err.Error())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return inventory.Present(nodes), inventory.Cluster{ID: seen, Pods: inventory.Present([]inventory.Pod{}), Identities: inventory.Present(slices.Collect(maps.Values(c.known))),
		Join:    inventory.Present(inventory.Join{Server: "https://api.acme.dev:6443", CA: "pem"}),
		Objects: inventory.Present([]inventory.Object{}), Machines: inventory.Absent[[]inventory.Machine]()}
}

// NoteHostKey does nothing: no test of a crowd asks for the note.
func (c *cluster) NoteHostKey(context.Context, inventory.Node, string) error { return nil }

// SetRepairs does nothing: no test of a crowd asks for them.
func (c *cluster) SetRepairs(context.Context, inventory.Node, *inventory.Repairs) error { return nil }

func (c *cluster) Identify(_ context.Context, host string) (inventory.Identity, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := inventory.Identity{Host: host, ServiceAccount: "sa", Secret: "s", Issued: true, Bound: true}
	c.known[host] = i
	return i, nil
}

// crowd is a run over many hosts in five fleets, a fifth of which fail.
type crowd struct {
	engine  *engine.Engine
	cluster *cluster
	fails   map[string]int // by host name: where
	gone    map[string]bool
	open    atomic.Int64 // connections
	heap    uint64       // the most that was seen
	events  int
}

// crowded wants that many hosts, in fleets of different limits.
func crowded(n int) *fleet.Config {
	c := config("production", n/5)
	c.Kubernetes.LabelPrefix = "acme.dev"
	c.Fleets[0].Groups[0].Spec.TartKubelet = &fleet.TartKubelet{} // what a kubelet does, the test does
	one := c.Fleets[0]
	c.Fleets = nil
	for i, r := range []fleet.Rollout{
		{MaxUnavailable: fleet.Share{Percent: 20}, FailureBudget: n},
		{MaxUnavailable: fleet.Share{Percent: 5}, FailureBudget: 3},
		{MaxUnavailable: fleet.Share{Count: 7}, Canary: 2, Soak: 100 * time.Millisecond, FailureBudget: n},
		{MaxUnavailable: fleet.Share{Percent: 50}, FailureBudget: n, MinReady: n / 10},
		{MaxUnavailable: fleet.Share{Percent: 100}, Canary: 1},
	} {
		f := one
		f.Name, f.Rollout = "f"+strconv.Itoa(i), r
		c.Fleets = append(c.Fleets, f)
	}
	return c
}

// TestCrowdOverSSH rolls three steps to many hosts, 500 with -all, of which a fifth fail at random places and a
// tenth are expected to be fixed: the record shows that every limit held at every moment,
// and nothing is left behind. It has the process for itself: it checks its memory.
func TestCrowdOverSSH(t *testing.T) {
	n := 15
	if *all {
		n = 500
	}
	defer debug.SetGCPercent(debug.SetGCPercent(100)) // what a person runs has no GOGC of a Makefile
	w, _ := open(t, sandbox.Seed{Hosts: n + 2, PasswordlessSudo: true})
	c := newCrowd(t, w, n)
	c.engine.Steps = func(fleet.Host) []plan.Step { return nil }
	p := planned(t, c.engine)
	c.cluster.register(p)
	if r := c.performed(t, p); len(r.Failures) > 0 || len(r.Left) > 0 {
		t.Fatalf("they do not join: %q, left %v", whatFailed(r), r.Left)
	}
	c.drawFailures(p)
	c.engine.Steps = func(h fleet.Host) []plan.Step {
		var out []plan.Step
		for i := range 3 {
			at, fails := c.fails[h.Name]
			out = append(out, touch{plan.StepID("touch" + strconv.Itoa(i)), fails && at == i})
		}
		return out
	}
	p = planned(t, c.engine)
	if s := p.Summarise(); s.Unknown+s.Refused > 0 || len(p.Actions) != 3*n {
		t.Fatalf("%+v, %d actions", s, len(p.Actions))
	}
	for _, h := range p.Hosts {
		if c.fails[h.Name] == unreached {
			c.gone[h.Server.Address] = true
		}
	}
	r := c.performed(t, p)
	if len(r.Failures) < n/25 || r.Done < n {
		t.Errorf("only %d failures and %d actions", len(r.Failures), r.Done)
	}
	for _, f := range r.Failures {
		if _, fails := c.fails[f.Action.Host]; !fails {
			t.Errorf("%s fails: %v", f.Action.Host, f.Err)
		}
	}
	if n := c.open.Load(); n != 0 {
		t.Errorf("%d connections are left", n)
	}
	t.Logf("%d hosts, %d actions done, %d failures, %d hosts not started; %d MB at the most", n, r.Done, len(r.Failures), len(r.Left), c.heap>>20)
	if c.heap > 300<<20 {
		t.Errorf("%d MB of heap", c.heap>>20)
	}
}

func newCrowd(t *testing.T, w *sandbox.World, n int) *crowd {
	t.Helper()
	e := run(t, w, crowded(n))
	c := &crowd{engine: e, cluster: newCluster(), fails: make(map[string]int), gone: make(map[string]bool)}
	c.cluster.Cluster, e.Cluster = e.Cluster, c.cluster
	e.Ready, e.Parallelism, e.Run = engine.Ready{Within: 500 * time.Millisecond, Every: 5 * time.Millisecond}, 32, named("crowd", 1)
	line := overssh.New(hosts.Options{User: "m1", Key: fleetKey(t, w), Poll: time.Millisecond,
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			if host, _, _ := net.SplitHostPort(address); c.gone[host] {
				return nil, errors.New("no route to host")
			}
			conn, err := w.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			c.open.Add(1)
			return &tallied{Conn: conn, open: &c.open}, nil
		}})
	e.Hosts = line
	t.Cleanup(line.Close)
	return c
}

// tallied is a connection that is counted until it is closed.
type tallied struct {
	net.Conn
	open   *atomic.Int64
	closed atomic.Bool
}

// Close closes it.
func (c *tallied) Close() error {
	if !c.closed.Swap(true) {
		c.open.Add(-1)
	}
	return c.Conn.Close()
}

// drawFailures draws which hosts will fail and where, and which are not Ready.
func (c *crowd) drawFailures(p *plan.Plan) {
	random := rand.New(rand.NewPCG(6, 1))
	for _, h := range p.Hosts {
		if random.IntN(5) == 0 {
			c.fails[h.Name] = random.IntN(neverBack + 1)
		}
		if random.IntN(10) == 0 {
			c.cluster.late[h.Name] = inventory.NotReady
		}
	}
}

// performed performs a plan, and reads only the record of that.
func (c *crowd) performed(t *testing.T, p *plan.Plan) engine.Result {
	t.Helper()
	record := recordOf(t, c.engine, p, func(bool) bool { return false })
	write := c.engine.Emit
	c.engine.Emit = func(ev engine.Event) { write(ev); c.event(ev) }
	r := performed(t, c.engine, p)
	c.engine.Emit = c.event
	record.end(t, r)
	record.check(t, c.events, false)
	return r
}

// event lets Nodes go and come as their hosts are worked on, and checks the memory.
func (c *crowd) event(ev engine.Event) {
	if c.events++; c.events%100 == 0 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		c.heap = max(c.heap, m.HeapAlloc)
	}
	c.cluster.mu.Lock()
	defer c.cluster.mu.Unlock()
	at, fails := c.fails[ev.Host]
	switch {
	case ev.Type == engine.Done && fails && at == neverBack && ev.Action.Step == "touch2":
		c.cluster.late[ev.Host] = inventory.NotReady
	case ev.Type == engine.Waiting && (!fails || at != neverBack), ev.Type == engine.Failed:
		delete(c.cluster.late, ev.Host)
	}
}
