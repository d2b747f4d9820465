package hosts

import (
	"bytes"
	"fmt"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/macfleet/macfleet/plan"
)

// same compares the key that is shown with the one that was accepted.
func same(pinned, shown ssh.PublicKey) error {
	if bytes.Equal(pinned.Marshal(), shown.Marshal()) {
		return nil
	}
	return keyChanged(ssh.FingerprintSHA256(pinned), shown)
}

func keyChanged(pinned string, shown ssh.PublicKey) error {
	return fmt.Errorf("the host shows the key %s, pinned is %s", ssh.FingerprintSHA256(shown), pinned)
}

// algorithms returns the host key algorithms to ask for: those of the pinned
// key's type alone, or a host with several keys would show another one than the
// pinned and look like a stranger.
func algorithms(pin *plan.Pin) []string {
	kind := ""
	if pin != nil {
		kind, _, _ = strings.Cut(pin.Key, " ")
	}
	switch kind {
	case "":
		return []string{ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521,
			ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256}
	case ssh.KeyAlgoRSA:
		return []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256}
	}
	return []string{kind}
}

func parseKey(text string) (ssh.PublicKey, error) {
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("read host key: %w", err)
	}
	return key, nil
}

// keyText returns "type base64".
func keyText(key ssh.PublicKey) string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
}

// FingerprintOf returns the SHA256 fingerprint of a pin's key, or what is wrong
// with it.
func FingerprintOf(pin plan.Pin) string {
	key, err := parseKey(pin.Key)
	if err != nil {
		return err.Error()
	}
	return ssh.FingerprintSHA256(key)
}

// ParsePrivateKey reads a private key. The error never holds a part of it.
func ParsePrivateKey(pem string) (ssh.Signer, error) {
	key, err := ssh.ParsePrivateKey([]byte(pem))
	if err != nil {
		if _, locked := err.(*ssh.PassphraseMissingError); locked {
			return nil, fmt.Errorf("the private key is locked with a passphrase; give macfleet a key without one")
		}
		return nil, fmt.Errorf("the text is not an unlocked private key in PEM form")
	}
	return key, nil
}
