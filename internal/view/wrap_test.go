package view_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/internal/view"
)

// TestWrap: words, paths, commands, and numbers with their units stay in one piece at any width, so that they can be copied.
func TestWrap(t *testing.T) {
	t.Parallel()
	for _, e := range []struct{ text, whole string }{
		{"fix: delete unused images (as the login user: tart prune --older-than 7), then run macfleet plan again", "tart prune --older-than 7),"},
		{"fix it and run macfleet apply --on name=acme-production-runners-m2-00c3b --step power.", "macfleet apply --on name=acme-production-runners-m2-00c3b --step power."},
		{"4/13 hosts converged, 9 not started, 4 actions done, 9s, exit 3", "4 actions"},
		{"read /var/log/tart-kubelet.log on the host", "/var/log/tart-kubelet.log"},
		{"wait until it expires, or if it is safe: macfleet unhold 00c3b", "macfleet unhold 00c3b"},
		{"let an administrator run: kubectl annotate node acme-1 acme.dev/hold- and plan again", "kubectl annotate node acme-1 acme.dev/hold-"},
	} {
		for width := 1; width <= 120; width++ {
			lines := view.Wrap(e.text, width)
			equal(t, strings.Join(lines, " "), e.text, "at", width, "columns the text becomes")
			if !slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, e.whole) }) {
				t.Errorf("at %d columns %q is broken: %q", width, e.whole, lines)
			}
		}
	}
}
