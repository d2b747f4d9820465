package engine

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// Members are the selected hosts, from the providers' lists only.
type Members struct {
	Hosts   []plan.Host // in the plan's order, with their Nodes
	Missing int         // how many hosts the selected groups lack
}

// Members reads the lists without connecting to a host. An error means that a list failed, or
// that the selection names unknown hosts.
func (e *Engine) Members(ctx context.Context) (Members, error) {
	snap, err := e.checked(ctx, never)
	if err != nil {
		return Members{}, err
	}
	p := e.Compute(ctx, snap)
	var m Members
	for _, h := range p.Hosts {
		if !h.Member {
			m.Missing++
			continue
		}
		if pin := h.Trust().Pin; pin != nil {
			h.Seen.Key = pin.Key // the host itself was not contacted
		}
		m.Hosts = append(m.Hosts, h)
	}
	for _, s := range p.Shortages {
		m.Missing += s.Missing
	}
	return m, nil
}

// NotReady is a host that is not Ready, with the reason.
type NotReady struct {
	Host plan.Host
	Why  string
}

// Waited is the result of waiting for hosts.
type Waited struct {
	Late  []NotReady // not Ready in time
	Alone []NotReady // Ready according to their Nodes only, and why the hosts could not be contacted
}

// WaitReady polls until all hosts that join the cluster are Ready, both their Nodes and their
// kubelets, or Ready.Within has passed. report is called with the hosts that are not Ready, at
// first and whenever they or the reasons change.
func (e *Engine) WaitReady(ctx context.Context, m Members, report func([]NotReady)) (Waited, error) {
	g, started := e.newGate(), e.Now()
	g.macs = true
	defer g.end()
	for _, h := range m.Hosts {
		if h.Spec.Spec.JoinsCluster() {
			g.add(h, started)
		}
	}
	late := time.NewTimer(cmp.Or(e.Ready.Within, DefaultWithin))
	defer late.Stop()
	tick := time.NewTicker(cmp.Or(e.Ready.Every, DefaultEvery))
	defer tick.Stop()
	var last []NotReady
	for over := false; ; {
		g.poll(ctx)
		g.receive()
		g.release()
		if err := ctx.Err(); err != nil {
			return Waited{}, err
		}
		now := g.notReady()
		if !slices.EqualFunc(now, last, func(a, b NotReady) bool { return a.Host.Name == b.Host.Name && a.Why == b.Why }) {
			report(now)
		}
		if last = now; over || len(now) == 0 {
			return Waited{now, g.nodeOnly}, nil
		}
		select {
		case <-ctx.Done():
			return Waited{}, ctx.Err()
		case <-late.C:
			over, g.polls = true, 0 // one last full look at the deadline
		case <-tick.C:
		}
	}
}

func (g *gate) notReady() []NotReady {
	out := make([]NotReady, len(g.waiting))
	for i, h := range g.waiting {
		out[i] = NotReady{h.Host, g.node(&h.Host)}
	}
	return out
}

// Nodes returns the Nodes of members, and the names of members without one.
func (m Members) Nodes() (nodes []inventory.Node, without []string) {
	for _, h := range m.Hosts {
		if n, ok := h.Node.Get(); ok {
			nodes = append(nodes, n)
		} else {
			without = append(without, h.Name)
		}
	}
	return nodes, without
}
