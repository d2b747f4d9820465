package pf

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Enabled parses `pfctl -s info`.
func Enabled(info string) (bool, error) {
	for line := range strings.Lines(info) {
		words := strings.Fields(line)
		if len(words) > 1 && words[0] == "Status:" && (words[1] == "Enabled" || words[1] == "Disabled") {
			return words[1] == "Enabled", nil
		}
	}
	return false, errors.New("pfctl -s info shows neither enabled nor disabled")
}

// Holds reports whether `pfctl -s References` lists a pf reference. token is the output of the `pfctl -E` that took it.
func Holds(listing, token string) bool {
	var own string
	for line := range strings.Lines(token) {
		if words := strings.Fields(line); len(words) > 2 && words[0] == "Token" {
			own = words[2]
		}
	}
	return own != "" && slices.Contains(strings.Fields(listing), own)
}

// Names parses `pfctl -s Tables` and `pfctl -s Anchors`: one name per line.
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

// Addresses parses `pfctl -t TABLE -T show`, one network or address per line, into the form
// of networkList.
func Addresses(listing string) (string, error) {
	var out []netip.Prefix
	for _, text := range strings.Fields(listing) {
		p, err := network(text)
		if err != nil {
			return "", fmt.Errorf("%q is not a network", text)
		}
		out = append(out, p)
	}
	return networkList(out), nil
}

// network parses a network, or an address as a network of one.
func network(text string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	return netip.ParsePrefix(text)
}

// Points parses the anchor points of `pfctl -s rules` and `pfctl -s nat`, in their order.
func Points(listing string) ([]Point, error) {
	texts := []string{listing}
	if !strings.ContainsAny(listing, "{}\\'#") { // one statement per line; others do not matter
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
			return nil, fmt.Errorf("unexpected anchor name %q", p.Name)
		}
	}
	return out, nil
}

// Bypass parses `pfctl -s rules` and returns the "pass quick" rules ahead of an anchor's
// point: the anchor never sees the packets they match. Rules for incoming packets and for the
// loopback do not match traffic of virtual machines. Rules of nested anchors are indented.
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

// LiveRules parses `pfctl -a ANCHOR -s rules` into normal form, without the words that pfctl
// adds. An unknown word is an error.
func LiveRules(listing string) ([]string, error) {
	var out []string
	ours := Rules()
	for line := range strings.Lines(listing) {
		if plain := strings.Replace(strings.TrimSpace(line), " quick inet ", " quick ", 1); slices.Contains(ours, plain) {
			out = append(out, plain) // the usual case
			continue
		}
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if !slices.Contains([]string{"block", "pass", "match", "scrub", filterPoint}, words[0]) {
			return nil, fmt.Errorf("%q does not start like a rule", strings.TrimSpace(line))
		}
		kept := []string{words[0]}
		for i, w := range words[1:] {
			if !isRuleWord(words[i], w) {
				return nil, fmt.Errorf("unknown word %q in the rule %q", w, strings.TrimSpace(line))
			}
			if w != "inet" { // implied by the address
				kept = append(kept, normalWord(w))
			}
		}
		out = append(out, strings.Join(kept, " "))
	}
	return out, nil
}

// normalWord removes the address count from a table and the prefix length from a single
// address.
func normalWord(w string) string {
	if name, count, ok := strings.Cut(strings.TrimSuffix(w, ">"), ":"); ok && strings.HasPrefix(w, "<") && isNumber(count) {
		return name + ">"
	}
	return strings.TrimSuffix(w, "/32")
}

func isNumber(text string) bool {
	return text == "*" || text != "" && strings.Trim(text, "0123456789") == ""
}

// isRuleWord reports whether a word can follow another one in a rule.
func isRuleWord(before, w string) bool {
	switch before {
	case "on", "proto", "label", "port", "flags", "user", "group", "tag", "tagged", "icmp-type", "=", "!=", "<", ">", filterPoint:
		return true // any name
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
