package engine_test

import (
	"cmp"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/plan"
)

// evidence is everything that is drawn about one server, the subject. Each source names a place of the configuration
// (own), one that the configuration lacks (gone), one of another owner (theirs), a name outside the grammar (outside), or
// nothing. Only a provider has a name of the pool.
type evidence struct {
	name, marker, pin, node, copy  string
	stage                          plan.Stage // of the pin
	otherPin, otherCopy, otherNote bool       // its key differs from the one that the host shows
	note, bound                    bool       // the Node notes a key; the cluster limits each kubelet to its own objects
	identity, met                  bool       // the Node's kubelet has an identity; a record has the server
	away, lost, ready, works       bool       // no connection succeeds, no list has it, its Node is Ready, a Pod runs
	replicas                       int
	before                         string // the size of the group that all pins note
}

// verdict is what a run may do to the subject, and what it must show.
type verdict struct {
	row                         string
	claims                      bool // another server may be claimed
	sent, renamed, wiped, outOf bool // commands, a new name, an erased disk, its Node and identity deleted
	withheld                    bool // exit code 0 would hide something
	code                        string
	destroys                    bool // a remedy may destroy it
}

// oracle is written from the tables of docs/decisions/0050-the-ledger.md (rows, keys), 0030 (unknown keys), 0039 (releases)
// and 0052 (surplus), not from the code.
func oracle(e evidence) verdict {
	var v verdict
	contradicted, released := false, e.pin != "" && e.stage == plan.Released
	final := e.pin != "" && (e.stage == plan.Wiping || e.stage == plan.Wiped)
	stored := e.pin != "" && !released // it says something of the key
	copied := e.copy != "" && !released && !(stored && e.otherPin == e.otherCopy)
	row := func(marker string) string {
		all := []string{marker, e.node}
		if stored && !final {
			all = append(all, e.pin)
		}
		if !e.lost { // a copy by itself is of a server that another machine may have released
			all = append(all, e.name)
			if copied && !final {
				all = append(all, e.copy)
			}
		}
		is := func(what string) bool { return slices.Contains(all, what) }
		mine := is("gone") || e.identity
		contradicted = is("theirs")
		switch {
		case is("own"):
			return "member"
		case marker == "gone", marker == "" && mine:
			return "orphan"
		case is("theirs"):
			contradicted = mine
			return "foreign"
		case e.name == "pool":
			contradicted = e.node == "outside" || e.pin == "outside" && stored
			return "pool"
		}
		return "stray"
	}
	unread := row("")
	keyWrong := stored && e.otherPin || copied && e.otherCopy || e.note && e.otherNote
	known := e.name == "own" || e.node != "" || unread == "orphan" || unread == "member" && e.met
	unshown := !stored && !copied && !(e.note && e.bound)
	keyless := known && unshown
	read := !e.away && !e.lost && !keyWrong && !keyless && !(unread == "pool" && contradicted) // else the marker is unknown
	marker := e.marker
	if !read {
		marker = ""
	}
	keyless = keyless || unshown && (marker == "own" || marker == "gone")
	v.row = row(marker)
	mine := v.row == "member" || v.row == "orphan"

	over := v.row == "member" && e.replicas < 2 // one member exists in any case
	leaves := over && (e.before == "f0.m2=2" || e.stage == plan.Leaving && stored)
	drained := stored && e.stage == plan.Leaving && e.node == ""
	proven := marker == "own" || e.name != "pool" && (e.node != "" || drained)
	idle := !e.away || stored && e.node != "" && !e.ready || drained
	onWay := final && (e.pin == "own" || e.pin == "gone") && marker != "theirs" && v.row != "foreign"
	v.wiped = !e.lost && (idle && leaves && proven && !contradicted || onWay && e.stage == plan.Wiping)
	v.outOf = v.wiped || onWay || leaves && !contradicted
	v.sent = read && !keyless && marker != "theirs" && (v.row == "member" || v.row == "pool" && !contradicted)
	v.renamed = v.sent || v.wiped || onWay
	v.claims = e.replicas == 2 && (v.row != "member" && v.row != "orphan" || v.row == "orphan" && e.lost || unread == "foreign" || final)
	v.destroys = mine && !contradicted
	v.withheld = v.row == "member" && unread == "member" && !final && (e.lost || e.away || keyWrong || keyless || marker == "theirs")

	needs := e.replicas == 2 && v.row == unread // so whatever else is read says the same
	switch {
	case final, v.row != unread:
	case e.lost:
		if cmp.Or(e.node, "-") == "own" || stored && e.pin == "own" {
			v.code = "server-vanished"
		}
	case v.row == "orphan":
		v.code = "orphaned-member"
	case v.row == "foreign" && e.name == "pool" && needs:
		v.code = "dirty-pool-host"
	case e.away || v.row != "member" && !(v.row == "pool" && needs && !contradicted):
	case keyWrong:
		v.code = "wrong-host-key"
	case keyless:
		v.code = "host-key-unknown"
	case marker == "theirs" && !leaves: // else it may be release-unsafe
		v.code = "foreign-marker"
	case over && !leaves:
		v.code = "surplus"
	}
	return v
}

// destroying are the words of a remedy that ends with a server's content gone.
func destroying(remedy string) bool {
	return slices.ContainsFunc([]string{"macfleet release ", "reinstall the server", "delete the server"},
		func(what string) bool { return strings.Contains(remedy, what) })
}
