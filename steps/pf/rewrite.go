package pf

import (
	"fmt"
	"slices"
	"strings"
)

// Conf is a pf.conf, taken apart. Its statements are never changed: the forms that a
// plan needs of one file share them, and a plan of a big fleet has many.
type Conf struct{ all []*statement }

// Parse takes a pf.conf apart. The error says which line pfctl itself could not
// read.
func Parse(text string) (Conf, error) {
	all, err := split(text)
	return Conf{all}, err
}

// Rewrite returns the wanted /etc/pf.conf: nothing in it names the anchor or one
// of the legacy names but one block of ours. It takes the place of the first line
// of ours that goes: behind a foreign "pass out quick" nothing of it would be
// evaluated any more. Where nothing of ours stood it is the last thing. What is
// foreign keeps its bytes. The error says which line is not ours to change.
func (c Conf) Rewrite(anchor string, legacy []string) (string, error) {
	rest, err := c.with(append([]string{anchor}, legacy...), &statement{text: Block(anchor), ended: true})
	return rest.text(""), err
}

// Remove returns a pf.conf without any form of the names: blocks between marks,
// marks that lack their other half, and bare lines with the comments above that
// name them.
func (c Conf) Remove(names []string) (string, error) {
	rest, _, err := c.apart(names)
	return rest.text(""), err
}

// with returns a pf.conf without any form of the names, and with a statement of
// the filter section in their place.
func (c Conf) with(names []string, made *statement) (Conf, error) {
	rest, stood, err := c.apart(names)
	if err != nil {
		return Conf{}, err
	}
	place := rest.place(stood)
	if place == len(rest.all) {
		rest = rest.onOwnLine()
	}
	rest.all = slices.Insert(rest.all, place, made)
	return rest, nil
}

// apart takes every form of the names out, and says where in the rest each of
// their lines stood.
func (c Conf) apart(names []string) (rest Conf, stood []int, err error) {
	own, err := find(c.all, names)
	if err != nil {
		return Conf{}, nil, err
	}
	rest = Conf{make([]*statement, 0, len(c.all)+2)}
	for i, s := range c.all {
		if own.drop[i] {
			stood = append(stood, len(rest.all))
		} else {
			rest.all = append(rest.all, s)
		}
	}
	return rest, stood, nil
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
		if at := s.section(); at != anywhere && at < filtering {
			valid = i + 1
		}
		if _, name, ok := s.anchor(); ok && IsApple(name) {
			apple = i + 1
		}
	}
	for _, i := range stood {
		if i >= valid {
			return i
		}
	}
	return max(valid, apple)
}

// onOwnLine ends the last line, so that what is appended begins one: a backslash
// at its end would join the two.
func (c Conf) onOwnLine() Conf {
	for len(c.all) > 0 && !c.all[len(c.all)-1].ended {
		last := c.all[len(c.all)-1]
		again := scanner{text: last.text + "\n"}
		st, err := again.statement(last.line)
		if err != nil { // it was read before, and the end of a line opens nothing
			break
		}
		c.all[len(c.all)-1] = &st // the statement itself is others' too
	}
	return c
}

func (c Conf) text(appended string) string {
	size := len(appended)
	for _, s := range c.all {
		size += len(s.text)
	}
	var b strings.Builder
	b.Grow(size)
	for _, s := range c.all {
		b.WriteString(s.text)
	}
	b.WriteString(appended)
	return b.String()
}

// ownership says which statements of a pf.conf are ours.
type ownership struct {
	drop     []bool
	own      []int // places of statements that evaluate or load one of the names
	names    []string
	bare     int // of these without a block
	blocks   []block
	unclosed int // marks BEGIN without an END, and END without a BEGIN
}

// block is a marked block: the places of its two marks, and whose it is.
type block struct {
	begin, end int
	name       string
}

// find looks for every form of the names.
func find(all []*statement, names []string) (ownership, error) {
	o := ownership{drop: make([]bool, len(all)), names: names}
	for i, s := range all {
		_, name, isAnchor := s.anchor()
		if !isAnchor || !slices.Contains(names, name) {
			continue
		}
		if s.braces {
			return o, fmt.Errorf("line %d gives the anchor %s rules of its own in braces: move them into a file of their own, or choose another anchor", s.line, name)
		}
		o.own, o.drop[i] = append(o.own, i), true
	}
	o.marks(all)
	for _, i := range o.own {
		if !slices.ContainsFunc(o.blocks, func(b block) bool { return b.begin < i && i < b.end }) {
			o.comments(all, i)
			o.bare++
		}
	}
	return o, nil
}

// marks finds the marks and pairs them. A block that holds a foreign statement
// is none: its END may be that of another one, lost, and between them stands
// what somebody else wrote.
func (o *ownership) marks(all []*statement) {
	open, begun := -1, ""
	leave := func() {
		if open >= 0 {
			o.unclosed++
		}
		open = -1
	}
	for i, s := range all {
		kind, name, isMark := s.marker()
		switch isMark = isMark && slices.Contains(o.names, name); {
		case isMark && kind == "BEGIN":
			leave()
			open, begun = i, name
		case isMark && open >= 0 && begun == name:
			o.blocks = append(o.blocks, block{open, i, name})
			for j := open; j <= i; j++ {
				o.drop[j] = true
			}
			open = -1
		case isMark:
			o.unclosed++
		case len(s.words) > 0 && !o.drop[i]:
			leave()
		}
		o.drop[i] = o.drop[i] || isMark
	}
	leave()
}

// comments takes the comments right above a statement that name what it names, up
// to a mark.
func (o *ownership) comments(all []*statement, i int) {
	for i--; i >= 0 && all[i].names(o.names); i-- {
		if _, _, isMark := all[i].marker(); isMark {
			return
		}
		o.drop[i] = true
	}
}
