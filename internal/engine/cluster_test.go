package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/sandbox"
	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/plan"
)

// cluster is one in memory, for what the simulated one is too whole for: it breaks
// at will, and its Nodes become Ready when a test wants it.
type cluster struct {
	engine.Cluster // the simulated one, for its uid

	mu      sync.Mutex
	nodes   map[string]inventory.Node
	known   map[string]inventory.Identity
	pods    []inventory.Pod
	objects []inventory.Object
	lists   int                            // of Nodes
	calls   []string                       // that change something
	before  func(c *cluster, call int)     // the list of Nodes, or nil
	refuse  func(what, name string) error  // a change, or nil
	late    map[string]inventory.Readiness // what Nodes say of themselves; Ready where nothing stands
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
	c.lists++
	if c.before != nil {
		c.before(c, c.lists)
	}
	if c.refuse != nil {
		if err := c.refuse("list", ""); err != nil {
			return nil, err
		}
	}
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
	list, err := c.Nodes(ctx)
	nodes := inventory.Present(list)
	if err != nil {
		nodes = inventory.Unread[[]inventory.Node](err.Error())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	all := []inventory.Identity{}
	for _, i := range c.known {
		all = append(all, i)
	}
	return nodes, inventory.Cluster{Pods: inventory.Present(slices.Clone(c.pods)), Identities: inventory.Present(all),
		Join:    inventory.Present(inventory.Join{Server: "https://api.acme.dev:6443", CA: "pem"}),
		Objects: inventory.Present(slices.Clone(c.objects)), Machines: inventory.Absent[[]inventory.Machine]()}
}

// do notes a change, and makes it unless it is refused.
func (c *cluster) do(what, name string, change func()) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, what+" "+name)
	if c.refuse != nil {
		if err := c.refuse(what, name); err != nil {
			return err
		}
	}
	change()
	return nil
}

func (c *cluster) Identify(_ context.Context, host string) (inventory.Identity, error) {
	i := inventory.Identity{Host: host, ServiceAccount: "sa", Secret: "s", Issued: true, Bound: true}
	return i, c.do("identify", host, func() { c.known[host] = i })
}

func (c *cluster) Revoke(_ context.Context, host string) error {
	return c.do("revoke", host, func() { delete(c.known, host) })
}

func (c *cluster) Token(_ context.Context, host string) (secret.Value, error) {
	if err := c.do("token", host, func() {}); err != nil {
		return secret.Value{}, err
	}
	return secret.New("token-of-" + host)
}

func (c *cluster) SetProviderID(_ context.Context, n inventory.Node, id string) error {
	return c.do("provider-id", n.Name, func() { n.ProviderID = id; c.nodes[n.Name] = n })
}

func (c *cluster) DeleteNode(_ context.Context, n inventory.Node) error {
	return c.do("delete", n.Name, func() { delete(c.nodes, n.Name) })
}

func (c *cluster) ReleasePod(_ context.Context, p inventory.Pod) error {
	return c.do("release", p.Name, func() {
		c.pods = slices.DeleteFunc(c.pods, func(have inventory.Pod) bool { return have.Name == p.Name })
	})
}

func (c *cluster) Keep(_ context.Context, o inventory.Object) error {
	return c.do("keep", o.Name, func() {
		for i := range c.objects {
			if c.objects[i].Name == o.Name {
				c.objects[i].State = inventory.ObjectKept
			}
		}
	})
}

// joining wants some Macs that become Nodes. Their steps are those of the host
// core: what a kubelet does, the test does.
func joining(replicas int) *fleet.Config {
	c := config("production", replicas)
	c.Kubernetes.LabelPrefix = "acme.dev"
	c.Fleets[0].Groups[0].Spec.TartKubelet = &fleet.TartKubelet{}
	return c
}

// withoutKubelets drops the steps that the cluster in memory stands in for.
func withoutKubelets(all plan.StepsFor) plan.StepsFor {
	return func(h fleet.Host) []plan.Step {
		h.Spec.TartKubelet = nil
		return all(h)
	}
}

// runJoining returns an engine for such a fleet, and its cluster.
func runJoining(t *testing.T, w *sandbox.World, replicas int) (*engine.Engine, *cluster) {
	t.Helper()
	e := run(t, w, joining(replicas))
	c := newCluster()
	c.Cluster, e.Cluster = e.Cluster, c
	e.Steps = withoutKubelets(e.Steps)
	e.Ready = engine.Ready{Within: time.Minute, Every: time.Millisecond}
	return e, c
}

// TestGate: an apply ends when the Nodes of the hosts that it worked on are Ready:
// one list for all of them, however many there are, and again when it fails.
func TestGate(t *testing.T) {
	t.Parallel()
	w, _ := world(t, 5)
	e, c := runJoining(t, w, 3)
	p := planned(t, e)
	var events []string
	waiting, looks := 0, 0 // looks since all three hosts wait
	e.Emit = func(ev engine.Event) {
		if ev.Type == engine.Waiting || ev.Type == engine.NodeReady {
			events = append(events, fmt.Sprint(ev.Type, " ", slices.IndexFunc(p.Hosts, func(h plan.Host) bool { return h.Name == ev.Host })))
		}
		if ev.Type == engine.Waiting {
			waiting++
		}
	}
	c.before = func(c *cluster, _ int) {
		if waiting < 3 {
			return
		}
		looks++
		switch looks {
		case 1:
			c.refuse = func(string, string) error { return errors.New("the api server is away") }
		case 2:
			c.refuse = nil
			c.mu.Unlock()
			c.register(p)
			c.mu.Lock()
			c.late[p.Hosts[0].Name], c.late[p.Hosts[1].Name] = inventory.ReadyUnknown, inventory.NotReady
		case 3:
			delete(c.late, p.Hosts[1].Name)
		case 4:
			clear(c.late)
		}
	}
	r := performed(t, e, p)
	if !r.Converged() {
		t.Fatalf("result %+v", r)
	}
	slices.Sort(events[:3]) // they end their work in any order
	if want := []string{"waiting 0", "waiting 1", "waiting 2", "ready 2", "ready 1", "ready 0"}; !slices.Equal(events, want) {
		t.Errorf("events %q", events)
	}
	if looks != 5 { // four looks of the gate, and the proof
		t.Errorf("the Nodes were listed %d times", looks)
	}
	for _, h := range r.After.Hosts {
		if n, _ := h.Node.Get(); n.Ready != inventory.Ready {
			t.Errorf("the final plan says of %s: %+v", h.Name, n)
		}
	}
	for _, h := range p.Hosts {
		if !slices.Contains(c.calls, "identify "+h.Name) {
			t.Errorf("%s was not made known: %q", h.Name, c.calls)
		}
	}
}

// TestGateTooLate: a host that is not Ready in time is a failure that says what the
// cluster and the host know, and keeps no other.
func TestGateTooLate(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		disturb func(c *cluster, w *sandbox.World, h plan.Host) error
		says    []string
	}{
		"no Node": {func(c *cluster, _ *sandbox.World, h plan.Host) error { delete(c.nodes, h.Name); return nil }, []string{"no Node of that name", "all is as it should be"}},
		"silent Node": {func(c *cluster, _ *sandbox.World, h plan.Host) error {
			c.late[h.Name] = inventory.ReadyUnknown
			return nil
		}, []string{"no heartbeat since"}},
		"another's Node": {func(c *cluster, _ *sandbox.World, h plan.Host) error {
			n := c.nodes[h.Name]
			n.ProviderID = "scw-applesilicon://fr-par-1/another"
			c.nodes[h.Name] = n
			return nil
		}, []string{"another server"}},
		"no host": {func(c *cluster, w *sandbox.World, h plan.Host) error {
			delete(c.nodes, h.Name)
			return w.Inject(h.Name, "unreachable")
		}, []string{"no Node", "cannot be asked: unreachable"}},
		"drifted host": {func(c *cluster, w *sandbox.World, h plan.Host) error {
			delete(c.nodes, h.Name)
			return w.Inject(h.Name, "sleep-enabled")
		}, []string{"on the host: power: sleep-enabled"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, _ := world(t, 4)
			e, c := runJoining(t, w, 2)
			e.Ready.Within = 20 * time.Millisecond
			p := planned(t, e)
			c.register(p)
			delete(c.nodes, p.Hosts[0].Name)
			e.Emit = func(ev engine.Event) {
				if ev.Type != engine.Waiting {
					return
				}
				c.register(p)
				c.mu.Lock()
				defer c.mu.Unlock()
				if err := tc.disturb(c, w, p.Hosts[0]); err != nil {
					t.Error(err)
				}
			}
			r := performed(t, e, p)
			if r.Converged() || len(r.Failures) != 1 || r.Failures[0].Action.Kind != plan.AwaitNode || r.Failures[0].Action.Host != p.Hosts[0].Name {
				t.Fatalf("failures %+v", r.Failures)
			}
			var trouble *engine.TroubleError
			if err := r.Failures[0].Err; !errors.As(err, &trouble) || trouble.Code.String() != "node-not-ready" {
				t.Fatal(err)
			}
			for _, part := range tc.says {
				if !strings.Contains(trouble.Text, part) {
					t.Errorf("it says %q, without %q", trouble.Text, part)
				}
			}
		})
	}
}

// TestGateStopped: who asks to stop is not kept waiting, and the run has not
// converged.
func TestGateStopped(t *testing.T) {
	t.Parallel()
	w, _ := world(t, 4)
	e, _ := runJoining(t, w, 2)
	stop, cancel := context.WithCancel(t.Context())
	defer cancel()
	e.Stop = stop
	e.Emit = func(ev engine.Event) {
		if ev.Type == engine.Waiting {
			cancel()
		}
	}
	if r := apply(t, e); r.NotWaited != 2 || !r.Interrupted || r.Converged() || len(r.Failures) > 0 {
		t.Errorf("result %+v", r)
	}
}

// TestGateWaitsForNobodyElse: a host on which nothing was done, or that failed, is
// not waited for.
func TestGateWaitsForNobodyElse(t *testing.T) {
	t.Parallel()
	w, _ := world(t, 4)
	e, c := runJoining(t, w, 2)
	c.before = func(*cluster, int) {}
	p := planned(t, e)
	c.register(p)
	converges(t, e)
	delete(c.nodes, p.Hosts[0].Name)
	if err := w.Inject(p.Hosts[1].Name, "sleep-enabled"); err != nil {
		t.Fatal(err)
	}
	if r := apply(t, e); len(r.Failures) > 0 || r.Done != 1 {
		t.Errorf("result %+v", r)
	}
	c.refuse = func(what, _ string) error {
		if what == "identify" {
			return errors.New("forbidden")
		}
		return nil
	}
	delete(c.known, p.Hosts[0].Name)
	r := apply(t, e)
	if len(r.Failures) != 1 || r.Failures[0].Action.Kind != plan.IdentifyHost {
		t.Errorf("failures %+v", r.Failures)
	}
}

// TestInCluster performs what a plan decided on Nodes, Pods and objects, and
// nothing is left.
func TestInCluster(t *testing.T) {
	t.Parallel()
	w, _ := world(t, 5)
	e, c := runJoining(t, w, 3)
	p := planned(t, e)
	c.register(p)
	converges(t, e)
	empty, other, dead := p.Hosts[0].Name, p.Hosts[1].Name, p.Hosts[2].Name
	c.calls = nil
	c.objects = []inventory.Object{{Kind: "Secret", Name: "acme-kubeconfig", State: inventory.ObjectMissing}}
	n := c.nodes[empty]
	n.ProviderID = ""
	c.nodes[empty] = n
	n = c.nodes[other]
	n.ProviderID = "scw-applesilicon://fr-par-1/another"
	c.nodes[other] = n
	for i := range 20 {
		c.pods = append(c.pods, inventory.Pod{Namespace: "ci", Name: fmt.Sprintf("p-%02d", i), Node: dead, Phase: "Failed",
			Finalizers: []string{inventory.VMFinalizer}, Overdue: i > 0})
	}
	if err := w.Inject(dead, "unreachable"); err != nil {
		t.Fatal(err)
	}
	p = planned(t, e)
	c.before = func(c *cluster, _ int) { // the other's kubelet registers anew
		if _, there := c.nodes[other]; !there {
			h, _ := p.HostByServer(p.Hosts[1].Server.ID)
			c.nodes[other] = inventory.Node{Name: other, ProviderID: h.Server.ProviderID(), Ready: inventory.Ready}
		}
	}
	r := performed(t, e, p)
	if len(r.Failures) > 0 || r.After.Summarise().Changes() > 0 {
		t.Fatalf("failures %+v, left %+v", r.Failures, r.After.Actions)
	}
	if len(c.pods) != 1 || c.pods[0].Name != "p-00" {
		t.Errorf("Pods %+v", c.pods)
	}
	slices.Sort(c.calls)
	want := []string{"delete " + other, "keep acme-kubeconfig", "provider-id " + empty}
	for i := 1; i < 20; i++ {
		want = append(want, fmt.Sprintf("release p-%02d", i))
	}
	slices.Sort(want)
	if !slices.Equal(c.calls, want) {
		t.Errorf("calls %q", c.calls)
	}
}

// TestInClusterStruck breaks each change of a cluster in turn: the host or object
// fails, the others go on, and the next apply ends it.
func TestInClusterStruck(t *testing.T) {
	t.Parallel()
	for n := range 6 {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			w, _ := world(t, 4)
			e, c := runJoining(t, w, 2)
			c.objects = []inventory.Object{{Kind: "Secret", Name: "acme-kubeconfig", State: inventory.ObjectMissing}}
			p := planned(t, e)
			c.register(p)
			node := c.nodes[p.Hosts[0].Name]
			node.ProviderID = ""
			c.nodes[node.Name] = node
			c.pods = []inventory.Pod{{Name: "p-0", Node: node.Name, Phase: "Failed", Finalizers: []string{inventory.VMFinalizer}, Overdue: true}}
			left := n
			c.refuse = func(what, _ string) error {
				if what == "list" {
					return nil
				}
				if left--; left == -1 {
					return errors.New("the line broke")
				}
				return nil
			}
			performed(t, e, planned(t, e))
			if left >= 0 && n < 3 {
				t.Error("no strike fell")
			}
			for range 2 {
				if apply(t, e).Converged() {
					return
				}
			}
			t.Errorf("%q", c.calls)
		})
	}
}
