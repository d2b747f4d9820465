package autologin

import (
	"strconv"
	"strings"

	"github.com/macfleet/macfleet/steps/kit"
)

// proofPart is the part of an answer that says what speaks for the password in an intact file.
const proofPart = "proof"

// proof is what is known of the password in /etc/kcpassword. A plan has no password to compare it with: it
// compares what the host noted when the password was last tried with the file, and with when the account's
// password was set.
type proof struct {
	stamp   string // inode, size and modification time of the file; empty: the host does not say
	written int64  // its modification time, in seconds since 1970
	set     string // when the account's password was set; empty: the directory does not say
	note    note
}

// note is what the host noted of the last try.
type note struct {
	word  string // verified, trying, refused; empty: there is no note
	tries int
	stamp string // of the file then
	set   string // of the password then
}

// mostTries is how often a password is tried whose answer nobody heard.
const mostTries = 2

// readProof reads the part. A note that cannot be read is none: the password is tried again then.
func readProof(p kit.Part) proof {
	out := proof{stamp: p.Value("file"), set: told(p.Value("password"))}
	if i := strings.LastIndexByte(out.stamp, ' '); i >= 0 {
		out.written, _ = strconv.ParseInt(out.stamp[i+1:], 10, 64)
	}
	if words := strings.Fields(p.Value("note")); len(words) == 6 {
		if tries, err := strconv.Atoi(words[1]); err == nil {
			out.note = note{words[0], tries, strings.Join(words[2:5], " "), told(words[5])}
		}
	}
	return out
}

// told is a time that the directory told, or "".
func told(text string) string { return strings.TrimPrefix(text, "-") }

// stands reports whether the note is of the file and the password that are there now.
func (p proof) stands() bool { return p.note.stamp == p.stamp && p.note.set == p.set }

// verified reports whether the host took this password.
func (p proof) verified() bool { return p.note.word == "verified" && p.stands() }

// refused reports whether the host refused this password, or was asked too often.
func (p proof) refused() bool {
	return p.stands() && (p.note.word == "refused" || p.note.word == "trying" && p.note.tries >= mostTries)
}

// doubt says what speaks against the password, or "". A file that nobody verified is trusted while a session
// is up, unless it is older than the password: hosts that were set up before there were notes change nothing.
func (p proof) doubt() string {
	switch {
	case p.refused():
		return "refused by the Mac"
	case p.verified():
		return ""
	case p.note.word != "" && p.stands():
		return "not verified: an earlier try broke off"
	case p.note.word != "" && p.note.stamp != p.stamp:
		return "changed since it was verified"
	case p.note.word != "":
		return "not verified since the password was changed"
	case p.set != "" && p.written < seconds(p.set):
		return "older than the password"
	}
	return ""
}

// seconds is the whole seconds of a time as the directory tells it.
func seconds(text string) int64 {
	whole, _, _ := strings.Cut(text, ".")
	n, _ := strconv.ParseInt(whole, 10, 64)
	return n
}
