package secret

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"strings"

	"golang.org/x/crypto/scrypt"
)

// Seal recognizes a password that a host refused, without storing it: a salted
// digest that is slow to compute. Two seals do not show whether their passwords
// are equal, and guessing a password from one takes too long to be useful.
// It has no line break and no space.
type Seal string

// sealKind precedes the salt and the digest of a seal.
const sealKind = "scrypt:"

// The recommendation of scrypt's authors for interactive logins: about a twentieth
// of a second and 16 MB per try.
var sealCost = 1 << 14

const (
	sealBlock  = 8
	sealLength = 32
	saltLength = 16
)

// Seal returns a new seal of the value, with a new salt.
func (v Value) Seal() (Seal, error) {
	salt := make([]byte, saltLength)
	_, _ = rand.Read(salt) // never fails, by its contract
	sum, err := sealed(v, salt)
	return Seal(sealKind + base64.RawStdEncoding.EncodeToString(append(salt, sum...))), err
}

// Matches reports whether a seal was made from the value. A malformed seal matches
// nothing.
func (s Seal) Matches(v Value) bool {
	text, ok := strings.CutPrefix(string(s), sealKind)
	raw, err := base64.RawStdEncoding.DecodeString(text)
	if !ok || err != nil || len(raw) != saltLength+sealLength {
		return false
	}
	sum, err := sealed(v, raw[:saltLength])
	return err == nil && subtle.ConstantTimeCompare(sum, raw[saltLength:]) == 1
}

// CheapSeals makes seals fast and useless. Only tests may call it, because they would spend most of their time on seals;
// package archtest checks that.
func CheapSeals() { sealCost = 2 }

func sealed(v Value, salt []byte) ([]byte, error) {
	return scrypt.Key([]byte(v.Reveal()), salt, sealCost, sealBlock, 1, sealLength)
}
