package view

import (
	"fmt"
	"strings"

	"github.com/macfleet/macfleet/plan"
)

// block is what is shown of one host, or of several for which the same holds.
type block struct {
	sign  string
	title string   // what happens to them, without their names
	hosts []string // a line each
	body  []row
	name  string // of the host, which rows of several leave out
	id    string // the host's provider id, likewise
}

// row is one line below a block's hosts.
type row struct {
	sign    string
	depth   int
	text    string
	command bool  // it says what to type
	free    int64 // bytes that are free on the host, said behind the text; 0: nothing is said
}

// What stands for a host's own name where several hosts are shown as one, for its name in
// a command to type, and for the provider id of its server.
const (
	ownName = "its name"
	anyName = "NAME"
	ownID   = "its server's id"
)

// ofHost is the block of one host, still without what there is to say.
func ofHost(sign string, h plan.Host) block {
	return block{sign: sign, hosts: []string{h.Name}, name: h.Name, id: h.Server.ProviderID()}
}

// general is a row's text without what is the host's own, so that equal things look equal.
func (b block) general(r row) string {
	own := ownName
	if r.command {
		own = anyName
	}
	for _, word := range [][2]string{{b.id, ownID}, {b.name, own}} {
		if word[0] != "" {
			r.text = strings.ReplaceAll(r.text, word[0], word[1])
		}
	}
	return r.text
}

// exact is a row's text of the one host that a block is about.
func (b block) exact(r row) string {
	if r.command && b.name != "" {
		return strings.ReplaceAll(r.text, anyName, b.name)
	}
	return r.text
}

// key is equal for blocks that fold into one.
func (b block) key() string {
	var k strings.Builder
	fmt.Fprintf(&k, "%s %s\n", b.sign, b.general(row{text: b.title}))
	for _, r := range b.body {
		fmt.Fprintf(&k, "%s %d %s\n", r.sign, r.depth, b.general(r))
	}
	return k.String()
}

// fold joins blocks that differ in their hosts alone, at the place of the first.
func fold(blocks []block) []block {
	return mapped(grouped(blocks, block.key), func(same []block) block {
		b, text := same[0], same[0].exact
		if len(same) > 1 {
			text = b.general
		}
		for i, r := range b.body {
			b.body[i].text = text(r)
		}
		for _, other := range same[1:] {
			b.hosts = append(b.hosts, other.hosts...)
			for i, r := range other.body { // those that fold have as many rows
				b.body[i].free = min(b.body[i].free, r.free)
			}
		}
		return b
	})
}

// fleets prints the blocks of every fleet under its name, folded.
func (t *Text) fleets(p *plan.Plan, of func(fleet string) []block) {
	told := len(unpreparedOf(p)) > 0
	for _, f := range p.Fleets {
		all := of(f)
		for i := range all {
			if told {
				all[i].body = toldAbove(all[i].body)
			}
		}
		t.blocks("Fleet "+f, all)
	}
}

// blocks prints blocks under a title, folded.
func (t *Text) blocks(title string, all []block) {
	if len(all) == 0 {
		return
	}
	t.section(title)
	for _, b := range fold(all) {
		t.block(b)
	}
}

func (t *Text) block(b block) {
	if len(b.hosts) == 1 {
		t.line(0, b.sign, b.hosts[0])
		if b.title != "" {
			t.line(4, "", b.title)
		}
	} else {
		t.line(0, b.sign, strings.TrimSpace(count(len(b.hosts), "host")+" "+b.title))
		for _, h := range b.hosts {
			t.line(6, "", h)
		}
		if len(b.body) > 0 {
			t.line(4, "", "each:")
		}
	}
	for _, r := range b.body {
		free := ", at least "
		if len(b.hosts) == 1 {
			free = ", "
		}
		if r.free > 0 {
			r.text += free + bytes(r.free) + " free"
		}
		t.line(4+2*r.depth, r.sign, r.text)
	}
}

// trouble returns the rows of a trouble: what it is, and what to do.
func trouble(sign string, x plan.Trouble) []row {
	rows := []row{{sign: sign, text: x.Code.String() + ": " + x.Text}}
	if x.Remedy != "" {
		rows = append(rows, row{depth: 1, text: "to do: " + x.Remedy, command: true})
	}
	return rows
}

// against returns the rows of a trouble, where there is one.
func against(sign string, x *plan.Trouble) []row {
	if x == nil {
		return nil
	}
	return trouble(sign, *x)
}
