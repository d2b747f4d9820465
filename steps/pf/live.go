package pf

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Enabled reads `pfctl -s info`.
func Enabled(info string) (bool, error) {
	for line := range strings.Lines(info) {
		words := strings.Fields(line)
		if len(words) < 2 || words[0] != "Status:" {
			continue
		}
		switch words[1] {
		case "Enabled":
			return true, nil
		case "Disabled":
			return false, nil
		}
		break
	}
	return false, fmt.Errorf("pfctl -s info says neither enabled nor disabled")
}

// Names reads `pfctl -s Tables` and `pfctl -s Anchors`: a name a line.
func Names(listing string) ([]string, error) {
	var out []string
	for line := range strings.Lines(listing) {
		switch words := strings.Fields(line); len(words) {
		case 0:
		case 1:
			out = append(out, words[0])
		default:
			return nil, fmt.Errorf("%q is not a name", strings.TrimSpace(line))
		}
	}
	return out, nil
}

// Addresses reads `pfctl -t TABLE -T show`: a network or an address a line.
func Addresses(listing string) ([]netip.Prefix, error) {
	var out []netip.Prefix
	for line := range strings.Lines(listing) {
		text := strings.TrimSpace(line)
		if text == "" {
			continue
		}
		if a, err := netip.ParseAddr(text); err == nil {
			out = append(out, netip.PrefixFrom(a, a.BitLen()))
			continue
		}
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("%q is no network", text)
		}
		out = append(out, p)
	}
	return sorted(out), nil
}

// Point is a place in a ruleset where an anchor is evaluated.
type Point struct {
	Kind, Name string
}

// String returns the point as a statement.
func (p Point) String() string { return p.Kind + ` "` + p.Name + `"` }

func (p Point) statement() *statement {
	return &statement{text: p.String() + "\n", words: []word{{text: p.Kind}, {p.Name, true}}, ended: true}
}

// FilterPoint is where the rules of an anchor are evaluated.
func FilterPoint(anchor string) Point { return Point{filterPoint, anchor} }

// Points reads the anchor points of `pfctl -s rules` and `pfctl -s nat`, in order.
func Points(listing string) ([]Point, error) {
	if strings.ContainsAny(listing, "{}\\'#") {
		return pointsOf(listing, nil)
	}
	var out []Point
	var err error
	for line := range strings.Lines(listing) { // as nearly always: a statement a line, and most evaluate no anchor
		if err == nil && strings.Contains(line, "anchor") {
			out, err = pointsOf(line, out)
		}
	}
	return out, err
}

// pointsOf appends the points of a text.
func pointsOf(listing string, out []Point) ([]Point, error) {
	all, err := split(listing)
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		kind, name, ok := s.anchor()
		if !ok || kind == loadAnchor {
			continue
		}
		if name == "" || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == '"' || r == '\\' }) {
			return nil, fmt.Errorf("line %d names an anchor %q", s.line, name)
		}
		out = append(out, Point{kind, name})
	}
	return out, nil
}

// LiveRules reads `pfctl -a ANCHOR -s rules` into normal form. What pfctl prints
// in more words than a rule was written in is left out. A word that no rule has
// is an error: the line is not understood, so nothing can be said of it.
func LiveRules(listing string) ([]string, error) {
	plain := ruleLines()
	printed := [...]string{plain[0], plain[1], plain[0], strings.Replace(plain[1], "quick", "quick inet", 1)}
	out := make([]string, 0, 2)
	for line := range strings.Lines(listing) {
		if i := slices.Index(printed[:], strings.TrimSpace(line)); i >= 0 { // as nearly always
			out = append(out, plain[i%2])
			continue
		}
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if !slices.Contains([]string{"block", "pass", "match", "scrub", filterPoint}, words[0]) {
			return nil, fmt.Errorf("%q does not begin as a rule does", strings.TrimSpace(line))
		}
		var kept []string
		for i, w := range words {
			if i > 0 && !isRuleWord(words[i-1], w) {
				return nil, fmt.Errorf("%q is not known in the rule %q", w, strings.TrimSpace(line))
			}
			if w != "inet" { // an address says so by itself
				kept = append(kept, normalWord(w))
			}
		}
		out = append(out, strings.Join(kept, " "))
	}
	return out, nil
}

// normalWord takes the count of addresses off a table, and the length off a
// single address.
func normalWord(w string) string {
	if name, count, ok := strings.Cut(strings.TrimSuffix(w, ">"), ":"); ok && strings.HasPrefix(w, "<") && isNumber(count) {
		return name + ">"
	}
	return strings.TrimSuffix(w, "/32")
}

func isNumber(text string) bool {
	return text == "*" || text != "" && strings.Trim(text, "0123456789") == ""
}

// isRuleWord reports whether a word can stand in a rule, behind another one.
func isRuleWord(before, w string) bool {
	switch before {
	case "on", "proto", "label", "port", "flags", "user", "group", "tag", "tagged", "icmp-type", "=", "!=", "<", ">", filterPoint:
		return true // a name of somebody's choice
	}
	if _, err := netip.ParseAddr(w); err == nil {
		return true
	}
	if _, err := netip.ParsePrefix(w); err == nil {
		return true
	}
	switch w {
	case "drop", "return", "return-rst", "return-icmp", "in", "out", "log", "quick", "on", "inet", "inet6", "proto", "from", "to",
		"any", "all", "self", "no-route", "port", "flags", "keep", "modulate", "synproxy", "no", "state", "label", "user", "group",
		"tag", "tagged", "icmp-type", "fragment", "reassemble", "!", "=", "!=", "<", ">", "{", "}":
		return true
	}
	return strings.HasPrefix(w, "<") && strings.HasSuffix(w, ">") || strings.HasPrefix(w, "(") && strings.HasSuffix(w, ")")
}
