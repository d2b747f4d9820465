package wire_test

import (
	"bytes"
	"encoding/json"
	"testing"
	"unicode"

	"github.com/macfleet/macfleet/internal/wire"
)

// TestVisible: invisible control characters are escaped, and a program reads the same text.
func TestVisible(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "plain", "Käse, 東京, \U0001f600", "a\u009bb", "\u202ex\u2066\u2069", "\u200b\ufeff\u2028\u2029\x7f\u061c\u200d",
		"\u0085", "\U000e0041tag", "\u009b"} {
		var b bytes.Buffer
		if err := wire.Write(&b, map[string]string{"name": text}); err != nil {
			t.Fatal(err)
		}
		for _, r := range b.String() {
			if r != '\n' && !unicode.IsGraphic(r) {
				t.Errorf("%q is written as %q", text, b.String())
				break
			}
		}
		var back map[string]string
		if err := json.Unmarshal(b.Bytes(), &back); err != nil || back["name"] != text {
			t.Errorf("%q comes back as %q: %v", text, back["name"], err)
		}
	}
}
