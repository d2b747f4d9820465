// Package lists decides whether what a service lists is about the hosts of a configuration. Credentials of another tailnet give a
// list that is complete and has none of them.
package lists

import "slices"

// State is how far a list is believed.
type State int

// The states.
const (
	Unproven State = iota // no host says anything of itself that it could have: what it has counts, and what it lacks shows nothing
	Matching              // it has what hosts say of themselves
	Foreign               // it has nothing of what they say: it is another list
	Lacking               // it lacks too much of it at once: a question for a person
)

// Said is what a host says of itself. The host must be verified: its key is pinned, and its marker names its owner.
type Said struct {
	Host  string
	ID    string // of its object at the service
	Realm string // what the object is in there, such as the suffix of a tailnet; empty: it does not say
}

// Verdict is what a list is, and why.
type Verdict struct {
	State   State
	Realm   string   // the one that hosts say and the list is not of; empty: they agree, or it is unknown
	Missing []string // hosts whose objects it lacks, sorted
	Of      int      // hosts that said something
}

// Believed reports whether a run may act on the list.
func (v Verdict) Believed() bool { return v.State == Unproven || v.State == Matching }

// tolerated is how many objects may be missing whatever their share is: people delete one or two by hand.
const tolerated = 2

// Judge compares a list, by the ids of its objects and its realm (empty: unknown), with what hosts say. It is pure.
func Judge(realm string, ids []string, said []Said) Verdict {
	v, about := Verdict{Of: len(said)}, 0
	listed := make(map[string]bool, len(ids))
	for _, id := range ids {
		listed[id] = true
	}
	for _, s := range said {
		if listed[s.ID] { // ids are unique among all lists of a service, and a tailnet may get another name
			about++
			continue
		}
		v.Missing = append(v.Missing, s.Host)
		switch {
		case s.Realm == "" || realm == "":
		case s.Realm == realm:
			about++
		default:
			v.Realm = s.Realm
		}
	}
	slices.Sort(v.Missing)
	switch {
	case len(said) == 0:
	case about == 0:
		v.State = Foreign
	case len(v.Missing) > tolerated && 3*len(v.Missing) > len(said):
		v.State = Lacking
	default:
		v.State = Matching
	}
	return v
}
