package scaleway_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/macfleet/macfleet/providers/scaleway"
)

// TestPasswords reads what Scaleway says of one server's passwords: what it reports,
// the likelier one first, or why it reports none.
func TestPasswords(t *testing.T) {
	t.Parallel()
	const server, vnc = "Scaleway", "Scaleway's VNC address"
	for name, c := range map[string]struct {
		sudo, vnc string
		want      []string // value and source
		err       error
	}{
		"disclosed, the same twice": {"acme-Pass1", "vnc://m1:acme-Pass1@198.51.100.1:59010", []string{"acme-Pass1 " + server}, nil},
		"two different ones":        {"acme-Pass1", "vnc://m1:acme-Pass2@198.51.100.1:59010", []string{"acme-Pass1 " + server, "acme-Pass2 " + vnc}, nil},
		"only VNC":                  {"", "vnc://m1:acme-Pass2@198.51.100.1:59010", []string{"acme-Pass2 " + vnc}, nil},
		"VNC next to a placeholder": {"<sealed>", "vnc://m1:acme-Pass2@198.51.100.1:59010", []string{"acme-Pass2 " + vnc}, nil},
		"escaped in the address":    {"", "vnc://m1:a%2Fb%40c-1@198.51.100.1:59010", []string{"a/b@c-1 " + vnc}, nil},
		"not escaped":               {"", "vnc://m1:a<b@c%-1@198.51.100.1:59010", []string{"a<b@c%-1 " + vnc}, nil},
		"only the server's":         {"acme-Pass1", "", []string{"acme-Pass1 " + server}, nil},
		"sealed":                    {"<sealed>", "<sealed>", nil, scaleway.ErrSealed},
		"sealed, no address":        {"<sealed>", "", nil, scaleway.ErrSealed},
		"sealed in the address":     {"", "vnc://m1:<sealed>@198.51.100.1:59010", nil, scaleway.ErrSealed},
		"no longer reported":        {"", "vnc://m1@198.51.100.1:59010", nil, scaleway.ErrNotDisclosed},
		"an empty password":         {"", "vnc://m1:@198.51.100.1:59010", nil, scaleway.ErrNotDisclosed},
		"nothing":                   {"", "", nil, scaleway.ErrNotDisclosed},
		"an address of rubbish":     {"", "://%%", nil, scaleway.ErrNotDisclosed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := api(t, func(r *http.Request) (int, any) {
				if r.URL.Path == "/metadata" {
					return http.StatusOK, map[string]any{}
				}
				if r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, "/zones/fr-par-1/servers/a") {
					t.Errorf("asked %s %s", r.Method, r.URL)
				}
				o := object("a", "acme-pool-01")
				o["sudo_password"], o["vnc_url"] = c.sudo, c.vnc
				return http.StatusOK, o
			})
			found, err := client.Passwords(t.Context(), "fr-par-1", "a")
			var got []string
			for _, p := range found {
				got = append(got, p.Value.Reveal()+" "+p.Source)
			}
			if diff := cmp.Diff(c.want, got); diff != "" || !errors.Is(err, c.err) {
				t.Errorf("error %v, want %v; passwords (-want +got):\n%s", err, c.err, diff)
			}
		})
	}
}
