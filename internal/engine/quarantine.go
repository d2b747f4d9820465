package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// QuarantineCordon is who cordoned the Node of a quarantined host, in its annotation.
const QuarantineCordon = "macfleet (quarantine)"

// Quarantined is a host that a run has quarantined.
type Quarantined struct {
	Host, Fleet string
	Repairs     inventory.Repairs
}

// countRepairs records which hosts a run failed to repair, and quarantines those that failed as often as their
// fleet allows. A host that works again starts at zero. A stopped run counts for no host.
func (e *Engine) countRepairs(ctx context.Context, p *plan.Plan, r *Result) {
	if r.Interrupted || r.Lost != nil {
		return
	}
	work := make(map[string][]plan.Action) // by server id
	for _, actions := range p.Runnable() {
		work[actions[0].ServerID] = actions
	}
	var failed []plan.Host
	for _, h := range r.After.Hosts {
		before, known := p.HostByServer(h.Server.ID)
		why := failureOn(h, r.Failures)
		if known && why != nil && e.allowed(h) > 0 && repairs(p, before, work[h.Server.ID]) && countable(h) {
			h.FailedRepairs = e.oneMore(h, why)
			failed = append(failed, h)
		}
	}
	for i, err := range each(failed, e.Parallelism, func(h plan.Host) error { return e.keepRepairs(ctx, h, h.FailedRepairs) }) {
		switch h := failed[i]; {
		case err != nil:
			r.Failures = append(r.Failures, notRecorded(h, err))
		case h.FailedRepairs.Quarantined():
			r.Quarantined = append(r.Quarantined, Quarantined{h.Name, h.Fleet, *h.FailedRepairs})
			r.LeftCordoned = slices.DeleteFunc(r.LeftCordoned, func(l LeftCordoned) bool { return l.Host == h.Name })
		}
	}
	r.Failures = append(r.Failures, e.forgetRepairs(ctx, r.After, r.Failures)...)
}

// forgetRepairs removes the records of hosts that work again and on which nothing failed.
func (e *Engine) forgetRepairs(ctx context.Context, p *plan.Plan, failures []Failure) []Failure {
	well := slices.DeleteFunc(slices.Clone(p.Hosts), func(h plan.Host) bool {
		state, _, _ := h.Ready()
		return h.FailedRepairs == nil || h.Converged != plan.Converged || h.Spec.Spec.JoinsCluster() && state != inventory.Ready ||
			!countable(h) || failureOn(h, failures) != nil
	})
	var out []Failure
	for i, err := range each(well, e.Parallelism, func(h plan.Host) error { return e.keepRepairs(ctx, h, nil) }) {
		if err != nil {
			out = append(out, notRecorded(well[i], err))
		}
	}
	return out
}

// countable reports whether a run may write a host's record.
func countable(h plan.Host) bool { return h.Member && h.Writable() && !h.FailedRepairs.Quarantined() }

func notRecorded(h plan.Host, err error) Failure {
	return Failure{Action: *actionOn(&h, plan.CreateMarker), Err: fmt.Errorf("record the repairs of the host: %w", err)}
}

// repairs reports whether a run's actions on a host were a repair: its Node took no Pods or, outside a cluster,
// the host had drifted. What fails on a healthy host is a matter of the rollout.
func repairs(p *plan.Plan, h plan.Host, actions []plan.Action) bool {
	switch {
	case len(actions) == 0 || !h.Member:
		return false
	case h.Spec.Spec.JoinsCluster() && p.Cluster:
		return h.Repairs() || h.Node.IsAbsent()
	}
	return slices.ContainsFunc(actions, func(a plan.Action) bool { return a.Drift })
}

// failureOn returns the failure that shows that a host itself could not be repaired, or nil. What failed at the
// provider or in the cluster, and what a person or running work kept from starting, does not count.
func failureOn(h plan.Host, all []Failure) error {
	for _, f := range all {
		if f.Action.ServerID != h.Server.ID {
			continue
		}
		var t *plan.Trouble
		switch k := f.Action.Kind; {
		case !k.OfStep() && k != plan.CreateMarker && k != plan.PinHost && k != plan.AwaitNode && k != plan.RebootServer:
		case errors.As(f.Err, &t) && (t.Code == plan.CodeHeld || t.Code == CodeNotDrained || t.Code == codeLockLost):
		default:
			return f.Err
		}
	}
	return nil
}

// allowed returns how many failed repairs in a row quarantine a host; 0: they are not counted.
func (e *Engine) allowed(h plan.Host) int {
	f, _, _ := e.Config.Group(h.Fleet, h.Group)
	return f.Rollout.QuarantineAfter
}

// longestReason limits the stored reason of a failed repair, in bytes: it is an annotation of the Node.
const longestReason = 400

// oneMore returns the record of a host after one more failed repair.
func (e *Engine) oneMore(h plan.Host, why error) *inventory.Repairs {
	now := e.Now().UTC().Truncate(time.Second)
	out := inventory.Repairs{Failed: 1, Last: now, Run: e.Run.ID, Reason: e.scrubError(why).Error()}
	if len(out.Reason) > longestReason {
		out.Reason = string([]rune(out.Reason[:longestReason-4])) + "…"
	}
	if h.FailedRepairs != nil {
		out.Failed += h.FailedRepairs.Failed
	}
	if out.Failed >= e.allowed(h) {
		out.Who, out.Since = cmp.Or(e.Run.Who, "macfleet"), now
	}
	return &out
}

// keepRepairs stores the record of a host in its marker and on its Node, or removes it if r is nil; one of the two
// is enough to store it. A quarantined host's Node is cordoned first.
func (e *Engine) keepRepairs(ctx context.Context, h plan.Host, r *inventory.Repairs) error {
	if err := e.checkLock(); err != nil {
		return err
	}
	s := e.storeRepairs(ctx, h, r, e.clusterRepairs())
	if !s.Done(r != nil) {
		return errors.Join(s.Marker, s.Node)
	}
	return nil
}

// NodeRepairs changes the Nodes of quarantined hosts. A nil function: there is no cluster.
type NodeRepairs struct {
	Set      func(context.Context, inventory.Node, *inventory.Repairs) error
	Cordon   func(context.Context, inventory.Node, plan.Run) (bool, error)
	Uncordon func(context.Context, inventory.Node) (bool, error)
}

func (e *Engine) clusterRepairs() NodeRepairs {
	if e.Cluster == nil {
		return NodeRepairs{}
	}
	return NodeRepairs{Set: e.Cluster.SetRepairs, Cordon: e.Cluster.CordonNode}
}

// Quarantining is the result of quarantining one host, or of ending that.
type Quarantining struct {
	Host   plan.Host
	Marker error // nil: written to the marker, or removed from it
	Node   error // the same for the Node
}

// Done reports whether the record is stored or, if stored is false, removed. One place is enough to store it;
// removing it takes both.
func (q Quarantining) Done(stored bool) bool {
	if stored {
		return q.Marker == nil || q.Node == nil
	}
	return (q.Marker == nil || errors.Is(q.Marker, ErrNoPlace)) && (q.Node == nil || errors.Is(q.Node, ErrNoPlace))
}

// Quarantine stores the record of a quarantine for hosts and cordons their Nodes, or removes both if r is nil. A
// cordon that is not of a quarantine stays.
func (e *Engine) Quarantine(ctx context.Context, of []plan.Host, r *inventory.Repairs, nodes NodeRepairs) []Quarantining {
	return each(of, e.Parallelism, func(h plan.Host) Quarantining { return e.storeRepairs(ctx, h, r, nodes) })
}

func (e *Engine) storeRepairs(ctx context.Context, h plan.Host, r *inventory.Repairs, nodes NodeRepairs) Quarantining {
	node := e.scrubError(nodeRepairs(ctx, h, r, nodes))
	return Quarantining{h, e.scrubError(e.changeMarker(ctx, h, func(m *plan.Marker) bool {
		same := m.Repairs == nil && r == nil
		m.Repairs = r
		return !same
	})), node}
}

func nodeRepairs(ctx context.Context, h plan.Host, r *inventory.Repairs, nodes NodeRepairs) error {
	n, known := h.Node.Get()
	switch {
	case nodes.Set == nil:
		return fmt.Errorf("%w: no cluster is configured", ErrNoPlace)
	case h.Node.IsUnread():
		return fmt.Errorf("the Node cannot be read: %s", h.Node.Why())
	case !known:
		return fmt.Errorf("%w: the host has no Node", ErrNoPlace)
	}
	if r.Quarantined() {
		if _, err := nodes.Cordon(ctx, n, plan.Run{Who: QuarantineCordon}); err != nil {
			return err
		}
	}
	if r != nil || n.Repairs != nil {
		if err := nodes.Set(ctx, n, r); err != nil {
			return err
		}
	}
	if r == nil && n.Cordoned && n.CordonedBy == QuarantineCordon && nodes.Uncordon != nil {
		_, err := nodes.Uncordon(ctx, n)
		return err
	}
	return nil
}
