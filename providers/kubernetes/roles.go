package kubernetes

import (
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// The roles that macfleet makes. docs/kubernetes.md says what each is for.
const (
	agentRole = "macfleet-tart-kubelet"
	podRole   = agentRole + "-pods"   // in the namespaces of Pods
	leaseRole = agentRole + "-leases" // in that of the heartbeats
	ownName   = "macfleet"            // macfleet's own account, role and bindings
)

// rule is one rule of a role: groups, resources and verbs are separated by
// spaces; "core" is the group without a name.
func rule(group, resources, verbs string, names ...string) rbacv1.PolicyRule {
	if group == "core" {
		group = ""
	}
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: strings.Fields(resources), Verbs: strings.Fields(verbs), ResourceNames: names}
}

// agentRules is what a tart-kubelet asks of the whole cluster, and no more. All
// agents share it: RBAC cannot narrow it to one Node, and what does that for
// kubelets (NodeRestriction) does not look at ServiceAccounts. So a stolen token is
// revoked, and what a stolen Mac must not read is in no rule here.
var agentRules = []rbacv1.PolicyRule{
	// It registers its Node, fills in the provider id where it is empty, prunes its
	// own labels, and watches that the Node is still there.
	rule("core", "nodes", "get list watch create patch update"),
	// The heartbeat: conditions, addresses, capacity.
	rule("core", "nodes/status", "patch update"),
	// It looks for the Pods that are bound to its Node, in whatever namespace.
	rule("core", "pods", "get list watch"),
	rule("core", "events", "create patch"),
	rule("events.k8s.io", "events", "create patch"),
}

// podRules is what a tart-kubelet asks of the namespaces where Pods for Macs run,
// and there alone: elsewhere it would read the fleet's key, and issue tokens of
// whomever it likes.
var podRules = []rbacv1.PolicyRule{
	// It puts its finalizer on its Pods and takes it off, and deletes a Pod whose
	// virtual machine is gone.
	rule("core", "pods", "patch update delete"),
	rule("core", "pods/status", "patch update"),
	// The environment of a Pod's container.
	rule("core", "secrets configmaps", "get"),
	// The token of a Pod's own account, which the virtual machine is given.
	rule("core", "serviceaccounts/token", "create"),
}

// leaseRules is the cheap heartbeat. The Leases of other namespaces say who leads
// the cluster's own controllers.
var leaseRules = []rbacv1.PolicyRule{rule("coordination.k8s.io", "leases", "get create patch update")}

// clusterRules is what macfleet needs in the whole cluster: to look, to change
// Nodes, to empty them, and to bind hosts to the agents' role, that role alone.
var clusterRules = []rbacv1.PolicyRule{
	rule("core", "nodes", "get list patch delete"),
	rule("coordination.k8s.io", "leases", "list"),
	// A Pod that a kubelet left behind: its finalizer, and what is left of it then.
	rule("core", "pods", "get list patch delete"),
	rule("core", "pods/eviction", "create"),
	// It says on a Node what it does to it. Events of Nodes stand in the default namespace.
	rule("core", "events", "create"),
	// A drain asks whether a Pod is a DaemonSet's.
	rule("apps", "daemonsets", "get"),
	// Which cluster this is, and how hosts reach it.
	rule("core", "namespaces", "get"),
	rule("core", "configmaps", "get", clusterInfo, rootCA),
	// The hosts' bindings. Without "bind" on a role, nobody binds what exceeds their
	// own rights.
	rule("rbac.authorization.k8s.io", "clusterrolebindings", "get list create update delete"),
	rule("rbac.authorization.k8s.io", "clusterroles", "bind", agentRole, capiRole),
	// Roles are compared. To write them takes an administrator: who may change the
	// agents' role may give the agents, and so itself, any right.
	rule("rbac.authorization.k8s.io", "clusterroles", "get", agentRole, podRole, leaseRole, capiRole),
	rule("rbac.authorization.k8s.io", "rolebindings", "get list"),
	rule(capiGroup, "clusters machines machinedeployments", "get list"),
	// Whether the controller that sets Macs up leaves one alone.
	rule("infrastructure."+capiGroup, "scalewayapplesiliconmachines", "list"),
}

// identityRules is what macfleet needs in the namespace of the agents.
var identityRules = []rbacv1.PolicyRule{rule("core", "serviceaccounts secrets", "get list create update delete")}

// namespaceRules is what macfleet needs in its own namespace: the account of the
// Cluster API, the pinned host keys, the lock.
var namespaceRules = []rbacv1.PolicyRule{
	rule("core", "serviceaccounts secrets", "get create update delete"),
	rule("core", "configmaps", "get create update"),
	rule("coordination.k8s.io", "leases", "get create update"),
}

// kubeconfigRules is what macfleet needs in the namespace of a Cluster API
// Cluster: one Secret. A name cannot bound "create".
func kubeconfigRules(name string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		rule("core", "secrets", "create"),
		rule("core", "secrets", "get update", name),
	}
}

// capiRules is what the Cluster API's core asks of the cluster that its Machines
// are Nodes of: it binds Machines to Nodes, drains them, and asks "/" whether the
// connection stands.
var capiRules = []rbacv1.PolicyRule{
	rule("core", "nodes", "get list watch patch delete"),
	rule("core", "pods", "get list"),
	rule("core", "pods/eviction", "create"),
	{NonResourceURLs: []string{"/"}, Verbs: []string{"get"}},
}
