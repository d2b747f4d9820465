package pf

import (
	"slices"
	"strings"
)

// Point is a place in a ruleset where an anchor is evaluated.
type Point struct{ Kind, Name string }

// The kinds of anchor point, and what loads rules into an anchor.
const (
	filterPoint = "anchor"
	loadAnchor  = "load anchor"
)

// FilterPoint is where the rules of an anchor are evaluated.
func FilterPoint(anchor string) Point { return Point{filterPoint, anchor} }

// String returns the point as a statement.
func (p Point) String() string { return p.Kind + ` "` + p.Name + `"` }

func (p Point) statement() *statement {
	return &statement{text: p.String() + "\n", words: []word{{text: p.Kind}, {p.Name, true}}, ended: true, Point: p}
}

// IsApple reports whether an anchor is one of macOS's own.
func (p Point) IsApple() bool { return strings.HasPrefix(strings.ToLower(p.Name), "com.apple") }

// evaluates reports whether it is a place at all, and not what loads rules.
func (p Point) evaluates() bool { return p.Kind != "" && p.Kind != loadAnchor }

// File returns the name of an anchor's file.
func File(anchor string) string { return "/etc/pf.anchors/" + anchor }

// Block returns the lines that macfleet keeps in /etc/pf.conf for an anchor.
func Block(anchor string) string {
	return "# BEGIN " + anchor + "\n" + FilterPoint(anchor).String() + "\n" +
		Point{loadAnchor, anchor}.String() + ` from "` + File(anchor) + "\"\n# END " + anchor + "\n"
}

// anchor returns the anchor that a statement evaluates or loads, if it does.
func (s *statement) anchor() Point {
	kind, i := "", 1
	switch {
	case s.keyword(0, filterPoint, "nat-anchor", "rdr-anchor", "binat-anchor", "scrub-anchor", "dummynet-anchor"):
		kind = s.words[0].text
	case s.keyword(0, "load") && s.keyword(1, filterPoint):
		kind, i = loadAnchor, 2
	}
	if kind == "" || i >= len(s.words) || s.keyword(i, "}", "on", "in", "out", "all", "from", "proto", "inet", "inet6") || s.keyword(i+1, "/") {
		return Point{} // an anchor without a name, or a path that pfctl does not take
	}
	return Point{kind, strings.TrimPrefix(s.words[i].text, "/")}
}

// marks returns whose block a comment begins or ends.
func (s *statement) marks() (begins, ends string) {
	words := strings.Fields(strings.TrimLeft(s.comment, "#"))
	switch {
	case len(words) != 2:
	case words[0] == "BEGIN":
		begins = strings.Trim(words[1], `"'`)
	case words[0] == "END":
		ends = strings.Trim(words[1], `"'`)
	}
	return begins, ends
}

// names reports whether a comment that is no mark names one of these anchors.
func (s *statement) names(anchors []string) bool {
	if s.begins+s.ends != "" {
		return false
	}
	words := strings.FieldsFunc(s.comment, func(r rune) bool { return r < 0x80 && strings.ContainsRune(" \t\r#\"'`/,;:()<>", r) })
	return slices.ContainsFunc(words, func(w string) bool {
		return slices.Contains(anchors, strings.TrimRight(w, ".")) || slices.Contains(anchors, w)
	})
}

// section is the part of a pf.conf in which a statement must stand: pfctl
// refuses a file whose parts are out of order.
type section int

const (
	anywhere section = iota
	options
	normalization
	queueing
	translation
	shaping // dummynet, which Apple's own file has between translation and filter
	filtering
)

// section returns the part of a statement.
func (s *statement) section() section {
	i := 0
	if s.keyword(0, "no") {
		i = 1
	}
	switch {
	case s.keyword(0, "set"):
		return options
	case s.keyword(i, "scrub", "scrub-anchor"):
		return normalization
	case s.keyword(0, "altq", "queue"):
		return queueing
	case s.keyword(i, "nat", "rdr", "binat", "nat-anchor", "rdr-anchor", "binat-anchor"):
		return translation
	case s.keyword(i, "dummynet", "dummynet-anchor"):
		return shaping
	case s.keyword(0, "pass", "block", "match", "antispoof", filterPoint):
		return filtering
	}
	return anywhere // macros, tables, load anchor, comments
}

// ahead reports whether a statement must stand before those of the filter.
func (s *statement) ahead() bool { at := s.section(); return at != anywhere && at < filtering }
