package doctor_test

import (
	"errors"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/doctor"
	"github.com/macfleet/macfleet/plan"
)

// TestExamineAccount: each fault of an account is one check with a code, and what cannot be tested is not one.
func TestExamineAccount(t *testing.T) {
	t.Parallel()
	denied := &inventory.ProviderError{Class: inventory.Denied, Text: "denies it; fix: give the right", RequestID: "4f2c"}
	rejected := &inventory.ProviderError{Class: inventory.Unauthenticated, Text: "rejects the API key"}
	ours := plan.FleetKey{Public: "ssh-ed25519 AAAA", Fingerprint: "SHA256:ours"}
	for name, tc := range map[string]struct {
		disturb func(*doctor.AccountSeen)
		want    string // the checks that are not ok, with their codes
	}{
		"all well":                 {func(*doctor.AccountSeen) {}, ""},
		"the key is rejected":      {func(s *doctor.AccountSeen) { s.Listed, s.KeyErr = rejected, rejected }, "API key problem api-key-rejected, project unknown"},
		"the key expires soon":     {func(s *doctor.AccountSeen) { s.Key.Expires = noon.Add(24 * time.Hour) }, "API key warning api-key-expires"},
		"the key is not described": {func(s *doctor.AccountSeen) { s.KeyErr, s.QuotasErr = denied, denied }, ""},
		"no answer":                {func(s *doctor.AccountSeen) { s.Listed = errors.New("timeout") }, "project unknown"},
		"a right is missing":       {func(s *doctor.AccountSeen) { s.Rights[0].Err = denied }, "right to list servers problem right-missing"},
		"a right is not tested":    {func(s *doctor.AccountSeen) { s.Rights[0].Why = "no server" }, "right to list servers unknown"},
		"the servers are elsewhere": {func(s *doctor.AccountSeen) {
			s.Servers, s.Elsewhere = nil, &inventory.Account{Project: "p", Holds: []inventory.Holding{{Zone: "fr-par-2", Project: "p", Servers: 3}}}
		}, "project problem wrong-project"},
		"the fleet's key is missing": {func(s *doctor.AccountSeen) { s.Keyring.Registered = inventory.Present([]inventory.SSHKey{}) },
			"fleet's SSH key problem fleet-key-not-registered"},
		"the fleet's key is not readable": {func(s *doctor.AccountSeen) { s.FleetKeyErr = errors.New("no such Secret") }, "fleet's SSH key unknown"},
	} {
		seen := doctor.AccountSeen{Now: noon, AccessKey: "SCWX", Key: inventory.APIKey{Description: "ci"}, Project: "p", Zones: []string{"fr-par-1"},
			Servers: []inventory.Server{{ID: "1", Zone: "fr-par-1", Type: "M2-L", Status: "ready"}, {ID: "2", Zone: "fr-par-1", Type: "M2-L", Status: "ready"}},
			Roles:   map[string]string{"1": "pool", "2": "pool"}, Rights: []doctor.Right{{Name: "list servers"}},
			Keyring: &plan.Keyring{Ours: []plan.FleetKey{ours}, Registered: inventory.Present([]inventory.SSHKey{{Name: "fleet", Public: ours.Public + " sam@laptop"}})}}
		tc.disturb(&seen)
		a := doctor.ExamineAccount(seen)
		if got := faults(t, a.Checks, false); got != tc.want || a.Healthy != (tc.want == "") {
			t.Errorf("%s: found %q, healthy %t, want %q", name, got, a.Healthy, tc.want)
		}
		if len(seen.Servers) > 0 && (len(a.Servers) != 1 || a.Servers[0].Count != 2 || a.Servers[0].Role != "pool") {
			t.Errorf("servers %+v", a.Servers)
		}
	}
}
