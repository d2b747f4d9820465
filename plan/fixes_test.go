package plan_test

import (
	"strings"
	"testing"

	"github.com/macfleet/macfleet/plan"
)

// TestConfiguredKeyIsCorrected: where the key in host_keys differs from the one that the host shows, removing the pin does not help.
func TestConfiguredKeyIsCorrected(t *testing.T) {
	t.Parallel()
	trust := plan.Trust{Vouchers: []plan.Voucher{{By: `host_keys["a"] of the configuration`, Key: "SHA256:one", Configured: true}}}
	if got := trust.WrongKeyRemedy("a", "SHA256:two"); !strings.Contains(got, `host_keys["a"]`) || strings.Contains(got, "forget-key") {
		t.Errorf("a wrong key in host_keys: %s", got)
	}
	if got := trust.WrongKeyRemedy("a", "SHA256:one"); !strings.Contains(got, "forget-key a") {
		t.Errorf("a wrong pin: %s", got)
	}
}
