package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
)

var (
	codeTooManyHosts = NewCode("too-many-hosts", NotDrift, "one run may change no more hosts",
		"apply again for the others, or allow more: --max-hosts")
	codeTooManyWipes = NewCode("too-many-wipes", NotDrift, "one run may wipe no more hosts",
		"apply again for the others, or allow more: --max-wipes")
	codeTooManyDisrupted = NewCode("too-many-disrupted", NotDrift, "one run may drain, reboot or wipe no more Ready hosts of a fleet",
		"apply again for the others, or allow more: --max-disrupted")
	codeOutsideWindow = NewCode("outside-window", NotDrift, "the host is drained, rebooted or wiped only in a window, and none is open",
		"apply again in the window, or pass --outside-windows")
)

// Bounds are what one run may do at most. What goes beyond is deferred: it stays in the plan,
// and a later run does it.
type Bounds struct {
	Guardrails fleet.Guardrails
	Now        time.Time
	AnyTime    bool // the windows do not count
}

// Defer leaves for a later run what goes beyond the bounds, with what may need it on the same
// host: a repair of the firewall does not wait for the window of an upgrade. What repairs a host
// whose Node is not Ready takes nothing from the fleet, and stays. begun is the plan that this
// run has performed, nil before that: its hosts have taken their share, and what it deferred
// waits for another run.
func (p *Plan) Defer(b Bounds, steps StepsFor, begun *Plan) {
	d := deferral{Bounds: b, plan: p, steps: steps, hosts: make(taken), wipes: make(taken), disrupted: make(map[string]taken)}
	d.open, d.next = b.Guardrails.Open(b.Now)
	if begun != nil {
		d.spend(begun)
	}
	for _, of := range p.inTurn() {
		d.host(of.host, of.actions)
	}
}

// turn is a host with its actions.
type turn struct {
	host    *Host
	actions []Action
}

// inTurn returns the hosts with actions in the order in which they take from what one run may
// do. What an earlier run began is ended first: another host would be disturbed for the same, and
// this one stay as it is. Then those go first on which a run has worked longest ago: one that
// differs every time does not keep the others waiting.
func (p *Plan) inTurn() []turn {
	hosts := p.hostsByServer()
	var out []turn
	for id, actions := range p.byServer() {
		if h := hosts[id]; h != nil {
			out = append(out, turn{h, actions})
		}
	}
	slices.SortStableFunc(out, func(a, b turn) int {
		return cmp.Or(ones(b.begun())-ones(a.begun()), cmp.Compare(a.host.lastEpoch(), b.host.lastEpoch()))
	})
	return out
}

// begun reports whether an earlier run left the host's Node closed, or a step unproven.
func (t turn) begun() bool {
	opens := slices.ContainsFunc(t.actions, func(a Action) bool { return a.Kind == UncordonNode })
	return opens || len(t.host.Seen.Pending) > 0
}

// taken are the servers that have taken a share of a limit.
type taken map[string]bool

// full reports whether a server finds no share any more, as so many others have one; 0: any
// number may.
func (t taken) full(id string, most int) bool { return most > 0 && !t[id] && len(t) >= most }

// deferral is how much of the bounds is taken.
type deferral struct {
	Bounds
	plan      *Plan
	steps     StepsFor
	open      bool
	next      time.Time // when a window opens
	hosts     taken
	wipes     taken
	disrupted map[string]taken    // by fleet
	before    map[string]*Trouble // what the plan that was performed deferred, by address
}

// spend takes what a plan took that was performed.
func (d *deferral) spend(begun *Plan) {
	d.before = begun.Deferrals()
	for _, actions := range begun.Runnable() {
		h, known := begun.HostByServer(actions[0].ServerID)
		if !known || h.Mends() {
			continue
		}
		d.hosts[h.Server.ID] = true
		for _, a := range actions {
			if a.Disruption == Wipe {
				d.wipes[h.Server.ID] = true
			}
			if a.Disruption >= Drain && begun.IsHealthy(h) {
				d.disruptedOf(h.Fleet)[h.Server.ID] = true
			}
		}
	}
}

func (d *deferral) disruptedOf(fleet string) taken {
	if d.disrupted[fleet] == nil {
		d.disrupted[fleet] = make(taken)
	}
	return d.disrupted[fleet]
}

// host takes what one host's actions need of the bounds, or defers those that go beyond and
// what may need them.
func (d *deferral) host(h *Host, actions []Action) {
	if !slices.ContainsFunc(actions, Action.Runs) || h.Mends() {
		return
	}
	var left []Action // of these, that are deferred
	for i := range actions {
		a := &actions[i]
		if !a.Runs() {
			continue
		}
		earlier := slices.IndexFunc(left, func(b Action) bool { return h.Needs(*a, b, d.steps) })
		if earlier >= 0 {
			a.Deferral = left[earlier].Deferral
		} else {
			a.Deferral = d.why(h, *a)
		}
		if a.Deferral != nil {
			left = append(left, *a)
		}
	}
}

// why returns why an action waits for a later run, or nil: it has taken its share then. What
// waits takes none, so that others find it.
func (d *deferral) why(h *Host, a Action) *Trouble {
	id, g := h.Server.ID, d.Guardrails
	if t := d.before[a.Address()]; t != nil {
		return t
	}
	drains, wipes := a.Disruption >= Drain, a.Disruption == Wipe
	disturbs := drains && d.plan.IsHealthy(*h)
	ready := len(d.plan.Healthy[h.Fleet])
	mostWipes, mostDisrupted := max(1, g.MaxWipes), 0
	if g.MaxDisrupted != (fleet.Share{}) {
		mostDisrupted = g.MaxDisrupted.Of(ready)
	}
	switch {
	case drains && !d.open && !d.AnyTime:
		return outsideWindow(d.next)
	case d.hosts.full(id, g.MaxHosts):
		return codeTooManyHosts.Trouble(fmt.Sprintf("one run changes at most %s", count(g.MaxHosts, "host")))
	case !h.Member && !d.hosts[id] && g.MaxHosts > 0 && len(d.hosts)+len(d.plan.Orphans) >= g.MaxHosts:
		return codeTooManyHosts.Trouble(fmt.Sprintf("one run changes at most %s, and a claim counts with %s that it may replace",
			count(g.MaxHosts, "host"), count(len(d.plan.Orphans), "orphaned member")),
			"decide on these first, or name the number: --max-hosts")
	case wipes && d.wipes.full(id, mostWipes):
		return codeTooManyWipes.Trouble(fmt.Sprintf("one run wipes at most %s", count(mostWipes, "host")))
	case disturbs && d.disruptedOf(h.Fleet).full(id, mostDisrupted):
		return codeTooManyDisrupted.Trouble(fmt.Sprintf("one run drains, reboots or wipes at most %d of the %s of %s",
			mostDisrupted, count(ready, "Ready host"), h.Fleet))
	}
	d.hosts[id] = true
	if wipes {
		d.wipes[id] = true
	}
	if disturbs {
		d.disruptedOf(h.Fleet)[id] = true
	}
	return nil
}

// Mends reports whether the host is a Node that takes no Pods, by what the cluster or the
// host itself says. One whose kubelet was started a moment ago is none, unless it left the Node.
func (h Host) Mends() bool {
	n, there := h.Node.Get()
	state, _, _ := h.Ready()
	return h.Member && there && (h.leftNode || n.Ready != inventory.Ready || state == inventory.NotReady)
}

// Closed returns why an action that was planned for a host must not begin at a time, or
// nil: the window may have closed since the plan was made.
func (b Bounds) Closed(h Host, a Action, now time.Time) *Trouble {
	if a.Disruption < Drain || b.AnyTime || h.Mends() {
		return nil
	}
	if open, next := b.Guardrails.Open(now); !open {
		return outsideWindow(next)
	}
	return nil
}

func outsideWindow(next time.Time) *Trouble {
	return codeOutsideWindow.Trouble(fmt.Sprintf("hosts are drained, rebooted or wiped only in a window, and the next one opens at %s", next.Format("Mon 2006-01-02 15:04 MST")))
}
