package view

import (
	"fmt"
	"strings"

	"github.com/macfleet/macfleet/internal/adopt"
)

// Draft prints which servers a drafted configuration adopts, and which it leaves out and why.
func (t *Text) Draft(d adopt.Draft) {
	if n := d.Hosts(); n > 0 {
		t.sayf("%s keep their names:", count(n, "host"))
		var rows [][]string
		for _, f := range d.Fleets {
			for _, g := range f.Groups {
				rows = append(rows, []string{"fleet." + f.Name + ".group." + g.Name, g.Type, f.OS, count(len(g.Servers), "host"), sampleNames(g)})
			}
		}
		t.columns(2, rows)
	} else {
		t.Say("No server is without a place.")
	}
	if len(d.Unread) > 0 {
		t.sayf("%s could not be read; their macOS family is the one that Scaleway installed first:", count(len(d.Unread), "host"))
		t.columns(2, mapped(d.Unread, func(l adopt.Left) []string { return []string{l.Server.Name, brief(l.Why)} }))
	}
	if d.Pooled > 0 {
		t.sayf("%s of the pool can be claimed, and are not adopted.", count(d.Pooled, "free server"))
	}
	if len(d.Left) > 0 {
		t.sayf("Left out: %s", count(len(d.Left), "server"))
		rows := make([][]string, len(d.Left))
		for i, l := range d.Left {
			rows[i] = []string{l.Server.Name, l.Why + "; " + l.Fix}
		}
		t.columns(2, rows)
	}
}

// AdoptNext says what to do with a configuration that was written.
func (t *Text) AdoptNext() {
	t.Say("Nothing on any server was changed. Next: macfleet plan, then macfleet apply --adopt-only")
}

// sampleNames returns the names of a group's servers, the first and the last of many.
func sampleNames(g adopt.Group) string {
	var names []string
	for _, s := range g.Servers {
		names = append(names, s.Name)
	}
	if len(names) > 3 {
		return fmt.Sprintf("%s … %s", names[0], names[len(names)-1])
	}
	return strings.Join(names, ", ")
}
