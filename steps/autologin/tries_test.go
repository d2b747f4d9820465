package autologin_test

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
)

// tried notes how the last try of the password in the file ended: a word, and the number of tries.
func (m loginMac) tried(how string) {
	m.T.Helper()
	info, err := os.Stat(m.etc("kcpassword"))
	if err != nil {
		m.T.Fatal(err)
	}
	inode := info.Sys().(*syscall.Stat_t).Ino
	m.Put("/etc/macfleet/kcpassword", fmt.Sprintf("%s %d %d %d -\n", how, inode, info.Size(), info.ModTime().Unix()))
}

// TestAutoLoginTries: a wrong password is tried at most twice, also if runs are killed, or macOS locks the account.
func TestAutoLoginTries(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, before string // the note
		odd          bool   // sudo does not say whether it checked the password
		exit, tries  int
		after        string
	}{
		{"never tried", "", false, 79, 1, "refused 1"},
		{"never tried, no verdict", "", true, 80, 1, "trying 1"},
		{"one try without an end", "trying 1", false, 79, 1, "refused 2"},
		{"one try without an end, no verdict", "trying 1", true, 80, 1, "trying 2"},
		{"two tries without an end", "trying 2", false, 79, 0, "refused 2"},
		{"refused", "refused 1", false, 79, 0, "refused 1"},
		{"refused in another file", "refused 1 0", false, 79, 1, "refused 1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			inTurn(t, func(t *testing.T, m loginMac) {
				m.ready("wrong")
				f := m.look()
				if tc.before != "" {
					m.tried(tc.before)
				}
				if tc.odd {
					m.set("odd", "")
				}
				a := m.perform(f, "")
				note := m.Read("/etc/macfleet/kcpassword")
				if tries := strings.Count(m.Get("tries"), "try"); a.Exit != tc.exit || tries != tc.tries || !strings.HasPrefix(note, tc.after+" ") || m.kicks() != 0 {
					t.Errorf("exit %d after %d tries, noted %q, %d kicks: %s", a.Exit, tries, note, m.kicks(), a.Stderr)
				}
			})
		})
	}
}
