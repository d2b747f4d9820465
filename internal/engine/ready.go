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
	waiting []*awaited
	asking  int                       // how many hosts are looked at now
	answers chan func()               // take what one of those said
	ending  context.Context           // done: nobody wants to know any more
	cancel  context.CancelFunc        // ends it
	alone   []NotReady                // whose Nodes are Ready, and why the hosts could not be asked
	nodes   map[string]inventory.Node // by name, as of the last list that was had
	last    error                     // of the last look, where it failed
	macs    bool                      // most looks list the Nodes of Macs alone: nobody but those that wait counts
	looks   int                       // of those, since all Nodes were listed
}

// awaited is a host that is waited for.
type awaited struct {
	plan.Host
	node   string    // the name of its Node
	since  time.Time // from when on
	told   bool      // that it is waited for
	asked  time.Time // when its kubelet was last looked at; zero: never
	asking bool      // it is looked at now
}

func (e *Engine) newGate() *gate {
	ending, cancel := context.WithCancel(context.Background())
	return &gate{engine: e, ending: ending, cancel: cancel, answers: make(chan func())}
}

// add waits for one more host.
func (g *gate) add(h plan.Host, since time.Time) {
	g.waiting = append(g.waiting, &awaited{Host: h, node: h.NodeName(), since: since})
}

// look lists the Nodes once, begins to look at the kubelets of hosts whose Nodes are
// Ready, and returns what release does. A list that cannot be had is asked for again until
// time is up.
func (g *gate) look(ctx context.Context) []*awaited {
	nodes, err := g.list(ctx)
	if g.last = g.engine.scrubError(err); err != nil {
		return nil
	}
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
	g.ask(ctx)
	return g.release()
}

// looksAtMacs is how many looks ask for Nodes of Macs alone before one asks for all: a Node of ours may lack
// the label.
const looksAtMacs = 9

// list returns the Nodes. A gate that waits alone mostly asks for those of Macs, as a cluster may have thousands
// of others. As long as a host's Node lacks the label, all are asked for.
func (g *gate) list(ctx context.Context) ([]inventory.Node, error) {
	unlabelled := slices.ContainsFunc(g.waiting, func(h *awaited) bool {
		n, there := h.Node.Get()
		return there && !n.IsMac()
	})
	if g.macs && g.looks > 0 && !unlabelled {
		g.looks = (g.looks + 1) % (looksAtMacs + 1)
		return g.engine.Cluster.Macs(ctx)
	}
	g.looks = 1
	return g.engine.Cluster.Nodes(ctx)
}

// release lets go of hosts that are Ready: it returns those.
func (g *gate) release() []*awaited {
	ready := g.take(g.ready)
	for _, h := range g.waiting {
		if !h.told && !h.asking {
			h.told = true
			g.engine.emit(Event{Type: Waiting, Host: h.Name, Action: actionOn(&h.Host, plan.AwaitNode)})
		}
	}
	return ready
}

// take takes the hosts out of which something holds. One that is being asked stays.
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

// ask begins to look at the kubelets of hosts whose Nodes are Ready, where nobody has looked
// yet or they did not run: the cluster goes on for a while about one that has died. One that
// stays unheard is looked at again, as this machine's clock may have been set since it started.
func (g *gate) ask(ctx context.Context) {
	again := askAgain * cmp.Or(g.engine.Ready.Every, DefaultEvery)
	for _, h := range g.waiting {
		n, _ := h.Node.Get()
		k, _ := h.Kubelet.Get()
		runs := !h.Kubelet.IsUnread() && k.Fault == (plan.Reason{})
		if h.asking || !own(&h.Host) || n.Ready != inventory.Ready || h.Kubelet.IsAbsent() || runs && k.Heard(n) {
			continue
		}
		last := h.asked
		if runs && last.IsZero() { // its heartbeat is on its way, or this machine's clock was set since it was seen
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
			alone := g.kubelet(ctx, &asked)
			g.answers <- func() {
				g.asking--
				h.asking, h.Kubelet = false, asked.Kubelet
				if alone != "" {
					g.alone = append(g.alone, NotReady{h.Host, alone})
				}
			}
		}()
	}
}

// end lets go of the hosts that are still looked at.
func (g *gate) end() {
	g.cancel()
	g.hear()
}

// hear takes the answers of all hosts that are looked at.
func (g *gate) hear() {
	for g.asking > 0 {
		(<-g.answers)()
	}
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
	if t := e.again(ctx, h, step.Probes()); t != nil {
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

// own reports whether the host's Node says that it is the host's. A Node of that name
// that is another server's is not its Node.
func own(h *plan.Host) bool {
	n, there := h.Node.Get()
	return there && n.ProviderID == h.Server.ProviderID()
}

// ready reports whether the host is Ready, and tells of it.
func (g *gate) ready(h *awaited) bool {
	if state, _, _ := h.Ready(); state != inventory.Ready || !own(&h.Host) {
		return false
	}
	g.engine.emit(Event{Type: NodeReady, Host: h.Name, Action: actionOn(&h.Host, plan.AwaitNode), Seconds: g.engine.Now().Sub(h.since).Seconds()})
	return true
}

// again asks a host once more, and enters into it what is there now. It changes nothing.
func (e *Engine) again(ctx context.Context, h *plan.Host, probes []plan.Probe) *plan.Trouble {
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

// failure says of a host that was waited for why it is not Ready, by all that is
// known: its Node, and a last look at the host itself.
func (e *Engine) failure(ctx context.Context, h *plan.Host, node string, waited time.Duration) Failure {
	found, remedy := e.lastLook(ctx, h)
	t := &plan.Trouble{Code: plan.CodeNodeNotReady,
		Text:   fmt.Sprintf("it is not Ready after %s: %s; %s", waited.Round(time.Second), node, found),
		Remedy: cmp.Or(remedy, "kubectl describe node "+h.Name+", and read /var/log/tart-kubelet.log on the host; apply again goes on from there")}
	a := actionOn(h, plan.AwaitNode)
	e.emit(Event{Type: Failed, Host: h.Name, Action: a, Err: t, Seconds: waited.Seconds()})
	return Failure{Action: *a, Err: t}
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
	if t := e.again(ctx, h, plan.Probes(e.Config, e.Steps, e.Selection)); t != nil {
		return fmt.Sprintf("the host cannot be asked: %s: %s", t.Code, t.Text), ""
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
		return "on the host all is as it should be", remedy
	}
	return "on the host: " + strings.Join(found, "; "), remedy
}
