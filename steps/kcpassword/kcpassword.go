// Package kcpassword encodes the content of /etc/kcpassword, which holds the password of the
// user that loginwindow logs in automatically.
//
// The file is the password, a NUL byte and padding, XORed with a public key: anyone who can
// read it knows the password, so the result is as secret as the password.
package kcpassword

import (
	"bytes"
	"errors"
	"fmt"
)

// key repeats over the content. It has 11 bytes, although macOS pads to 12.
const key = "\x7d\x89\x52\x23\xd2\xbc\xdd\xea\xa3\xb9\x1f"

// block is the size that macOS pads to. It also accepts files padded to 11.
const block = 12

// seal is the placeholder that macOS writes in place of a rejected password, and that some
// tools return in place of an undisclosed one.
const seal = "<sealed>"

// Encode returns the content for a password: the password, a NUL, and NULs up to a multiple
// of the block size. macOS itself pads with random bytes, so contents of the same password
// can differ.
func Encode(password []byte) ([]byte, error) {
	switch {
	case len(password) == 0:
		return nil, errors.New("the password is empty")
	case bytes.IndexByte(password, 0) >= 0:
		return nil, errors.New("a password with a NUL byte cannot be stored in kcpassword")
	case bytes.ContainsAny(password, "\r\n"):
		return nil, errors.New("a password with a line break cannot be typed at the login window")
	case bytes.HasPrefix(password, []byte(seal)):
		return nil, fmt.Errorf("the password is the placeholder %q of an undisclosed secret", seal)
	}
	size := (len(password)/block + 1) * block
	return mask(append(bytes.Clone(password), make([]byte, size-len(password))...)), nil
}

// mask XORs in place.
func mask(b []byte) []byte {
	for i := range b {
		b[i] ^= key[i%len(key)]
	}
	return b
}
