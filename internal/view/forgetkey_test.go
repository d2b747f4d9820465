package view_test

import (
	"testing"

	"github.com/macfleet/macfleet/internal/view"
	"github.com/macfleet/macfleet/plan"
)

// TestAgrees: nothing is left to accept only if the offered key is pinned, and its pin keeps no server of the pool from being claimed.
func TestAgrees(t *testing.T) {
	t.Parallel()
	const key = "ssh-ed25519 AAAA"
	finished, started := &plan.Pin{Key: key}, &plan.Pin{Key: key, Unfinished: true}
	other := []plan.Voucher{{By: "a copy", Key: "SHA256:x"}}
	for name, tc := range map[string]struct {
		holder plan.KeyHolder
		want   bool
	}{
		"pinned":                      {plan.KeyHolder{Trust: plan.Trust{Pin: finished}}, true},
		"no pin":                      {plan.KeyHolder{}, false},
		"gone":                        {plan.KeyHolder{Gone: true, Trust: plan.Trust{Pin: finished}}, false},
		"a copy contradicts":          {plan.KeyHolder{Trust: plan.Trust{Pin: finished, Vouchers: other}}, false},
		"in the pool, claim started":  {plan.KeyHolder{Pooled: true, Trust: plan.Trust{Pin: started}}, true},
		"in the pool, pinned finally": {plan.KeyHolder{Pooled: true, Trust: plan.Trust{Pin: finished}}, false},
	} {
		if got := (view.KeyOffer{KeyHolder: tc.holder, Key: key}).Agrees(); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
