package view_test

import (
	"bytes"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/macfleet/macfleet/fleet/load"
	"github.com/macfleet/macfleet/internal/view"
)

// TestDiagnosticsAreHarmless: no text of a configuration moves the cursor, sets colours
// or reverses the direction of text, on a terminal and in a file.
func TestDiagnosticsAreHarmless(t *testing.T) {
	t.Parallel()
	text := "macfleet {\n\tname = \"ac\x1b[2Jme\x1b]0;title\a\u202e\"\r\n}\n" +
		"fleet \"\\u001b[8mhidden\" {\n\tgroup \"m2\" {\n\t\ttype = 1\n\t\ttyp = 2\n\t}\n}\n"
	result, diags := load.Dir(fstest.MapFS{"main.fleet.hcl": {Data: []byte(text)}}, load.Options{})
	if len(diags) < 2 {
		t.Fatalf("%v", diags)
	}
	for _, kind := range kinds() {
		var b bytes.Buffer
		must(t, view.NewText(&b, kind.width, kind.colour).Diagnostics(result.Files, diags))
		rest := b.String()
		if !strings.Contains(rest, `[2Jme`) || !strings.Contains(rest, "\ttyp") || !strings.Contains(rest, "hidden") {
			t.Errorf("the lines are not shown:\n%q", rest)
		}
		for _, own := range []string{"\x1b[31m", "\x1b[33m", "\x1b[0m", "\x1b[1;4m"} {
			if kind.colour {
				rest = strings.ReplaceAll(rest, own, "")
			}
		}
		if strings.ContainsAny(rest, "\x1b\a\r\u202e") {
			t.Errorf("colour %t:\n%q", kind.colour, rest)
		}
	}
}
