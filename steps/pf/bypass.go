package pf

import (
	"slices"
	"strings"
)

// Bypass reads `pfctl -s rules` and returns the rules ahead of an anchor's point
// that let packets pass at once: of what they match the anchor sees nothing.
// Rules for what comes in and for the loopback match nothing that leaves a virtual
// machine for a network. What stands in a nested anchor is indented.
func Bypass(listing, anchor string) []string {
	var out []string
	for line := range strings.Lines(listing) {
		switch {
		case strings.HasPrefix(line, filterPoint):
			points, err := pointsOf(line, nil)
			if err == nil && slices.Contains(points, FilterPoint(anchor)) {
				return out
			}
		case strings.HasPrefix(line, "pass ") && strings.Contains(line, " quick "):
			if words := strings.Fields(line); words[1] != "in" && !strings.Contains(line, " on lo0 ") {
				out = append(out, strings.Join(words, " "))
			}
		}
	}
	return nil // nothing evaluates the anchor
}
