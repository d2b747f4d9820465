package plan

import "time"

// Run names one apply: the lock, the record, the hosts and the cordons of a run
// bear it.
type Run struct {
	ID    string // random letters and digits, in lower case
	Who   string // user@machine, or what a CI job says of itself
	Epoch int64  // rises with every run that takes the lock; 0: it has none yet
	// Started is when the command began, by the clock of the one who runs it.
	Started time.Time
}
