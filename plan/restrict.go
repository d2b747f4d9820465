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
		"apply again for the others, or name the number: --max-hosts")
	codeTooManyWipes = NewCode("too-many-wipes", NotDrift, "one run may wipe no more hosts",
		"apply again for the others, or name the number: --max-wipes")
	codeTooManyDisrupted = NewCode("too-many-disrupted", NotDrift, "one run may disturb no more Ready hosts",
		"apply again for the others, or name the number: --max-disrupted")
	codeOutsideWindow = NewCode("outside-window", NotDrift, "the host is disturbed only in a window, and none is open",
		"apply again then, or pass --outside-windows")
)

// Bounds are what one run may do at most. What goes beyond stays in the plan, and
// is refused there.
type Bounds struct {
	Guardrails fleet.Guardrails
	Now        time.Time
	// MaxDisrupted is how many Ready hosts of a fleet may be drained, rebooted or
	// wiped; 0: a quarter of them, rounded down and at least one.
	MaxDisrupted int
	MaxWipes     int  // hosts that may be wiped; 0: one
	AnyTime      bool // the windows do not count
}

// Restrict refuses what goes beyond the bounds, with all that comes after it on the same
// host. What mends a host whose Node is not Ready takes nothing from the fleet, and stays.
func (p *Plan) Restrict(b Bounds) {
	r := restriction{Bounds: b, plan: p, disrupted: make(map[string]int)}
	r.open, r.next = b.Guardrails.Open(b.Now)
	hosts := p.hostsByServer()
	for id, actions := range p.byServer() {
		if h := hosts[id]; h != nil {
			r.host(h, actions)
		}
	}
}

// restriction is how much of the bounds is taken.
type restriction struct {
	Bounds
	plan      *Plan
	open      bool
	next      time.Time // when a window opens
	hosts     int
	wipes     int
	disrupted map[string]int // by fleet
}

// host takes what one host's actions need of the bounds, or refuses the rest of
// them from the first that goes beyond.
func (r *restriction) host(h *Host, actions []Action) {
	runs := slices.ContainsFunc(actions, func(a Action) bool { return a.Refusal == nil })
	if !runs || h.Mends() {
		return
	}
	if most := r.Guardrails.MaxHosts; most > 0 && r.hosts >= most {
		refuse(actions, codeTooManyHosts.Trouble(fmt.Sprintf("one run changes at most %s, by the guardrails", count(most, "host"))))
		return
	}
	r.hosts++
	counted := false
	for i := range actions {
		a := &actions[i]
		if a.Refusal != nil || a.Disruption < Drain {
			continue
		}
		if refused := r.disrupts(h, a.Disruption, counted); refused != nil {
			refuse(actions[i:], refused)
			return
		}
		counted = true
	}
}

// Mends reports whether the host is a Node that takes no Pods, by what the cluster or the
// host itself says. One whose kubelet was started a moment ago is none.
func (h Host) Mends() bool {
	n, there := h.Node.Get()
	state, _, _ := h.Ready()
	return h.Member && there && (n.Ready != inventory.Ready || state == inventory.NotReady)
}

// refuse refuses all actions that are not refused yet.
func refuse(actions []Action, t *Trouble) {
	for i := range actions {
		actions[i].Refusal = cmp.Or(actions[i].Refusal, t)
	}
}

// disrupts takes a disruption's share of the bounds. counted says that the host is
// counted already.
func (r *restriction) disrupts(h *Host, d Disruption, counted bool) *Trouble {
	if !r.open && !r.AnyTime {
		return outsideWindow(r.next)
	}
	if d == Wipe {
		if most := max(1, r.MaxWipes); r.wipes >= most {
			return codeTooManyWipes.Trouble(fmt.Sprintf("one run wipes at most %s", count(most, "host")))
		}
		r.wipes++
	}
	if counted || !r.plan.IsHealthy(*h) {
		return nil
	}
	ready := len(r.plan.Healthy[h.Fleet])
	most := r.MaxDisrupted
	if most == 0 {
		most = max(1, ready/4)
	}
	if r.disrupted[h.Fleet] >= most {
		return codeTooManyDisrupted.Trouble(fmt.Sprintf("one run drains, reboots or wipes at most %d of the %s of %s", most, count(ready, "Ready host"), h.Fleet))
	}
	r.disrupted[h.Fleet]++
	return nil
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
