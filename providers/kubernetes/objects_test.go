package kubernetes_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/providers/kubernetes"
)

// withCAPI are options of a configuration that connects the Cluster API.
func (c *cluster) withCAPI(t *testing.T) kubernetes.Options {
	t.Helper()
	o := c.options(t)
	o.CAPI = &kubernetes.CAPI{Cluster: "acme", Namespace: ns(t) + "-capi"}
	_, err := c.admin.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: o.CAPI.Namespace}}, metav1.CreateOptions{})
	must(t, err)
	return o
}

func objects(t *testing.T, client *kubernetes.Client) []inventory.Object {
	t.Helper()
	return read(t, observe(t, client).Objects)
}

// wrong are the objects that are not kept, with why.
func wrong(list []inventory.Object) map[string]string {
	out := make(map[string]string)
	for _, o := range list {
		if o.State != inventory.ObjectKept {
			out[o.Kind+" "+o.Name] = strings.TrimSpace(string(o.State) + " " + o.Why)
		}
	}
	return out
}

// TestKeep makes what the cluster must hold, sees what was done to it, and fixes
// it.
func TestKeep(t *testing.T) {
	t.Parallel()
	eachCluster(t, func(t *testing.T, c *cluster) {
		o := c.withCAPI(t)
		client := c.client(t, o)
		before := objects(t, client)
		if len(before) != 25 || before[0].State != inventory.ObjectMissing {
			t.Errorf("before: %+v", before)
		}
		c.control(t)
		keep := func(list []inventory.Object) {
			t.Helper()
			for _, k := range list {
				must(t, client.Keep(t.Context(), k))
			}
			if left := wrong(objects(t, client)); len(left) != 0 {
				t.Fatalf("not kept: %v", left)
			}
		}
		keep(before)
		c.capiSecret(t, o)
		c.damage(t, o)
		broken := objects(t, client)
		want := map[string]string{
			"ServiceAccount capi-remote":                       "missing",
			"ClusterRoleBinding macfleet-capi-remote-" + ns(t): "differs subjects",
			"Secret capi-remote-token":                         "differs it has no token of the account",
			"Secret acme-kubeconfig":                           "differs it is owned by ConfigMap owner and would be deleted with it",
		}
		if c.name == "sandbox" { // there a Secret goes with its account
			want["Secret capi-remote-token"] = "missing"
		}
		is(t, wrong(broken), want)
		keep(broken)
		c.capiSecret(t, o)
		if err := client.Keep(t.Context(), inventory.Object{Kind: "Secret", Namespace: "kube-system", Name: "x"}); err == nil {
			t.Error("something that is not configured was kept")
		}
	})
}

// damage does what happens to objects in a cluster.
func (c *cluster) damage(t *testing.T, o kubernetes.Options) {
	t.Helper()
	b := c.remote(t)
	b.Subjects = nil
	secrets := c.admin.CoreV1().Secrets(o.CAPI.Namespace)
	s, err := secrets.Get(t.Context(), "acme-kubeconfig", metav1.GetOptions{})
	must(t, err, errOf(c.admin.RbacV1().ClusterRoleBindings().Update(t.Context(), b, metav1.UpdateOptions{})))
	// As a chart's hook makes it, whose deletion takes the Secret along.
	s.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: "u-1"}}
	must(t, errOf(secrets.Update(t.Context(), s, metav1.UpdateOptions{})),
		c.admin.CoreV1().ServiceAccounts(ns(t)).Delete(t.Context(), "capi-remote", metav1.DeleteOptions{}))
}

// capiSecret holds the Secret against what the Cluster API's core looks for.
func (c *cluster) capiSecret(t *testing.T, o kubernetes.Options) {
	t.Helper()
	s, err := c.admin.CoreV1().Secrets(o.CAPI.Namespace).Get(t.Context(), "acme-kubeconfig", metav1.GetOptions{})
	must(t, err)
	if s.Type != "cluster.x-k8s.io/secret" || s.Labels["cluster.x-k8s.io/cluster-name"] != "acme" || len(s.OwnerReferences) != 0 {
		t.Errorf("secret %s %v %v", s.Type, s.Labels, s.OwnerReferences)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(s.Data["value"])
	must(t, err)
	if config.Host != "https://kubernetes.default.svc" || len(config.CAData) == 0 {
		t.Errorf("host %q, authority %d bytes", config.Host, len(config.CAData))
	}
	api := c.as(t, config.BearerToken)
	eventually(t, "the Cluster API lists nodes", func() error {
		_, err := api.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		return err
	})
}

// TestKubeconfigChanged sees that someone else wrote what must not be read.
func TestKubeconfigChanged(t *testing.T) {
	t.Parallel()
	t.Run("real", func(t *testing.T) { // the sandbox keeps no record of managers
		t.Parallel()
		c := realCluster(t)
		o := c.withCAPI(t)
		client := c.client(t, o)
		c.control(t)
		prepare(t, client)
		secrets := c.admin.CoreV1().Secrets(o.CAPI.Namespace)
		s, err := secrets.Get(t.Context(), "acme-kubeconfig", metav1.GetOptions{})
		must(t, err)
		s.Data["value"] = []byte("by hand")
		must(t, errOf(secrets.Update(t.Context(), s, metav1.UpdateOptions{FieldManager: "kubectl-edit"})))
		list := objects(t, client)
		is(t, wrong(list), map[string]string{"Secret acme-kubeconfig": "differs its content was changed by kubectl-edit"})
		for _, k := range list {
			must(t, client.Keep(t.Context(), k))
		}
		c.capiSecret(t, o)
		kept(t, client)
	})
}

// TestForeignKubeconfig leaves one that someone else made, and reports it.
func TestForeignKubeconfig(t *testing.T) {
	t.Parallel()
	eachCluster(t, func(t *testing.T, c *cluster) {
		o := c.withCAPI(t)
		_, err := c.admin.CoreV1().Secrets(o.CAPI.Namespace).Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "acme-kubeconfig"},
			Data: map[string][]byte{"value": []byte("theirs")}}, metav1.CreateOptions{})
		must(t, err)
		client := c.client(t, o)
		c.control(t)
		if _, err := client.Prepare(t.Context(), kubernetes.PrepareOptions{}); !errors.Is(err, kubernetes.ErrForeign) {
			t.Errorf("prepare: %v", err)
		}
		left := wrong(objects(t, client))
		if why := left["Secret acme-kubeconfig"]; len(left) != 1 || !strings.Contains(why, "not belong to this configuration") {
			t.Errorf("left %v", left)
		}
		s, err := c.admin.CoreV1().Secrets(o.CAPI.Namespace).Get(t.Context(), "acme-kubeconfig", metav1.GetOptions{})
		if err != nil || string(s.Data["value"]) != "theirs" {
			t.Errorf("touched: %v", err)
		}
	})
}

// TestPrepare looks without a trace, makes what is missing, and never replaces
// the key that every host trusts.
func TestPrepare(t *testing.T) {
	t.Parallel()
	eachCluster(t, func(t *testing.T, c *cluster) {
		client := c.client(t, c.options(t))
		key := func(text string) kubernetes.PrepareOptions {
			value, err := secret.New(text)
			must(t, err)
			return kubernetes.PrepareOptions{SSH: kubernetes.SSHKey{Secret: "fleet-ssh", Key: "id_ed25519", Value: value}}
		}
		dry := key("first")
		dry.Dry = true
		list, err := client.Prepare(t.Context(), dry)
		if err != nil || list[0].State != inventory.ObjectMissing {
			t.Errorf("dry: %+v, %v", list, err)
		}
		if _, err := c.admin.CoreV1().Namespaces().Get(t.Context(), ns(t), metav1.GetOptions{}); err == nil {
			t.Error("a dry run made the namespace")
		}
		must(t, errOf(client.Prepare(t.Context(), key("first"))))
		list, err = client.Prepare(t.Context(), key("second"))
		if left := wrong(list); err != nil || len(left) != 0 || len(list) != 20 {
			t.Errorf("again: %v of %d, %v", left, len(list), err)
		}
		if kept, err := client.Secret(t.Context(), ns(t), "fleet-ssh", "id_ed25519"); err != nil || kept != "first" {
			t.Errorf("the key is %q, %v", kept, err)
		}
		role, err := c.admin.RbacV1().Roles(ns(t)).Get(t.Context(), "macfleet", metav1.GetOptions{})
		must(t, err)
		role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods/exec"}, Verbs: []string{"create"}})
		must(t, errOf(c.admin.RbacV1().Roles(ns(t)).Update(t.Context(), role, metav1.UpdateOptions{})))
		list, err = client.Prepare(t.Context(), kubernetes.PrepareOptions{})
		if diff := cmp.Diff(map[string]string{"Role macfleet": "differs rules"}, wrong(list)); err != nil || diff != "" {
			t.Errorf("a role with more: %s, %v", diff, err)
		}
		if role, err = c.admin.RbacV1().Roles(ns(t)).Get(t.Context(), "macfleet", metav1.GetOptions{}); err != nil || len(role.Rules) != 3 {
			t.Errorf("role %+v, %v", role, err)
		}
	})
}

// TestKubeconfig is what CI gets: a token with an end, in a file that works.
func TestKubeconfig(t *testing.T) {
	t.Parallel()
	eachCluster(t, func(t *testing.T, c *cluster) {
		client := c.prepared(t)
		token, expires, err := client.IssueToken(t.Context(), time.Hour)
		must(t, err)
		if left := time.Until(expires); left < 50*time.Minute || left > 70*time.Minute {
			t.Errorf("the token ends in %s", left)
		}
		text, err := client.Kubeconfig(token)
		must(t, err)
		config, err := clientcmd.Load([]byte(text.Reveal()))
		must(t, err)
		at := config.Contexts[config.CurrentContext]
		if k := config.Clusters[at.Cluster]; k.Server != c.url || !slices.Equal(k.CertificateAuthorityData, c.ca) {
			t.Errorf("cluster %+v", k)
		}
		api := c.as(t, config.AuthInfos[at.AuthInfo].Token)
		eventually(t, "CI lists nodes", func() error {
			_, err := api.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
			return err
		})
	})
}
