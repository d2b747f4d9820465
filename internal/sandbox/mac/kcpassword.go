package mac

import (
	"bytes"
	"encoding/hex"
)

// The file with the password of automatic login, and its obfuscation key.
const (
	kcpasswordFile = "/private/etc/kcpassword"
	kcpasswordKey  = "\x7d\x89\x52\x23\xd2\xbc\xdd\xea\xa3\xb9\x1f"
)

// sealedMark is what loginwindow writes instead of a password.
const sealedMark = "<sealed>"

func kcpasswordXOR(data []byte) []byte {
	out := make([]byte, len(data))
	for i, b := range data {
		out[i] = b ^ kcpasswordKey[i%len(kcpasswordKey)]
	}
	return out
}

// openKcpassword reads the password from the file's content, which may be in hexadecimal. Bytes after
// the terminating NUL are ignored. Without that NUL no login works; ok is then false.
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

// sealedKcpassword is the file as loginwindow seals it: eight bytes and three NULs.
func sealedKcpassword() []byte { return newKcpassword(sealedMark, len(kcpasswordKey)) }
