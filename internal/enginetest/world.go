// Package enginetest is a world in memory for tests of the engine: hosts whose state is a map, a
// cluster with Nodes and Pods, servers, pins, and toy steps. A fault can be injected into each call.
// Only timers delay it, so in a bubble of testing/synctest its clock is virtual and tests do not wait.
package enginetest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/plan"
)

// Latency is how long each call takes. Silence is how long a call without an answer takes.
const (
	Latency = 10 * time.Millisecond
	Silence = 20 * time.Second
)

// Place is where a fault is injected.
type Place int

const (
	Nowhere   Place = iota
	OnHost          // a call of engine.Host or engine.Hosts
	InCloud         // of engine.Servers
	InCluster       // of engine.Cluster
	InService       // of engine.Service
)

// Call is a request of the engine.
type Call struct {
	Place Place
	What  string // the method, or the type of a task
	Name  string // of the host, Node or Pod; may be empty
}

// Fault is what happens to a call. The zero Fault is none.
type Fault struct {
	Err     error  // returned instead of an answer
	Applied bool   // the call takes effect, and only its answer is lost
	Half    bool   // a change of a host stops after its first part
	Hang    bool   // the answer comes after the timeout
	Garbled bool   // the host's answer cannot be parsed
	Before  func() // called before the call; it may take the world's lock
	After   func() // called when the call took effect, before its answer
}

// World is everything that the engine talks to.
type World struct {
	Config   *fleet.Config
	Things   func(fleet.Host) []Thing     // the steps of a host
	More     func(fleet.Host) []plan.Step // further steps, after those; nil: none
	Machines []*Machine
	Deleted  []string // ids of servers that the provider deleted
	// OnCall is called before each call, one at a time; nil: there are no faults.
	OnCall func(Call) Fault
	// Held are Pods that cannot be evicted, by name.
	Held map[string]bool
	// Objects are what runs keep in the cluster.
	Objects []inventory.Object
	// Catalogue is what the provider offers.
	Catalogue inventory.Catalogue
	// Erased are the ids of servers that the world's configuration erased.
	Erased []string
	// Copies are the pins that this machine remembers.
	Copies []plan.Pin
	// Keys are the SSH keys of the provider's project.
	Keys []inventory.SSHKey
	// Scopes are those of the CI services, and Entries their agents.
	Scopes  []string
	Entries []Entry

	asking     sync.Mutex  // OnCall
	mu         *sync.Mutex // of the machines, which worlds may share
	dead       error       // if set, the process was killed: its calls have no effect and return this
	nodes      map[string]*node
	identities map[string]int // how often a host's identity was created
	pods       []inventory.Pod
	pins       []plan.Pin
	open       int // connections
	most       int // the most that were open at once
	diffs      map[string]int
	wrong      []string

	registrations, tokens int
}

// New returns a world with servers in the pool, and a configuration with some fleets of a number of
// replicas each.
func New(servers, replicas int, fleets ...fleet.Rollout) *World {
	c := &fleet.Config{Owner: fleet.Owner{Name: "acme", Environment: "production"}, ProjectID: "p", ClusterUID: "uid-1",
		Scaleway:   fleet.Scaleway{Zones: []string{"fr-par-1"}, PoolPrefix: "acme-pool-"},
		Kubernetes: &fleet.Kubernetes{Namespace: "macfleet", LabelPrefix: "acme.dev"}, SSH: fleet.SSH{User: "m1"}}
	for i, r := range fleets {
		spec := fleet.Spec{TartKubelet: &fleet.TartKubelet{}}.WithBuiltIn().WithDefaults()
		c.Fleets = append(c.Fleets, fleet.Fleet{Name: fmt.Sprint("f", i), OS: "Tahoe", Rollout: r,
			Groups: []fleet.Group{{Name: "m2", Type: "M2-L", Replicas: replicas, Spec: spec}}})
	}
	offer := inventory.System{ID: "os-1", Name: "macos-tahoe-26.3", Family: "Tahoe", Version: "26.3", Zone: "fr-par-1", Types: []string{"M2-L"}}
	w := &World{Config: c, mu: new(sync.Mutex), Keys: []inventory.SSHKey{{ID: "key-0", Name: "fleet", Public: FleetKey.Public, Project: "p"}},
		Catalogue: inventory.Catalogue{Systems: []inventory.System{offer}}, nodes: make(map[string]*node), identities: make(map[string]int), diffs: make(map[string]int), Held: make(map[string]bool)}
	for i := range servers {
		id := fmt.Sprintf("%05x-0000", i)
		w.Machines = append(w.Machines, &Machine{Server: inventory.Server{ID: id, Name: fmt.Sprintf("acme-pool-%d", i), Type: "M2-L", Zone: "fr-par-1",
			Address: fmt.Sprintf("192.0.2.%d", i), OSFamily: "Tahoe", Status: "ready", Delivered: true},
			State: make(map[string]string), pending: make(map[plan.StepID]bool), artifacts: make(map[string]bool), key: keyOf(id), Serial: "C" + id})
	}
	return w
}

// With returns a world that has the same machines and provider, in which a configuration of another name has its own cluster and
// its own pins.
func (w *World) With(name string) *World {
	c := *w.Config
	c.Owner.Name, c.ClusterUID = name, "uid-of-"+name
	return &World{Config: &c, Things: w.Things, Machines: w.Machines, Keys: w.Keys, Catalogue: w.Catalogue, mu: w.mu,
		nodes: make(map[string]*node), identities: make(map[string]int), diffs: make(map[string]int), Held: make(map[string]bool)}
}

// Engine returns an engine in this world, as a new process.
func (w *World) Engine() *engine.Engine {
	return &engine.Engine{AsksRight: true, Peers: w.peers(), Config: w.Config, Steps: w.steps, Servers: cloud{w}, Cluster: cluster{w}, Hosts: lines{w}, Pins: pins{w},
		FleetKeys: []plan.FleetKey{FleetKey}, Passwords: passwords{}, Artifacts: shelf{}, Input: func(_ engine.InputFor, v secret.Value) (secret.Value, error) { return v, nil },
		Parallelism: 8, Stop: context.Background(), Now: time.Now, Emit: func(engine.Event) {}}
}

// Die kills the process in the world: its calls return the error and have no effect. Nil starts the
// next process.
func (w *World) Die(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dead = err
}

// Change changes the world, as someone else does.
func (w *World) Change(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

// Diffs returns how often each host's steps were compared since the last call, by host.
func (w *World) Diffs() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.diffs
	w.diffs = make(map[string]int)
	return out
}

// Connections returns how many connections are open, and how many were open at most.
func (w *World) Connections() (open, most int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.open, w.most
}

// Wrong returns what happened that must never happen.
func (w *World) Wrong() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.wrong)
}

// Member returns the machine that has a host's name.
func (w *World) Member(name string) *Machine {
	i := slices.IndexFunc(w.Machines, func(m *Machine) bool { return m.Server.Name == name || m.Server.ID == name })
	return w.Machines[i]
}

// RunPod runs a Pod of a controller on a host's Node.
func (w *World) RunPod(host, name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pods = append(w.pods, inventory.Pod{Namespace: "ci", Name: name, UID: "pod-" + name, Node: host, Phase: "Running", Controller: "ReplicaSet"})
}

// AddPod adds a Pod to a Node, in any state.
func (w *World) AddPod(p inventory.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pods = append(w.pods, p)
}

// EndPods terminates the Pods of a host's Node.
func (w *World) EndPods(host string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pods = slices.DeleteFunc(w.pods, func(p inventory.Pod) bool { return p.Node == host })
}

// Pods returns the names of the Pods on a host's Node.
func (w *World) Pods(host string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for _, p := range w.podsOn(host) {
		out = append(out, p.Name)
	}
	return out
}

// Lasting lists what runs leave behind, without times and run IDs.
func (w *World) Lasting() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for _, m := range w.Machines {
		out = append(out, m.lasting()...)
	}
	for _, n := range w.list() {
		out = append(out, fmt.Sprintf("node %s: %s cordoned %t by %q hold %v", n.Name, n.ProviderID, n.Cordoned, n.CordonRun, n.Hold))
	}
	for name := range w.identities {
		out = append(out, "identity "+name)
	}
	for _, e := range w.Entries {
		out = append(out, fmt.Sprintf("entry %s at %s labels %q", e.Name, e.Scope, e.Labels))
	}
	for _, p := range w.pods {
		out = append(out, "pod "+p.Name+" on "+p.Node)
	}
	for _, p := range w.pins {
		key := p.Key
		if m := w.Member(p.ServerID); m.key == key {
			key = "its key"
		}
		out = append(out, fmt.Sprint(kind(p), " ", p.Name, " ", key, " ", p.Stage, " ", p.Pooled))
	}
	slices.Sort(out)
	return out
}

// kind says whether a pin is one, or the note of a release.
func kind(p plan.Pin) string {
	if p.Stage == plan.Released {
		return "note of"
	}
	return "pin"
}

// fault returns the fault of a call.
func (w *World) fault(c Call) Fault {
	if w.OnCall == nil {
		return Fault{}
	}
	w.asking.Lock()
	f := w.OnCall(c)
	w.asking.Unlock()
	if f.Before != nil {
		f.Before()
	}
	return f
}

// call applies the latency, the fault and the effect of a provider's call.
func (w *World) call(ctx context.Context, c Call, effect func() error) error {
	f := w.fault(c)
	wait := Latency
	if f.Hang {
		wait = Silence
	}
	if err := pass(ctx, wait); err != nil {
		return err
	}
	if f.After != nil {
		defer f.After()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dead != nil {
		return w.dead
	}
	if f.Err != nil && !f.Applied {
		return f.Err
	}
	if err := effect(); err != nil {
		return err
	}
	return f.Err
}

// pass waits, unless ctx ends.
func pass(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (w *World) steps(h fleet.Host) []plan.Step {
	var out []plan.Step
	for _, t := range w.Things(h) {
		out = append(out, step{t, w})
	}
	if w.More != nil {
		out = append(out, w.More(h)...)
	}
	return out
}

// peers are the services that the steps know: all are the world's.
func (w *World) peers() map[inventory.ServiceName]engine.Service {
	out := make(map[inventory.ServiceName]engine.Service)
	for _, p := range plan.Peers(w.steps(fleet.Host{})) {
		out[p.Service().ID] = services{w, new(sync.Map)}
	}
	return out
}

// cloud is the machines' provider.
type cloud struct{ world *World }

func (c cloud) List(ctx context.Context) (out []inventory.Server, err error) {
	return out, c.world.call(ctx, Call{InCloud, "list", ""}, func() error {
		for _, m := range c.world.Machines {
			if !m.Unlisted && !slices.Contains(c.world.Deleted, m.Server.ID) {
				out = append(out, m.server())
			}
			m.Unlisted = false
		}
		return nil
	})
}

func (c cloud) Get(ctx context.Context, _, id string) (out inventory.Server, err error) {
	return out, c.world.call(ctx, Call{InCloud, "get", id}, func() error {
		if slices.Contains(c.world.Deleted, id) {
			return &inventory.ProviderError{Class: inventory.NotFound}
		}
		out = c.world.Member(id).server()
		return nil
	})
}

// Elsewhere returns that the account has nothing else.
func (c cloud) Elsewhere(context.Context) inventory.Account {
	return inventory.Account{Project: "only"}
}

// Catalogue returns what the provider offers.
func (c cloud) Catalogue(ctx context.Context) (out inventory.Catalogue, err error) {
	return out, c.world.call(ctx, Call{InCloud, "catalogue", ""}, func() error {
		out = c.world.Catalogue
		return nil
	})
}

// FleetKey is the key that macfleet logs in with.
var FleetKey = plan.FleetKey{Public: "ssh-ed25519 AAAAfleet", Fingerprint: "SHA256:fleet"}

// Keys returns the SSH keys of the project: the fleet's own, unless a test takes it away.
func (c cloud) Keys(ctx context.Context) (out []inventory.SSHKey, err error) {
	return out, c.world.call(ctx, Call{InCloud, "keys", ""}, func() error {
		out = slices.Clone(c.world.Keys)
		return nil
	})
}

// RegisterKey adds a key to the project.
func (c cloud) RegisterKey(ctx context.Context, name, public string) (out inventory.SSHKey, err error) {
	return out, c.world.call(ctx, Call{InCloud, "register key", ""}, func() error {
		out = inventory.SSHKey{ID: fmt.Sprint("key-", len(c.world.Keys)), Name: name, Public: public, Project: "p"}
		c.world.Keys = append(c.world.Keys, out)
		return nil
	})
}

// Gone reports whether a server is one of the world's Deleted.
func (c cloud) Gone(ctx context.Context, _, id string) (gone bool, err error) {
	return gone, c.world.call(ctx, Call{InCloud, "gone", id}, func() error {
		gone = slices.Contains(c.world.Deleted, id)
		return nil
	})
}

// CheckRename changes nothing.
func (c cloud) CheckRename(ctx context.Context, _, id string) error {
	return c.world.call(ctx, Call{InCloud, "check rename", id}, func() error { return nil })
}

// Reboot restarts a machine, which cures one that is silent or away. Its server is ready at once, and the machine answers
// after a minute.
func (c cloud) Reboot(ctx context.Context, _, id string) error {
	return c.world.call(ctx, Call{InCloud, "reboot", id}, func() error {
		m := c.world.Member(id)
		c.world.interrupts(m, "rebooted", false)
		m.Reboot()
		m.Away, m.Silent = false, ""
		return nil
	})
}

// Rename changes a server's name.
func (c cloud) Rename(ctx context.Context, _, id, from, to string) error {
	return c.world.call(ctx, Call{InCloud, "rename", id}, func() error {
		m := c.world.Member(id)
		if m.Server.Name != from && m.Server.Name != to {
			return fmt.Errorf("the server is called %s", m.Server.Name)
		}
		m.Server.Name = to
		return nil
	})
}

// Reinstall erases a machine. Erasing one on which work runs, that is free, or that is another's, is wrong.
func (c cloud) Reinstall(ctx context.Context, _, id, _ string) error {
	return c.world.call(ctx, Call{InCloud, "reinstall", id}, func() error {
		m := c.world.Member(id)
		switch working := c.world.podsOn(m.NodeName()); {
		case !slices.Contains([]string{"ready", "error"}, m.server().Status):
			return fmt.Errorf("the server is %s", m.server().Status)
		case len(working) > 0:
			c.world.wrong = append(c.world.wrong, fmt.Sprintf("%s was erased under %s", m.Server.Name, working[0].Name))
		case strings.HasPrefix(m.Server.Name, c.world.Config.Scaleway.PoolPrefix):
			c.world.wrong = append(c.world.wrong, m.Server.Name+" was erased in the pool")
		}
		c.world.interrupts(m, "erased", false)
		for owner := range m.Owners() {
			if us := c.world.Config.Owner.String(); owner != us {
				c.world.wrong = append(c.world.wrong, fmt.Sprintf("%s of %s was erased by %s", m.Server.Name, owner, us))
			}
		}
		m.erase()
		c.world.Erased = append(c.world.Erased, id)
		return nil
	})
}

// pins are the pinned host keys.
type pins struct{ world *World }

// All returns all pins.
func (p pins) All() ([]plan.Pin, error) {
	p.world.mu.Lock()
	defer p.world.mu.Unlock()
	return slices.Clone(p.world.pins), nil
}

// Recall returns this machine's copies, without those that a stored pin ends.
func (p pins) Recall() engine.Recollection {
	p.world.mu.Lock()
	defer p.world.mu.Unlock()
	return engine.Recollection{Remembered: slices.DeleteFunc(slices.Clone(p.world.Copies), func(c plan.Pin) bool {
		return slices.ContainsFunc(p.world.pins, func(stored plan.Pin) bool { return stored.Ends(c) })
	})}
}

// Pin pins a machine's key under a name, as an earlier run did.
func (w *World) Pin(m *Machine, name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pins = append(w.pins, plan.Pin{ServerID: m.Server.ID, Name: name, Key: m.key})
}

// Unpin removes all pins.
func (w *World) Unpin() { w.Change(func() { w.pins = nil }) }

// IsPinned reports whether a machine's key is pinned.
func (w *World) IsPinned(m *Machine) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.pins, func(p plan.Pin) bool { return p.ServerID == m.Server.ID && p.Key == m.key })
}

// Reinstall gives a machine a new host key.
func (w *World) Reinstall(m *Machine) { w.Change(func() { m.key = keyOf(m.key + "-again") }) }

// Update replaces the pins.
func (p pins) Update(change func([]plan.Pin) []plan.Pin) error {
	p.world.mu.Lock()
	defer p.world.mu.Unlock()
	if p.world.dead != nil {
		return p.world.dead
	}
	p.world.pins = change(slices.Clone(p.world.pins))
	slices.SortFunc(p.world.pins, func(a, b plan.Pin) int { return strings.Compare(a.ServerID, b.ServerID) })
	return nil
}

// passwords has the password of every host.
type passwords struct{}

// Find returns a host's password.
func (passwords) Find(ctx context.Context, s inventory.Server, _ string) ([]engine.Password, error) {
	v, err := secret.New("password of " + s.ID)
	return []engine.Password{{Value: v, Source: "the world"}}, err
}
