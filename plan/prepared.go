package plan

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
)

// The codes that are raised here.
var (
	codeObjectDiffers = NewCode("object-differs", Warning, "an object in the cluster differs from what macfleet creates")
	codeObjectMissing = NewCode("object-missing", Warning, "an object that macfleet manages in the cluster is missing")
	codeObjectSurplus = NewCode("object-surplus", Notice, "an object that macfleet created is no longer needed")
	codeObjectForeign = NewCode("object-foreign", Notice, "a foreign object has the name of one of macfleet's; macfleet does not change it",
		"if nothing uses it, delete it with kubectl")
	codeObjectUnread = NewCode("object-unread", Notice, "it is unknown whether an object that macfleet no longer needs still exists",
		"as an administrator of the cluster: macfleet init cluster")
	codePreparedMissing    = NewCode("prepared-object-missing", Critical, "an object that init cluster created, and that hosts or macfleet need, is missing")
	codePreparedChanged    = NewCode("prepared-object-changed", Critical, "someone changed an object that init cluster created, such as the rules of a role")
	CodeClusterNotPrepared = NewCode("cluster-not-prepared", Critical, "the cluster lacks objects that only an administrator may create or change",
		"as an administrator of the cluster: macfleet init cluster")
)

// objects plans what the cluster itself lacks. A run limited to some hosts does not change it.
func (c *computation) objects() {
	objects, _ := c.cluster.seen.Objects.Get()
	if c.plan.Narrowed || !JoinsCluster(c.cfg) {
		return
	}
	before := sync.OnceValue(c.preparedBefore) // most plans never need it
	for _, o := range objects {
		switch o.State {
		case inventory.ObjectKept:
			continue
		case inventory.ObjectForeign:
			c.plan.Warnings = append(c.plan.Warnings, *codeObjectForeign.Trouble(fmt.Sprintf("the %s is foreign and was not changed: %s", o, o.Why)))
			continue
		case inventory.ObjectUnread:
			c.plan.Warnings = append(c.plan.Warnings, *codeObjectUnread.Trouble(fmt.Sprintf("it is unknown whether the %s still exists: %s", o, o.Why)))
			continue
		}
		a := Action{Kind: KeepObject, Object: &o}
		if o.State == inventory.ObjectSurplus {
			a.Kind = RemoveObject
		}
		a.Origin, a.Reason = c.explainObject(o, before)
		if o.Prepared {
			a.Refusal = notPrepared(o)
		}
		c.plan.Actions = append(c.plan.Actions, a)
	}
}

// explainObject says whether someone removed or changed an object, or the configuration or this version needs it
// differently.
func (c *computation) explainObject(o inventory.Object, before func() bool) (Origin, Reason) {
	if o.State == inventory.ObjectSurplus {
		return pending, Reason{codeObjectSurplus, o.Why}
	}
	origin := c.originOf(o, before)
	missing, certain := o.Gone(), origin.Drift && (o.Made != inventory.MadeUnknown || o.Lacking())
	switch {
	case o.Prepared && certain && missing:
		return origin, Reason{codePreparedMissing, cmp.Or(o.Why, "it existed and was deleted")}
	case o.Prepared && certain:
		return origin, Reason{codePreparedChanged, o.Why}
	case missing:
		return origin, Reason{codeObjectMissing, o.Why}
	}
	return origin, Reason{codeObjectDiffers, o.Why}
}

func (c *computation) originOf(o inventory.Object, before func() bool) Origin {
	missing := o.Gone()
	switch {
	case o.Made == inventory.MadeAsWanted:
		return drifted
	case o.Made == inventory.MadeMoved, o.Made == inventory.MadeOtherwise && missing:
		return Origin{Drift: true, Pending: true}
	case o.Made == inventory.MadeOtherwise:
		return pending
	case !o.Prepared: // a run of macfleet creates it too, and records nothing
		if missing && (!c.connected() || c.replaces(o)) {
			return pending
		}
		return drifted
	case o.Made == inventory.MadeNever, o.Made == inventory.MadeUnknown && o.Recent && missing, !before():
		return pending
	case missing:
		return drifted
	}
	// Either an older version made it or someone changed it: there is no record.
	return Origin{Drift: true, Pending: true}
}

// preparedBefore reports whether anything shows that the cluster was prepared once: an identity, a Node or a
// verified kubelet exists only after that. If there is nothing, it was not.
func (c *computation) preparedBefore() bool {
	identities, _ := c.cluster.seen.Identities.Get()
	if len(identities) > 0 {
		return true
	}
	for i := range c.servers {
		p := &c.servers[i]
		_, g, ok := c.cfg.Group(p.place.Fleet, p.place.Group)
		if p.role != member || !ok {
			continue
		}
		h := c.census.host(g, p)
		marker, _ := h.Seen.Marker.Get()
		step, makes := NodeStep(c.stepsFor(fleet.Host{Spec: h.Spec.Spec})) // only the name is configured, so it is not a host's
		if !makes {
			continue
		}
		if _, proven := marker.Steps[step.ID()]; proven || !h.Node.IsUnread() && !h.Node.IsAbsent() {
			return true
		}
	}
	return false
}

// replaces reports whether an object is needed in place of another one that macfleet made.
func (c *computation) replaces(o inventory.Object) bool {
	objects, _ := c.cluster.seen.Objects.Get()
	return slices.ContainsFunc(objects, func(s inventory.Object) bool {
		return s.State == inventory.ObjectSurplus && s.Kind == o.Kind && s.Prepared == o.Prepared
	})
}

// connected reports whether anything shows that the Cluster API was connected once: one of the objects that
// connect it, or a Machine bound to a Node.
func (c *computation) connected() bool {
	objects, _ := c.cluster.seen.Objects.Get()
	machines, _ := c.cluster.seen.Machines.Get()
	return slices.ContainsFunc(objects, func(o inventory.Object) bool {
		return !o.Prepared && o.State != inventory.ObjectMissing && o.State != inventory.ObjectForeign
	}) ||
		slices.ContainsFunc(machines, func(m inventory.Machine) bool { return m.NodeRef != "" })
}

func notPrepared(o inventory.Object) *Trouble {
	text := fmt.Sprintf("the cluster has no %s", o)
	switch o.State {
	case inventory.ObjectDiffers:
		text = fmt.Sprintf("the %s differs from what this version needs: %s", o, o.Why)
	case inventory.ObjectSurplus:
		text = fmt.Sprintf("the cluster still has the %s: %s", o, o.Why)
	case inventory.ObjectUnserved:
		return CodeClusterNotPrepared.Trouble(fmt.Sprintf("the %s has no effect: %s", o, o.Why),
			"enable this kind in the API server (Kubernetes 1.30 has it), or continue without it: macfleet init cluster")
	}
	return CodeClusterNotPrepared.Trouble(text)
}

// lacking returns the objects that hosts need and the cluster lacks.
func (x *clusterIndex) lacking() []inventory.Object {
	objects, _ := x.seen.Objects.Get()
	return slices.DeleteFunc(slices.Clone(objects), func(o inventory.Object) bool {
		return !o.Prepared || o.Gates == inventory.GateNothing || !o.Lacking()
	})
}

// unclaimable returns why a pool server must not become a host that joins the cluster, or nil: it could not
// work there.
func (x *clusterIndex) unclaimable(h *Host) *Trouble {
	if !x.read || h.Member || !h.Spec.Spec.JoinsCluster() {
		return nil
	}
	for _, o := range x.lacking() {
		return notPrepared(o)
	}
	return nil
}

// unprepared refuses those of a member's actions that would fail while the cluster lacks an object. The
// others run: a deleted role must not stop the repair of a host's other settings.
func (x *clusterIndex) unprepared(h *Host, actions []Action, node StepID) {
	if !x.read || !h.Spec.Spec.JoinsCluster() {
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

// blocks reports whether an action would fail while the cluster lacks an object. node is the step that makes
// the host a Node.
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
