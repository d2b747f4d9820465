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
	name  string // of the host, for commands to type; several hosts have none
	id    string // the host's provider id; several hosts have none
}

// row is one line below a block's hosts.
type row struct {
	sign    string
	depth   int
	text    string
	command bool  // it says what to type, with anyName for the host's name
	trouble bool  // its words are exact for one host: ownName is given back
	free    int64 // bytes that are free on the host, said behind the text; 0: nothing is said
}

// ownName stands for a host's own name where several hosts are shown as one.
const ownName = "its name"

// anyName stands for it in a command to type.
const anyName = "NAME"

// ownID stands for the provider id of a host's server, likewise.
const ownID = "its server's id"

// ofHost is the block of one host, still without what there is to say.
func ofHost(sign string, h plan.Host) block {
	return block{sign: sign, hosts: []string{h.Name}, name: h.Name, id: h.Server.ProviderID()}
}

// key is equal for blocks that fold into one.
func (b block) key() string {
	var k strings.Builder
	fmt.Fprintf(&k, "%s %s\n", b.sign, b.title)
	for _, r := range b.body {
		fmt.Fprintf(&k, "%s %d %s\n", r.sign, r.depth, r.text)
	}
	return k.String()
}

// fold joins blocks that differ in their hosts alone, at the place of the first.
func fold(blocks []block) []block {
	return mapped(grouped(blocks, block.key), func(same []block) block {
		b := same[0]
		for _, other := range same[1:] {
			b.hosts = append(b.hosts, other.hosts...)
			for j, r := range other.body { // those that fold have as many rows
				b.body[j].free = min(b.body[j].free, r.free)
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
			r.text = b.exact(r)
		}
		if r.free > 0 {
			r.text += free + bytes(r.free) + " free"
		}
		t.line(4+2*r.depth, r.sign, r.text)
	}
}

// exact is a row's text of the block's one host.
func (b block) exact(r row) string {
	text := r.text
	if r.command {
		text = strings.ReplaceAll(text, anyName, b.name)
	}
	if r.trouble && b.name != "" {
		text = strings.ReplaceAll(text, ownName, b.name)
	}
	if b.id != "" {
		text = strings.ReplaceAll(text, ownID, b.id)
	}
	return text
}

// trouble returns the rows of a trouble: what it is, and what to do.
func trouble(sign string, x plan.Trouble) []row {
	rows := []row{{sign: sign, text: x.Code.String() + ": " + x.Text, trouble: true}}
	if x.Remedy != "" {
		rows = append(rows, row{depth: 1, text: "to do: " + x.Remedy, command: true, trouble: true})
	}
	return rows
}

// against returns the rows of a trouble of a host, whose remedy may be a command; none
// where there is no trouble.
func against(sign string, h plan.Host, x *plan.Trouble) []row {
	if x == nil {
		return nil
	}
	return trouble(sign, plan.Trouble{Code: x.Code, Text: general(h, x.Text), Remedy: named(h, x.Remedy, anyName)})
}

// general replaces a host's own name, so that equal things look equal.
func general(h plan.Host, text string) string { return named(h, text, ownName) }

// named puts a word for a host's name; what is no host's has none.
func named(h plan.Host, text, word string) string {
	if h.Name == "" {
		return text
	}
	return strings.ReplaceAll(text, h.Name, word)
}
