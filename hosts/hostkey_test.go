package hosts

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"errors"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/plan/plantest"
)

// rsaKey is slow to make, so all tests share one.
var rsaKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

func newRSAKey(t testing.TB) *rsa.PrivateKey {
	t.Helper()
	key, err := rsaKey()
	must(t, err)
	return key
}

func TestCheck(t *testing.T) {
	t.Parallel()
	ours, other := newKey(t).PublicKey(), newKey(t).PublicKey()
	pin := func(text string) *plan.Pin { return &plan.Pin{Name: "acme-1", Key: text} }
	tests := []struct {
		name  string
		pin   *plan.Pin
		shown ssh.PublicKey
		err   string
		moved bool // the error has the code "wrong-host-key"
	}{
		{"no pin takes any key", nil, other, "", false},
		{"the pinned key", pin(keyText(ours)), ours, "", false},
		{"a comment does not matter", pin(keyText(ours) + " acme@laptop"), ours, "", false},
		{"another key", pin(keyText(ours)), other, "the host shows " + ssh.FingerprintSHA256(other) +
			", pinned is " + ssh.FingerprintSHA256(ours), true},
		{"another key of another type", pin(keyText(ours)), signer(t, newRSAKey(t)).PublicKey(), "the host shows", true},
		{"damaged pin", pin("ssh-ed25519 AAAA"), ours, "the pinned key of acme-1 is malformed", false},
		{"empty pin", pin(""), ours, "the pinned key of acme-1 is malformed", false},
	}
	for _, tt := range tests {
		err := Target{Trust: plan.Trust{Pin: tt.pin}}.accept(tt.shown)
		if (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: accept = %v, want %q", tt.name, err, tt.err)
		}
		if e := (*Error)(nil); (errors.As(err, &e) && e.Code == plan.CodeWrongHostKey && e.final) != tt.moved {
			t.Errorf("%s: accept = %v, a changed key: want %t", tt.name, err, tt.moved)
		}
	}
}

// TestCheckWitnesses: every source that knows the key must agree, also with a pin that matches. A known member whose key is
// unknown is not logged in to.
func TestCheckWitnesses(t *testing.T) {
	t.Parallel()
	shown, other := newKey(t).PublicKey(), newKey(t).PublicKey()
	says := func(keys ...ssh.PublicKey) (all []plan.Voucher) {
		for _, key := range keys {
			all = append(all, plan.Voucher{By: "its Node", Key: key.Type() + " " + ssh.FingerprintSHA256(key)})
		}
		return all
	}
	pin, none := &plan.Pin{Name: "acme-1", Key: keyText(shown)}, plan.Code{}
	for name, tt := range map[string]struct {
		trust plan.Trust
		code  plan.Code
	}{
		"one agrees":               {plan.Trust{Vouchers: says(shown)}, none},
		"one disagrees":            {plan.Trust{Vouchers: says(other)}, plan.CodeWrongHostKey},
		"the second disagrees":     {plan.Trust{Vouchers: says(shown, other)}, plan.CodeWrongHostKey},
		"pinned, one disagrees":    {plan.Trust{Pin: pin, Vouchers: says(other)}, plan.CodeWrongHostKey},
		"a member, its key known":  {plan.Trust{Known: "by its Node", Vouchers: says(shown)}, none},
		"a member, pinned":         {plan.Trust{Known: "by its Node", Pin: pin}, none},
		"a member without any key": {plan.Trust{Known: "by its Node"}, plan.CodeHostKeyUnknown},
	} {
		var e *Error
		if err := (Target{Trust: tt.trust}).accept(shown); (err != nil) != (tt.code != none) || err != nil && (!errors.As(err, &e) || e.Code != tt.code || !e.final) {
			t.Errorf("%s: %v, want %s", name, err, tt.code)
		}
	}
}

func TestAlgorithms(t *testing.T) {
	t.Parallel()
	curve, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	must(t, err)
	tests := []struct {
		name string
		key  string // "": no pin
		want []string
	}{
		{"no pin", "", []string{"ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521",
			"rsa-sha2-512", "rsa-sha2-256"}},
		{"ed25519", keyText(newKey(t).PublicKey()), []string{"ssh-ed25519"}},
		{"ecdsa", keyText(signer(t, curve).PublicKey()), []string{"ecdsa-sha2-nistp384"}},
		// ssh-rsa names the key's type; as an algorithm it means SHA-1.
		{"rsa", keyText(signer(t, newRSAKey(t)).PublicKey()), []string{"rsa-sha2-512", "rsa-sha2-256"}},
	}
	for _, tt := range tests {
		var pin *plan.Pin
		if tt.key != "" {
			pin = &plan.Pin{Key: tt.key}
		}
		is(t, tt.name, algorithms(plan.Trust{Pin: pin}), tt.want)
	}
}

func TestFingerprintOf(t *testing.T) {
	t.Parallel()
	key := newKey(t).PublicKey()
	if got, want := FingerprintOf(plan.Pin{Key: keyText(key)}), ssh.FingerprintSHA256(key); got != want {
		t.Errorf("fingerprint = %q, want %q", got, want)
	}
	if got := FingerprintOf(plan.Pin{Key: "ssh-ed25519"}); !strings.HasPrefix(got, "parse host key: ") {
		t.Errorf("fingerprint of a damaged pin = %q, want what is wrong with it", got)
	}
}

func pemOf(t testing.TB, private any, passphrase string) string {
	t.Helper()
	block, err := ssh.MarshalPrivateKey(private, "acme")
	if passphrase != "" {
		block, err = ssh.MarshalPrivateKeyWithPassphrase(private, "acme", []byte(passphrase))
	}
	must(t, err)
	return string(pem.EncodeToMemory(block))
}

func TestParsePrivateKey(t *testing.T) {
	t.Parallel()
	private := newRSAKey(t)
	good := pemOf(t, private, "")
	tests := []struct {
		name, text string
		err        string // "": it is a key
	}{
		{"OpenSSH form", good, ""},
		{"line breaks of Windows", strings.ReplaceAll(good, "\n", "\r\n"), ""},
		{"text around it", "from the safe:\n" + good + "end\n", ""},
		{"locked", pemOf(t, private, "open sesame"), "has a passphrase"},
		{"empty", "", "not an unencrypted private key"},
		{"cut off", good[:len(good)/2], "not an unencrypted private key"},
		{"body damaged", strings.Replace(good, good[200:240], strings.Repeat("A", 40), 1), "not an unencrypted private key"},
		{"another thing in PEM", strings.ReplaceAll(good, "OPENSSH PRIVATE KEY", "CERTIFICATE"), "not an unencrypted private key"},
		{"a password instead", "Tr0ub4dor&3-Zq9x-Kw7v", "not an unencrypted private key"},
		{"a public key", keyText(signer(t, private).PublicKey()), "not an unencrypted private key"},
	}
	for _, tt := range tests {
		key, err := ParsePrivateKey(tt.text)
		if tt.err == "" {
			must(t, err)
			if got, want := keyText(key.PublicKey()), keyText(signer(t, private).PublicKey()); got != want {
				t.Errorf("key = %s, want %s", got, want)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), tt.err) {
			t.Fatalf("%s: error = %v, want one with %q", tt.name, err, tt.err)
		}
		noPartOf(t, tt.text, err)
	}
}

// noPartOf fails when an error, or what it wraps, holds a part of a secret text.
func noPartOf(t testing.TB, text string, err error) {
	t.Helper()
	const part = 6
	for ; err != nil; err = errors.Unwrap(err) {
		for _, line := range strings.Split(text, "\n") {
			if strings.HasPrefix(line, "-----") {
				continue // the armour is public, and its words are English
			}
			for i := 0; i+part <= len(line); i++ {
				if strings.Contains(err.Error(), line[i:i+part]) {
					t.Fatalf("error %q holds %q of the secret text", err, line[i:i+part])
				}
			}
		}
	}
}

func TestError(t *testing.T) {
	t.Parallel()
	cause := errors.New("it went away")
	var err error = &Error{Host: "acme-1", Code: plantest.Code("connection-lost"), Phase: Talking, Remedy: "look", Err: cause}
	if got, want := err.Error(), "acme-1: command: it went away"; got != want {
		t.Errorf("error = %q, want %q", got, want)
	}
	if !errors.Is(err, cause) {
		t.Error("the cause is not wrapped")
	}
	// A plan names the host next to the trouble, so the text does not.
	want := &plan.Trouble{Code: plantest.Code("connection-lost"), Text: "command: it went away", Remedy: "look"}
	is(t, "trouble", err.(*Error).Trouble(), want)
}
