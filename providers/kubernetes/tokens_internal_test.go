package kubernetes

import "testing"

// TestTokenNumber: only a name that macfleet gives is one of the host's tokens. A host's name may begin with that of another one.
func TestTokenNumber(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int{"tart-kubelet-acme-1-token": 1, "tart-kubelet-acme-1-token-2": 2, "tart-kubelet-acme-1-token-10": 10, "tart-kubelet-acme-1-token-1": 0, "tart-kubelet-acme-1-token-0": 0, "tart-kubelet-acme-1-token-02": 0,
		"tart-kubelet-acme-1-token-+2": 0, "tart-kubelet-acme-1-token2": 0, "tart-kubelet-acme-1-token--2": 0, "tart-kubelet-acme-1-token-": 0, "tart-kubelet-acme-1-token-2-token": 0, "tart-kubelet-acme-10-token": 0, "tart-kubelet-acme-1": 0} {
		if got := tokenNumber("acme-1", name); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
}
