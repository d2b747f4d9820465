package mac

import (
	"bytes"
	"encoding/hex"
)

// Where automatic login finds its password, and the key that hides it there.
const (
	kcpasswordFile = "/private/etc/kcpassword"
	kcpasswordKey  = "\x7d\x89\x52\x23\xd2\xbc\xdd\xea\xa3\xb9\x1f"
)

// sealedMark is what loginwindow leaves in place of a password.
const sealedMark = "<sealed>"

func kcpasswordXOR(data []byte) []byte {
	out := make([]byte, len(data))
	for i, b := range data {
		out[i] = b ^ kcpasswordKey[i%len(kcpasswordKey)]
	}
	return out
}

// openKcpassword reads the password from the file's content, which may be spelt in hexadecimal.
// What follows the NUL that ends the password is anything. Without that NUL no login works; ok
// then is false.
func openKcpassword(data []byte) (password string, ok bool) {
	if text, err := hex.DecodeString(string(bytes.TrimSpace(data))); err == nil && len(text) > 0 {
		data = text
	}
	before, _, ok := bytes.Cut(kcpasswordXOR(data), []byte{0})
	return string(before), ok
}

// newKcpassword returns the file's content for a password, padded with NUL to a multiple of size.
func newKcpassword(password string, size int) []byte {
	text := append([]byte(password), 0)
	for len(text)%size != 0 {
		text = append(text, 0)
	}
	return kcpasswordXOR(text)
}

// sealedKcpassword is the file as loginwindow leaves it: eight bytes and three NULs.
func sealedKcpassword() []byte { return newKcpassword(sealedMark, len(kcpasswordKey)) }
