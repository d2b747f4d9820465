package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/hosts"
	"github.com/macfleet/macfleet/plan"
)

// Ready says how long an apply waits for the Nodes of its hosts. A zero field
// means the default.
type Ready struct {
	Within time.Duration // from the end of the work; 0 = DefaultWithin
	Every  time.Duration // between two looks at all Nodes; 0 = DefaultEvery
}

// The defaults of Ready. A kubelet registers within seconds and says Ready with
// its first heartbeat, 30 s later at the latest.
const (
	DefaultWithin = 5 * time.Minute
	DefaultEvery  = 3 * time.Second
)

// gate waits until the Nodes of hosts are Ready.
type gate struct {
	engine  *Engine
	started time.Time
	waiting []plan.Host
	pins    map[string]plan.Pin  // by server id, of hosts that were not asked yet
	told    map[string]bool      // by server id: that it is waited for
	asked   map[string]time.Time // by server id: when its kubelet was last looked at
	alone   []NotReady           // whose Nodes are Ready, and why the hosts could not be asked
	last    error                // of the last look, where it failed
}

// newGate returns a gate for those of hosts that join the cluster.
func (e *Engine) newGate(all []plan.Host) *gate {
	g := &gate{engine: e, started: e.Now(), told: make(map[string]bool), asked: make(map[string]time.Time)}
	for _, h := range all {
		if h.Spec.Spec.JoinsCluster() {
			g.waiting = append(g.waiting, h)
		}
	}
	return g
}

// await waits for the Nodes of the hosts that joined the cluster or were worked on
// in this run, all with one look, until they are Ready, time is up, or somebody
// asks to stop. Hosts that are not Ready in time are failures; it returns how many
// were left by a stop.
func (e *Engine) await(ctx context.Context, touched []plan.Host) (failures []Failure, left int) {
	g := e.newGate(touched)
	if e.Cluster == nil || len(g.waiting) == 0 {
		return nil, 0
	}
	late := time.NewTimer(or(e.Ready.Within, DefaultWithin))
	defer late.Stop()
	tick := time.NewTicker(or(e.Ready.Every, DefaultEvery))
	defer tick.Stop()
	for {
		if g.look(ctx); len(g.waiting) == 0 {
			return nil, 0
		}
		select {
		case <-ctx.Done():
			return nil, len(g.waiting)
		case <-e.Stop.Done():
			return nil, len(g.waiting)
		case <-late.C:
			g.look(ctx) // the deadline is the last look's, not the one before
			return g.failures(ctx), 0
		case <-tick.C:
		}
	}
}

func or(d, otherwise time.Duration) time.Duration {
	if d == 0 {
		return otherwise
	}
	return d
}

// look lists the Nodes once, and lets go of hosts that are Ready. A list that cannot
// be had is asked for again until time is up.
func (g *gate) look(ctx context.Context) {
	nodes, err := g.engine.Cluster.Nodes(ctx)
	if g.last = g.engine.scrubError(err); err != nil {
		return
	}
	byName := make(map[string]inventory.Node, len(nodes))
	for _, n := range g.engine.scrub().Nodes(nodes) {
		byName[n.Name] = n
	}
	for i := range g.waiting {
		h := &g.waiting[i]
		h.Node = inventory.Absent[inventory.Node]()
		if n, there := byName[h.Name]; there {
			h.Node = inventory.Present(n)
		}
	}
	g.ask(ctx)
	g.waiting = slices.DeleteFunc(g.waiting, func(h plan.Host) bool { return g.ready(&h) })
	for i := range g.waiting {
		if h := &g.waiting[i]; !g.told[h.Server.ID] {
			g.told[h.Server.ID] = true
			g.engine.emit(Event{Type: Waiting, Host: h.Name, Action: awaits(h)})
		}
	}
}

// ask looks at the kubelets of hosts whose Nodes are Ready, where nobody has looked
// yet or they did not run: the cluster goes on for a while about one that has died.
func (g *gate) ask(ctx context.Context) {
	again := askAgain * or(g.engine.Ready.Every, DefaultEvery)
	var mu sync.Mutex
	var all errgroup.Group
	all.SetLimit(g.engine.Parallelism)
	for i := range g.waiting {
		h := &g.waiting[i]
		n, _ := h.Node.Get()
		k, _ := h.Kubelet.Get()
		if !g.own(h) || n.Ready != inventory.Ready || h.Kubelet.IsAbsent() || !h.Kubelet.IsUnread() && k.Fault == (plan.Reason{}) {
			continue
		}
		if last, asked := g.asked[h.Server.ID]; asked && g.engine.Now().Sub(last) < again {
			continue
		}
		g.asked[h.Server.ID] = g.engine.Now()
		all.Go(func() error {
			if why := g.kubelet(ctx, h); why != "" {
				mu.Lock()
				g.alone = append(g.alone, NotReady{*h, why})
				mu.Unlock()
			}
			return nil
		})
	}
	_ = all.Wait() // nothing returns an error
}

// askAgain is how many looks at the Nodes pass before a host is asked again: one that
// is in a crash loop is not out of it in three seconds.
const askAgain = 5

// kubelet looks at the kubelet of a host. Where that cannot be, its Node counts alone,
// and why is said.
func (g *gate) kubelet(ctx context.Context, h *plan.Host) (why string) {
	e := g.engine
	h.Kubelet = inventory.Absent[plan.Kubelet]()
	step, ok := plan.NodeStep(e.Steps(h.Spec))
	if !ok {
		return ""
	}
	target := hosts.Target{Server: h.Server, Name: h.Name}
	if pin, known := g.pins[h.Server.ID]; known {
		target.Pin = &pin
	} else if h.Seen.Key != "" {
		pin := e.pinOf(*h)
		target.Pin = &pin
	}
	seen := e.look(ctx, target, step.Probes())
	if seen.Trouble != nil {
		return seen.Trouble.Code + ": " + seen.Trouble.Text
	}
	v := h.View(step.ID())
	v.Facts, v.Root, v.At, v.Pending = seen.Facts, seen.Root, seen.At, false
	f := step.Diff(v)
	switch {
	case len(f.Unread) > 0:
		return f.Unread[0].Probe + ": " + f.Unread[0].Why
	case !f.Kubelet.IsUnread():
		h.Kubelet = f.Kubelet
	}
	return ""
}

// own reports whether the host's Node says that it is the host's. A Node of that name
// that is another server's is not its Node.
func (g *gate) own(h *plan.Host) bool {
	n, there := h.Node.Get()
	return there && n.ProviderID == h.Server.ProviderID()
}

// ready reports whether the host is Ready, and tells of it.
func (g *gate) ready(h *plan.Host) bool {
	if state, _, _ := h.Ready(); state != inventory.Ready || !g.own(h) {
		return false
	}
	g.engine.emit(Event{Type: NodeReady, Host: h.Name, Action: awaits(h), Elapsed: g.engine.Now().Sub(g.started)})
	return true
}

// awaits is what the gate does for a host, as an action.
func awaits(h *plan.Host) *plan.Action {
	return &plan.Action{Kind: plan.AwaitNode, Host: h.Name, Fleet: h.Fleet, Group: h.Group, ServerID: h.Server.ID}
}

// failures says of each host that is still waited for why it is not Ready, by all
// that is known: its Node, and a last look at the host itself.
func (g *gate) failures(ctx context.Context) []Failure {
	out := make([]Failure, len(g.waiting))
	var all errgroup.Group
	all.SetLimit(g.engine.Parallelism)
	for i := range g.waiting {
		all.Go(func() error {
			h := &g.waiting[i]
			found, remedy := g.engine.lastLook(ctx, h)
			t := plan.Trouble{Code: "node-not-ready",
				Text:   fmt.Sprintf("it is not Ready after %s: %s; %s", g.engine.Now().Sub(g.started).Round(time.Second), g.node(h), found),
				Remedy: cmp.Or(remedy, "kubectl describe node "+h.Name+", and read /var/log/tart-kubelet.log on the host; apply again goes on from there")}
			out[i] = Failure{Action: *awaits(h), Err: &TroubleError{t}}
			g.engine.emit(Event{Type: Failed, Host: h.Name, Action: awaits(h), Err: out[i].Err, Elapsed: g.engine.Now().Sub(g.started)})
			return nil
		})
	}
	_ = all.Wait() // nothing returns an error
	return out
}

// node says what the cluster knows of a host's Node.
func (g *gate) node(h *plan.Host) string {
	_, why, _ := h.Ready()
	if g.last != nil {
		return "the Nodes cannot be listed: " + g.last.Error()
	}
	return cmp.Or(why, "its Node does not say which server it is")
}

// lastLook asks a host once more and says what its steps find there. It changes
// nothing. Of a kubelet that does not stay up, remedy is what helps.
func (e *Engine) lastLook(ctx context.Context, h *plan.Host) (text, remedy string) {
	pin := e.pinOf(*h)
	seen := e.look(ctx, hosts.Target{Server: h.Server, Name: h.Name, Pin: &pin}, plan.Probes(e.Config, e.Steps, e.Selection))
	if seen.Trouble != nil {
		return fmt.Sprintf("the host cannot be asked: %s: %s", seen.Trouble.Code, seen.Trouble.Text), ""
	}
	h.Seen.Facts, h.Seen.Root, h.Seen.Pending, h.Seen.At = seen.Facts, seen.Root, seen.Pending, seen.At
	var found []string
	for _, step := range e.Steps(h.Spec) {
		f := step.Diff(h.View(step.ID()))
		if k, _ := f.Kubelet.Get(); k.Fault.Code == plan.CrashLoop && len(f.Changes) > 0 {
			remedy = f.Changes[len(f.Changes)-1].Remedy
		}
		switch {
		case f.Refused != nil:
			found = append(found, fmt.Sprintf("%s: %s: %s", step.ID(), f.Refused.Code, f.Refused.Text))
		case len(f.Changes) > 0:
			found = append(found, fmt.Sprintf("%s: %s: %s", step.ID(), f.Changes[0].Reason.Code, f.Changes[0].Reason.Text))
		case len(f.Unread) > 0:
			found = append(found, fmt.Sprintf("%s: %s: %s", step.ID(), f.Unread[0].Probe, f.Unread[0].Why))
		}
	}
	if len(found) == 0 {
		return "on the host all is as it should be", remedy
	}
	return "on the host: " + strings.Join(found, "; "), remedy
}
