package plan

import "slices"

// Stage is how far a server is on its way out of its group. It is stored with the pin of its host's key, which
// outlives the host's disk.
type Stage string

// The stages. A run stores each before it does what the stage allows.
const (
	Stays    Stage = ""         // it is a member
	Replaced Stage = "replaced" // a person wants another server in its place; it leaves when that one is Ready
	Leaving  Stage = "leaving"  // a run started to release it; nothing on it is wiped yet
	Wiping   Stage = "wiping"   // its reinstall is requested; from here on every run finishes the release
	Wiped    Stage = "wiped"    // it was reinstalled, and the pin has its new key
	// Released is that of a server that is back in the pool. Its pin says nothing of its key: it ends what older sources say.
	Released Stage = "released"
)

// Stages are the stages of a server on its way out, in their order.
func Stages() []Stage { return []Stage{Replaced, Leaving, Wiping, Wiped} }

// Known reports whether a stage is one that a stored pin can have.
func (s Stage) Known() bool { return s == Stays || s == Released || slices.Contains(Stages(), s) }

// Final reports whether the release must be finished whatever the configuration says: the disk is, or is
// about to be, empty.
func (s Stage) Final() bool { return s == Wiping || s == Wiped }

// ends reports whether what is older shows no member any more.
func (s Stage) ends() bool { return s.Final() || s == Released }

// stages returns the stages of servers by their ids, from the latest pin of each.
func (snap Snapshot) stages() map[string]Pin { return snap.stagesOf(byAge(snap.Pins)) }

// stagesOf is stages for sorted pins.
func (snap Snapshot) stagesOf(pins []Pin) map[string]Pin {
	out := make(map[string]Pin)
	for _, p := range pins {
		if p.Stage != Stays {
			out[p.ServerID] = p
		} else {
			delete(out, p.ServerID)
		}
	}
	for id, stage := range snap.Asked {
		if pin, stored := out[id]; !stored || pin.Stage == Replaced {
			pin.ServerID, pin.Stage = id, stage
			out[id] = pin
		}
	}
	return out
}
