package pf

import (
	"slices"
	"strings"
	"sync"
)

// VMNet is macOS's anchor for the network of virtual machines. Its points are in no file: macOS adds them to the
// kernel while virtual machines run.
const VMNet = "com.apple.internet-sharing"

// stockConf holds the lines of macOS's own /etc/pf.conf. Without nat-anchor and rdr-anchor, virtual machines silently
// lose their network; without the others, macOS's own filters stop working.
const stockConf = `scrub-anchor "com.apple/*"
nat-anchor "com.apple/*"
rdr-anchor "com.apple/*"
dummynet-anchor "com.apple/*"
anchor "com.apple/*"
load anchor "com.apple" from "/etc/pf.anchors/com.apple"
`

var stockOf = sync.OnceValue(func() []*statement {
	c, err := Parse(stockConf)
	if err != nil {
		panic(err) // a constant of this package
	}
	return c.all
})

// WithStock returns a pf.conf with all of macOS's own lines, and the list of those that were missing or misplaced.
// Expected are the stock lines and macOS's other lines in first, the file at first contact. names are anchors whose
// lines are about to move.
func (c Conf) WithStock(first Conf, names []string) (Conf, []string) {
	wanted := slices.Clone(stockOf())
	for _, s := range first.all {
		if s.IsApple() && s.Name != VMNet && !has(wanted, s) {
			wanted = append(wanted, s)
		}
	}
	whole := Conf{slices.Clone(c.all)}
	if !slices.ContainsFunc(c.all, func(s *statement) bool { return len(s.words) > 0 }) && len(first.all) > 0 {
		whole.all = slices.Clone(first.all)
	}
	last := anywhere // the latest section that started
	late := func(s *statement) bool {
		at := s.section()
		if !slices.Contains(names, s.Name) {
			last = max(last, at)
		}
		return at != anywhere && at < last && has(wanted, s)
	}
	misplaced := slices.DeleteFunc(slices.Clone(whole.all), func(s *statement) bool { return !late(s) })
	whole.all = slices.DeleteFunc(whole.all, func(s *statement) bool { return slices.Contains(misplaced, s) })
	var lacks []string
	for i, s := range wanted {
		if !has(c.all, s) || has(misplaced, s) {
			lacks = append(lacks, s.Point.String())
		}
		if !has(whole.all, s) {
			whole.add(s, wanted[:i])
		}
	}
	if lacks == nil {
		return c, nil
	}
	return whole, lacks
}

func has(all []*statement, one *statement) bool {
	return slices.ContainsFunc(all, func(s *statement) bool { return s.Point == one.Point })
}

// add inserts one of macOS's own statements: after its last predecessor in the same section, or else first in the
// section, before the comments of the following statement.
func (c *Conf) add(made *statement, before []*statement) {
	want := made.section()
	if want == anywhere {
		want = filtering // a load statement follows its anchor point
	}
	place := slices.IndexFunc(c.all, func(s *statement) bool { return s.section() >= want })
	if place < 0 {
		place = len(c.all)
		c.onOwnLine()
	}
	for place > 0 && place < len(c.all) && !c.all[place].IsApple() && c.all[place-1].comment != "" && c.all[place-1].ends == "" {
		place--
	}
	for _, b := range before {
		if i := c.at(b.Point); i >= 0 && b.section() == want {
			place = i + 1
		}
	}
	text := strings.TrimSuffix(made.text, "\n") + "\n"
	if place == len(c.all) {
		c.onOwnLine()
	}
	c.all = slices.Insert(c.all, place, &statement{text: text, words: made.words, ended: true, Point: made.Point})
}
