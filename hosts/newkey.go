package hosts

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"

	"golang.org/x/crypto/ssh"

	"github.com/macfleet/macfleet/internal/secret"
)

// NewPrivateKey makes an Ed25519 key in OpenSSH's form, without a passphrase.
func NewPrivateKey(comment string) (secret.Value, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return secret.Value{}, fmt.Errorf("make an SSH key: %w", err)
	}
	block, err := ssh.MarshalPrivateKey(private, comment)
	if err != nil {
		return secret.Value{}, fmt.Errorf("make an SSH key: %w", err)
	}
	return secret.New(string(pem.EncodeToMemory(block)))
}

// PublicKey returns the public half of a private key, "type base64", and its
// SHA256 fingerprint. The error never holds a part of the key.
func PublicKey(pem string) (line, fingerprint string, err error) {
	key, err := ParsePrivateKey(pem)
	if err != nil {
		return "", "", err
	}
	return keyText(key.PublicKey()), ssh.FingerprintSHA256(key.PublicKey()), nil
}
