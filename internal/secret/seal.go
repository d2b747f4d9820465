package secret

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"strings"

	"golang.org/x/crypto/scrypt"
)

// Seal is how a password that a host refused is known again, without being kept:
// a salted digest that is slow to compute, so that neither can two equal passwords
// be told from two seals, nor a password be guessed from one in any useful time.
// It has no line break and no space.
type Seal string

// sealKind stands before the salt and the digest of a seal.
const sealKind = "scrypt:"

// What scrypt's authors recommend for interactive logins: about a twentieth of a
// second and 16 MB a try.
var sealCost = 1 << 14

const (
	sealBlock  = 8
	sealLength = 32
	saltLength = 16
)

// Seal returns a new seal of the value, with a salt of its own.
func (v Value) Seal() (Seal, error) {
	salt := make([]byte, saltLength)
	_, _ = rand.Read(salt) // never fails, by its contract
	sum, err := sealed(v, salt)
	return Seal(sealKind + base64.RawStdEncoding.EncodeToString(append(salt, sum...))), err
}

// Matches reports whether a seal was made of the value. A text that is no seal
// matches nothing.
func (s Seal) Matches(v Value) bool {
	text, ok := strings.CutPrefix(string(s), sealKind)
	raw, err := base64.RawStdEncoding.DecodeString(text)
	if !ok || err != nil || len(raw) != saltLength+sealLength {
		return false
	}
	sum, err := sealed(v, raw[:saltLength])
	return err == nil && subtle.ConstantTimeCompare(sum, raw[saltLength:]) == 1
}

// CheapSeals makes seals that take no time and protect nothing. Tests seal so often that it would be most of what they do;
// nothing else may call it, which package archtest sees to.
func CheapSeals() { sealCost = 2 }

func sealed(v Value, salt []byte) ([]byte, error) {
	return scrypt.Key([]byte(v.Reveal()), salt, sealCost, sealBlock, 1, sealLength)
}
