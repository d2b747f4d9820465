package hosts

import (
	"strings"
	"testing"
)

func TestNewPrivateKey(t *testing.T) {
	t.Parallel()
	a, err := NewPrivateKey("acme")
	must(t, err)
	b, err := NewPrivateKey("acme")
	must(t, err)
	line, fingerprint, err := PublicKey(a.Reveal())
	if err != nil || !strings.HasPrefix(line, "ssh-ed25519 ") || strings.Contains(line, "acme") || !strings.HasPrefix(fingerprint, "SHA256:") {
		t.Errorf("%q, %q, %v", line, fingerprint, err)
	}
	if other, _, err := PublicKey(b.Reveal()); err != nil || other == line {
		t.Errorf("two keys are equal: %q, %v", other, err)
	}
	if _, _, err := PublicKey(strings.Replace(a.Reveal(), "OPENSSH", "OTHER", 1)); err == nil || strings.Contains(err.Error(), a.Reveal()[40:60]) {
		t.Errorf("a broken key gives %v", err)
	}
}
