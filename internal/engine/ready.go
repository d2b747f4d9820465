package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

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

// gate waits until the Nodes of hosts are Ready, all with one look.
type gate struct {
	engine  *Engine
	waiting []plan.Host
	since   map[string]time.Time      // by server id: when its work was done
	told    map[string]bool           // likewise: that it is waited for
	nodes   map[string]inventory.Node // by name, as of the last list that was had
	last    error                     // of the last look, where it failed
}

func newGate(e *Engine) *gate {
	return &gate{engine: e, since: make(map[string]time.Time), told: make(map[string]bool)}
}

// add waits for one more host.
func (g *gate) add(h plan.Host, since time.Time) {
	g.waiting = append(g.waiting, h)
	g.since[h.Server.ID] = since
}

func or(d, otherwise time.Duration) time.Duration {
	if d == 0 {
		return otherwise
	}
	return d
}

// look lists the Nodes once, and lets go of hosts whose Nodes are Ready: it returns
// those. A list that cannot be had is asked for again until time is up.
func (g *gate) look(ctx context.Context) (ready []plan.Host) {
	nodes, err := g.engine.Cluster.Nodes(ctx)
	if g.last = g.engine.scrubError(err); err != nil {
		return nil
	}
	g.nodes = make(map[string]inventory.Node, len(nodes))
	for _, n := range g.engine.scrub().Nodes(nodes) {
		g.nodes[n.Name] = n
	}
	g.waiting = slices.DeleteFunc(g.waiting, func(h plan.Host) bool {
		n, there := g.nodes[h.Name]
		if !there || !isReady(n, h.Server.ProviderID()) {
			return false
		}
		g.engine.emit(Event{Type: NodeReady, Host: h.Name, Action: awaits(&h), Elapsed: g.waited(&h)})
		ready = append(ready, h)
		return true
	})
	for i := range g.waiting {
		h := &g.waiting[i]
		h.Node = inventory.Absent[inventory.Node]()
		if n, there := g.nodes[h.Name]; there {
			h.Node = inventory.Present(n)
		}
		if !g.told[h.Server.ID] {
			g.told[h.Server.ID] = true
			g.engine.emit(Event{Type: Waiting, Host: h.Name, Action: awaits(h)})
		}
	}
	return ready
}

// late takes the hosts out whose time is up, after a look at that time.
func (g *gate) late(now time.Time) []plan.Host {
	var out []plan.Host
	g.waiting = slices.DeleteFunc(g.waiting, func(h plan.Host) bool {
		late := now.Sub(g.since[h.Server.ID]) >= or(g.engine.Ready.Within, DefaultWithin)
		if late {
			out = append(out, h)
		}
		return late
	})
	return out
}

// waited is how long a host has been waited for.
func (g *gate) waited(h *plan.Host) time.Duration {
	return g.engine.Now().Sub(g.since[h.Server.ID])
}

// awaits is what the gate does for a host, as an action.
func awaits(h *plan.Host) *plan.Action {
	return &plan.Action{Kind: plan.AwaitNode, Host: h.Name, Fleet: h.Fleet, Group: h.Group, ServerID: h.Server.ID}
}

// failure says of a host that was waited for why it is not Ready, by all that is
// known: its Node, and a last look at the host itself.
func (e *Engine) failure(ctx context.Context, h *plan.Host, node string, waited time.Duration) Failure {
	t := plan.Trouble{Code: "node-not-ready",
		Text:   fmt.Sprintf("its Node is not Ready after %s: %s; %s", waited.Round(time.Second), node, e.lastLook(ctx, h)),
		Remedy: "kubectl describe node " + h.Name + ", and read /var/log/tart-kubelet.log on the host; apply again goes on from there"}
	f := Failure{Action: *awaits(h), Err: &TroubleError{t}}
	e.emit(Event{Type: Failed, Host: h.Name, Action: awaits(h), Err: f.Err, Elapsed: waited})
	return f
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
