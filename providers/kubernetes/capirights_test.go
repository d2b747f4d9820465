package kubernetes_test

// capiUses is what the core of the Cluster API asks of the cluster whose Nodes its Machines are, by
// version, from its source: to bind a Machine, to watch its Node, and to bring its deletion to an end.
// What it lacks is an error of that deletion, which is tried again for ever. TestRights asks for each.
var capiUses = []struct {
	versions, what string
	rights         []right
}{
	{"v1.0 to v1.13", "the connection works, and which Pod the controller itself is", []right{"get /", "get pods capi-system"}},
	{"v1.0 to v1.13", "Nodes are found by their provider id in a cache, and marked",
		[]right{"get nodes", "list nodes", "watch nodes", "patch nodes"}},
	{"v1.0 to v1.8", "deletion: cordon and drain with kubectl's own code, which asks for the DaemonSet of each Pod that has one",
		[]right{"get nodes", "patch nodes", "list pods", "get pods default", "get daemonsets.apps kube-system",
			"create pods/eviction default"}},
	{"v1.9 to v1.13", "deletion: drain by rules, which may choose by the labels of namespaces; those are kept in a cache",
		[]right{"list pods", "get daemonsets.apps kube-system", "create pods/eviction default", "list namespaces",
			"watch namespaces"}},
	{"v1.9 to v1.13", "deletion: volumes are waited for",
		[]right{"list volumeattachments.storage.k8s.io", "list persistentvolumes", "get persistentvolumes", "get persistentvolumeclaims default"}},
	{"v1.0 to v1.13", "deletion: the Node goes with its Machine", []right{"delete nodes"}},
}
