package scaleway_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/providers/scaleway"
)

// sent is one request as the provider got it.
type sent struct {
	Method, Path string
	Body         map[string]any
}

// record decodes the body of a request.
func record(r *http.Request) sent {
	out := sent{Method: r.Method, Path: r.URL.Path}
	_ = json.NewDecoder(r.Body).Decode(&out.Body)
	return out
}

// TestActing: each action is one request with exactly these fields, and is sent once even if it is answered with a
// passing state.
func TestActing(t *testing.T) {
	t.Parallel()
	const servers = "/apple-silicon/v1alpha1/zones/fr-par-1/servers"
	for name, tc := range map[string]struct {
		do   func(*scaleway.Client) error
		want sent
	}{
		"reinstall": {func(c *scaleway.Client) error { return c.Reinstall(t.Context(), "fr-par-1", "a", "os-1") },
			sent{"POST", servers + "/a/reinstall", map[string]any{"os_id": "os-1", "enable_kext": false}}},
		"reboot": {func(c *scaleway.Client) error { return c.Reboot(t.Context(), "fr-par-1", "a") },
			sent{"POST", servers + "/a/reboot", map[string]any{}}},
	} {
		for status, body := range map[int]map[string]any{
			200: object("a", "acme-pool-1"),
			409: {"type": "transient_state", "resource": "server", "resource_id": "a", "current_state": "rebooting"},
		} {
			var got []sent
			c := api(t, func(r *http.Request) (int, any) {
				got = append(got, record(r))
				return status, body
			})
			if err := tc.do(c); (err != nil) != (status == 409) {
				t.Errorf("%s, %d: error %v", name, status, err)
			}
			if diff := cmp.Diff([]sent{tc.want}, got); diff != "" {
				t.Errorf("%s, %d: requests (-want +got):\n%s", name, status, diff)
			}
		}
	}
}

// TestNothingByDefault: what the provider would choose by itself is never left to it.
func TestNothingByDefault(t *testing.T) {
	t.Parallel()
	c := api(t, func(r *http.Request) (int, any) {
		t.Errorf("sent %s %s", r.Method, r.URL.Path)
		return 200, object("a", "one")
	})
	if err := c.Reinstall(t.Context(), "fr-par-1", "a", ""); err == nil {
		t.Error("reinstalled with the default of the type")
	}
}

// TestScheduleDeletion: a passing state is waited for, and what the provider reports afterwards decides.
func TestScheduleDeletion(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		schedule, reported bool
		want               string
	}{
		"scheduled": {true, true, ""},
		"cancelled": {false, false, ""},
		"ignored":   {true, false, "reports deletion_scheduled = false"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			writes := 0
			c := api(t, func(r *http.Request) (int, any) {
				o := object("a", "acme-pool-1")
				o["deletion_scheduled"] = tc.reported
				if r.Method == http.MethodPatch {
					if writes++; writes == 1 {
						return 409, map[string]any{"type": "transient_state", "current_state": "updating"}
					}
					if diff := cmp.Diff(map[string]any{"schedule_deletion": tc.schedule}, record(r).Body); diff != "" {
						t.Errorf("body (-want +got):\n%s", diff)
					}
				}
				return 200, o
			})
			err := c.ScheduleDeletion(t.Context(), "fr-par-1", "a", tc.schedule)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) || writes != 2 {
				t.Errorf("%d writes, error %v", writes, err)
			}
		})
	}
}

// TestCatalogue: it is whole, read once, and liberal: unknown words for stock, missing leases and the deprecated list
// of types are accepted.
func TestCatalogue(t *testing.T) {
	t.Parallel()
	asked := 0
	c := api(t, func(r *http.Request) (int, any) {
		asked++
		if strings.HasSuffix(r.URL.Path, "/server-types") {
			return 200, map[string]any{"server_types": []any{
				map[string]any{"name": "M4-XL", "stock": "a_few", "surprise": true},
				map[string]any{"name": "M2-L", "stock": "low_stock", "minimum_lease_duration": "86400s"},
				nil,
			}}
		}
		return 200, map[string]any{"total_count": 2, "os": []any{
			map[string]any{"id": "2", "name": "macos-tahoe-26.6.1", "family": "Tahoe", "version": "26.6.1",
				"supported_server_types": []any{map[string]any{"server_type": "M4-XL"}, map[string]any{"server_type": "M2-L", "fast_delivery_available": true}}},
			map[string]any{"id": "1", "name": "macos-sequoia-15.6", "family": "Sequoia", "version": "15.6", "is_beta": true,
				"supported_server_types": nil, "compatible_server_types": []string{"M2-L"}},
		}}
	})
	want := inventory.Catalogue{
		Offers: []inventory.Offer{{Type: "M2-L", Zone: "fr-par-1", Stock: inventory.LowStock, MinLease: 24 * time.Hour}, {Type: "M4-XL", Zone: "fr-par-1", Stock: "a_few"}},
		Systems: []inventory.System{
			{ID: "1", Name: "macos-sequoia-15.6", Family: "Sequoia", Version: "15.6", Zone: "fr-par-1", Beta: true, Types: []string{"M2-L"}},
			{ID: "2", Name: "macos-tahoe-26.6.1", Family: "Tahoe", Version: "26.6.1", Zone: "fr-par-1", Types: []string{"M2-L", "M4-XL"}, Fast: []string{"M2-L"}},
		},
	}
	for range 2 {
		got, err := c.Catalogue(t.Context())
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("error %v, catalogue (-want +got):\n%s", err, diff)
		}
	}
	if asked != 2 {
		t.Errorf("%d requests", asked)
	}
}

// TestDiagnose waits until the diagnostic is finished, and no longer than it may.
func TestDiagnose(t *testing.T) {
	t.Parallel()
	done := map[string]any{"id": "d", "status": "completed", "is_healthy": false, "error_message": "no route", "supported_actions": []string{"reboot_server", "dance"},
		"health_details": map[string]any{"is_server_alive": true, "is_agent_alive": false, "last_checkin_date": "2026-03-01T10:00:00Z"}}
	for name, tc := range map[string]struct {
		answers []map[string]any // the last one is repeated
		want    inventory.Diagnosis
		err     string
		looks   int
	}{
		"finished": {[]map[string]any{{"status": "processing"}, {"status": "a_new_word"}, done}, inventory.Diagnosis{Text: "server up, port 22 closed, VNC port closed, agent down, no route",
			Actions: []string{"reboot"}, Detailed: true, Alive: true, CheckedIn: time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)}, "", 3},
		"no details": {[]map[string]any{{"status": "completed", "is_healthy": true}}, inventory.Diagnosis{Healthy: true, Text: "no details"}, "", 1},
		"failed":     {[]map[string]any{{"status": "error", "error_message": "busy"}}, inventory.Diagnosis{}, "failed: busy", 1},
		"never ends": {[]map[string]any{{"status": "processing"}}, inventory.Diagnosis{}, "did not finish", 30},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			looks := 0
			c := api(t, func(r *http.Request) (int, any) {
				if r.Method == http.MethodPost {
					return 200, map[string]any{"diagnostic_id": "d"}
				}
				looks++
				return 200, tc.answers[min(looks, len(tc.answers))-1]
			})
			got, err := c.Diagnose(t.Context(), "fr-par-1", "a")
			if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) || looks != tc.looks {
				t.Errorf("%d looks, error %v", looks, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("diagnosis (-want +got):\n%s", diff)
			}
		})
	}
}
