package pf

import (
	"fmt"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/fleet"
)

// Rewrite returns the wanted /etc/pf.conf: nothing in it names the anchor or one
// of the legacy names but one block of ours. It takes the place of the first line
// of ours that goes: behind a foreign "pass out quick" nothing of it would be
// evaluated any more. Where nothing of ours stood it is the last thing. What is
// foreign keeps its bytes. The error says which line is not ours to change.
func (c Conf) Rewrite(anchor string, legacy []string) (string, error) {
	rest, err := c.with(&statement{text: Block(anchor), ended: true}, append([]string{anchor}, legacy...))
	return rest.text(), err
}

// Remove returns a pf.conf without any form of the names: blocks between marks,
// marks that lack their other half, and bare lines with the comments above that
// name them.
func (c Conf) Remove(names []string) (string, error) {
	rest, err := c.with(nil, names)
	return rest.text(), err
}

// LoadFile returns the text for one full load of the main ruleset that loses
// nothing: pf.conf without any form of the names, and the anchor points that are
// live alone, each in its section and behind the point that it follows live. For
// vmnet's there is a comment each ("# live: "), to be replaced by those that are
// live when the text is loaded; with nil for live there is none. anchor, where it is not "", is evaluated
// where Rewrite has its block. live lists the live points in order.
//
// Of the statements that load anchors it keeps those of macOS's own. Rules of
// the other anchors outlive the load by themselves, and on a live host loading
// them again can fail with "Resource busy".
func (c Conf) LoadFile(anchor string, names []string, live []Point) (string, error) {
	var point *statement
	if anchor != "" {
		point, names = FilterPoint(anchor).statement(), append([]string{anchor}, names...)
	}
	rest, err := c.with(point, names)
	if err != nil {
		return "", err
	}
	rest.onOwnLine()
	rest.all = slices.DeleteFunc(rest.all, func(s *statement) bool { return s.Kind == loadAnchor && !s.IsApple() })
	for i, p := range live {
		if !slices.Contains(names, p.Name) && p.Name != VMNet && rest.at(p) < 0 {
			rest.insert(p, live[:i])
		}
	}
	if live != nil {
		rest.leaveRoom()
	}
	return rest.text(), nil
}

// leaveRoom adds a comment "# live: " for each of vmnet's points, where it belongs. Virtual machines start and stop
// between a plan and its change, so only what loads the text knows which of them are live.
func (c *Conf) leaveRoom() {
	for _, s := range stockOf() {
		p := Point{s.Kind, VMNet}
		if s.Kind == loadAnchor || s.Kind == "dummynet-anchor" || c.at(p) >= 0 {
			continue
		}
		if i := c.at(s.Point); i >= 0 {
			c.onOwnLine()
			c.all = slices.Insert(c.all, i+1, &statement{text: "# live: " + p.String() + "\n", ended: true})
		}
	}
}

// Where the live main ruleset is to have an anchor's point.
const (
	Last  = "last"
	First = "first" // ahead of everything but macOS's own
)

// Place says where the live main ruleset is to have the point of an anchor, so that it stands among the filter rules
// of others as Rewrite places it: "" where they stand on both sides.
func (c Conf) Place(anchor string, names []string) (string, error) {
	rest, err := c.with(FilterPoint(anchor).statement(), append([]string{anchor}, names...))
	if err != nil {
		return "", err
	}
	others := func(all []*statement) bool {
		return slices.ContainsFunc(all, func(s *statement) bool { return s.section() == filtering && !s.IsApple() })
	}
	switch at := rest.at(FilterPoint(anchor)); {
	case !others(rest.all[at+1:]):
		return Last, nil
	case !others(rest.all[:at]):
		return First, nil
	}
	return "", nil
}

// with returns a pf.conf without any form of the names, and with a statement of
// the filter section in their place unless it is nil.
func (c Conf) with(made *statement, names []string) (Conf, error) {
	own, err := c.find(names)
	if err != nil {
		return Conf{}, err
	}
	rest := Conf{make([]*statement, 0, len(c.all)+2)}
	var stood []int // where in the rest the lines of ours were
	for i, s := range c.all {
		if own.drop[i] {
			stood = append(stood, len(rest.all))
		} else {
			rest.all = append(rest.all, s)
		}
	}
	if made == nil {
		return rest, nil
	}
	place := rest.place(stood)
	if place == len(rest.all) {
		rest.onOwnLine()
	}
	rest.all = slices.Insert(rest.all, place, made)
	return rest, nil
}

// place returns where a statement of the filter section goes: to the first place
// where one of ours stood and where pfctl accepts it, or else to the nearest
// behind, which is after the sections before the filter and macOS's own points.
func (c Conf) place(stood []int) int {
	if len(stood) == 0 {
		return len(c.all)
	}
	valid, apple := 0, 0
	for i, s := range c.all {
		if s.ahead() {
			valid = i + 1
		}
		if s.IsApple() {
			apple = i + 1
		}
	}
	if i := slices.IndexFunc(stood, func(at int) bool { return at >= valid }); i >= 0 {
		return stood[i]
	}
	return max(valid, apple)
}

// at returns the place of a point, or -1.
func (c Conf) at(p Point) int {
	return slices.IndexFunc(c.all, func(s *statement) bool { return s.Point == p })
}

// insert places a point behind the nearest of its section that stands before it
// live, or else first in its section.
func (c *Conf) insert(p Point, before []Point) {
	made := p.statement()
	want := made.section()
	place := slices.IndexFunc(c.all, func(s *statement) bool { return s.section() >= want })
	if place < 0 {
		place = len(c.all)
	}
	for _, b := range before {
		if i := c.at(b); i >= 0 && c.all[i].section() == want {
			place = i + 1
		}
	}
	c.all = slices.Insert(c.all, place, made)
}

// onOwnLine ends the last line, so that what is appended begins one: a backslash
// at its end would join the two.
func (c Conf) onOwnLine() {
	for n := len(c.all) - 1; n >= 0 && !c.all[n].ended; {
		again, err := Parse(c.all[n].text + "\n")
		if err != nil { // it was read before, and the end of a line opens nothing
			return
		}
		c.all[n] = again.all[0] // the statement itself is others' too
	}
}

// Form says in which forms a pf.conf has an anchor.
type Form struct {
	Blocks   int      // marked blocks of the anchor
	Bare     int      // lines of the anchor or a legacy name without marks
	Unclosed bool     // a BEGIN has no END, or an END no BEGIN
	Legacy   []string // legacy names that it has
	Settled  bool     // one block as it should be, and nothing else of ours
}

// Absent reports whether no form of the anchor and the legacy names is there.
func (f Form) Absent() bool { return f.Blocks == 0 && f.onlyBlocks() }

// onlyBlocks reports whether there is nothing but blocks of the anchor.
func (f Form) onlyBlocks() bool { return f.Bare == 0 && !f.Unclosed && len(f.Legacy) == 0 }

// Inspect says in which forms a pf.conf has the anchor and the legacy names. A
// settled block need not be the last thing in the file: what somebody appended
// is left there, where pfctl accepts it.
func (c Conf) Inspect(anchor string, legacy []string) (Form, error) {
	o, err := c.find(append([]string{anchor}, legacy...))
	if err != nil {
		return Form{}, err
	}
	f := Form{Bare: o.bare, Unclosed: o.unclosed}
	for _, b := range o.blocks {
		if b.name == anchor {
			f.Blocks++
		}
	}
	for _, name := range o.met {
		if name != anchor && !slices.Contains(f.Legacy, name) {
			f.Legacy = append(f.Legacy, name)
		}
	}
	if f.Settled = f.Blocks == 1 && f.onlyBlocks(); f.Settled {
		b := o.blocks[0]
		written := Conf{c.all[b.begin : b.end+1]}.text()
		same := strings.TrimSuffix(written, "\n") == strings.TrimSuffix(Block(anchor), "\n")
		f.Settled = same && !slices.ContainsFunc(c.all[b.end+1:], (*statement).ahead)
	}
	return f, nil
}

// Marked returns the anchors whose block a mark in a pf.conf begins, each once.
func (c Conf) Marked() []string {
	var out []string
	for _, s := range c.all {
		if !slices.Contains(out, s.begins) && fleet.CheckText("anchor", s.begins) == "" {
			out = append(out, s.begins)
		}
	}
	return out
}

// Has reports whether a pf.conf has a block of the anchor as Block writes it.
func (c Conf) Has(anchor string) bool { return strings.Contains(c.text(), Block(anchor)) }

// Points returns where a configuration has anchors evaluated, in order.
func (c Conf) Points() []Point {
	var out []Point
	for _, s := range c.all {
		if s.evaluates() {
			out = append(out, s.Point)
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

// ownership says which statements of a pf.conf are ours.
type ownership struct {
	drop     []bool
	met      []string // the names of the blocks, and of the statements that evaluate or load one
	bare     int      // of these without a block
	blocks   []block
	unclosed bool // a mark BEGIN has no END, or an END no BEGIN
}

// block is a marked block: the places of its two marks, and whose it is.
type block struct {
	begin, end int
	name       string
}

// find looks for every form of the names.
func (c Conf) find(names []string) (ownership, error) {
	o := ownership{drop: make([]bool, len(c.all))}
	for i, s := range c.all {
		o.drop[i] = s.Kind != "" && slices.Contains(names, s.Name)
		if o.drop[i] && s.braces {
			return o, fmt.Errorf("line %d gives the anchor %s rules of its own in braces: move them into a file of their own, or choose another anchor", s.line, s.Name)
		}
	}
	o.pair(c, names)
	for i, s := range c.all {
		if s.Kind == "" || !slices.Contains(names, s.Name) {
			continue
		}
		o.met = append(o.met, s.Name)
		if slices.ContainsFunc(o.blocks, func(b block) bool { return b.begin < i && i < b.end }) {
			continue
		}
		o.bare++
		for i--; i >= 0 && c.all[i].names(names); i-- { // the comments right above
			o.drop[i] = true
		}
	}
	return o, nil
}

// pair finds the marks and pairs them. A block that holds a foreign statement
// is none: its END may be that of another one, lost, and between them stands
// what somebody else wrote.
func (o *ownership) pair(c Conf, names []string) {
	open := -1
	leave := func() {
		o.unclosed = o.unclosed || open >= 0
		open = -1
	}
	for i, s := range c.all {
		switch {
		case slices.Contains(names, s.begins):
			leave()
			open, o.drop[i] = i, true
		case slices.Contains(names, s.ends):
			o.drop[i] = true
			if open < 0 || c.all[open].begins != s.ends {
				o.unclosed = true
				continue
			}
			o.blocks, o.met = append(o.blocks, block{open, i, s.ends}), append(o.met, s.ends)
			for ; open < i; open++ {
				o.drop[open] = true
			}
			open = -1
		case len(s.words) > 0 && !o.drop[i]:
			leave()
		}
	}
	leave()
}
