package autologin

import (
	"strconv"
	"strings"

	"github.com/macfleet/macfleet/steps/kit"
)

// proofPart is the part of an answer with the last verification of the password in an intact file.
const proofPart = "proof"

// lastTry is what is known about the password in /etc/kcpassword. A plan has no password to compare it with, so it
// compares the host's note of the last try with the file and with the time the account's password was set.
type lastTry struct {
	stamp   string // inode, size and modification time of the file; empty: unknown
	written int64  // its modification time, as Unix time
	set     string // when the account's password was set; empty: unknown
	note    note
}

// note is the host's note of the last try.
type note struct {
	word  string // verified, trying, refused; empty: there is no note
	tries int
	stamp string // of the file at that time
	set   string // of the password at that time
}

// mostTries limits the tries of a password whose result was never received.
const mostTries = 2

// readTry parses the part. An unreadable note counts as missing: the password is tried again.
func readTry(p kit.Part) lastTry {
	out := lastTry{stamp: p.Value("file"), set: reported(p.Value("password"))}
	if i := strings.LastIndexByte(out.stamp, ' '); i >= 0 {
		out.written, _ = strconv.ParseInt(out.stamp[i+1:], 10, 64)
	}
	if words := strings.Fields(p.Value("note")); len(words) == 6 {
		if tries, err := strconv.Atoi(words[1]); err == nil {
			out.note = note{words[0], tries, strings.Join(words[2:5], " "), reported(words[5])}
		}
	}
	return out
}

// reported returns a time reported by the directory, or "".
func reported(text string) string { return strings.TrimPrefix(text, "-") }

// current reports whether the note belongs to the current file and password.
func (t lastTry) current() bool { return t.note.stamp == t.stamp && t.note.set == t.set }

// verified reports whether the host accepted this password.
func (t lastTry) verified() bool { return t.note.word == "verified" && t.current() }

// refused reports whether the host refused this password or it was tried too often.
func (t lastTry) refused() bool {
	return t.current() && (t.note.word == "refused" || t.note.word == "trying" && t.note.tries >= mostTries)
}

// whyUnverified says why the password may be wrong, or "". A file that was never verified is trusted while a session is
// up, unless it is older than the password.
func (t lastTry) whyUnverified() string {
	switch {
	case t.refused():
		return "refused by the Mac"
	case t.verified():
		return ""
	case t.note.word != "" && t.current():
		return "not verified: an earlier try was interrupted"
	case t.note.word != "" && t.note.stamp != t.stamp:
		return "changed since it was verified"
	case t.note.word != "":
		return "not verified since the password was changed"
	case t.set != "" && t.written < seconds(t.set):
		return "older than the password"
	}
	return ""
}

// seconds returns the whole seconds of a time reported by the directory.
func seconds(text string) int64 {
	whole, _, _ := strings.Cut(text, ".")
	n, _ := strconv.ParseInt(whole, 10, 64)
	return n
}
