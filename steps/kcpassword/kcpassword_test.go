package kcpassword

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func unhex(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// decode returns the password of a content, and whether it has an end. What follows the end is padding.
func decode(content []byte) (password []byte, ended bool) {
	password, _, ended = bytes.Cut(mask(bytes.Clone(content)), []byte{0})
	return password, ended
}

// TestVectors are contents that macOS or other writers made. Encode's begin like them, up to the password's end.
func TestVectors(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, content, password string
	}{
		{"admin, as macOS pads it", "1c ed 3f 4a bc bc ba 2c ca ca 4e 82", "admin"},
		{"admin without padding", "1c ed 3f 4a bc bc", "admin"},
		{"password, padded to 11", "0d e8 21 50 a5 d3 af 8e a3 b9 1f", "password"},
		{"password, padded at random", "0d e8 21 50 a5 d3 af 8e a3 11 22 33", "password"},
		{"eleven bytes have no padding", "1c b8 60 10 e6 89 eb dd 9b 80 2f 7d", "a1234567890"},
		{"eleven bytes, padded to 22", "1c b8 60 10 e6 89 eb dd 9b 80 2f 7d 89 52 23 d2 bc dd ea a3 b9 1f", "a1234567890"},
		{"empty", "7d", ""},
		{"sealed, padded to 11", "41 fa 37 42 be d9 b9 d4 a3 b9 1f", seal},
		{"umlauts", "be 2f 52", "\xc3\xa6"},
	} {
		content := unhex(t, tc.content)
		if got, ended := decode(content); string(got) != tc.password || !ended {
			t.Errorf("%s: %q, ended %t; want %q", tc.name, got, ended, tc.password)
		}
		if made, err := Encode([]byte(tc.password)); err == nil && !bytes.HasPrefix(made, content[:len(tc.password)+1]) {
			t.Errorf("%s: % x", tc.name, made)
		}
	}
}

func TestEncode(t *testing.T) {
	t.Parallel()
	for password, want := range map[string]string{
		"admin":        "1c ed 3f 4a bc bc dd ea a3 b9 1f 7d",
		"password":     "0d e8 21 50 a5 d3 af 8e a3 b9 1f 7d",
		"a1234567890":  "1c b8 60 10 e6 89 eb dd 9b 80 2f 7d",                                     // the end fits exactly
		"a1234567890x": "1c b8 60 10 e6 89 eb dd 9b 80 2f 05 89 52 23 d2 bc dd ea a3 b9 1f 7d 89", // a block more
	} {
		got, err := Encode([]byte(password))
		if err != nil || !bytes.Equal(got, unhex(t, want)) {
			t.Errorf("%s: % x, %v; want %s", password, got, err, want)
		}
	}
}

func TestEncodeRefuses(t *testing.T) {
	t.Parallel()
	for _, password := range []string{"", "a\x00b", "\x00", "a\n", "\r\na", "<sealed>", "<sealed>hunter2"} {
		content, err := Encode([]byte(password))
		if err == nil || content != nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: % x, %v", password, content, err)
		}
	}
}

// TestRoundTrip: a password comes back whatever its length, its content has whole blocks and nothing random in it.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		password := rapid.SliceOfN(rapid.SampledFrom([]byte("abcXYZ019 \"'\\$`%<>\x7d\x89\x52\x23\x01\xc3\xa9\xff\x1f\x7f")), 1, 60).Draw(t, "password")
		if bytes.HasPrefix(password, []byte(seal)) {
			t.Skip("no password")
		}
		content, err := Encode(password)
		if err != nil {
			t.Fatal(err)
		}
		again, _ := Encode(password)
		if len(content)%block != 0 || len(content) <= len(password) || len(content) > len(password)+block || !bytes.Equal(content, again) {
			t.Fatalf("% x and % x of %q", content, again, password)
		}
		if got, ended := decode(content); !bytes.Equal(got, password) || !ended {
			t.Fatalf("%q, ended %t; want %q", got, ended, password)
		}
		for i := len(password); i < len(content); i++ {
			if content[i] != key[i%len(key)] {
				t.Fatalf("padding % x of %q does not decode to zeros", content, password)
			}
		}
	})
}

// FuzzDecode: a password that a content holds, and that may be written, comes back from the content that Encode returns for it.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{"", "7d", "1ced3f4abcbc", "41fa3742bed9b9d4a3b91f", "1cb86010e689ebdd9b802f7d", "376438", "0d0a", "ffff7d"} {
		f.Add(unhex(f, seed))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		password, _ := decode(content)
		made, err := Encode(password)
		if err != nil {
			return
		}
		if got, ended := decode(made); !bytes.Equal(got, password) || !ended {
			t.Fatalf("%q, ended %t; want %q", got, ended, password)
		}
	})
}
