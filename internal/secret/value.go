// Package secret holds values that cannot print themselves, and references to
// them.
package secret

import (
	"fmt"
	"io"
)

// mask is shown in place of a secret.
const mask = "(secret)"

// placeholder is Scaleway's answer where it does not disclose a password. Written
// into kcpassword it locked four hosts out of their session, so it is never a secret.
const placeholder = "<sealed>"

// Value is a secret in memory. Every way of formatting or encoding it gives
// the same mask; only Reveal gives the text. The zero Value holds no secret.
//
// The text is behind a pointer because package fmt does not call methods of an
// unexported field, nor of an operand with a wrong verb. It then prints an address.
// Do not compare two Values.
type Value struct{ text *string }

// New wraps text. It refuses the empty string and the literal "<sealed>", which are
// never secrets. The error does not contain the text.
func New(text string) (Value, error) {
	switch text {
	case "":
		return Value{}, fmt.Errorf("the value is empty")
	case placeholder:
		return Value{}, fmt.Errorf("the value is the placeholder %q of an undisclosed secret", placeholder)
	}
	return Value{text: &text}, nil
}

// Reveal returns the text. Call it only where the secret leaves the process
// through the channel meant for it (a request header, a command's stdin).
func (v Value) Reveal() string {
	if v.text == nil {
		return ""
	}
	return *v.text
}

// IsZero reports whether v holds no secret.
func (v Value) IsZero() bool { return v.text == nil }

// String returns the mask.
func (v Value) String() string { return mask }

// GoString returns the mask, for %#v.
func (v Value) GoString() string { return mask }

// Format writes the mask for every verb and flag.
func (v Value) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, mask) }

// MarshalText returns the mask, so that encoding/json and text encoders hide the
// value too.
func (v Value) MarshalText() ([]byte, error) { return []byte(mask), nil }
