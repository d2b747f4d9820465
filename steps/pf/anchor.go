package pf

import (
	"slices"
	"strings"
)

// IsApple reports whether an anchor is one of macOS's own.
func IsApple(name string) bool { return strings.HasPrefix(strings.ToLower(name), "com.apple") }

// File returns the name of an anchor's file.
func File(anchor string) string { return "/etc/pf.anchors/" + anchor }

// Block returns the lines that macfleet keeps in /etc/pf.conf for an anchor.
func Block(anchor string) string {
	return "# BEGIN " + anchor + "\n" +
		`anchor "` + anchor + "\"\n" +
		`load anchor "` + anchor + `" from "` + File(anchor) + "\"\n" +
		"# END " + anchor + "\n"
}

// The kinds of anchor point, and what loads rules into an anchor.
const (
	filterPoint = "anchor"
	loadAnchor  = "load anchor"
)

// anchor returns the anchor that a statement evaluates or loads.
func (s *statement) anchor() (kind, name string, ok bool) {
	i := 1
	switch {
	case s.keyword(0, filterPoint, "nat-anchor", "rdr-anchor", "binat-anchor", "scrub-anchor", "dummynet-anchor"):
		kind = s.words[0].text
	case s.keyword(0, "load") && s.keyword(1, filterPoint):
		kind, i = loadAnchor, 2
	default:
		return "", "", false
	}
	if i >= len(s.words) || s.keyword(i, "}", "on", "in", "out", "all", "from", "proto", "inet", "inet6") || s.keyword(i+1, "/") {
		return "", "", false // an anchor without a name, or a path that pfctl does not take
	}
	return kind, strings.TrimPrefix(s.words[i].text, "/"), true
}

// marker returns what a comment that begins or ends a block says.
func (s *statement) marker() (kind, name string, ok bool) {
	if !strings.Contains(s.comment, "BEGIN") && !strings.Contains(s.comment, "END") {
		return "", "", false
	}
	words := strings.Fields(strings.TrimLeft(s.comment, "#"))
	if len(words) != 2 || words[0] != "BEGIN" && words[0] != "END" {
		return "", "", false
	}
	return words[0], strings.Trim(words[1], `"'`), true
}

// names reports whether a comment names one of these anchors.
func (s *statement) names(anchors []string) bool {
	if !slices.ContainsFunc(anchors, func(n string) bool { return strings.Contains(s.comment, n) }) {
		return false
	}
	words := strings.FieldsFunc(s.comment, func(r rune) bool { return r < 0x80 && strings.ContainsRune(" \t\r#\"'`/,;:()<>", r) })
	return slices.ContainsFunc(words, func(w string) bool {
		return slices.Contains(anchors, strings.TrimRight(w, ".")) || slices.Contains(anchors, w)
	})
}
