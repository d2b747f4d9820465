package kit

import (
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestWriteLine: the short way of quoting gives what strconv gives.
func TestWriteLine(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.OneOf(rapid.String(), rapid.StringMatching(`[ -~]{0,20}`)).Draw(t, "value")
		var b strings.Builder
		writeLine(&b, "name", value)
		if want := "name=" + strconv.Quote(value) + "\n"; b.String() != want {
			t.Fatalf("%q, want %q", b.String(), want)
		}
	})
}
