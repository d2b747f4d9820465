package plan

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
)

// The codes that are raised here.
var (
	CodeOtherCluster = NewCode("other-cluster", Critical, "the host, macfleet's namespace or the lock belongs to a different cluster than the one in use",
		"correct context in the kubernetes block; to move hosts to this cluster: macfleet apply --moved-from-cluster UID")
	codeClusterUnknown = NewCode("cluster-unknown", Warning, "the identity of the cluster could not be read",
		"macfleet init cluster (grants permission to get the namespace kube-system)")
	codeClusterMoved = NewCode("cluster-moved", NotDrift, "--moved-from-cluster moves the host to this cluster")
)

// clusterNamed names the cluster of a marker.
func clusterNamed(name, uid string) string {
	return cmp.Or(name, "(no name)") + ", uid " + inventory.ShortUID(uid)
}

// differs reports whether a marker was written in a different cluster. A marker without a cluster
// was written by an older macfleet, or before there was a cluster.
func (m Marker) differs(here *inventory.ClusterID) bool {
	return here != nil && m.ClusterUID != "" && m.ClusterUID != here.UID
}

// moves reports whether a person moves the host from its marker's cluster to this one.
func (h *Host) moves(m Marker) bool { return m.differs(h.Cluster) && m.ClusterUID == h.MovedFrom }

// otherCluster returns why the host must not be changed in this cluster, or nil: its Node, identity and Pods
// are in the other one.
func (h *Host) otherCluster(m Marker) *Trouble {
	if !m.differs(h.Cluster) || h.moves(m) {
		return nil
	}
	return CodeOtherCluster.Trouble(fmt.Sprintf("it belongs to the cluster %s, but this is %s", clusterNamed(m.Cluster, m.ClusterUID), h.Cluster),
		"correct context in the kubernetes block, or KUBECONFIG; to move the host to this cluster, drain it in the other one, then: "+
			"macfleet apply --on name="+h.Name+" --moved-from-cluster "+m.ClusterUID)
}

// moved returns the action that records this cluster in the marker.
func (h *Host) moved(m Marker) Action {
	return h.action(CreateMarker, pending, codeClusterMoved, "it moves to this cluster; its Pods in the other cluster are lost",
		Field{"cluster", clusterNamed(m.Cluster, m.ClusterUID), h.Cluster.String()})
}

// PreparedElsewhere returns why nothing may be done in a cluster, or nil: macfleet's namespace was prepared in
// another one and restored here from a backup.
func PreparedElsewhere(cfg *fleet.Config, here inventory.ClusterID, noted inventory.Seen[inventory.ClusterID], movedFrom string) *Trouble {
	was, noting := noted.Get()
	if !noting || was.UID == here.UID || was.UID == movedFrom {
		return nil
	}
	return CodeOtherCluster.Trouble(fmt.Sprintf("namespace %s was prepared in the cluster %s, but this is %s", cfg.Kubernetes.Namespace, was, here),
		"correct context in the kubernetes block, or KUBECONFIG; if this cluster replaces that one: macfleet init cluster --moved-from-cluster "+was.UID)
}

// LockedElsewhere returns why a lock must not be taken in a cluster, or nil: a run took it in another
// cluster, and it was restored here from a backup.
func LockedElsewhere(of fleet.Owner, here inventory.ClusterID, l Lock) *Trouble {
	return CodeOtherCluster.Trouble(fmt.Sprintf("the lock of %s was last taken in the cluster %s, by %s (run %s), but this is %s",
		of, clusterNamed(l.Cluster, l.ClusterUID), l.Run.Who, l.Run.ID, here),
		"correct context in the kubernetes block, or KUBECONFIG; if this cluster replaces that one: macfleet plan --moved-from-cluster "+l.ClusterUID)
}

// elsewhere reports whether the lock was last taken in a different cluster.
func (l *Lock) elsewhere(here inventory.ClusterID, movedFrom string) bool {
	return l != nil && l.ClusterUID != "" && l.ClusterUID != here.UID && l.ClusterUID != movedFrom
}

// whichCluster checks that this is the cluster of the configuration's hosts. While one of them disagrees, no
// server is claimed.
func (c *computation) whichCluster() {
	id, known := c.cluster.seen.ID.Get()
	if !known {
		if why := c.cluster.seen.ID.Why(); why != "" {
			c.doubt = codeClusterUnknown.Trouble("the identity of the cluster cannot be read: " + why)
		}
		return
	}
	c.plan.ClusterID = &id
	if l := c.snap.Lock; l.elsewhere(id, c.sel.MovedFrom) {
		c.doubt = LockedElsewhere(c.cfg.Owner, id, *l)
		c.plan.Doubts = append(c.plan.Doubts, *c.doubt)
	}
	var elsewhere []Marker
	for _, seen := range c.snap.Hosts {
		if m, marked := seen.Marker.Get(); marked && m.Owner() == c.cfg.Owner && m.differs(&id) && m.ClusterUID != c.sel.MovedFrom {
			elsewhere = append(elsewhere, m)
		}
	}
	if len(elsewhere) > 0 {
		first := slices.MinFunc(elsewhere, func(a, b Marker) int { return cmp.Compare(a.Name, b.Name) })
		c.doubt = CodeOtherCluster.Trouble(fmt.Sprintf("%s belongs to the cluster %s, but this is %s", first.Name, clusterNamed(first.Cluster, first.ClusterUID), id),
			"correct context in the kubernetes block, or KUBECONFIG; nothing is added to this cluster while hosts belong to a different one")
	}
}

// keepToCluster refuses what must not be done until it is certain that this is the right cluster. A host
// whose own marker names this cluster is not affected.
func (c *computation) keepToCluster(h *Host, actions []Action) {
	m, marked := h.Seen.Marker.Get()
	if c.doubt == nil || marked && h.Cluster != nil && (m.ClusterUID == h.Cluster.UID || h.moves(m)) {
		return
	}
	if !h.Member {
		refuse(actions, c.doubt)
		return
	}
	for i := range actions {
		if a := &actions[i]; a.needsCluster() {
			a.Refusal = cmp.Or(a.Refusal, c.doubt)
		}
	}
}

// needsCluster reports whether an action changes something in the cluster, or relies on what the cluster
// reports, such as whether a host is idle.
func (a Action) needsCluster() bool {
	switch a.Kind {
	case IdentifyHost, RenewToken, RetireTokens, SetProviderID, ReplaceNode, DrainNode, DeleteNode, UncordonNode, RevokeHost, ReleasePods, KeepObject, RemoveObject:
		return true
	}
	return a.Disruption != NoDisruption || a.AfterRoot || slices.ContainsFunc(a.Changes, func(c Change) bool { return c.Input == Kubeconfig })
}

// unknownCluster records for the whole plan that the cluster's identity is unknown.
func (c *computation) unknownCluster() {
	if _, known := c.cluster.seen.ID.Get(); !known && c.doubt != nil {
		c.plan.Warnings = append(c.plan.Warnings, *c.doubt)
	}
}
