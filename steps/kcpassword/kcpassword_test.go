package kcpassword

import (
	"bytes"
	"encoding/hex"
	"errors"
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

// errNoTerminator says that a content never ends its password: loginwindow does
// not log in with it.
var errNoTerminator = errors.New("the content of kcpassword holds no byte that ends the password")

// decode returns the password of a content, which may also be written as
// hexadecimal text. What follows the password's end is padding and says nothing.
func decode(content []byte) ([]byte, error) {
	if raw, ok := fromHex(content); ok {
		content = raw
	}
	plain := mask(bytes.Clone(content))
	end := bytes.IndexByte(plain, 0)
	if end < 0 {
		return nil, errNoTerminator
	}
	return plain[:end], nil
}

// hexText returns a content as hexadecimal text, which macOS accepts in its place.
func hexText(content []byte) []byte { return []byte(hex.EncodeToString(content)) }

// fromHex reads hexadecimal text. It is never a binary content at the same time:
// no byte of the key, one of which ends every password, is a hexadecimal digit.
func fromHex(content []byte) ([]byte, bool) {
	text := strings.TrimSpace(string(content))
	raw, err := hex.DecodeString(text)
	return raw, err == nil && text != ""
}

// TestVectors are contents that macOS or other writers made.
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
		{"sealed, padded to 11", "41 fa 37 42 be d9 b9 d4 a3 b9 1f", "<sealed>"},
		{"umlauts", "be 2f 52", "\xc3\xa6"},
	} {
		content := unhex(t, tc.content)
		for form, bytes := range map[string][]byte{"binary": content, "hexadecimal": hexText(content), "upper case": []byte(strings.ToUpper(string(hexText(content))) + "\n")} {
			got, err := decode(bytes)
			if err != nil || string(got) != tc.password {
				t.Errorf("%s, %s: %q, %v; want %q", tc.name, form, got, err, tc.password)
			}
		}
		if strings.HasPrefix(tc.password, seal) != strings.HasPrefix(tc.name, "sealed") {
			t.Errorf("%s: sealed", tc.name)
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
		if err == nil || content != nil {
			t.Errorf("%q: % x", password, content)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the error reports the password: %v", err)
		}
	}
}

func TestDecodeUnterminated(t *testing.T) {
	t.Parallel()
	for _, content := range []string{"", "1c", "1c ed 3f 4a bc", "1c b8 60 10 e6 89 eb dd 9b 80 2f", "41 fa 37 42 be d9 b9 d4"} {
		raw := unhex(t, content)
		for _, form := range [][]byte{raw, hexText(raw)} {
			if got, err := decode(form); !errors.Is(err, errNoTerminator) || got != nil {
				t.Errorf("%s: %q, %v", content, got, err)
			}
		}
	}
	// Half a byte is not a hexadecimal text, and hexadecimal digits without a terminator never end a password.
	if got, err := decode([]byte("7d8")); !errors.Is(err, errNoTerminator) {
		t.Errorf("%q, %v", got, err)
	}
}

// passwords are any that may be written.
func passwords() *rapid.Generator[[]byte] {
	return rapid.Custom(func(t *rapid.T) []byte {
		alphabet := rapid.SampledFrom([]byte("abcXYZ019 \"'\\$`%<>\x7d\x89\x52\x23\x01\xc3\xa9\xff\x1f\x7f"))
		b := rapid.SliceOfN(alphabet, 1, 60).Draw(t, "password")
		if bytes.HasPrefix(b, []byte(seal)) {
			t.Skip("no password")
		}
		return b
	})
}

// TestRoundTrip: a password comes back whatever its length, its content has
// whole blocks and nothing random in it.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		password := passwords().Draw(t, "password")
		content, err := Encode(password)
		if err != nil {
			t.Fatal(err)
		}
		again, _ := Encode(password)
		if len(content)%block != 0 || len(content) <= len(password) || len(content) > len(password)+block || !bytes.Equal(content, again) {
			t.Fatalf("% x and % x of %q", content, again, password)
		}
		for _, form := range [][]byte{content, hexText(content)} {
			if got, err := decode(form); err != nil || !bytes.Equal(got, password) {
				t.Fatalf("%q, %v; want %q", got, err, password)
			}
		}
		for i := len(password); i < len(content); i++ {
			if content[i] != key[i%len(key)] {
				t.Fatalf("padding % x of %q does not decode to zeros", content, password)
			}
		}
	})
}

// TestTailIsIgnored: whatever any writer puts behind the password's end, it is
// the same password; without the end it is none.
func TestTailIsIgnored(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		password := passwords().Draw(t, "password")
		content, err := Encode(password)
		if err != nil {
			t.Fatal(err)
		}
		ended := content[:len(password)+1]
		tail := rapid.OneOf(
			rapid.Just([]byte{}),
			rapid.Just(content[len(ended):]),
			rapid.Map(rapid.IntRange(0, 24), func(n int) []byte { return make([]byte, n) }),
			rapid.SliceOfN(rapid.Byte(), 0, 24),
		).Draw(t, "tail")
		whole := append(bytes.Clone(ended), tail...)
		for _, form := range [][]byte{whole, hexText(whole)} {
			if got, err := decode(form); err != nil || !bytes.Equal(got, password) {
				t.Fatalf("%q, %v; want %q", got, err, password)
			}
		}
		if got, err := decode(ended[:len(password)]); !errors.Is(err, errNoTerminator) {
			t.Fatalf("without its end: %q, %v", got, err)
		}
	})
}

// FuzzDecode: a content is a password or has no end, and a password that may be
// written at each of comes back from its own content.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{"", "7d", "1ced3f4abcbc", "41fa3742bed9b9d4a3b91f", "1cb86010e689ebdd9b802f7d", "376438", "0d0a", "ffff7d"} {
		f.Add(unhex(f, seed))
	}
	f.Add([]byte("7d"))
	f.Add([]byte(" 1CED3F4ABCBC\r\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		before := bytes.Clone(content)
		password, err := decode(content)
		if !bytes.Equal(before, content) {
			t.Fatal("it changed what it was given")
		}
		if err != nil {
			if !errors.Is(err, errNoTerminator) || password != nil {
				t.Fatalf("%q, %v", password, err)
			}
			return
		}
		if bytes.IndexByte(password, 0) >= 0 {
			t.Fatalf("%q continues behind its end", password)
		}
		made, err := Encode(password)
		if err != nil {
			return
		}
		if got, err := decode(made); err != nil || !bytes.Equal(got, password) {
			t.Fatalf("%q, %v; want %q", got, err, password)
		}
	})
}
