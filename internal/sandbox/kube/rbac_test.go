package kube_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// member returns a client of a ServiceAccount with the given rules in the whole cluster.
func (f *fleet) member(t *testing.T, name string, rules ...rbacv1.PolicyRule) kubernetes.Interface {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
	if _, err := f.admin.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return f.client(t, f.identity(t, name, name))
}

func rule(group, resource, name string, verbs ...string) rbacv1.PolicyRule {
	r := rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
	if name != "" {
		r.ResourceNames = []string{name}
	}
	return r
}

// TestRights checks a ServiceAccount's rights, through the review and by using them.
func TestRights(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	who := f.member(t, "reader",
		rule("", "nodes", "", "get", "list"), rule("", "secrets", "fleet-ssh", "get", "list"), rule("", "*/status", "", "patch"),
		rule("coordination.k8s.io", "*", "", "*"), rbacv1.PolicyRule{NonResourceURLs: []string{"/logs/*", "/"}, Verbs: []string{"get"}})
	for _, test := range []struct {
		verb, group, resource, sub, namespace, name, path string
		want                                              bool
	}{
		{verb: "get", resource: "nodes", name: "x", want: true},
		{verb: "list", resource: "nodes", want: true},
		{verb: "delete", resource: "nodes", name: "x"},
		{verb: "get", group: "apps", resource: "nodes"},
		{verb: "patch", resource: "nodes", sub: "status", name: "x", want: true},
		{verb: "patch", resource: "nodes", name: "x"},
		{verb: "patch", resource: "pods", sub: "status", namespace: "default", want: true},
		{verb: "get", resource: "secrets", namespace: "macfleet", name: "fleet-ssh", want: true},
		{verb: "get", resource: "secrets", namespace: "macfleet", name: "other"},
		{verb: "list", resource: "secrets", namespace: "macfleet"},
		{verb: "create", group: "coordination.k8s.io", resource: "leases", namespace: "kube-system", want: true},
		{verb: "create", group: "authorization.k8s.io", resource: "selfsubjectaccessreviews", want: true},
		{verb: "get", path: "/version", want: true},
		{verb: "get", path: "/apis/apps/v1", want: true},
		{verb: "get", path: "/", want: true},
		{verb: "get", path: "/logs/a/b", want: true},
		{verb: "post", path: "/logs/a"},
		{verb: "get", path: "/metrics"},
	} {
		review := &authorizationv1.SelfSubjectAccessReview{}
		if test.path != "" {
			review.Spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: test.path, Verb: test.verb}
		} else {
			review.Spec.ResourceAttributes = &authorizationv1.ResourceAttributes{
				Verb: test.verb, Group: test.group, Resource: test.resource, Subresource: test.sub, Namespace: test.namespace, Name: test.name,
			}
		}
		got, err := who.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{})
		if err != nil || got.Status.Allowed != test.want {
			t.Errorf("%+v: %v %v", test, got, err)
		}
	}
	core := who.CoreV1()
	if _, err := core.Secrets("macfleet").List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=fleet-ssh"}); err != nil {
		t.Errorf("a list of the one name: %v", err)
	}
	const want = `nodes "acme-01" is forbidden: User "system:serviceaccount:macfleet:reader" cannot delete resource "nodes" in API group "" at the cluster scope`
	if err := core.Nodes().Delete(t.Context(), "acme-01", metav1.DeleteOptions{}); !apierrors.IsForbidden(err) || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	const there = `secrets is forbidden: User "system:serviceaccount:macfleet:reader" cannot list resource "secrets" in API group "" in the namespace "macfleet"`
	if _, err := core.Secrets("macfleet").List(t.Context(), metav1.ListOptions{}); err == nil || err.Error() != there {
		t.Errorf("got %v, want %s", err, there)
	}
	self, err := who.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil || fmt.Sprint(self.Status.UserInfo.Groups) != "[system:serviceaccounts system:serviceaccounts:macfleet system:authenticated]" {
		t.Errorf("who am I: %+v %v", self, err)
	}
}

func TestRoleInANamespace(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	who := f.client(t, f.identity(t, "local", "none"))
	rbac := f.admin.RbacV1()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "reader"}, Rules: []rbacv1.PolicyRule{rule("", "configmaps", "", "list")}}
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "reader"}, RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "reader"},
		Subjects: []rbacv1.Subject{{Kind: "Group", Name: "system:serviceaccounts:macfleet"}}}
	if _, err := rbac.Roles("default").Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	made, err := rbac.RoleBindings("default").Create(t.Context(), binding, metav1.CreateOptions{})
	if err != nil || made.RoleRef.APIGroup != rbacv1.GroupName || made.Subjects[0].APIGroup != rbacv1.GroupName {
		t.Fatalf("%+v %v", made, err)
	}
	for namespace, want := range map[string]bool{"default": true, "macfleet": false, "": false} {
		_, err := who.CoreV1().ConfigMaps(namespace).List(t.Context(), metav1.ListOptions{})
		equal(t, err == nil, want, "in", namespace, err)
	}
	made.RoleRef.Name = "other"
	if _, err := rbac.RoleBindings("default").Update(t.Context(), made, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "cannot change roleRef") {
		t.Errorf("another roleRef: %v", err)
	}
}

// TestEscalation checks that a user who manages roles cannot grant rights beyond the user's own.
func TestEscalation(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	manager := f.member(t, "manager", rule("rbac.authorization.k8s.io", "clusterroles", "", "create", "update"),
		rule("rbac.authorization.k8s.io", "clusterrolebindings", "", "create"), rule("", "nodes", "", "get"),
		rule("rbac.authorization.k8s.io", "clusterroles", "agents", "bind")).RbacV1()
	role := func(name string, rules ...rbacv1.PolicyRule) *rbacv1.ClusterRole {
		return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
	}
	if _, err := manager.ClusterRoles().Create(t.Context(), role("fits", rule("", "nodes", "x", "get")), metav1.CreateOptions{}); err != nil {
		t.Errorf("a role within the user's rights: %v", err)
	}
	_, err := manager.ClusterRoles().Create(t.Context(), role("more", rule("", "secrets", "", "get", "list")), metav1.CreateOptions{})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `is attempting to grant RBAC permissions not currently held:`) {
		t.Errorf("a role beyond the user's rights: %v", err)
	}
	for name, want := range map[string]bool{"agents": true, "fits": true, "cluster-admin": false} {
		binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "of-" + name}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: name},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "default", Name: "x"}}}
		_, err := manager.ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{})
		if (err == nil) != want || err != nil && !apierrors.IsForbidden(err) {
			t.Errorf("a binding to %s: %v", name, err)
		}
	}
}

func TestSecretTokens(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	core := f.admin.CoreV1()
	account, err := core.ServiceAccounts("default").Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{})
	must(t, err)
	wanted := &corev1.Secret{Type: corev1.SecretTypeServiceAccountToken, ObjectMeta: metav1.ObjectMeta{
		Name: "a-token", Annotations: map[string]string{corev1.ServiceAccountNameKey: "a"},
	}}
	made, err := core.Secrets("default").Create(t.Context(), wanted, metav1.CreateOptions{})
	if err != nil || len(made.Data) > 0 {
		t.Fatalf("the answer to the creation: %v %v", made, err)
	}
	filled, err := core.Secrets("default").Get(t.Context(), "a-token", metav1.GetOptions{})
	if err != nil || string(filled.Data["namespace"]) != "default" || !strings.HasPrefix(string(filled.Data["ca.crt"]), "-----BEGIN CERTIFICATE-----") ||
		filled.Annotations[corev1.ServiceAccountUIDKey] != string(account.UID) || strings.Count(string(filled.Data["token"]), ".") != 2 {
		t.Fatalf("filled: %v %v", filled, err)
	}
	who := f.client(t, string(filled.Data["token"]))
	knows := func() bool {
		_, err := who.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		if err != nil && !apierrors.IsUnauthorized(err) {
			t.Error(err)
		}
		return err == nil
	}
	if !knows() {
		t.Error("the token is refused")
	}
	must(t, core.Secrets("default").Delete(t.Context(), "a-token", metav1.DeleteOptions{}))
	if knows() {
		t.Error("the token is valid without its Secret")
	}
	if _, err := core.Secrets("default").Create(t.Context(), wanted, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if knows() {
		t.Error("a new Secret accepts the token of the old one")
	}
	must(t, core.ServiceAccounts("default").Delete(t.Context(), "a", metav1.DeleteOptions{}))
	if _, err := core.Secrets("default").Get(t.Context(), "a-token", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the Secret exists without its ServiceAccount: %v", err)
	}
	wanted.Annotations = nil
	if _, err := core.Secrets("default").Create(t.Context(), wanted, metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("a Secret that names no ServiceAccount: %v", err)
	}
}

func TestTokenRequests(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	accounts := f.admin.CoreV1().ServiceAccounts("default")
	request := func(seconds int64) (*authenticationv1.TokenRequest, error) {
		wanted := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
		return accounts.CreateToken(t.Context(), "default", wanted, metav1.CreateOptions{})
	}
	if _, err := request(599); !apierrors.IsInvalid(err) {
		t.Errorf("too short a lifetime: %v", err)
	}
	long, err := request(10 * 365 * 86400)
	if err != nil || !long.Status.ExpirationTimestamp.Time.Equal(f.clock.Now().Add(365*24*time.Hour)) {
		t.Errorf("too long a lifetime: %v %v", long, err)
	}
	made, err := request(600)
	must(t, err)
	who := f.client(t, made.Status.Token)
	for _, want := range []bool{true, false} {
		_, err := who.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		equal(t, err == nil, want, f.clock.Now(), err)
		f.clock.pass(10 * time.Minute)
	}
	forged := made.Status.Token[:len(made.Status.Token)-4] + "AAAA"
	if _, err := f.client(t, forged).Discovery().ServerVersion(); !apierrors.IsUnauthorized(err) {
		t.Errorf("a forged token: %v", err)
	}
}

func TestClusterInfoIsForAll(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	anonymous := f.client(t, "").CoreV1()
	info, err := anonymous.ConfigMaps("kube-public").Get(t.Context(), "cluster-info", metav1.GetOptions{})
	if err != nil || !strings.Contains(info.Data["kubeconfig"], "https://") {
		t.Errorf("%v %v", info, err)
	}
	if _, err := anonymous.ConfigMaps("kube-public").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("a list: %v", err)
	}
}
