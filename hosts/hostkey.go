package hosts

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"
	xknownhosts "golang.org/x/crypto/ssh/knownhosts"

	"github.com/macfleet/macfleet/hosts/sshconfig"
	"github.com/macfleet/macfleet/plan"
)

// same compares the shown key with the pinned one.
func same(pinned, shown ssh.PublicKey) error {
	if bytes.Equal(pinned.Marshal(), shown.Marshal()) {
		return nil
	}
	return keyChanged(ssh.FingerprintSHA256(pinned), shown)
}

func keyChanged(pinned string, shown ssh.PublicKey) error {
	return fmt.Errorf("the host shows %s, pinned is %s", ssh.FingerprintSHA256(shown), pinned)
}

// algorithms returns the host key algorithms to request: only those of the known key's type.
// Otherwise a host with several keys could show a key that is not the pinned one.
func algorithms(t plan.Trust) []string {
	kind := ""
	for _, v := range t.Vouchers {
		kind = cmp.Or(kind, v.KeyType())
	}
	if t.Pin != nil {
		kind, _, _ = strings.Cut(t.Pin.Key, " ")
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

// algorithms returns the host key algorithms to request.
func (t Target) algorithms() []string {
	if t.any {
		return algorithms(plan.Trust{})
	}
	return algorithms(t.Trust)
}

func parseKey(text string) (ssh.PublicKey, error) {
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("parse host key: %w", err)
	}
	return key, nil
}

// keyText returns "type base64".
func keyText(key ssh.PublicKey) string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
}

// FingerprintOf returns the SHA256 fingerprint of a pin's key, or why it has none.
func FingerprintOf(pin plan.Pin) string {
	key, err := parseKey(pin.Key)
	if err != nil {
		return err.Error()
	}
	return ssh.FingerprintSHA256(key)
}

// ParsePrivateKey parses a private key. The error never contains a part of it.
func ParsePrivateKey(pem string) (ssh.Signer, error) {
	key, err := ssh.ParsePrivateKey([]byte(pem))
	if err != nil {
		if _, locked := err.(*ssh.PassphraseMissingError); locked {
			return nil, fmt.Errorf("the private key has a passphrase; use a key without one")
		}
		return nil, fmt.Errorf("not an unencrypted private key in PEM format")
	}
	return key, nil
}

// Codes of jump hosts' keys.
var (
	codeKnownHosts     = plan.NewCode("known-hosts", plan.Critical, "your known_hosts has a malformed line", "fix or remove that line")
	codeUnknownHostKey = plan.NewCode("unknown-host-key", plan.Critical, "your known_hosts has no key of the jump host",
		"log in once by hand, compare the key, and accept it")
)

// known makes the login check a jump host against the person's own known_hosts. An unknown
// jump host is not dialled.
func known(to *endpoint, s sshconfig.Settings) *Error {
	db, err := knownhosts.NewDB(slices.DeleteFunc(slices.Clone(s.Known), func(name string) bool {
		_, err := os.Stat(name)
		return err != nil
	})...)
	if err != nil {
		return to.target.fails(codeKnownHosts, HostKey, err, "fix or remove that line")
	}
	address := strings.ToLower(to.address)
	if s.Alias != "" { // an alias is listed without a port
		address = net.JoinHostPort(strings.ToLower(s.Alias), "22")
	}
	for _, a := range db.HostKeyAlgorithms(address) {
		if slices.Contains(acceptable(), a) {
			to.algorithms = append(to.algorithms, a)
		}
	}
	if len(to.algorithms) == 0 {
		return to.target.fails(codeUnknownHostKey, HostKey, fmt.Errorf("no key of %s in your known_hosts (%s)", knownhosts.Normalize(address), strings.Join(s.Known, ", ")),
			"log in once by hand, compare the key and accept it: "+to.byHand)
	}
	check := db.HostKeyCallback()
	to.accept = func(key ssh.PublicKey) error {
		// Check only the name: the address behind it may change, and a channel of
		// another jump host has none.
		err := check(address, &net.TCPAddr{IP: net.IPv4zero}, key)
		if err == nil {
			return nil
		}
		pinned := "no key of this type"
		var why *xknownhosts.KeyError
		if errors.As(err, &why) && len(why.Want) > 0 {
			pinned = fmt.Sprintf("%s (%s:%d)", ssh.FingerprintSHA256(why.Want[0].Key), why.Want[0].Filename, why.Want[0].Line)
		}
		return to.target.strange(keyChanged(pinned, key),
			"if the machine was reinstalled on purpose: ssh-keygen -R '"+knownhosts.Normalize(address)+"', then log in once by hand: "+to.byHand+orAnotherMachine)
	}
	return nil
}

// acceptable returns the host key algorithms of a jump host, including certificates.
func acceptable() []string {
	return append(algorithms(plan.Trust{}), ssh.CertAlgoED25519v01, ssh.CertAlgoECDSA256v01, ssh.CertAlgoECDSA384v01,
		ssh.CertAlgoECDSA521v01, ssh.CertAlgoRSASHA512v01, ssh.CertAlgoRSASHA256v01)
}
