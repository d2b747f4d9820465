// Package enginetest is a world in memory for tests of the engine: hosts whose state is
// a map, a cluster with Nodes and Pods, servers, pins, and toy steps. A fault can befall
// each call. It waits by timers alone, so in a bubble of testing/synctest its clock is
// virtual and nothing really waits.
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

// Latency is how long each call takes, and Silence how long a host or a provider may
// say nothing until whoever waits gives up.
const (
	Latency = 10 * time.Millisecond
	Silence = 20 * time.Second
)

// Place is where a fault falls.
type Place int

// The places.
const (
	Nowhere   Place = iota
	OnHost          // a call of engine.Host or engine.Hosts
	InCloud         // of engine.Servers
	InCluster       // of engine.Cluster
)

// Call is something that the engine asks for.
type Call struct {
	Place Place
	What  string // the method, or the kind of a task
	Name  string // of the host, Node or Pod; may be empty
}

// Fault is what befalls a call. The zero Fault is none.
type Fault struct {
	Err     error  // is returned in place of an answer
	Heard   bool   // the call has its effect all the same, and only the answer is lost
	Half    bool   // a change of a host does only its first part
	Hang    bool   // the answer comes when nobody waits any more
	Garbled bool   // what a host answers cannot be understood
	Happens func() // in the world, before all else; it may take the world's lock
	Behind  func() // so here, when the call has had its effect and nobody has heard the answer
}

// World is everything that the engine talks to.
type World struct {
	Config   *fleet.Config
	Things   func(fleet.Host) []Thing // the steps of a host
	Machines []*Machine
	// Befalls is asked before each call, one at a time; nil: nothing happens.
	Befalls func(Call) Fault
	// Held are Pods that no eviction takes, by name.
	Held map[string]bool
	// Objects are what a run keeps in the cluster.
	Objects []inventory.Object

	asking     sync.Mutex // Befalls
	mu         sync.Mutex
	dead       error // the process has died: whatever it still does has no effect
	nodes      map[string]*node
	identities map[string]int // how often a host's identity was made
	pods       []inventory.Pod
	pins       []plan.Pin
	open       int // connections
	most       int // that were open at once
	diffs      map[string]int
	wrong      []string
}

// New returns a world of some servers in the pool, and a configuration that wants so
// many of them in each of some fleets.
func New(servers, replicas int, fleets ...fleet.Rollout) *World {
	c := &fleet.Config{Owner: fleet.Owner{Name: "acme", Environment: "production"}, ProjectID: "p", ClusterUID: "uid-1",
		Scaleway:   fleet.Scaleway{Zones: []string{"fr-par-1"}, PoolPrefix: "acme-pool-"},
		Kubernetes: &fleet.Kubernetes{Namespace: "macfleet", LabelPrefix: "acme.dev"}, SSH: fleet.SSH{User: "m1"}}
	for i, r := range fleets {
		spec := fleet.Spec{TartKubelet: &fleet.TartKubelet{}}.WithBuiltIn().WithDefaults()
		c.Fleets = append(c.Fleets, fleet.Fleet{Name: fmt.Sprint("f", i), OS: "Tahoe", Rollout: r,
			Groups: []fleet.Group{{Name: "m2", Type: "M2-L", Replicas: replicas, Spec: spec}}})
	}
	w := &World{Config: c, nodes: make(map[string]*node), identities: make(map[string]int), diffs: make(map[string]int), Held: make(map[string]bool)}
	for i := range servers {
		id := fmt.Sprintf("%05x-0000", i)
		w.Machines = append(w.Machines, &Machine{Server: inventory.Server{ID: id, Name: fmt.Sprintf("acme-pool-%d", i), Type: "M2-L", Zone: "fr-par-1",
			Address: fmt.Sprintf("192.0.2.%d", i), OSFamily: "Tahoe", Status: "ready", Delivered: true},
			State: make(map[string]string), pending: make(map[plan.StepID]bool), artifacts: make(map[string]bool), key: "ssh-ed25519 " + id, serial: "C" + id})
	}
	return w
}

// Engine returns an engine that works in this world, as a process of its own would.
func (w *World) Engine() *engine.Engine {
	return &engine.Engine{Config: w.Config, Steps: w.steps, Servers: cloud{w}, Cluster: cluster{w}, Hosts: lines{w}, Pins: pins{w},
		Passwords: passwords{}, Artifacts: shelf{}, Input: func(_ engine.InputFor, v secret.Value) (secret.Value, error) { return v, nil },
		Parallelism: 8, Stop: context.Background(), Now: time.Now, Emit: func(engine.Event) {}}
}

// Die ends the process that works in the world: from now on, whatever it does ends with
// the error and has no effect. Nil lets the next process live.
func (w *World) Die(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dead = err
}

// Change changes the world, as somebody else does.
func (w *World) Change(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

// Diffs returns how often each host's steps were asked since the last time, by host.
func (w *World) Diffs() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.diffs
	w.diffs = make(map[string]int)
	return out
}

// Connections returns how many are open, and how many were at the most.
func (w *World) Connections() (open, most int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.open, w.most
}

// Wrong returns what was done that must never be done.
func (w *World) Wrong() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.wrong)
}

// Member returns the machine that bears a host's name.
func (w *World) Member(name string) *Machine {
	i := slices.IndexFunc(w.Machines, func(m *Machine) bool { return m.Server.Name == name || m.Server.ID == name })
	return w.Machines[i]
}

// RunPod lets a Pod of a controller work on a host's Node.
func (w *World) RunPod(host, name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pods = append(w.pods, inventory.Pod{Namespace: "ci", Name: name, UID: "pod-" + name, Node: host, Phase: "Running", Controller: "ReplicaSet"})
}

// AddPod puts a Pod onto a Node, whatever its state.
func (w *World) AddPod(p inventory.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pods = append(w.pods, p)
}

// EndPods ends the Pods of a host's Node.
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

// Lasting lists what remains of runs: not when something was done, and not by whom.
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
	for _, p := range w.pods {
		out = append(out, "pod "+p.Name+" on "+p.Node)
	}
	for _, p := range w.pins {
		out = append(out, "pin "+p.Name+" "+p.Key)
	}
	slices.Sort(out)
	return out
}

// befalls asks what happens to a call.
func (w *World) befalls(c Call) Fault {
	if w.Befalls == nil {
		return Fault{}
	}
	w.asking.Lock()
	f := w.Befalls(c)
	w.asking.Unlock()
	if f.Happens != nil {
		f.Happens()
	}
	return f
}

// call lets a call of a provider take its time and its effect.
func (w *World) call(ctx context.Context, c Call, effect func() error) error {
	f := w.befalls(c)
	wait := Latency
	if f.Hang {
		wait = Silence
	}
	if err := pass(ctx, wait); err != nil {
		return err
	}
	if f.Behind != nil {
		defer f.Behind()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dead != nil {
		return w.dead
	}
	if f.Err != nil && !f.Heard {
		return f.Err
	}
	if err := effect(); err != nil {
		return err
	}
	return f.Err
}

// pass lets time go by, unless ctx ends.
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

// steps returns a host's steps.
func (w *World) steps(h fleet.Host) []plan.Step {
	var out []plan.Step
	for _, t := range w.Things(h) {
		out = append(out, step{t, w})
	}
	return out
}

// cloud is the provider of the machines.
type cloud struct{ world *World }

// List returns all servers.
func (c cloud) List(ctx context.Context) (out []inventory.Server, err error) {
	return out, c.world.call(ctx, Call{InCloud, "list", ""}, func() error {
		for _, m := range c.world.Machines {
			out = append(out, m.Server)
		}
		return nil
	})
}

// Get returns one server.
func (c cloud) Get(ctx context.Context, _, id string) (out inventory.Server, err error) {
	return out, c.world.call(ctx, Call{InCloud, "get", id}, func() error {
		out = c.world.Member(id).Server
		return nil
	})
}

// Elsewhere returns that the account holds nothing else.
func (c cloud) Elsewhere(context.Context) inventory.Account {
	return inventory.Account{Project: "only"}
}

// CheckRename changes nothing.
func (c cloud) CheckRename(ctx context.Context, _, id string) error {
	return c.world.call(ctx, Call{InCloud, "check rename", id}, func() error { return nil })
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

// pins are the host keys that runs have pinned.
type pins struct{ world *World }

// All returns them.
func (p pins) All() ([]plan.Pin, error) {
	p.world.mu.Lock()
	defer p.world.mu.Unlock()
	return slices.Clone(p.world.pins), nil
}

// Pin pins a machine's key under a name, as an earlier run did.
func (w *World) Pin(m *Machine, name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pins = append(w.pins, plan.Pin{ServerID: m.Server.ID, Name: name, Key: m.key})
}

// Unpin loses all pins.
func (w *World) Unpin() { w.Change(func() { w.pins = nil }) }

// IsPinned reports whether a machine's key is pinned.
func (w *World) IsPinned(m *Machine) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.pins, func(p plan.Pin) bool { return p.ServerID == m.Server.ID && p.Key == m.key })
}

// Reinstall gives a machine another host key.
func (w *World) Reinstall(m *Machine) { w.Change(func() { m.key += "-again" }) }

// Update replaces them.
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

// passwords knows every host's password.
type passwords struct{}

// Find returns it.
func (passwords) Find(ctx context.Context, s inventory.Server, _ string) ([]engine.Password, error) {
	v, err := secret.New("password of " + s.ID)
	return []engine.Password{{Value: v, Source: "the world"}}, err
}
