package pf

import (
	"fmt"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/fleet"
)

// Rewrite returns the wanted /etc/pf.conf: one macfleet block for the anchor and no other
// mention of it or of the legacy names. The block replaces macfleet's first line, or is
// appended: after a foreign "pass out quick" it would have no effect. Foreign lines keep
// their bytes. The error names a line that macfleet must not change.
func (c Conf) Rewrite(anchor string, legacy []string) (string, error) {
	rest, err := c.with(&statement{text: Block(anchor), ended: true}, append([]string{anchor}, legacy...))
	return rest.text(), err
}

// Remove returns a pf.conf without the given anchors: marked blocks, single marks, and
// unmarked lines with the comments above that name the anchor.
func (c Conf) Remove(names []string) (string, error) {
	rest, err := c.with(nil, names)
	return rest.text(), err
}

// LoadFile returns the text for a full load of the main ruleset that loses nothing: pf.conf
// without the names, plus the anchor points that exist only in the kernel, in their order.
// vmnet's points become comments ("# live: "), which are replaced at load time by the points
// that are live then; none if live is nil. A non-empty anchor is evaluated where Rewrite
// places its block. live lists the live points in their order.
//
// It keeps only macOS's own load statements: the rules of other anchors survive the load,
// and loading them again can fail with "Resource busy".
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

// leaveRoom adds a comment "# live: " for each of vmnet's points. Virtual machines start and stop between a plan and
// its change, so only the script that loads the text knows which points are live.
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

// Special places of an anchor's point in the live main ruleset.
const (
	Last  = "last"
	First = "first" // before everything but macOS's own points
)

// Place says where the live main ruleset needs the anchor's point to match Rewrite's order among foreign filter rules:
// "" if there are such rules on both sides.
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

// with returns a pf.conf without the names and, unless it is nil, with a filter statement in
// their place.
func (c Conf) with(made *statement, names []string) (Conf, error) {
	own, err := c.find(names)
	if err != nil {
		return Conf{}, err
	}
	rest := Conf{make([]*statement, 0, len(c.all)+2)}
	var stood []int // positions of macfleet's lines among the rest
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

// place returns the position of a filter statement: the first former position of a macfleet
// line that pfctl accepts, or else the next valid one after the earlier sections and macOS's
// own points.
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

// at returns the position of a point, or -1.
func (c Conf) at(p Point) int {
	return slices.IndexFunc(c.all, func(s *statement) bool { return s.Point == p })
}

// insert places a point after the nearest one of its section that precedes it in the kernel,
// or else first in its section.
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

// onOwnLine terminates the last line, so that appended text starts a new one even after a
// trailing backslash.
func (c Conf) onOwnLine() {
	for n := len(c.all) - 1; n >= 0 && !c.all[n].ended; {
		again, err := Parse(c.all[n].text + "\n")
		if err != nil { // it was parsed before, and a line end changes nothing
			return
		}
		c.all[n] = again.all[0] // other Confs share the statement itself
	}
}

// Form describes how a pf.conf mentions an anchor.
type Form struct {
	Blocks   int      // marked blocks of the anchor
	Bare     int      // unmarked lines of the anchor or a legacy name
	Unclosed bool     // a BEGIN without END, or an END without BEGIN
	Legacy   []string // legacy names found
	Settled  bool     // exactly one correct block, nothing else of macfleet's
}

// Absent reports whether neither the anchor nor a legacy name is mentioned.
func (f Form) Absent() bool { return f.Blocks == 0 && f.onlyBlocks() }

// onlyBlocks reports whether there are only marked blocks of the anchor.
func (f Form) onlyBlocks() bool { return f.Bare == 0 && !f.Unclosed && len(f.Legacy) == 0 }

// Inspect reports how a pf.conf mentions the anchor and the legacy names. A settled block
// does not have to be last: lines appended after it stay if pfctl accepts them.
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

// Marked returns the anchors that have a BEGIN mark, each once.
func (c Conf) Marked() []string {
	var out []string
	for _, s := range c.all {
		if !slices.Contains(out, s.begins) && fleet.CheckText("anchor", s.begins) == "" {
			out = append(out, s.begins)
		}
	}
	return out
}

// Has reports whether a pf.conf contains the anchor's block exactly as Block writes it.
func (c Conf) Has(anchor string) bool { return strings.Contains(c.text(), Block(anchor)) }

// Points returns the anchor points in their order.
func (c Conf) Points() []Point {
	var out []Point
	for _, s := range c.all {
		if s.evaluates() {
			out = append(out, s.Point)
		}
	}
	return out
}

// Tables returns the tables that the pf.conf defines.
func (c Conf) Tables() []string {
	var out []string
	for _, s := range c.all {
		if s.keyword(0, "table") && s.keyword(1, "<") && len(s.words) > 2 {
			out = append(out, s.words[2].text)
		}
	}
	return out
}

// ownership says which statements of a pf.conf are macfleet's.
type ownership struct {
	drop     []bool
	met      []string // names of blocks, and of statements that evaluate or load an anchor
	bare     int      // statements without a block
	blocks   []block
	unclosed bool // a BEGIN without END, or an END without BEGIN
}

// block is a marked block: the positions of its marks, and its anchor.
type block struct {
	begin, end int
	name       string
}

// find finds every mention of the names.
func (c Conf) find(names []string) (ownership, error) {
	o := ownership{drop: make([]bool, len(c.all))}
	for i, s := range c.all {
		o.drop[i] = s.Kind != "" && slices.Contains(names, s.Name)
		if o.drop[i] && s.braces {
			return o, fmt.Errorf("line %d defines rules of the anchor %s in braces: move them to a separate file, or choose another anchor", s.line, s.Name)
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

// pair matches BEGIN and END marks. A block with a foreign statement inside does not count:
// its own END may be lost.
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
