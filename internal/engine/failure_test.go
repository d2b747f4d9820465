package engine

import "fmt"

// String keeps the messages of failed tests short: the action of a failure contains whole scripts.
func (f Failure) String() string {
	return fmt.Sprintf("%s: %v", f.Action.Address(), f.Err)
}
