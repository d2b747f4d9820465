package plan

import "time"

// Undone is a change that a host took back by itself, because nobody confirmed
// over a new connection that it can still be reached.
type Undone struct {
	Step StepID
	At   time.Time
	Why  string // in the host's words
	Exit int    // of the script that restored the state from before
}
