package hosts

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/macfleet/macfleet/plan"
)

// Codes of connections.
var (
	codeConnectionLost = plan.NewCode("connection-lost", plan.Critical, "the connection to the host was lost",
		"run the command again; if it persists, log in by hand and check for output of the login shell and for hanging tools")
	codeDamagedPin = plan.NewCode("damaged-pin", plan.Critical, "the host's pinned key is malformed",
		"verify the host's key, over VNC for example, then: macfleet hosts forget-key NAME")
	codeJumpFailed = plan.NewCode("jump-failed", plan.Critical, "the login to a jump host failed", "fix the login to the jump host: ssh NAME")
	codeJumpLost   = plan.NewCode("jump-lost", plan.Critical, "the connection to a jump host was lost",
		"check that the jump host runs, then run the command again")
	codeKeyNotInstalled = plan.NewCode("key-not-installed", plan.Critical, "the host answers and refuses the SSH key: it does not have it, or the user is wrong",
		"reboot the server through the provider, which installs the project's SSH keys; or add the key to authorized_keys on the host")
	codeNoKey = plan.NewCode("no-key", plan.Critical, "no usable SSH key: none, several in the agent, or one with a passphrase",
		"set private_key in the ssh block, or an IdentityFile with a .pub file, or run ssh-add")
	codeNoSSHAnswer = plan.NewCode("no-ssh-answer", plan.Critical, "the host accepts connections, but sshd does not respond", "check the machine over VNC")
	codeSSHConfig   = plan.NewCode("ssh-config", plan.Warning, "the ssh configuration has a line that macfleet does not support",
		"fix that line, or use another file with --ssh-config FILE (none: read no file)")
)

// Phase is the phase of a connection in which an error occurred.
type Phase string

// The phases of a connection, from first to last.
const (
	Dialing     Phase = "dial"
	Handshaking Phase = "handshake"
	HostKey     Phase = "host key"
	Authorising Phase = "authentication"
	Talking     Phase = "command"
	Delivering  Phase = "delivery"
	Undoing     Phase = "undo"
)

// Error reports that a host could not be reached or read, and in which phase. It wraps its
// cause. A script that ran and failed is a ScriptError or an answer.
type Error struct {
	Host   string // its name, or the server's current one
	Code   plan.Code
	Phase  Phase
	Remedy string
	Err    error

	final bool // no other path may be tried after it
}

// fails returns an error about this machine. The default remedy is the code's.
func (t Target) fails(code plan.Code, in Phase, err error, remedy ...string) *Error {
	return &Error{Host: t.name(), Code: code, Phase: in, Err: err, Remedy: cmp.Or(strings.Join(remedy, ""), code.Remedy())}
}

// asFinal prevents other paths from being tried after an error.
func (e *Error) asFinal() *Error {
	e.final = true
	return e
}

// unreached returns the error that dialling did not complete.
func (t Target) unreached(err error) *Error {
	return t.fails(plan.CodeUnreachable, Dialing, err, "run the command again")
}

// Error returns host, phase and cause, without the remedy.
func (e *Error) Error() string { return e.Host + ": " + e.text() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Trouble returns the error as a trouble of the plan.
func (e *Error) Trouble() *plan.Trouble {
	return &plan.Trouble{Code: e.Code, Text: e.text(), Remedy: e.Remedy}
}

// cause returns the wrapped error with the phase. Errors of the net package name the first phase themselves.
func (e *Error) cause() error {
	if e.Phase == Dialing {
		return e.Err
	}
	return fmt.Errorf("%s: %w", e.Phase, e.Err)
}

func (e *Error) text() string { return printable(e.cause().Error()) }

// ScriptError reports a script that failed with an exit code.
type ScriptError struct {
	Host   string
	Script string
	Answer plan.Answer
}

// Error names script, host, exit code and the last line of output.
func (e *ScriptError) Error() string {
	said := lastLine(e.Answer.Stderr)
	if said == "" {
		said = "no output"
	}
	return fmt.Sprintf("%s on %s failed with exit code %d: %s", e.Script, e.Host, e.Answer.Exit, said)
}
