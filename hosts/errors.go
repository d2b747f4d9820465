package hosts

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/macfleet/macfleet/plan"
)

// The codes that are raised here.
var (
	codeConnectionLost = plan.NewCode("connection-lost", plan.Critical, "the conversation with the host broke off",
		"run the command again; if it stays, log in by hand and see what the login shell prints and whether tools hang")
	codeDamagedPin = plan.NewCode("damaged-pin", plan.Critical, "the pinned key of the host cannot be read",
		"compare the host's key by another way, then: macfleet hosts forget-key NAME")
	codeJumpFailed = plan.NewCode("jump-failed", plan.Critical, "a jump host let nobody in", "its remedy is the jump host's own; try: ssh NAME")
	codeJumpLost   = plan.NewCode("jump-lost", plan.Critical, "the connection of a jump host broke",
		"see whether the jump host runs, then run the command again")
	codeKeyRefused = plan.NewCode("key-refused", plan.Critical, "the host refused the key that is named",
		"enter the key in authorized_keys on the host, or choose another; then run the command again")
	codeNoKey = plan.NewCode("no-key", plan.Critical, "there is no key, several in the agent, or one that is locked",
		"write private_key in the ssh block, or an IdentityFile that names a .pub file; or run ssh-add")
	codeNoSSHAnswer = plan.NewCode("no-ssh-answer", plan.Critical, "something answers, and it is no healthy sshd", "look at the machine through VNC")
	codeSSHConfig   = plan.NewCode("ssh-config", plan.Warning, "the ssh configuration has a line that macfleet cannot follow",
		"mend that line, or name another file with --ssh-config FILE (none reads no file)")
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
	Code   plan.Code
	Phase  Phase
	Remedy string
	Err    error

	final bool // no other path may be tried after it
}

// fails returns an error of a conversation with this machine. Where no remedy is given,
// it is the code's own.
func (t Target) fails(code plan.Code, in Phase, err error, remedy ...string) *Error {
	return &Error{Host: t.name(), Code: code, Phase: in, Err: err, Remedy: cmp.Or(strings.Join(remedy, ""), code.Remedy())}
}

// asFinal makes no other path be tried after an error.
func (e *Error) asFinal() *Error {
	e.final = true
	return e
}

// unreached says that the machine was not even dialled to the end.
func (t Target) unreached(err error) *Error {
	return t.fails(plan.CodeUnreachable, Dialing, err, "run the command again")
}

// Error returns host, phase and cause; the remedy is apart.
func (e *Error) Error() string { return e.Host + ": " + e.text() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Trouble returns the error as the plan carries it.
func (e *Error) Trouble() *plan.Trouble {
	return &plan.Trouble{Code: e.Code, Text: e.text(), Remedy: e.Remedy}
}

// cause is what it wraps, behind the phase. The net package names the first phase itself.
func (e *Error) cause() error {
	if e.Phase == Dialing {
		return e.Err
	}
	return fmt.Errorf("%s: %w", e.Phase, e.Err)
}

func (e *Error) text() string { return printable(e.cause().Error()) }

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
