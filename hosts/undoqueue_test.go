package hosts

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/plan"
)

// queue lists what is in the folder for which launchd starts the job, and whether a read says that something is armed.
func (l lab) queue() (entries string, again bool) {
	l.T.Helper()
	a, _ := l.sh(0, strings.Join(l.Shell, " ")+` "$1"`, filepath.Join(l.etc, "undo", "run.sh"))
	all, err := filepath.Glob(filepath.Join(l.etc, "undo", "queue", "*"))
	if err != nil {
		l.T.Fatal(err)
	}
	for i := range all {
		all[i] = filepath.Base(all[i])
	}
	return strings.Join(all, " "), a.Exit == 0
}

// TestUndoQueue: something is in the folder as long as a change is armed, and nothing else keeps the job busy.
func TestUndoQueue(t *testing.T) {
	labs(t, func(t *testing.T, l lab) {
		is := func(when, want string) {
			t.Helper()
			if got, again := l.queue(); got != want || again != (want != "") {
				t.Errorf("%s: in the queue %q, again %t, want %q", when, got, again, want)
			}
		}
		l.want(0, l.arm("a", "60"))
		is("armed", "a")
		if err := os.Remove(filepath.Join(l.etc, "undo", "queue", "a")); err != nil { // someone clears it
			t.Fatal(err)
		}
		is("cleared by hand", "a")
		l.want(0, l.change("a", ":"))
		l.want(0, own("undo-confirm", plan.Root, "a", "vm_firewall"))
		is("confirmed", "")
		l.want(0, own("undo-drop", plan.Root, "a"))
		l.want(0, l.arm("b", "60"))
		l.clock(1060)
		is("taken back", "")
		// An arming that was killed before its end.
		write(t, filepath.Join(l.etc, "undo", "next.c", "deadline"), "1100\n", 0o600)
		write(t, filepath.Join(l.etc, "undo", "queue", "c"), "", 0o600)
		is("on the way", "c")
		l.clock(1100)
		is("never armed", "")
	})
}

// TestUndoWithoutQueue: a change is taken back also where nothing can be put into the queue.
func TestUndoWithoutQueue(t *testing.T) {
	labs(t, func(t *testing.T, l lab) {
		l.want(0, l.arm("a", "60"))
		queue := filepath.Join(l.etc, "undo", "queue")
		must(t, os.RemoveAll(queue))
		write(t, queue, "", 0o600)
		l.clock(1060)
		l.daemon(0)
		if got := l.stateOf("a"); !strings.HasPrefix(got, "undone") {
			t.Errorf("state %q", got)
		}
	})
}
