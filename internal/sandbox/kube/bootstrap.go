package kube

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"time"

	"github.com/macfleet/macfleet/internal/sandbox/store"
)

func builtInNamespaces() []string {
	return []string{"default", "kube-node-lease", "kube-public", "kube-system"}
}

// bootstrap makes what every cluster has from its start and what is missing here, as the real server
// does whenever it starts.
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

// Server is the address under which the cluster says that it is reached. Nobody listens there: the
// simulated Macs do not ask, and macfleet is told the address on loopback.
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

// ensure writes an object unless there is one of its name.
func (a *API) ensure(resource string, o *object) error {
	present, err := a.state.peek(resource, o.GetNamespace(), o.GetName())
	if err != nil || present != nil {
		return err
	}
	return a.state.put(resource, o)
}

// bootstrapRoles gives everybody who has a name the rights to see what the server is, and everybody
// at all those to join: where the cluster is reached.
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

// authority gives the certificate of the cluster's authority, and makes it where there is none yet.
// Nothing is signed with it: the API is plain HTTP on loopback.
func (a *API) authority() (string, error) {
	path := filepath.Join(a.state.dir, "ca.crt")
	data, err := os.ReadFile(path)
	if err == nil {
		return string(data), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read the certificate of the sandbox's cluster: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", fmt.Errorf("make the certificate of the sandbox's cluster: %w", err)
	}
	form := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kubernetes"},
		NotBefore: time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2046, time.January, 1, 0, 0, 0, 0, time.UTC),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, form, form, &key.PublicKey, key)
	if err != nil {
		return "", fmt.Errorf("make the certificate of the sandbox's cluster: %w", err)
	}
	data = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return string(data), store.WriteFile(path, data)
}
