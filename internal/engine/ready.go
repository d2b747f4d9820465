package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
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
	told    map[string]bool // by server id: that it is waited for
	last    error           // of the last look, where it failed
}

// await waits for the Nodes of the hosts that joined the cluster or were worked on
// in this run, all with one look, until they are Ready, time is up, or somebody
// asks to stop. Hosts that are not Ready in time are failures; it returns how many
// were left by a stop.
func (e *Engine) await(ctx context.Context, touched []plan.Host) (failures []Failure, left int) {
	g := &gate{engine: e, started: e.Now(), told: make(map[string]bool)}
	for _, h := range touched {
		if h.Spec.Spec.JoinsCluster() && e.Cluster != nil {
			g.waiting = append(g.waiting, h)
		}
	}
	if len(g.waiting) == 0 {
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

// look lists the Nodes once, and lets go of hosts whose Nodes are Ready. A list
// that cannot be had is asked for again until time is up.
func (g *gate) look(ctx context.Context) {
	nodes, err := g.engine.Cluster.Nodes(ctx)
	if g.last = g.engine.scrubError(err); err != nil {
		return
	}
	byName := make(map[string]inventory.Node, len(nodes))
	for _, n := range g.engine.scrub().Nodes(nodes) {
		byName[n.Name] = n
	}
	g.waiting = slices.DeleteFunc(g.waiting, func(h plan.Host) bool {
		return g.ready(&h, byName)
	})
	for i := range g.waiting {
		h := &g.waiting[i]
		h.Node = inventory.Absent[inventory.Node]()
		if n, there := byName[h.Name]; there {
			h.Node = inventory.Present(n)
		}
		if !g.told[h.Server.ID] {
			g.told[h.Server.ID] = true
			g.engine.emit(Event{Type: Waiting, Host: h.Name, Action: awaits(h)})
		}
	}
}

// ready reports whether the host's own Node is Ready, and tells of it. A Node of
// that name that is another server's is not its Node.
func (g *gate) ready(h *plan.Host, nodes map[string]inventory.Node) bool {
	n, there := nodes[h.Name]
	if !there || n.Ready != inventory.Ready || n.ProviderID != h.Server.ProviderID() {
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
			t := plan.Trouble{Code: "node-not-ready",
				Text:   fmt.Sprintf("its Node is not Ready after %s: %s; %s", g.engine.Now().Sub(g.started).Round(time.Second), g.node(h), g.engine.lastLook(ctx, h)),
				Remedy: "kubectl describe node " + h.Name + ", and read /var/log/tart-kubelet.log on the host; apply again goes on from there"}
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
	n, there := h.Node.Get()
	switch {
	case g.last != nil:
		return "the Nodes cannot be listed: " + g.last.Error()
	case !there:
		return "the cluster has no Node of that name"
	case n.Ready != inventory.Ready:
		return fmt.Sprintf("Ready is %s: %s", n.Ready, n.Why)
	case n.ProviderID == "":
		return "it does not say which server it is"
	}
	return "it says that it is another server: " + n.ProviderID
}

// lastLook asks a host once more and says what its steps find there. It changes
// nothing.
func (e *Engine) lastLook(ctx context.Context, h *plan.Host) string {
	pin := e.pinOf(*h)
	seen := e.look(ctx, hosts.Target{Server: h.Server, Name: h.Name, Pin: &pin}, plan.Probes(e.Config, e.Steps, e.Selection))
	if seen.Trouble != nil {
		return fmt.Sprintf("the host cannot be asked: %s: %s", seen.Trouble.Code, seen.Trouble.Text)
	}
	h.Seen.Facts, h.Seen.Root, h.Seen.Pending = seen.Facts, seen.Root, seen.Pending
	var found []string
	for _, step := range e.Steps(h.Spec) {
		f := step.Diff(h.View(step.ID()))
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
		return "on the host all is as it should be"
	}
	return "on the host: " + strings.Join(found, "; ")
}
