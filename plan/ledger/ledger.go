// Package ledger decides whose a server is, once: it ranks what the sources say and returns one row for each server.
package ledger

import (
	"slices"

	"github.com/macfleet/macfleet/fleet"
)

// Source is where evidence comes from. A lower one has priority.
type Source int

// The sources, strongest first. A Node and an identity are the cluster's; a name is the provider's, and anyone may write it.
const (
	_ Source = iota // no source
	Marker
	Pin
	Node
	Identity
	Copy // of a pin, on this machine
	Name
	Block // the configuration's host block with the server's id: it decides, and shows nothing
)

// String names the source in sentences.
func (s Source) String() string {
	return [...]string{"", "marker", "pin", "Node", "identity", "copy of a pin", "name", "host block"}[s]
}

// Owner is whose member a source says that the server is.
type Owner int

// The owners.
const (
	NoOwner Owner = iota // the source gives a name outside the naming grammar, which says nothing of an owner
	Us                   // this configuration and environment
	Former               // this configuration under the name that it had before
	Another              // another configuration or environment
)

// Evidence is what one source says of one server.
type Evidence struct {
	Source Source
	Name   string // of the host
	Owner  Owner
	By     string      // the owner as names start with it, for example acme-prod; empty: unknown
	Place  fleet.Place // fleet and group, as far as the name or marker gives them
	Placed bool        // the configuration has that place, and Name is the name of this server there
	// Ended says that a finished release came after it. A name of the pool ends nothing: anyone may write it.
	Ended bool
	// Unfinished says that the claim or adoption which left it was not completed: it shows no member.
	Unfinished bool
}

// counts reports whether the evidence shows a member of someone.
func (e Evidence) counts() bool { return !e.Ended && !e.Unfinished }

// Subject is a server with all evidence about it.
type Subject struct {
	Listed    string      // name of the host block with its id; empty: none
	At        fleet.Place // of that host block
	Elsewhere bool        // a host block of another environment has its id
	Pooled    bool        // its name at the provider is one of the pool
	// Evidence of one source is in the order of its age, latest last. The last one counts.
	Evidence []Evidence
}

// State is what a server is to this configuration.
type State int

// The states.
const (
	Stray   State = iota // no source names an owner
	Foreign              // another configuration's or environment's
	Pool                 // free to be claimed
	Orphan               // a member, and the configuration lacks its place
	Member               // of a fleet and group
)

// Row is the verdict about one server.
type Row struct {
	State State
	Name  string      // that it should have; empty: the one that it has
	Place fleet.Place // of a member or an orphan
	// Why is the evidence that decided. Of a stray and a pool server it is zero; that of a host block has only its source.
	Why Evidence
	// Adopted says of a stray that its key was pinned once, under a name outside the naming grammar.
	Adopted bool
	// Against is the strongest evidence against the state; nil: none. It blocks what cannot be undone.
	Against *Evidence
}

// Judge returns the row of a server. What says that it is a member is believed whatever its name at the provider is.
func (s Subject) Judge() Row {
	all := s.ranked()
	row := s.verdict(all)
	for _, e := range all {
		if row.Against == nil && e.counts() && row.contradicts(e) {
			row.Against = &e
		}
	}
	return row
}

func (s Subject) verdict(all []Evidence) Row {
	first := func(is func(Evidence) bool) (Evidence, bool) {
		i := slices.IndexFunc(all, func(e Evidence) bool { return e.counts() && is(e) })
		if i < 0 {
			return Evidence{}, false
		}
		return all[i], true
	}
	known, isKnown := first(func(e Evidence) bool { return e.Placed && e.Source != Name })
	if s.Listed != "" {
		if !isKnown {
			known.Source = Block
		}
		return Row{State: Member, Name: s.Listed, Place: s.At, Why: known}
	}
	if e, is := first(func(e Evidence) bool { return e.Placed }); is {
		return Row{State: Member, Name: e.Name, Place: e.Place, Why: e}
	}
	if s.Elsewhere {
		return Row{State: Foreign, Why: Evidence{Source: Block}}
	}
	if m, is := first(func(e Evidence) bool { return e.Source == Marker }); is {
		if m.Owner == Us || m.Owner == Former {
			return s.orphan(m)
		}
		return Row{State: Foreign, Why: m}
	}
	if e, is := first(func(e Evidence) bool { return e.Owner == Us || e.Owner == Former }); is {
		return s.orphan(e)
	}
	if e, is := first(func(e Evidence) bool { return e.Owner == Another }); is {
		return Row{State: Foreign, Why: e}
	}
	if s.Pooled {
		return Row{State: Pool}
	}
	return Row{State: Stray, Adopted: slices.ContainsFunc(all, func(e Evidence) bool { return e.Source == Pin && !e.Ended })}
}

// orphan is the row of a member without a place. The name at the provider is given as the source where it says the same, because all can
// see it.
func (s Subject) orphan(e Evidence) Row {
	for _, n := range s.Evidence {
		if n.Source == Name && n.By == e.By && n.Place.Fleet == e.Place.Fleet && n.Place.Group == e.Place.Group {
			e.Source = Name
		}
	}
	return Row{State: Orphan, Place: fleet.Place{Fleet: e.Place.Fleet, Group: e.Place.Group}, Why: e}
}

// ranked returns the evidence, strongest first and of one source the latest first.
func (s Subject) ranked() []Evidence {
	out := slices.Clone(s.Evidence)
	slices.Reverse(out)
	slices.SortStableFunc(out, func(a, b Evidence) int { return int(a.Source) - int(b.Source) })
	return out
}

// contradicts reports whether evidence speaks against the row.
func (r Row) contradicts(e Evidence) bool {
	switch r.State {
	case Member, Orphan:
		return e.Owner == Another
	case Foreign:
		return e.Owner == Us || e.Owner == Former
	case Pool:
		return e.Source == Pin || e.Source == Node
	}
	return false
}
