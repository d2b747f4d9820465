package kubernetes_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/macfleet/macfleet/fleet/inventory"
)

// TestTokenRotation takes a host's tokens through a rotation: both are good in between, only the old one ends, and a
// rotation that was interrupted shows.
func TestTokenRotation(t *testing.T) {
	t.Parallel()
	eachCluster(t, func(t *testing.T, c *cluster) {
		client, host := c.prepared(t), name(t, "01")
		token := func() string {
			t.Helper()
			value, err := client.Token(t.Context(), host)
			must(t, err)
			return value.Reveal()
		}
		taken := func(token string) error {
			_, err := c.as(t, token).CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
			return err
		}
		made, err := client.Identify(t.Context(), host)
		first := inventory.FirstToken(host)
		if err != nil || made.Token != first || made.Since.IsZero() || len(made.Spent) > 0 {
			t.Fatalf("made %+v, %v", made, err)
		}
		old := token()
		made, err = client.RenewToken(t.Context(), host)
		if err != nil || made.Token != first+"-2" || !slices.Equal(made.Spent, []string{first}) {
			t.Fatalf("renewed %+v, %v", made, err)
		}
		newer := token()
		if newer == old {
			t.Fatal("the token is the old one")
		}
		eventually(t, "the old token is good", func() error { return taken(old) })
		eventually(t, "the new token is good", func() error { return taken(newer) })
		if seen := identities(t, client); len(seen) != 1 || !seen[0].Complete() || seen[0].Token != first+"-2" || !slices.Equal(seen[0].Spent, []string{first}) {
			t.Errorf("a plan sees %+v", seen)
		}
		if again, err := client.Identify(t.Context(), host); err != nil || again.Token != first+"-2" {
			t.Errorf("identified again: %+v, %v", again, err)
		}
		if err := client.RetireTokens(t.Context(), host, first+"-9"); err == nil || !strings.Contains(err.Error(), first+"-9") {
			t.Errorf("with no newest one: %v", err)
		}
		must(t, taken(old)) // it ends only with another in its place
		for range 2 {       // what is gone : no error
			must(t, client.RetireTokens(t.Context(), host, first+"-2"))
		}
		eventually(t, "the old token is not deleted", func() error {
			if err := taken(old); !apierrors.IsUnauthorized(err) {
				return fmt.Errorf("it is answered with %v", err)
			}
			return nil
		})
		must(t, taken(newer))
		if made, err = client.RenewToken(t.Context(), host); err != nil || made.Token != first+"-3" {
			t.Errorf("renewed again: %+v, %v", made, err)
		}
		secrets := c.admin.CoreV1().Secrets(agents(t))
		s, err := secrets.Get(t.Context(), made.Token, metav1.GetOptions{})
		must(t, err)
		for name, account := range map[string]string{first: "", first + "-9": "another"} { // empty, and of a ServiceAccount that was deleted
			s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: s.Labels, Annotations: map[string]string{corev1.ServiceAccountUIDKey: account}}}
			must(t, errOf(secrets.Create(t.Context(), s, metav1.CreateOptions{})))
		}
		if err := client.RetireTokens(t.Context(), host, first); err == nil {
			t.Error("an empty Secret was kept")
		}
		must(t, client.RetireTokens(t.Context(), host, first+"-2"), errOf(secrets.Get(t.Context(), first, metav1.GetOptions{})))
		if seen := identities(t, client); token() == newer || seen[0].Token != made.Token {
			t.Errorf("a plan sees %+v", seen)
		}
		must(t, client.Revoke(t.Context(), host))
		if seen := identities(t, client); len(seen) != 0 {
			t.Errorf("after it was revoked: %+v", seen)
		}
	})
}

// TestTokenDeletedAtOnce: a token whose Secret someone deletes right after the cluster filled it is an error, not a host without a token.
func TestTokenDeletedAtOnce(t *testing.T) {
	t.Parallel()
	c := sandboxCluster(t)
	c.prepared(t)
	host, o, lists := name(t, "01"), c.options(t), 0 // lists of Secrets: before the token is issued, and after
	o.Wrap = func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if strings.HasSuffix(r.URL.Path, "/secrets") && r.Method == http.MethodGet {
				if lists++; lists == 2 {
					if err := c.admin.CoreV1().Secrets(agents(t)).Delete(r.Context(), inventory.FirstToken(host), metav1.DeleteOptions{}); err != nil {
						t.Error(err)
					}
				}
			}
			return next.RoundTrip(r)
		})
	}
	if made, err := c.client(t, o).RenewToken(t.Context(), host); err == nil || !strings.Contains(err.Error(), "was deleted after its token was issued") {
		t.Errorf("%+v, %v", made, err)
	}
}
