package kube

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kind is a type of object, with the server's behaviour that is particular to it. Its plural is also
// the name of its folder.
type kind struct {
	group, version   string
	resource         string // plural
	singular, name   string
	short            []string
	namespaced       bool
	status           bool     // has a separate status that writes of the object do not change
	statusOnCreate   bool     // the creator may set its status, as a kubelet does for its Node
	generation       bool     // counts the changes of its spec
	conditional      bool     // an update must name the version it is based on
	optional         bool     // served only if its folder exists, like a kind from a definition
	only             []string // its verbs; nil = all
	subresources     []subresource
	selectable       []string // fields for a fieldSelector, besides metadata.name and metadata.namespace
	validName        validation.ValidateNameFunc
	columns          []column
	protectsWithPath bool // its names may be any path segment
}

// subresource is a subresource besides the status.
type subresource struct {
	name, kind, group, version string
}

// The plurals that the code uses.
const (
	nodes               = "nodes"
	namespaces          = "namespaces"
	secrets             = "secrets"
	pods                = "pods"
	serviceAccounts     = "serviceaccounts"
	configMaps          = "configmaps"
	leases              = "leases"
	disruptionBudgets   = "poddisruptionbudgets"
	clusterRoles        = "clusterroles"
	clusterRoleBindings = "clusterrolebindings"
	roles               = "roles"
	roleBindings        = "rolebindings"
	accessReviews       = "selfsubjectaccessreviews"
	selfReviews         = "selfsubjectreviews"
	policies            = "validatingadmissionpolicies"
	policyBindings      = "validatingadmissionpolicybindings"
)

const rbacGroup = "rbac.authorization.k8s.io"

// catalogue is all kinds, in the order of discovery.
type catalogue []*kind

func newCatalogue() catalogue {
	all := append(coreKinds(), groupKinds()...)
	for _, k := range all {
		if k.validName == nil {
			k.validName = validation.NameIsDNSSubdomain
		}
		if k.protectsWithPath {
			k.validName = pathSegment
		}
	}
	return all
}

// pathSegment returns why a name cannot be a path segment: the real server's only rule for the names
// of roles and bindings.
func pathSegment(name string, _ bool) []string {
	switch {
	case name == "." || name == "..":
		return []string{fmt.Sprintf("may not be '%s'", name)}
	case strings.ContainsAny(name, "/%"):
		return []string{"may not contain '/' or '%'"}
	}
	return nil
}

func coreKinds() catalogue {
	return catalogue{
		{resource: configMaps, singular: "configmap", name: "ConfigMap", short: []string{"cm"}, namespaced: true, columns: configMapColumns()},
		{resource: "events", singular: "event", name: "Event", short: []string{"ev"}, namespaced: true, columns: eventColumns(), selectable: []string{
			"involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid", "involvedObject.apiVersion",
			"involvedObject.resourceVersion", "involvedObject.fieldPath", "reason", "reportingComponent", "source", "type",
		}},
		{resource: namespaces, singular: "namespace", name: "Namespace", short: []string{"ns"}, status: true, columns: namespaceColumns(),
			selectable: []string{"status.phase"}, validName: validation.ValidateNamespaceName},
		{resource: nodes, singular: "node", name: "Node", short: []string{"no"}, status: true, statusOnCreate: true, columns: nodeColumns(),
			selectable: []string{"spec.unschedulable"}},
		{resource: pods, singular: "pod", name: "Pod", short: []string{"po"}, namespaced: true, status: true, columns: podColumns(),
			subresources: []subresource{{"eviction", "Eviction", "policy", "v1"}},
			selectable:   []string{"spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "status.phase", "status.podIP"}},
		{resource: secrets, singular: "secret", name: "Secret", namespaced: true, columns: secretColumns(), selectable: []string{"type"}},
		{resource: serviceAccounts, singular: "serviceaccount", name: "ServiceAccount", short: []string{"sa"}, namespaced: true,
			columns: ageColumns(), validName: validation.ValidateServiceAccountName,
			subresources: []subresource{{"token", "TokenRequest", "authentication.k8s.io", "v1"}}},
		{resource: "services", singular: "service", name: "Service", short: []string{"svc"}, namespaced: true, status: true,
			columns: serviceColumns(), selectable: []string{"spec.clusterIP", "spec.type"}, validName: validation.NameIsDNS1035Label},
	}
}

// groupKinds returns the kinds of the named groups.
func groupKinds() catalogue {
	const admission, apps, capi = "admissionregistration.k8s.io", "apps", "cluster.x-k8s.io"
	all := catalogue{
		{group: admission, resource: policies, singular: "validatingadmissionpolicy", name: "ValidatingAdmissionPolicy", generation: true, optional: true},
		{group: admission, resource: policyBindings, singular: "validatingadmissionpolicybinding", name: "ValidatingAdmissionPolicyBinding", generation: true, optional: true},
		{group: apps, resource: "daemonsets", singular: "daemonset", name: "DaemonSet", short: []string{"ds"}, namespaced: true, status: true, generation: true},
		{group: apps, resource: "deployments", singular: "deployment", name: "Deployment", short: []string{"deploy"}, namespaced: true, status: true, generation: true},
		{group: apps, resource: "replicasets", singular: "replicaset", name: "ReplicaSet", short: []string{"rs"}, namespaced: true, status: true, generation: true},
		{group: "authentication.k8s.io", resource: selfReviews, singular: "selfsubjectreview", name: "SelfSubjectReview", only: []string{"create"}},
		{group: "authorization.k8s.io", resource: accessReviews, singular: "selfsubjectaccessreview", name: "SelfSubjectAccessReview", only: []string{"create"}},
		{group: capi, version: "v1beta1", resource: "clusters", singular: "cluster", name: "Cluster", short: []string{"cl"}, namespaced: true, status: true, generation: true, conditional: true, optional: true},
		{group: capi, version: "v1beta1", resource: "machinedeployments", singular: "machinedeployment", name: "MachineDeployment", short: []string{"md"}, namespaced: true, status: true, generation: true, conditional: true, optional: true},
		{group: capi, version: "v1beta1", resource: "machines", singular: "machine", name: "Machine", short: []string{"ma"}, namespaced: true, status: true, generation: true, conditional: true, optional: true},
		{group: "coordination.k8s.io", resource: leases, singular: "lease", name: "Lease", namespaced: true, conditional: true, columns: leaseColumns()},
		{group: "infrastructure." + capi, version: "v1alpha1", resource: "scalewayapplesiliconmachines", singular: "scalewayapplesiliconmachine", name: "ScalewayAppleSiliconMachine", short: []string{"samm"}, namespaced: true, status: true, generation: true, conditional: true, optional: true},
		{group: "policy", resource: disruptionBudgets, singular: "poddisruptionbudget", name: "PodDisruptionBudget", short: []string{"pdb"}, namespaced: true, status: true, generation: true, conditional: true, columns: budgetColumns()},
		{group: rbacGroup, resource: clusterRoleBindings, singular: "clusterrolebinding", name: "ClusterRoleBinding", columns: bindingColumns(), protectsWithPath: true},
		{group: rbacGroup, resource: clusterRoles, singular: "clusterrole", name: "ClusterRole", columns: roleColumns(), protectsWithPath: true},
		{group: rbacGroup, resource: roleBindings, singular: "rolebinding", name: "RoleBinding", namespaced: true, columns: bindingColumns(), protectsWithPath: true},
		{group: rbacGroup, resource: roles, singular: "role", name: "Role", namespaced: true, columns: roleColumns(), protectsWithPath: true},
	}
	return all
}

func (c catalogue) named(resource string) *kind {
	for _, k := range c {
		if k.resource == resource {
			return k
		}
	}
	return nil
}

// find returns the kind of a path, if this cluster serves it.
func (c catalogue) find(dir, group, version, resource string) *kind {
	k := c.named(resource)
	if k == nil || k.group != group || k.apiVersion() != version || !k.served(dir) {
		return nil
	}
	return k
}

// served reports whether the cluster in the folder dir has the kind.
func (k *kind) served(dir string) bool {
	if !k.optional {
		return true
	}
	_, err := os.Stat(filepath.Join(dir, k.resource))
	return err == nil
}

func (k *kind) apiVersion() string {
	if k.version != "" {
		return k.version
	}
	return "v1"
}

func (k *kind) gvk() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: k.group, Version: k.apiVersion(), Kind: k.name}
}

func (k *kind) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: k.group, Resource: k.resource}
}

// verbs returns the verbs of the kind.
func (k *kind) verbs() metav1.Verbs {
	if k.only != nil {
		return k.only
	}
	return metav1.Verbs{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
}

// validFile reports whether name can be part of a file name. It prevents a name in a request from
// naming a file outside the state folder.
func validFile(name string) bool {
	if name == "" || len(name) > 240 || name[0] == '.' {
		return false
	}
	for _, c := range []byte(name) {
		if c == '/' || c == '\\' || c == 0 {
			return false
		}
	}
	return true
}
