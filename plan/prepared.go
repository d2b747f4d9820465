package plan

import (
	"fmt"
	"slices"

	"github.com/macfleet/macfleet/fleet/inventory"
)

// The codes that are raised here.
var (
	codeObjectDiffers      = NewCode("object-differs", Warning, "an object of the cluster is not as macfleet keeps it")
	codeObjectMissing      = NewCode("object-missing", Warning, "an object that macfleet keeps in the cluster is missing")
	codeObjectSurplus      = NewCode("object-surplus", Notice, "an object that macfleet made is no longer wanted")
	CodeClusterNotPrepared = NewCode("cluster-not-prepared", Critical, "the cluster lacks objects that only an administrator may make",
		"let an administrator of the cluster run: macfleet init cluster")
)

// objects plans what the cluster itself lacks. It is no host's: a run that is
// limited to some leaves it alone.
func (c *computation) objects() {
	objects, _ := c.cluster.seen.Objects.Get()
	if c.plan.Narrowed || !JoinsCluster(c.cfg) {
		return
	}
	for _, o := range objects {
		if o.State == inventory.ObjectKept {
			continue
		}
		a := Action{Kind: KeepObject, Object: &o, Origin: pending, Reason: Reason{codeObjectSurplus, o.Why}}
		switch o.State {
		case inventory.ObjectDiffers:
			a.Origin, a.Reason.Code = drifted, codeObjectDiffers
		case inventory.ObjectMissing:
			a.Reason.Code = codeObjectMissing
		}
		if o.Prepared {
			a.Refusal = notPrepared(o)
		}
		c.plan.Actions = append(c.plan.Actions, a)
	}
}

func notPrepared(o inventory.Object) *Trouble {
	text := fmt.Sprintf("the cluster has no %s", o)
	switch o.State {
	case inventory.ObjectDiffers:
		text = fmt.Sprintf("the %s of the cluster is not as this version wants it: %s", o, o.Why)
	case inventory.ObjectSurplus:
		text = fmt.Sprintf("the cluster still has the %s: %s", o, o.Why)
	}
	return CodeClusterNotPrepared.Trouble(text)
}

// lacking returns the objects that the cluster lacks and hosts need.
func (x *clusterIndex) lacking() []inventory.Object {
	objects, _ := x.seen.Objects.Get()
	return slices.DeleteFunc(slices.Clone(objects), func(o inventory.Object) bool {
		return !o.Prepared || o.Gates == inventory.GateNothing || !o.Lacking()
	})
}

// unclaimable returns why a pool server must not become a host that joins the cluster, or
// nil: it could not work there.
func (x *clusterIndex) unclaimable(h *Host) *Trouble {
	if !x.there || h.Member || !h.Spec.Spec.JoinsCluster() {
		return nil
	}
	for _, o := range x.lacking() {
		return notPrepared(o)
	}
	return nil
}

// unprepared refuses of a member's actions those that cannot end well while the cluster
// lacks an object. All others are done: a role that somebody deleted must not keep a
// host's other settings from being compared and repaired.
func (x *clusterIndex) unprepared(h *Host, actions []Action, node StepID) {
	if !x.there || !h.Spec.Spec.JoinsCluster() {
		return
	}
	for _, o := range x.lacking() {
		for i := range actions {
			if actions[i].Refusal == nil && blocks(o, h, actions[i], node) {
				actions[i].Refusal = notPrepared(o)
			}
		}
	}
}

// blocks reports whether an action cannot end well while the cluster lacks an object. node
// is the step that makes the host a Node.
func blocks(o inventory.Object, h *Host, a Action, node StepID) bool {
	switch {
	case a.Disruption >= Drain:
		return o.Gates == inventory.GateNodes || h.mayHavePodsIn(o.Namespace)
	case o.Gates != inventory.GateNodes:
		return false
	}
	return a.Kind == IdentifyHost || a.Kind == ReplaceNode || a.Kind == RunStep && a.Step == node
}

// mayHavePodsIn reports whether Pods of a namespace, or of any without a name, may be on the
// host's Node.
func (h *Host) mayHavePodsIn(namespace string) bool {
	pods, read := h.Pods.Get()
	return !read || slices.ContainsFunc(pods, func(p inventory.Pod) bool { return namespace == "" || p.Namespace == namespace })
}
