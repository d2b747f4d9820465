package pf

import (
	"slices"
	"strings"

	"github.com/macfleet/macfleet/fleet"
)

// Form says in which forms a pf.conf has an anchor.
type Form struct {
	Blocks   int      // marked blocks of the anchor
	Bare     int      // lines of the anchor or a legacy name without marks
	Unclosed bool     // a BEGIN has no END, or an END no BEGIN
	Legacy   []string // legacy names that it has
	Settled  bool     // one block as it should be, and nothing else of ours
}

// Absent reports whether no form of the anchor and the legacy names is there.
func (f Form) Absent() bool {
	return f.Blocks == 0 && f.Bare == 0 && !f.Unclosed && len(f.Legacy) == 0
}

// Inspect says in which forms a pf.conf has the anchor and the legacy names. A
// settled block need not be the last thing in the file: what somebody appended
// is left there, where pfctl accepts it.
func (c Conf) Inspect(anchor string, legacy []string) (Form, error) {
	o, err := find(c.all, append([]string{anchor}, legacy...))
	if err != nil {
		return Form{}, err
	}
	f := Form{Bare: o.bare, Unclosed: o.unclosed > 0}
	meet := func(name string) {
		if name != anchor && !slices.Contains(f.Legacy, name) {
			f.Legacy = append(f.Legacy, name)
		}
	}
	for _, b := range o.blocks {
		if b.name == anchor {
			f.Blocks++
		}
		meet(b.name)
	}
	for _, i := range o.own {
		_, name, _ := c.all[i].anchor()
		meet(name)
	}
	f.Settled = f.Blocks == 1 && f.Bare == 0 && !f.Unclosed && len(f.Legacy) == 0 && c.settled(o.blocks[0], anchor)
	return f, nil
}

// settled reports whether a block is written as Block writes it, at a place
// where it may stand.
func (c Conf) settled(b block, anchor string) bool {
	rest, same := Block(anchor), true
	for _, s := range c.all[b.begin : b.end+1] {
		rest, same = strings.CutPrefix(rest, s.text)
		if !same {
			return false
		}
	}
	if rest != "" && rest != "\n" {
		return false
	}
	return !slices.ContainsFunc(c.all[b.end+1:], func(s *statement) bool { at := s.section(); return at != anywhere && at < filtering })
}

// Blocks returns the anchors of which a pf.conf has a block as Block writes it.
func (c Conf) Blocks() []string {
	var out []string
	whole := c.text("")
	for _, s := range c.all {
		if kind, name, ok := s.marker(); ok && kind == "BEGIN" && !slices.Contains(out, name) && fleet.CheckText("anchor", name) == "" && strings.Contains(whole, Block(name)) {
			out = append(out, name)
		}
	}
	return out
}

// Marked returns the anchors of which a pf.conf has a block between marks,
// whatever stands in it.
func (c Conf) Marked() []string {
	var out []string
	for _, s := range c.all {
		_, name, ok := s.marker()
		if !ok || slices.Contains(out, name) || fleet.CheckText("anchor", name) != "" {
			continue
		}
		if o, err := find(c.all, []string{name}); err == nil && len(o.blocks) > 0 {
			out = append(out, name)
		}
	}
	return out
}

// ApplePoints returns where a pf.conf has macOS's own anchors evaluated.
func (c Conf) ApplePoints() []Point {
	var out []Point
	for _, s := range c.all {
		if kind, name, ok := s.anchor(); ok && kind != loadAnchor && IsApple(name) && !slices.Contains(out, Point{kind, name}) {
			out = append(out, Point{kind, name})
		}
	}
	return out
}

// Tables returns the tables that a pf.conf itself defines.
func (c Conf) Tables() []string {
	var out []string
	for _, s := range c.all {
		if s.keyword(0, "table") && s.keyword(1, "<") && len(s.words) > 2 {
			out = append(out, s.words[2].text)
		}
	}
	return out
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
