package plan

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// The codes that are raised here.
var (
	codeWrongPassword = NewCode("wrong-password", Critical, "sudo refused the login password; macfleet does not try it again",
		"enter the right password: macfleet apply --on name=NAME --ask-password NAME")
	CodeSudoLocked = NewCode("sudo-locked", Critical, "the login user's account is locked after too many wrong passwords",
		"wait until macOS unlocks the account, or unlock it over VNC as another administrator")
	CodeSudoersBroken = NewCode("sudoers-broken", Critical, "sudo cannot parse its rules", "repair the sudoers file over VNC, in Terminal")
)

// Password says whether a host's login password is known, and its source. Plans never contain the password.
type Password struct {
	Source  string   `json:"source"`            // its source in words; empty: none
	Trouble *Trouble `json:"trouble,omitempty"` // why it must not be used, or why there is none; nil: it may be tried
}

// Refusal is what a host remembers of a password that was tried there: never the password.
type Refusal struct {
	Seal    string    // identifies the password, see secret.Seal
	Refused bool      // false: the run was interrupted, and the answer is unknown
	Tries   int       // how often it was tried
	At      time.Time // of the last try
}

// mostTries is how often a password is tried when the answers got lost. macOS locks an account after a few
// wrong ones.
const mostTries = 2

// Spent reports whether the password must not be tried again.
func (r Refusal) Spent() bool { return r.Refused || r.Tries >= mostTries }

// WrongPassword says that a host refused every password that is known.
func WrongPassword(host, source string, at time.Time) *Trouble {
	return codeWrongPassword.Trouble(fmt.Sprintf("the host refused the login password from %[2]s at %[1]s; it is not tried again, because a few wrong tries lock the account",
		at.UTC().Format("2006-01-02 15:04 MST"), source),
		"enter the right password: macfleet apply --on name="+host+" --ask-password "+host+"; if the stored one has been corrected, delete ~/.macfleet/refused on the host first")
}

// MissingPassword says that no login password is known.
func MissingPassword(host string, code Code, why string) *Trouble {
	return code.Trouble("the login password is needed, and "+why, "macfleet apply --on name="+host+" --ask-password "+host)
}

// LockedAccount says that macOS refuses even the right password of the login user.
func LockedAccount(host, user string) *Trouble {
	return CodeSudoLocked.Trouble("the account of "+user+" is locked after too many wrong passwords",
		"wait until macOS unlocks it; or over VNC, as another administrator: sudo dscl . -delete /Users/"+user+
			" AuthenticationAuthority ';tally;'; then run macfleet apply --on name="+host)
}

// BrokenSudo says that sudo cannot read its rules and grants root to no user. sudo 1.8 does that for any
// faulty file.
func BrokenSudo(host, said string) *Trouble {
	return CodeSudoersBroken.Trouble("sudo cannot parse its rules: "+said,
		"over VNC, in Terminal: osascript -e "+
			"'do shell script \"rm /etc/sudoers.d/macfleet\" with administrator privileges' (or the file named above); then run macfleet apply --on name="+host)
}

// PasswordsNeeded returns the hosts whose login password the plan's changes need and which was not looked up
// yet.
func (p *Plan) PasswordsNeeded() []Host {
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

// WithoutRoot returns the pool servers chosen for a claim that will never grant root, whatever their password,
// each with the reason.
func (p *Plan) WithoutRoot() map[string]*Trouble {
	out := make(map[string]*Trouble) // by server id
	for i := range p.Hosts {
		// A refusal from before the steps were compared, such as an unprepared cluster, says nothing about
		// root.
		if h := &p.Hosts[i]; h.Compared && !h.Seen.Root && h.Refused != nil && !h.Member && h.Seen.Password == nil {
			out[h.Server.ID] = h.Refused
		}
	}
	return out
}

// The host's answers to a write of its marker or to a password, other than success.
var (
	ErrMarkerMoved       = errors.New("the host's marker has changed since it was read")
	ErrPasswordRefused   = errors.New("the host refused the password")
	ErrAccountLocked     = errors.New("the account is locked after too many wrong passwords")
	ErrPasswordRace      = errors.New("another run has tried a password on this host in the meantime")
	ErrPasswordUnchecked = errors.New("sudo -v does not prompt for a password on this host, so it cannot be checked")
	ErrPasswordBusy      = errors.New("another run is trying a password on this host, or was interrupted while it did")
)
