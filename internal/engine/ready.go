package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/wire"
	"github.com/macfleet/macfleet/plan"
)

// Ready holds the time limits of the wait for Nodes. A zero field means the default.
type Ready struct {
	Within time.Duration // after the end of the work; 0 = DefaultWithin
	Every  time.Duration // polling interval; 0 = DefaultEvery
	Agent  time.Duration // until its service shows a CI agent that was started; 0 = DefaultAgent
}

// The defaults of Ready. A kubelet registers within seconds and reports Ready with its first
// heartbeat, at most 30 s later.
const (
	DefaultWithin = 5 * time.Minute
	DefaultEvery  = 3 * time.Second
)

// gate waits until the Nodes of hosts are Ready.
type gate struct {
	engine   *Engine
	waiting  []*awaited
	asking   int                       // number of hosts being asked
	answers  chan func()               // their answers
	ending   context.Context           // done: the answers are no longer needed
	cancel   context.CancelFunc        // cancels ending
	nodeOnly []NotReady                // hosts with Ready Nodes that could not be contacted, and why
	nodes    map[string]inventory.Node // by name, from the last successful list
	last     error                     // of the last list
	macs     bool                      // most polls list only the Nodes of Macs
	polls    int                       // polls since all Nodes were listed
}

// awaited is a host whose Node is waited for.
type awaited struct {
	plan.Host
	node      string    // the name of its Node
	since     time.Time // start of the wait
	announced bool      // the wait was announced
	asked     time.Time // when its kubelet was last checked; zero: never
	asking    bool      // it is being asked
}

func (e *Engine) newGate() *gate {
	ending, cancel := context.WithCancel(context.Background())
	return &gate{engine: e, ending: ending, cancel: cancel, answers: make(chan func())}
}

// add adds a host to wait for.
func (g *gate) add(h plan.Host, since time.Time) {
	g.waiting = append(g.waiting, &awaited{Host: h, node: h.NodeName(), since: since})
}

// poll lists the Nodes once, starts to check the kubelets of Ready Nodes, and returns the hosts
// that are Ready. A failed list is retried until the time is up.
func (g *gate) poll(ctx context.Context) []*awaited {
	nodes, err := g.list(ctx)
	if g.last = g.engine.scrubError(err); err != nil {
		return nil
	}
	g.see(nodes)
	g.ask(ctx)
	return g.release()
}

// see gives the hosts their Nodes.
func (g *gate) see(nodes []inventory.Node) {
	g.nodes = make(map[string]inventory.Node, len(nodes))
	for _, n := range wire.Clean(g.engine.Scrub, nodes) {
		g.nodes[n.Name] = n
	}
	for _, h := range g.waiting {
		h.Node = inventory.Absent[inventory.Node]()
		if n, there := g.nodes[h.node]; there {
			h.Node = inventory.Present(n)
		}
	}
}

// macPolls is how many polls list only Macs before one lists all Nodes: a Node may lack the label.
const macPolls = 9

// list returns the Nodes. If possible it lists only Macs, as a cluster may have thousands of other Nodes. If a host's
// Node lacks the label, it lists all.
func (g *gate) list(ctx context.Context) ([]inventory.Node, error) {
	unlabelled := slices.ContainsFunc(g.waiting, func(h *awaited) bool {
		n, there := h.Node.Get()
		return there && !n.IsMac()
	})
	if g.macs && g.polls > 0 && !unlabelled {
		g.polls = (g.polls + 1) % (macPolls + 1)
		return g.engine.Cluster.Macs(ctx)
	}
	g.polls = 1
	return g.engine.Cluster.Nodes(ctx)
}

// release removes and returns the hosts that are Ready.
func (g *gate) release() []*awaited {
	ready := g.take(g.ready)
	for _, h := range g.waiting {
		if !h.announced && !h.asking {
			h.announced = true
			g.engine.emit(Event{Type: Waiting, Host: h.Name, Action: actionOn(&h.Host, plan.AwaitNode)})
		}
	}
	return ready
}

// take removes and returns the hosts that match, except those being asked.
func (g *gate) take(holds func(*awaited) bool) (out []*awaited) {
	g.waiting = slices.DeleteFunc(g.waiting, func(h *awaited) bool {
		taken := !h.asking && holds(h)
		if taken {
			out = append(out, h)
		}
		return taken
	})
	return out
}

// ask starts to check the kubelets of Ready Nodes that were not checked yet or did not run: the
// cluster may still report Ready after a kubelet died. A kubelet without a heartbeat is checked
// again, as this machine's clock may have been set.
func (g *gate) ask(ctx context.Context) {
	again := recheckPolls * cmp.Or(g.engine.Ready.Every, DefaultEvery)
	for _, h := range g.waiting {
		n, _ := h.Node.Get()
		k, _ := h.Kubelet.Get()
		runs := !h.Kubelet.IsUnread() && k.Fault == (plan.Reason{})
		if h.asking || !own(&h.Host) || n.Ready != inventory.Ready || h.Kubelet.IsAbsent() || runs && k.SentHeartbeat(n) {
			continue
		}
		last := h.asked
		if runs && last.IsZero() { // no heartbeat yet, or this machine's clock was set
			last = h.since
		}
		if !last.IsZero() && g.engine.Now().Sub(last) < again {
			continue
		}
		h.asked, h.asking = g.engine.Now(), true
		g.asking++
		asked := h.Host
		go func() {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			defer context.AfterFunc(g.ending, cancel)()
			unread := g.kubelet(ctx, &asked)
			g.answers <- func() {
				g.asking--
				h.asking, h.Kubelet = false, asked.Kubelet
				if unread != "" {
					g.nodeOnly = append(g.nodeOnly, NotReady{h.Host, unread})
				}
			}
		}()
	}
}

// end stops waiting for hosts that are being asked.
func (g *gate) end() {
	g.cancel()
	g.receive()
}

// receive receives the answers of all hosts that are being asked.
func (g *gate) receive() {
	for g.asking > 0 {
		(<-g.answers)()
	}
}

// recheckPolls is how many polls pass before a host is checked again: a crash loop does not end in
// three seconds.
const recheckPolls = 5

// kubelet checks the kubelet of a host. If the host cannot be contacted, why is the reason, and only its
// Node counts.
func (g *gate) kubelet(ctx context.Context, h *plan.Host) (why string) {
	e := g.engine
	h.Kubelet = inventory.Absent[plan.Kubelet]()
	step, ok := plan.NodeStep(e.Steps(h.Spec))
	if !ok {
		return ""
	}
	if t := e.probeAgain(ctx, h, step.Probes()); t != nil {
		return t.Code.String() + ": " + t.Text
	}
	v := h.View(step.ID())
	v.Pending = false
	f := step.Diff(v)
	switch {
	case len(f.Unread) > 0:
		return f.Unread[0].Probe + ": " + f.Unread[0].Why
	case !f.Kubelet.IsUnread():
		h.Kubelet = f.Kubelet
	}
	return ""
}

// heardWithin is how long the next heartbeat of a running kubelet is awaited. One comes every 10 s.
const heardWithin = time.Minute

// awaitHeartbeats polls until the kubelets of hosts have sent a heartbeat since they started, or heardWithin has passed.
func (e *Engine) awaitHeartbeats(ctx context.Context, hosts []plan.Host) error {
	g := e.newGate()
	g.macs = true
	defer g.end()
	for _, h := range hosts {
		g.add(h, e.Now())
	}
	late := time.NewTimer(heardWithin)
	defer late.Stop()
	tick := time.NewTicker(cmp.Or(e.Ready.Every, DefaultEvery))
	defer tick.Stop()
	for {
		if nodes, err := g.list(ctx); err == nil { // a failed list is retried
			g.see(nodes)
		}
		g.take(func(h *awaited) bool { return !h.Unheard() })
		if len(g.waiting) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-e.Stop.Done():
			return nil
		case <-late.C:
			return nil // what is observed next says it
		case <-tick.C:
		}
	}
}

// own reports whether the host's Node has the host's provider id, rather than another server's.
func own(h *plan.Host) bool {
	n, there := h.Node.Get()
	return there && n.ProviderID == h.Server.ProviderID()
}

// ready reports whether the host is Ready, and emits an event if so.
func (g *gate) ready(h *awaited) bool {
	if state, _, _ := h.Ready(); state != inventory.Ready || !own(&h.Host) {
		return false
	}
	g.engine.emit(Event{Type: NodeReady, Host: h.Name, Action: actionOn(&h.Host, plan.AwaitNode), Seconds: g.engine.Now().Sub(h.since).Seconds()})
	return true
}

// probeAgain probes a host once more and updates h. It changes nothing on the host.
func (e *Engine) probeAgain(ctx context.Context, h *plan.Host, probes []plan.Probe) *plan.Trouble {
	target := Target{Server: h.Server, Name: h.Name}
	if target.Trust = h.Trust(); h.Seen.Key != "" {
		target.Trust.Pin = e.PinOf(*h)
	}
	seen := e.look(ctx, target, probes)
	if seen.Trouble == nil {
		h.Seen.Facts, h.Seen.Root, h.Seen.Pending, h.Seen.At = seen.Facts, seen.Root, seen.Pending, seen.At
	}
	return seen.Trouble
}

// failure says why a host is not Ready in time, from its Node and a last check of the host.
func (e *Engine) failure(ctx context.Context, h *plan.Host, node string, waited time.Duration) Failure {
	found, remedy := e.lastState(ctx, h)
	t := &plan.Trouble{Code: plan.CodeNodeNotReady,
		Text:   fmt.Sprintf("not Ready after %s: %s; %s", waited.Round(time.Second), node, found),
		Remedy: cmp.Or(remedy, "kubectl describe node "+h.Name+", read /var/log/tart-kubelet.log on the host, then apply again")}
	a := actionOn(h, plan.AwaitNode)
	e.emit(Event{Type: Failed, Host: h.Name, Action: a, Err: t, Seconds: waited.Seconds()})
	return Failure{Action: *a, Err: t}
}

// node says what the cluster reports about a host's Node.
func (g *gate) node(h *plan.Host) string {
	_, why, _ := h.Ready()
	if g.last != nil {
		return "the Nodes cannot be listed: " + g.last.Error()
	}
	return cmp.Or(why, "its Node has no provider id")
}

// lastState probes a host once more and describes what its steps find. remedy is the fix for a
// kubelet that does not stay up.
func (e *Engine) lastState(ctx context.Context, h *plan.Host) (text, remedy string) {
	if t := e.probeAgain(ctx, h, plan.Probes(e.Config, e.Steps, e.Selection)); t != nil {
		return t.Code.String() + ": " + t.Text, ""
	}
	var found []string
	for _, step := range e.Steps(h.Spec) {
		f, at := step.Diff(h.View(step.ID())), string(step.ID())+": "
		if k, _ := f.Kubelet.Get(); k.Fault.Code == plan.CodeKubeletCrashLoop && len(f.Changes) > 0 {
			remedy = f.Changes[len(f.Changes)-1].Remedy
		}
		switch {
		case f.Refused != nil:
			found = append(found, at+f.Refused.Code.String()+": "+f.Refused.Text)
		case len(f.Changes) > 0:
			found = append(found, at+f.Changes[0].Reason.Code.String()+": "+f.Changes[0].Reason.Text)
		case len(f.Unread) > 0:
			found = append(found, at+f.Unread[0].Probe+": "+f.Unread[0].Why)
		}
	}
	if len(found) == 0 {
		return "no problem found on the host", remedy
	}
	return "on the host: " + strings.Join(found, "; "), remedy
}
