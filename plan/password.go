package plan

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// The codes that are raised here.
var (
	codeWrongPassword = NewCode("wrong-password", Critical, "sudo refused the login password, and it is not tried again",
		"find the right one and give it: macfleet apply --ask-password NAME")
	CodeSudoLocked = NewCode("sudo-locked", Critical, "the login user's account is locked after too many wrong passwords",
		"wait until the lock is over; or unlock the account over VNC, as another administrator")
	CodeSudoersBroken = NewCode("sudoers-broken", Critical, "sudo cannot read its own rules", "write the file anew over VNC, in Terminal")
)

// Password says whether a host's login password is known, and from where. The
// password itself stands in no plan.
type Password struct {
	Source  string   `json:"source"`            // where it was found, in words; empty: nowhere
	Trouble *Trouble `json:"trouble,omitempty"` // why it must not be used, or why there is none; nil: it may be tried
}

// Refusal is what a host remembers of a password that was tried there: never the
// password.
type Refusal struct {
	Seal    string    // what the password is known again by, see secret.Seal
	Refused bool      // false: the run broke off, and nobody knows the answer
	Tries   int       // how often it was tried
	At      time.Time // of the last try
}

// mostTries is how often a password is tried whose answer nobody heard. macOS
// locks an account after a few wrong ones.
const mostTries = 2

// Spent reports whether the password must not be tried again.
func (r Refusal) Spent() bool { return r.Refused || r.Tries >= mostTries }

// WrongPassword says that a host refused every password that is known.
func WrongPassword(host, source string, at time.Time) *Trouble {
	return codeWrongPassword.Trouble(fmt.Sprintf("on %s the host refused the login password from %s; it is not tried again, because a few wrong tries lock the account",
		at.UTC().Format("2006-01-02 15:04 MST"), source),
		"find the right one and give it: macfleet apply --ask-password "+host+"; where the refused one is right by now, remove ~/.macfleet/refused on the host first")
}

// MissingPassword says that no login password is known.
func MissingPassword(host string, code Code, why string) *Trouble {
	return code.Trouble("the login password is needed, and "+why, "give it once: macfleet apply --ask-password "+host)
}

// LockedAccount says that macOS refuses the login user's password, right or wrong.
func LockedAccount(host, user string) *Trouble {
	return CodeSudoLocked.Trouble("the account of "+user+" is locked after too many wrong passwords, so no password is tried",
		"wait until the lock is over; or over VNC, as another administrator: sudo dscl . -delete /Users/"+user+
			" AuthenticationAuthority ';tally;'; then run macfleet apply --on name="+host)
}

// BrokenSudo says that sudo cannot read its own rules and gives root to nobody,
// with the right password neither. sudo 1.8 does that for any faulty file.
func BrokenSudo(host, said string) *Trouble {
	return CodeSudoersBroken.Trouble("sudo gives root to nobody, because it cannot read its own rules: "+said,
		"over VNC, in Terminal, which asks for the password in a window of its own: osascript -e "+
			"'do shell script \"rm /etc/sudoers.d/macfleet\" with administrator privileges' (or the file that is named above); then run macfleet apply --on name="+host)
}

// PasswordsWanted returns the hosts whose login password the plan's changes need
// and nobody has looked for yet.
func (p *Plan) PasswordsWanted() []Host {
	hosts := p.hostsByServer()
	var out []Host
	for id, actions := range p.byServer() {
		h := hosts[id]
		if h != nil && h.Seen.Password == nil && h.Unknown == nil && slices.ContainsFunc(actions, func(a Action) bool { return a.Needs().Password }) {
			out = append(out, *h)
		}
	}
	return out
}

// Hopeless returns the pool servers that were chosen for a claim and will never give
// root, whatever their password, each with the reason.
func (p *Plan) Hopeless() map[string]*Trouble {
	out := make(map[string]*Trouble) // by server id
	for i := range p.Hosts {
		// What refuses a host before its steps were asked, such as a cluster that is not
		// prepared, says nothing about root.
		if h := &p.Hosts[i]; h.Asked && !h.Seen.Root && h.Refused != nil && !h.Member && h.Seen.Password == nil {
			out[h.Server.ID] = h.Refused
		}
	}
	return out
}

// What a host answers to a write of its marker or to a password, other than by taking it.
var (
	ErrMarkerMoved     = errors.New("the host's marker is another one since it was read")
	ErrPasswordRefused = errors.New("the host refused the password")
	ErrAccountLocked   = errors.New("the account is locked after too many wrong passwords")
	ErrPasswordRace    = errors.New("another run has tried a password on this host meanwhile")
	ErrPasswordUntold  = errors.New("sudo -v asks for no password on this host, so none can be checked")
	ErrPasswordBusy    = errors.New("another run tries a password on this host, or broke off while it did")
)
