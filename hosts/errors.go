package hosts

import (
	"fmt"

	"github.com/macfleet/macfleet/plan"
)

// Phase is how far a conversation with a host had come.
type Phase string

// The phases of a conversation, in their order.
const (
	Dialing     Phase = "dial"
	Handshaking Phase = "handshake"
	HostKey     Phase = "host key"
	Authorising Phase = "authentication"
	Talking     Phase = "command"
	Delivering  Phase = "delivery"
	Undoing     Phase = "undo"
)

// Error says that a host could not be asked, and in which phase. Its cause is
// wrapped. It is not returned for a script that ran and failed: that is an
// answer.
type Error struct {
	Host   string // the name it bears, or the server's present one
	Code   string // stable; docs/connections.md lists them
	Phase  Phase
	Remedy string
	Err    error

	final bool // no other path may be tried after it
}

// Error returns host, phase and cause; the remedy is apart.
func (e *Error) Error() string { return e.Host + ": " + e.text() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Trouble returns the error as the plan carries it.
func (e *Error) Trouble() *plan.Trouble {
	return &plan.Trouble{Code: e.Code, Text: e.text(), Remedy: e.Remedy}
}

// text names the phase and the cause. The net package names the first phase
// itself.
func (e *Error) text() string {
	if e.Phase == Dialing {
		return printable(e.Err.Error())
	}
	return printable(fmt.Sprintf("%s: %v", e.Phase, e.Err))
}

// ScriptError says that a script ran to its end and that its exit code was not
// 0. It is not returned where an exit code is an answer.
type ScriptError struct {
	Host   string
	Script string
	Answer plan.Answer
}

// Error names host, script, exit code and the last line that was printed.
func (e *ScriptError) Error() string {
	said := lastLine(e.Answer.Stderr)
	if said == "" {
		said = "it said nothing"
	}
	return fmt.Sprintf("%s on %s ended with exit %d: %s", e.Script, e.Host, e.Answer.Exit, said)
}
