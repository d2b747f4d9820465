package kubernetes_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/providers/kubernetes"
)

// TestSSHKey puts a key in the place of the text that was seen, and of no other: hosts
// trust it. The Secret's other keys stay.
func TestSSHKey(t *testing.T) {
	t.Parallel()
	eachCluster(t, func(t *testing.T, c *cluster) {
		client := c.client(t, c.options(t))
		put := func(value, replaces string) error {
			text, err := secret.New(value)
			must(t, err)
			_, err = client.Prepare(t.Context(), kubernetes.PrepareOptions{SSH: kubernetes.SSHKey{Secret: "fleet-ssh", Key: "id", Value: text, Replaces: replaces}})
			return err
		}
		secrets := c.admin.CoreV1().Secrets(ns(t))
		holds := func(want string) {
			t.Helper()
			if got, err := client.Secret(t.Context(), ns(t), "fleet-ssh", "id"); err != nil || got != want {
				t.Errorf("the key is %q, %v; want %q", got, err, want)
			}
		}
		for _, step := range []struct{ value, replaces, want, fails string }{
			{"first", "", "first", ""},
			{"second", "", "first", ""}, // another run was first
			{"second", "first", "second", ""},
			{"third", "first", "second", "was changed in the meantime"},
			{"second", "first", "second", ""},
		} {
			err := put(step.value, step.replaces)
			if (err == nil) != (step.fails == "") || err != nil && !strings.Contains(err.Error(), step.fails) {
				t.Errorf("%q in the place of %q: %v", step.value, step.replaces, err)
			}
			holds(step.want)
		}
		have, err := secrets.Get(t.Context(), "fleet-ssh", metav1.GetOptions{})
		must(t, err)
		have.Data = map[string][]byte{"comment": []byte("x")}
		if have, err = secrets.Update(t.Context(), have, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		must(t, put("fourth", ""))
		holds("fourth")
		if got, err := client.Secret(t.Context(), ns(t), "fleet-ssh", "comment"); err != nil || got != "x" {
			t.Errorf("the Secret's other key is %q, %v", got, err)
		}
		owner, yes := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner"}}, true
		if owner, err = c.admin.CoreV1().ConfigMaps(ns(t)).Create(t.Context(), owner, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if have, err = secrets.Get(t.Context(), have.Name, metav1.GetOptions{}); err != nil {
			t.Fatal(err)
		}
		have.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: owner.UID, Controller: &yes}}
		must(t, errOf(secrets.Update(t.Context(), have, metav1.UpdateOptions{})))
		if err := put("fifth", "fourth"); err == nil || !strings.Contains(err.Error(), "is managed by ConfigMap owner") {
			t.Errorf("a Secret that another controller keeps: %v", err)
		}
		holds("fourth")
	})
}
