package kubernetes_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/providers/kubernetes"
)

// observe returns what a plan reads of the cluster, besides the Nodes.
func observe(t testing.TB, client *kubernetes.Client) inventory.Cluster {
	t.Helper()
	_, seen := client.Observe(t.Context(), true)
	return seen
}

// read is what was seen.
func read[T any](t *testing.T, seen inventory.Seen[T]) T {
	t.Helper()
	value, ok := seen.Get()
	if !ok {
		t.Fatalf("%T is unread: %s", value, seen.Why())
	}
	return value
}

// identities are those that a plan sees.
func identities(t *testing.T, client *kubernetes.Client) []inventory.Identity {
	t.Helper()
	return read(t, observe(t, client).Identities)
}

// TestIdentity takes a host's identity through its life.
func TestIdentity(t *testing.T) {
	t.Parallel()
	eachCluster(t, func(t *testing.T, c *cluster) {
		client, host := c.prepared(t), name(t, "01")
		if list := identities(t, client); len(list) != 0 {
			t.Errorf("before: %+v", list)
		}
		made, err := client.Identify(t.Context(), host)
		if err != nil || !made.Complete() || made.Host != host {
			t.Fatalf("made %+v, %v", made, err)
		}
		is(t, identities(t, client), []inventory.Identity{made})
		again, err := client.Identify(t.Context(), host)
		if err != nil || !cmp.Equal(again, made) {
			t.Errorf("again: %+v, %v; was %+v", again, err, made)
		}
		agent := c.as(t, identified(t, client, host))
		list := func() error {
			_, err := agent.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
			return err
		}
		eventually(t, "the agent lists nodes", list)
		for range 2 { // what is gone : no error
			must(t, client.Revoke(t.Context(), host))
		}
		unused := c.as(t, identified(t, client, host))
		must(t, client.Revoke(t.Context(), host))
		eventually(t, "a token without its account is not deleted", func() error {
			if _, err := unused.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); !apierrors.IsUnauthorized(err) {
				return fmt.Errorf("it is answered with %v", err)
			}
			return nil
		})
		if list := identities(t, client); len(list) != 0 {
			t.Errorf("after the revocation: %+v", list)
		}
		// A token that the server knows from a moment ago it may still take for one:
		// that is why its binding goes first.
		eventually(t, "a revoked token is refused", func() error {
			if err := list(); !apierrors.IsUnauthorized(err) && !apierrors.IsForbidden(err) {
				return fmt.Errorf("it is answered with %v", err)
			}
			return nil
		})
		if _, err := client.Token(t.Context(), host); err == nil {
			t.Error("a token is left")
		}
	})
}

// count holds the parts of identities in this test's namespace against the number
// of hosts.
func (c *cluster) count(t *testing.T, hosts int) {
	t.Helper()
	o := metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=tart-kubelet,acme.dev/owner=" + ns(t)}
	accounts, err := c.admin.CoreV1().ServiceAccounts(agents(t)).List(t.Context(), o)
	secrets, serr := c.admin.CoreV1().Secrets(agents(t)).List(t.Context(), o)
	bindings, berr := c.admin.RbacV1().ClusterRoleBindings().List(t.Context(), o)
	must(t, err, serr, berr)
	if len(accounts.Items) != hosts || len(secrets.Items) != hosts || len(bindings.Items) != hosts {
		t.Errorf("%d accounts, %d secrets and %d bindings; want %d", len(accounts.Items), len(secrets.Items), len(bindings.Items), hosts)
	}
}

// TestIdentifyAtOnce lets several runs make the same identity.
func TestIdentifyAtOnce(t *testing.T) {
	t.Parallel()
	eachCluster(t, func(t *testing.T, c *cluster) {
		client, host := c.prepared(t), name(t, "01")
		made := make([]inventory.Identity, 8)
		var wg sync.WaitGroup
		for i := range made {
			wg.Go(func() {
				var err error
				if made[i], err = client.Identify(t.Context(), host); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		for _, m := range made {
			if !cmp.Equal(m, made[0]) || !m.Complete() {
				t.Errorf("%+v and %+v", m, made[0])
			}
		}
		c.count(t, 1)
	})
}

// TestIdentityIsFixed garbles each part of an identity in turn: plan sees it, and
// Identify fixes it.
func TestIdentityIsFixed(t *testing.T) {
	t.Parallel()
	// edit changes a copy of the host's binding and makes it again: a binding's role never changes.
	edit := func(c *cluster, t *testing.T, account string, change func(*rbacv1.ClusterRoleBinding)) error {
		bindings := c.admin.RbacV1().ClusterRoleBindings()
		b, err := bindings.Get(t.Context(), "macfleet-"+account, metav1.GetOptions{})
		must(t, err, bindings.Delete(t.Context(), "macfleet-"+account, metav1.DeleteOptions{}))
		b.ResourceVersion, b.UID = "", ""
		change(b)
		return errOf(bindings.Create(t.Context(), b, metav1.CreateOptions{}))
	}
	damage := map[string]func(c *cluster, t *testing.T, account string) error{
		"no account": func(c *cluster, t *testing.T, account string) error {
			return c.admin.CoreV1().ServiceAccounts(agents(t)).Delete(t.Context(), account, metav1.DeleteOptions{})
		},
		"no secret": func(c *cluster, t *testing.T, account string) error {
			return c.admin.CoreV1().Secrets(agents(t)).Delete(t.Context(), account+"-token", metav1.DeleteOptions{})
		},
		"no binding": func(c *cluster, t *testing.T, account string) error {
			return c.admin.RbacV1().ClusterRoleBindings().Delete(t.Context(), "macfleet-"+account, metav1.DeleteOptions{})
		},
		"another subject": func(c *cluster, t *testing.T, account string) error {
			return edit(c, t, account, func(b *rbacv1.ClusterRoleBinding) {
				b.Subjects = append(b.Subjects, rbacv1.Subject{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "system:authenticated"})
			})
		},
		"another role": func(c *cluster, t *testing.T, account string) error {
			return edit(c, t, account, func(b *rbacv1.ClusterRoleBinding) { b.RoleRef.Name = "view" })
		},
	}
	eachCluster(t, func(t *testing.T, c *cluster) {
		client := c.prepared(t)
		for what, do := range damage {
			host := name(t, strings.ReplaceAll(what, " ", "-"))
			identified(t, client, host)
			if err := do(c, t, "tart-kubelet-"+host); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			for _, i := range identities(t, client) {
				if i.Host == host && i.Complete() {
					t.Errorf("%s: plan sees nothing: %+v", what, i)
				}
			}
			agent := c.as(t, identified(t, client, host))
			eventually(t, what+": the agent's token is taken", func() error {
				_, err := agent.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
				return err
			})
			for _, i := range identities(t, client) {
				if i.Host == host && !i.Complete() {
					t.Errorf("%s: not fixed: %+v", what, i)
				}
			}
		}
	})
}

// TestForeignIdentity leaves what has the right name and is another
// configuration's.
func TestForeignIdentity(t *testing.T) {
	t.Parallel()
	eachCluster(t, func(t *testing.T, c *cluster) {
		client, host := c.prepared(t), name(t, "01")
		theirs := metav1.ObjectMeta{Name: "tart-kubelet-" + host, Labels: map[string]string{"app.kubernetes.io/managed-by": "macfleet", "acme.dev/owner": "other"}}
		must(t, errOf(c.admin.CoreV1().ServiceAccounts(agents(t)).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: theirs}, metav1.CreateOptions{})))
		theirs.Name += "-token"
		s := &corev1.Secret{ObjectMeta: theirs, Data: map[string][]byte{"token": []byte("theirs")}}
		must(t, errOf(c.admin.CoreV1().Secrets(agents(t)).Create(t.Context(), s, metav1.CreateOptions{})))
		for what, err := range map[string]error{"identify": errOf(client.Identify(t.Context(), host)), "token": errOf(client.Token(t.Context(), host)),
			"revoke": client.Revoke(t.Context(), host)} {
			if !errors.Is(err, kubernetes.ErrForeign) {
				t.Errorf("%s: %v", what, err)
			}
		}
		must(t, errOf(c.admin.CoreV1().ServiceAccounts(agents(t)).Get(t.Context(), "tart-kubelet-"+host, metav1.GetOptions{}))) // it is still theirs
		if list := identities(t, client); len(list) != 0 {
			t.Errorf("taken for macfleet's: %+v", list)
		}
	})
}

// TestNoToken says what is amiss where no controller fills the Secret.
func TestNoToken(t *testing.T) {
	t.Parallel()
	c := realCluster(t)
	o := c.options(t)
	o.TokenWait = 1
	client := c.client(t, o)
	prepare(t, client)
	_, err := client.Identify(t.Context(), "acme-01")
	if err == nil || !strings.Contains(err.Error(), "token controller") {
		t.Errorf("identify: %v", err)
	}
	list := identities(t, client)
	if len(list) != 1 || list[0].Issued || list[0].Secret == "" || !list[0].Bound {
		t.Errorf("plan sees %+v", list)
	}
}
