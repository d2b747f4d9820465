package view

import (
	"strings"
	"testing"
)

// TestResultBreaksAtCommas: a count stays on the line of what it counts.
func TestResultBreaksAtCommas(t *testing.T) {
	t.Parallel()
	const text = "10/13 hosts converged, 1 unreachable, 1 not compared, 1 held, 12/13 Nodes Ready, 126 actions done, 2m10s, exit 3"
	for width := 30; width < 120; width++ {
		var b strings.Builder
		NewText(&b, width, false).resultLine(text)
		lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
		for i, line := range lines {
			if len(line) > width || i+1 < len(lines) && !strings.HasSuffix(line, ",") {
				t.Errorf("%d columns:\n%s", width, b.String())
			}
		}
		if got := strings.Join(strings.Fields(b.String()), " "); got != "Result "+text {
			t.Errorf("%d columns: %s", width, got)
		}
	}
}
