package kube

import (
	"encoding/base64"
	"errors"
	"fmt"
	"time"
)

func builtInNamespaces() []string {
	return []string{"default", "kube-node-lease", "kube-public", "kube-system"}
}

// bootstrap creates the missing objects of every new cluster, as the real server does at each start.
func (a *API) bootstrap(now time.Time) error {
	for _, name := range builtInNamespaces() {
		if err := a.ensure(namespaces, newNamespace(a.kinds, name, now)); err != nil {
			return err
		}
	}
	if err := a.bootstrapRoles(now); err != nil {
		return err
	}
	ca, err := a.authority()
	if err != nil {
		return err
	}
	info := newObject(a.kinds.named(configMaps), "kube-public", "cluster-info", now)
	info.Object["data"] = map[string]any{"kubeconfig": fmt.Sprintf(clusterInfo, base64.StdEncoding.EncodeToString([]byte(ca)), Server)}
	return a.ensure(configMaps, info)
}

// Server is the address in the cluster's own information. Nothing listens there: the simulated Macs do
// not connect, and macfleet and kubectl get a loopback address.
const Server = "https://kubernetes.sandbox.internal:6443"

const clusterInfo = `apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: %s
    server: %s
  name: ""
contexts: null
current-context: ""
kind: Config
preferences: {}
users: null
`

// ensure writes an object unless one of its name exists.
func (a *API) ensure(resource string, o *object) error {
	present, err := a.state.peek(resource, o.GetNamespace(), o.GetName())
	if err != nil || present != nil {
		return err
	}
	return a.state.put(resource, o)
}

// bootstrapRoles gives every named user the rights of discovery, and every client those to join: to
// read where the cluster is reached.
func (a *API) bootstrapRoles(now time.Time) error {
	type rule = map[string]any
	list := func(values ...string) []any {
		var items []any
		for _, value := range values {
			items = append(items, value)
		}
		return items
	}
	group := func(name string) rule { return rule{"kind": "Group", "apiGroup": rbacGroup, "name": name} }
	documents := list("/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez", "/openapi", "/openapi/*", "/readyz", "/version", "/version/")
	for _, one := range []struct {
		resource, binding, namespace, name string
		rules, subjects                    []any
	}{
		{clusterRoles, clusterRoleBindings, "", "cluster-admin",
			[]any{
				rule{"apiGroups": list("*"), "resources": list("*"), "verbs": list("*")},
				rule{"nonResourceURLs": list("*"), "verbs": list("*")},
			}, []any{group(masters)}},
		{clusterRoles, clusterRoleBindings, "", "system:discovery",
			[]any{rule{"nonResourceURLs": documents, "verbs": list("get")}}, []any{group(authenticated)}},
		{clusterRoles, clusterRoleBindings, "", "system:public-info-viewer",
			[]any{rule{"nonResourceURLs": list("/healthz", "/livez", "/readyz", "/version", "/version/"), "verbs": list("get")}},
			[]any{group(authenticated), group(unauthenticated)}},
		{clusterRoles, clusterRoleBindings, "", "system:basic-user",
			[]any{
				rule{"apiGroups": list("authorization.k8s.io"), "resources": list(accessReviews, "selfsubjectrulesreviews"), "verbs": list("create")},
				rule{"apiGroups": list("authentication.k8s.io"), "resources": list(selfReviews), "verbs": list("create")},
			}, []any{group(authenticated)}},
		{roles, roleBindings, "kube-public", "kubeadm:bootstrap-signer-clusterinfo",
			[]any{rule{"apiGroups": list(""), "resources": list(configMaps), "resourceNames": list("cluster-info"), "verbs": list("get")}},
			[]any{rule{"kind": "User", "apiGroup": rbacGroup, "name": anonymousName}}},
	} {
		role := newObject(a.kinds.named(one.resource), one.namespace, one.name, now)
		role.Object["rules"] = one.rules
		binding := newObject(a.kinds.named(one.binding), one.namespace, one.name, now)
		binding.Object["subjects"] = one.subjects
		binding.Object["roleRef"] = rule{"apiGroup": rbacGroup, "kind": a.kinds.named(one.resource).name, "name": one.name}
		for _, o := range []*object{role, binding} {
			o.SetLabels(map[string]string{"kubernetes.io/bootstrapping": "rbac-defaults"})
		}
		if err := errors.Join(a.ensure(one.resource, role), a.ensure(one.binding, binding)); err != nil {
			return err
		}
	}
	return nil
}
