package pf

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Enabled reads `pfctl -s info`.
func Enabled(info string) (bool, error) {
	for line := range strings.Lines(info) {
		words := strings.Fields(line)
		if len(words) > 1 && words[0] == "Status:" && (words[1] == "Enabled" || words[1] == "Disabled") {
			return words[1] == "Enabled", nil
		}
	}
	return false, errors.New("pfctl -s info says neither enabled nor disabled")
}

// Holds reports whether a reference of pf is among those that `pfctl -s References` lists. token is what
// `pfctl -E` said of it.
func Holds(listing, token string) bool {
	var own string
	for line := range strings.Lines(token) {
		if words := strings.Fields(line); len(words) > 2 && words[0] == "Token" {
			own = words[2]
		}
	}
	return own != "" && slices.Contains(strings.Fields(listing), own)
}

// Names reads `pfctl -s Tables` and `pfctl -s Anchors`: a name a line.
func Names(listing string) ([]string, error) {
	var out []string
	for line := range strings.Lines(listing) {
		words := strings.Fields(line)
		if len(words) > 1 {
			return nil, fmt.Errorf("%q is not a name", strings.TrimSpace(line))
		}
		out = append(out, words...)
	}
	return out, nil
}

// Addresses reads `pfctl -t TABLE -T show`, a network or an address a line, into the
// form of NetworkList.
func Addresses(listing string) (string, error) {
	var out []netip.Prefix
	for _, text := range strings.Fields(listing) {
		p, err := network(text)
		if err != nil {
			return "", fmt.Errorf("%q is no network", text)
		}
		out = append(out, p)
	}
	return networkList(out), nil
}

// network reads a network, or an address as one of its own.
func network(text string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	return netip.ParsePrefix(text)
}

// Points reads the anchor points of `pfctl -s rules` and `pfctl -s nat`, in order.
func Points(listing string) ([]Point, error) {
	texts := []string{listing}
	if !strings.ContainsAny(listing, "{}\\'#") { // a statement a line, of which the others may hold anything
		other := func(line string) bool { return !strings.Contains(line, "anchor") }
		texts = slices.DeleteFunc(slices.Collect(strings.Lines(listing)), other)
	}
	var out []Point
	for _, text := range texts {
		c, err := Parse(text)
		if err != nil {
			return nil, err
		}
		out = append(out, c.Points()...)
	}
	for _, p := range out {
		if p.Name == "" || strings.ContainsFunc(p.Name, func(r rune) bool { return r <= ' ' || r == '"' || r == '\\' }) {
			return nil, fmt.Errorf("it names an anchor %q", p.Name)
		}
	}
	return out, nil
}

// Bypass reads `pfctl -s rules` and returns the rules ahead of an anchor's point
// that let packets pass at once: of what they match the anchor sees nothing.
// Rules for what comes in and for the loopback match nothing that leaves a virtual
// machine for a network. What stands in a nested anchor is indented.
func Bypass(listing, anchor string) []string {
	var out []string
	for line := range strings.Lines(listing) {
		if strings.HasPrefix(line, filterPoint) {
			if points, _ := Points(line); slices.Contains(points, FilterPoint(anchor)) {
				return out
			}
		}
		passes := strings.HasPrefix(line, "pass ") && strings.Contains(line, " quick ")
		if passes && !strings.HasPrefix(line, "pass in ") && !strings.Contains(line, " on lo0 ") {
			out = append(out, strings.Join(strings.Fields(line), " "))
		}
	}
	return nil // nothing evaluates the anchor
}

// LiveRules reads `pfctl -a ANCHOR -s rules` into normal form. What pfctl prints
// in more words than a rule was written in is left out. A word that no rule has
// is an error: the line is not understood, so nothing can be said of it.
func LiveRules(listing string) ([]string, error) {
	var out []string
	ours := Rules()
	for line := range strings.Lines(listing) {
		if plain := strings.Replace(strings.TrimSpace(line), " quick inet ", " quick ", 1); slices.Contains(ours, plain) {
			out = append(out, plain) // as nearly always
			continue
		}
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if !slices.Contains([]string{"block", "pass", "match", "scrub", filterPoint}, words[0]) {
			return nil, fmt.Errorf("%q does not begin as a rule does", strings.TrimSpace(line))
		}
		kept := []string{words[0]}
		for i, w := range words[1:] {
			if !isRuleWord(words[i], w) {
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
