package hosts

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/internal/scripttest"
	"github.com/macfleet/macfleet/plan"
)

// killedEverywhere runs a test with a kill at those calls of a tool that are this run's. A run that
// is not killed says which calls there are.
func killedEverywhere(t *testing.T, test func(t *testing.T, l lab, at int) (killed bool)) {
	t.Parallel()
	needRoot(t)
	need(t, "dash", "bash")
	whole := newLab(t, []string{"dash"})
	whole.mortal()
	if test(t, whole, never) {
		t.Fatal("killed, although it was not expected to be")
	}
	for at, shell := range scripttest.Places(t, strings.Fields(whole.read(whole.State, "called")), "dash", "bash --posix") {
		l := newLab(t, shell)
		l.mortal()
		if !test(t, l, at) {
			t.Errorf("%s: it finished although it was expected to be killed at call %d", shell, at)
		}
	}
}

// never is the number of a call that no script makes.
const never = 10_000

// armed makes what undo-arm.sh makes, quicker.
func (l lab) armed(id string, args ...string) {
	l.T.Helper()
	all := l.arm(id, "60").Args
	dir := filepath.Join(l.etc, "undo", "armed."+id)
	write(l.T, filepath.Join(l.etc, "undo", "run.sh"), all[4], 0o644)
	l.Set("loaded.dev.macfleet.undo", filepath.Join(l.etc, "undo", "run.sh")+"\n")
	for name, text := range map[string]string{"boot": l.read(l.State, "boot"), "step": "vm_firewall\n", "limit": "60\n", "deadline": "1060\n",
		"restore": all[3]} {
		write(l.T, filepath.Join(dir, name), text, 0o600)
	}
	for i, arg := range args {
		write(l.T, filepath.Join(dir, fmt.Sprintf("arg.%d", i+1)), arg, 0o600)
	}
}

// over lets the deadline pass and the job run, killed once, and reports whether the
// change was undone.
func (l lab) over() bool {
	l.clock(9000)
	l.daemon(0)
	return l.read(l.State, "restored") != ""
}

func TestUndoArmKilled(t *testing.T) {
	killedEverywhere(t, func(t *testing.T, l lab, at int) bool {
		_, killed := l.run(at, l.arm("a", "60", "x"))
		armed := strings.Contains(l.undoDir(), "armed.a")
		if restored := l.over(); restored != armed {
			t.Errorf("killed at %d: armed %t, restored %t", at, armed, restored)
		}
		l.want(0, l.arm("b", "60", "x"))
		l.want(0, l.change("b", ":"))
		l.want(0, own("undo-confirm", plan.Root, "b", "vm_firewall"))
		l.want(0, own("undo-drop", plan.Root, "b"))
		is(t, fmt.Sprintf("killed at %d: left behind", at), l.undoDir(), "")
		return killed
	})
}

// TestUndoRunKilled: what a killed undo has started is done again, whole.
func TestUndoRunKilled(t *testing.T) {
	killedEverywhere(t, func(t *testing.T, l lab, at int) bool {
		l.armed("a", "x", "y")
		l.want(0, l.change("a", ":"))
		l.clock(1060)
		killed := l.daemon(at)
		a, _ := l.run(0, own("undo-confirm", plan.Root, "a", "vm_firewall"))
		l.daemon(0)
		restored := l.read(l.State, "restored")
		if stands := a.Exit == 0; stands == (restored != "") {
			t.Errorf("killed at %d: confirmed %+v, restored %q", at, a, restored)
		}
		for line := range strings.Lines(restored) {
			if line != "<x><y>\n" {
				t.Errorf("killed at %d: restored with %q", at, line)
			}
		}
		if restored == "" {
			l.want(0, own("undo-drop", plan.Root, "a"))
		} else if u, ok := parseUndone(l.read(l.etc, "undo", "undone")); !ok || u.Exit != 3 || u.Why != "no confirmation within 60 s" {
			t.Errorf("killed at %d: %+v", at, u)
		}
		if got := l.undoDir(); strings.Trim(got, "undoe ") != "" {
			t.Errorf("killed at %d: left behind: %q", at, got)
		}
		return killed
	})
}

func TestUndoConfirmKilled(t *testing.T) {
	killedEverywhere(t, func(t *testing.T, l lab, at int) bool {
		l.armed("a")
		l.want(0, l.change("a", ":"))
		_, killed := l.run(at, own("undo-confirm", plan.Root, "a", "vm_firewall"))
		stands := l.stateOf("a") == "confirmed\n"
		if restored := l.over(); restored == stands {
			t.Errorf("killed at %d: confirmed %t, restored %t", at, stands, restored)
		}
		exit := undoTaken
		if stands {
			exit = 0
		}
		l.want(exit, own("undo-confirm", plan.Root, "a", "vm_firewall"))
		return killed
	})
}

func TestUndoChangeKilled(t *testing.T) {
	killedEverywhere(t, func(t *testing.T, l lab, at int) bool {
		l.armed("a")
		_, killed := l.run(at, l.change("a", "sync; sync; sync"))
		a, _ := l.run(0, own("undo-confirm", plan.Root, "a", "vm_firewall"))
		// Confirmed is only what finished.
		if whole := l.read(l.etc, "undo", "armed.a", "exit")+l.read(l.etc, "undo", "confirmed.a", "exit") == "0\n"; (a.Exit == 0) != whole {
			t.Errorf("killed at %d: %+v, at its end: %t", at, a, whole)
		}
		if restored := l.over(); restored == (a.Exit == 0) {
			t.Errorf("killed at %d: confirmed %+v, restored %t", at, a, restored)
		}
		return killed
	})
}

func TestUndoNowKilled(t *testing.T) {
	killedEverywhere(t, func(t *testing.T, l lab, at int) bool {
		l.armed("a")
		_, killed := l.run(at, own("undo-now", plan.Root, "a", "the change failed"))
		if !l.over() {
			t.Errorf("killed at %d: not taken back", at)
		}
		return killed
	})
}
