package kubernetes

import (
	_ "embed"
	"fmt"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// The roles that macfleet makes. docs/kubernetes.md says what each is for.
const (
	agentRole = "macfleet-tart-kubelet"
	podRole   = agentRole + "-pods"   // in the namespaces of Pods
	leaseRole = agentRole + "-leases" // in that of the heartbeats
	ownName   = "macfleet"            // macfleet's own account, role and bindings

	ownPodsRole = ownName + "-pods" // so here, in the namespaces of Pods
)

//go:embed roles.yaml
var rolesText []byte

// rules are what each role may do, as roles.yaml says.
var rules = sync.OnceValue(func() (out struct{ Agents, Pods, Leases, Cluster, Release, Identities, Namespace, CAPI []rbacv1.PolicyRule }) {
	if err := yaml.UnmarshalStrict(rolesText, &out); err != nil {
		panic(fmt.Sprintf("the embedded roles.yaml cannot be read: %v", err)) // it is a file of this package
	}
	return out
})

// kubeconfigRules is what macfleet needs in the namespace of a Cluster API
// Cluster: one Secret. A name cannot bound "create".
func kubeconfigRules(name string) []rbacv1.PolicyRule {
	secrets := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}}
	create, use := secrets, secrets
	create.Verbs, use.Verbs, use.ResourceNames = []string{"create"}, []string{"get", "update", "delete"}, []string{name}
	return []rbacv1.PolicyRule{create, use}
}
