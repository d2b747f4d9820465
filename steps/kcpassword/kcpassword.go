// Package kcpassword writes the content of /etc/kcpassword, from which
// loginwindow takes the password of the user that it logs in by itself.
//
// The file is the password, a NUL byte and padding, XORed with a known key: who
// can read it knows the password. What this package returns is as secret as
// what it was given.
package kcpassword

import (
	"bytes"
	"errors"
	"fmt"
)

// key is repeated over the content. It has 11 bytes although macOS pads to 12.
const key = "\x7d\x89\x52\x23\xd2\xbc\xdd\xea\xa3\xb9\x1f"

// block is what macOS pads to. Writers that pad to 11 exist and are accepted.
const block = 12

// seal is what stands in the place of a password where none was disclosed or
// where it was taken away. Four hosts lost their session to it.
const seal = "<sealed>"

// Encode returns the content that logs in with a password: the password, one
// NUL, and NULs up to a whole number of blocks. Where macOS itself pads it does so
// with random bytes, so two contents of one password differ.
func Encode(password []byte) ([]byte, error) {
	switch {
	case len(password) == 0:
		return nil, errors.New("an empty password cannot log in")
	case bytes.IndexByte(password, 0) >= 0:
		return nil, errors.New("a password with a NUL byte cannot be written into kcpassword: the byte ends it")
	case bytes.ContainsAny(password, "\r\n"):
		return nil, errors.New("a password with a line break cannot be typed at a login window")
	case bytes.HasPrefix(password, []byte(seal)):
		return nil, fmt.Errorf("the password is the placeholder %q, which stands where a secret was not disclosed", seal)
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
