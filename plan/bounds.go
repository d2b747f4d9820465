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
	codeTooManyHosts = NewCode("too-many-hosts", NotDrift, "one run may change no further hosts (max_hosts)",
		"run macfleet apply again for the rest; to raise the limit: macfleet apply --max-hosts N")
	codeTooManyWipes = NewCode("too-many-wipes", NotDrift, "one run may wipe no further hosts (max_wipes)",
		"run macfleet apply again for the rest; to raise the limit: macfleet apply --max-wipes N")
	codeTooManyDisrupted = NewCode("too-many-disrupted", NotDrift, "one run may drain, reboot or wipe no further Ready hosts of the fleet (max_disrupted)",
		"run macfleet apply again for the rest; to raise the limit: macfleet apply --max-disrupted N")
	codeOutsideWindow = NewCode("outside-window", NotDrift, "the change drains, reboots or wipes the host, and no maintenance window is open",
		"run macfleet apply in the window; to run it now: macfleet apply --outside-windows")
)

// Bounds limit what one run may do. What exceeds them is deferred: it stays in the plan for a later run.
type Bounds struct {
	Guardrails fleet.Guardrails
	Now        time.Time
	AnyTime    bool // ignore the windows
}

// Defer defers what exceeds the bounds, and the actions of the same host that may depend on it: a repair of
// the firewall does not wait for an upgrade's window. Repairs of a host whose Node is not Ready are never
// deferred, because they take no capacity away. started is the plan that this run has already performed, or
// nil: its hosts count against the limits, and what it deferred stays deferred.
func (p *Plan) Defer(b Bounds, steps StepsFor, started *Plan) {
	d := deferral{Bounds: b, plan: p, steps: steps, hosts: make(taken), wipes: make(taken), disrupted: make(map[string]taken), ready: p.ready()}
	d.open, d.next = b.Guardrails.Open(b.Now)
	if started != nil {
		d.spend(started)
	}
	for _, of := range p.inTurn() {
		d.host(of.host, of.actions)
	}
	p.deferReplaced()
	p.limitWhatIf()
}

// turn is a host with its actions.
type turn struct {
	host    *Host
	actions []Action
}

// inTurn returns the hosts with actions in the order in which they use up the limits. Hosts that an earlier
// run started on go first, so that no second host is disturbed instead. Then come those that were changed
// longest ago, so that a host which differs in every run does not keep the others waiting.
func (p *Plan) inTurn() []turn {
	hosts := p.hostsByServer()
	var out []turn
	for id, actions := range p.byServer() {
		if h := hosts[id]; h != nil {
			out = append(out, turn{h, actions})
		}
	}
	slices.SortStableFunc(out, func(a, b turn) int {
		return cmp.Or(ones(b.started())-ones(a.started()), cmp.Compare(a.host.lastEpoch(), b.host.lastEpoch()))
	})
	return out
}

// started reports whether an earlier run left the host's Node cordoned or a step unverified.
func (t turn) started() bool {
	opens := slices.ContainsFunc(t.actions, func(a Action) bool { return a.Kind == UncordonNode })
	return opens || len(t.host.Seen.Pending) > 0
}

// taken are the servers that count against a limit.
type taken map[string]bool

// full reports whether a limit leaves no room for a server; 0 means no limit.
func (t taken) full(id string, most int) bool { return most > 0 && !t[id] && len(t) >= most }

// deferral is how much of the bounds is used up.
type deferral struct {
	Bounds
	plan      *Plan
	steps     StepsFor
	open      bool
	next      time.Time // when the next window opens
	hosts     taken
	wipes     taken
	disrupted map[string]taken    // by fleet
	ready     map[string]int      // Ready hosts, by fleet
	before    map[string]*Trouble // what the performed plan deferred, by address
}

// spend counts what a performed plan used of the bounds.
func (d *deferral) spend(started *Plan) {
	d.before = started.Deferrals()
	for _, actions := range started.Runnable() {
		h, known := started.HostByServer(actions[0].ServerID)
		if !known || h.Repairs() || h.Stage.Final() { // which never count
			continue
		}
		d.hosts[h.Server.ID] = true
		for _, a := range actions {
			if a.Disruption == Wipe {
				d.wipes[h.Server.ID] = true
			}
			if a.Disruption >= Drain && started.atWork(h) {
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

// host counts one host's actions against the bounds. It defers those that exceed them and the ones that may
// depend on those.
func (d *deferral) host(h *Host, actions []Action) {
	if !slices.ContainsFunc(actions, Action.Runs) || h.Repairs() {
		return
	}
	if h.Leaves {
		d.leaving(h, actions)
		return
	}
	var left []Action // deferred actions
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

// leaving counts a host that leaves as a whole: none is drained and then not released. One that is erased already is
// always finished.
func (d *deferral) leaving(h *Host, actions []Action) {
	worst := actions[slices.IndexFunc(actions, Action.Runs)]
	worst.Disruption = Wipe
	if h.Stage.Final() {
		return
	}
	why := d.why(h, worst)
	for i := range actions {
		if actions[i].Runs() {
			actions[i].Deferral = why
		}
	}
}

// why returns why an action is deferred, or nil when it is within the bounds; only then it counts against
// them.
func (d *deferral) why(h *Host, a Action) *Trouble {
	id, g := h.Server.ID, d.Guardrails
	if t := d.before[a.Address()]; t != nil {
		return t
	}
	drains, wipes := a.Disruption >= Drain, a.Disruption == Wipe
	disturbs := drains && d.plan.atWork(*h)
	ready := d.ready[h.Fleet]
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
		return codeTooManyHosts.Trouble(fmt.Sprintf("one run changes at most %s, and a claim also counts %s that it may replace",
			count(g.MaxHosts, "host"), count(len(d.plan.Orphans), "orphaned member")),
			"restore or reinstall the orphaned members first, or raise the limit: macfleet apply --max-hosts N")
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

// atWork reports whether a host was Ready when the plan was made, also if it leaves: until then it does its fleet's work.
func (p *Plan) atWork(h Host) bool {
	if !h.Leaves || h.Stage.Final() {
		return p.IsHealthy(h)
	}
	works := h.Seen.Trouble == nil
	if p.Cluster {
		works = readyAs(h.Server, h.Node)
	}
	return works && !h.FailedRepairs.Quarantined()
}

// ready counts the Ready hosts of each fleet, those that leave too.
func (p *Plan) ready() map[string]int {
	out := make(map[string]int)
	for fleet, healthy := range p.Healthy {
		out[fleet] = len(healthy)
	}
	for i := range p.Hosts {
		if h := &p.Hosts[i]; h.Leaves {
			out[h.Fleet] += ones(p.atWork(*h))
		}
	}
	return out
}

// Repairs reports whether the host is a Node that takes no Pods, by the cluster or by the host itself. A
// kubelet that was just started does not count, unless the host left the Node.
func (h Host) Repairs() bool {
	n, there := h.Node.Get()
	state, _, _ := h.Ready()
	return h.Member && !h.Leaves && there && (h.leftNode || n.Ready != inventory.Ready || state == inventory.NotReady)
}

// OutsideWindow returns why a planned action must not start at a given time, or nil: the window may have closed
// since the plan was made.
func (b Bounds) OutsideWindow(h Host, a Action, now time.Time) *Trouble {
	if a.Disruption < Drain || b.AnyTime || h.Stage.Final() || h.Repairs() {
		return nil
	}
	if open, next := b.Guardrails.Open(now); !open {
		return outsideWindow(next)
	}
	return nil
}

func outsideWindow(next time.Time) *Trouble {
	return codeOutsideWindow.Trouble(fmt.Sprintf("no maintenance window is open for draining, rebooting or wiping hosts; the next one opens at %s", next.Format("Mon 2006-01-02 15:04 MST")))
}
