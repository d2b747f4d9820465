package plan

import "time"

// Undone is a change that a host took back by itself, because nobody confirmed
// over a new connection that it can still be reached.
type Undone struct {
	Step StepID    `json:"step"`
	At   time.Time `json:"at"`
	Why  string    `json:"why"`  // in the host's words
	Exit int       `json:"exit"` // of the script that restored the state from before
}

// Undo says whether the host takes what an action does back by itself; empty for an
// action that cannot lock anybody out.
func (a Action) Undo() string {
	for _, c := range a.Changes {
		switch g := c.Guard; {
		case g == nil:
		case g.Restore == nil:
			return "not armed: " + g.Why
		default:
			return "armed; the host takes it back by itself unless a new connection confirms it"
		}
	}
	return ""
}
