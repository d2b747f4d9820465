package pf

import (
	"slices"
	"strings"
)

// Point is a statement that evaluates an anchor in a ruleset.
type Point struct{ Kind, Name string }

// The kinds of anchor point, and the statement that loads rules into an anchor.
const (
	filterPoint = "anchor"
	loadAnchor  = "load anchor"
)

// FilterPoint returns the point that evaluates an anchor's filter rules.
func FilterPoint(anchor string) Point { return Point{filterPoint, anchor} }

// String returns the point as a statement.
func (p Point) String() string { return p.Kind + ` "` + p.Name + `"` }

func (p Point) statement() *statement {
	return &statement{text: p.String() + "\n", words: []word{{text: p.Kind}, {p.Name, true}}, ended: true, Point: p}
}

// IsApple reports whether an anchor is one of macOS's own.
func (p Point) IsApple() bool { return strings.HasPrefix(strings.ToLower(p.Name), "com.apple") }

// evaluates reports whether it evaluates an anchor, rather than loading one.
func (p Point) evaluates() bool { return p.Kind != "" && p.Kind != loadAnchor }

// File returns the path of an anchor's file.
func File(anchor string) string { return "/etc/pf.anchors/" + anchor }

// Block returns macfleet's lines in /etc/pf.conf for an anchor.
func Block(anchor string) string {
	return "# BEGIN " + anchor + "\n" + FilterPoint(anchor).String() + "\n" +
		Point{loadAnchor, anchor}.String() + ` from "` + File(anchor) + "\"\n# END " + anchor + "\n"
}

// anchor returns the anchor that a statement evaluates or loads, or the zero Point.
func (s *statement) anchor() Point {
	kind, i := "", 1
	switch {
	case s.keyword(0, filterPoint, "nat-anchor", "rdr-anchor", "binat-anchor", "scrub-anchor", "dummynet-anchor"):
		kind = s.words[0].text
	case s.keyword(0, "load") && s.keyword(1, filterPoint):
		kind, i = loadAnchor, 2
	}
	if kind == "" || i >= len(s.words) || s.keyword(i, "}", "on", "in", "out", "all", "from", "proto", "inet", "inet6") || s.keyword(i+1, "/") {
		return Point{} // no name, or a path that pfctl rejects
	}
	return Point{kind, strings.TrimPrefix(s.words[i].text, "/")}
}

// marks returns the anchor whose block a comment begins or ends.
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

// names reports whether a comment, other than a mark, names one of these anchors.
func (s *statement) names(anchors []string) bool {
	if s.begins+s.ends != "" {
		return false
	}
	words := strings.FieldsFunc(s.comment, func(r rune) bool { return r < 0x80 && strings.ContainsRune(" \t\r#\"'`/,;:()<>", r) })
	return slices.ContainsFunc(words, func(w string) bool {
		return slices.Contains(anchors, strings.TrimRight(w, ".")) || slices.Contains(anchors, w)
	})
}

// section is the part of a pf.conf to which a statement belongs: pfctl rejects a file whose
// parts are out of order.
type section int

const (
	anywhere section = iota
	options
	normalization
	queueing
	translation
	shaping // dummynet: between translation and filter in macOS's own file
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

// ahead reports whether a statement must precede the filter rules.
func (s *statement) ahead() bool { at := s.section(); return at != anywhere && at < filtering }
