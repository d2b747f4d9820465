package hosts

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/macfleet/macfleet/internal/scripttest"
	"github.com/macfleet/macfleet/plan"
)

// arm returns the command that arms an undo, whose script notes its arguments.
func (l lab) arm(id string, seconds string, args ...string) plan.Command {
	restore := l.prologue() + `for v in "$@"; do printf '<%s>' "$v"; done >>` + l.State + "/restored\necho >>" + l.State + "/restored\necho no >&2; exit 3\n"
	return own("undo-arm", plan.Root, append([]string{id, "vm_firewall", seconds, restore,
		l.prologue() + file("scripts/undo-run.sh"), file("plists/undo.plist")}, args...)...)
}

func (l lab) change(id, script string, args ...string) plan.Command {
	return own("undo-change", plan.Root, append([]string{id, "10", l.prologue() + script}, args...)...)
}

// want runs a script that must end with an exit code.
func (l lab) want(exit int, c plan.Command) plan.Answer {
	l.T.Helper()
	a, _ := l.run(0, c)
	if a.Exit != exit {
		l.T.Fatalf("%s = %+v, want exit %d", c.Name, a, exit)
	}
	return a
}

func (l lab) stateOf(id string) string {
	l.T.Helper()
	return l.want(0, own("undo-state", plan.Root, id)).Stdout
}

func TestUndoConfirmed(t *testing.T) {
	labs(t, func(t *testing.T, l lab) {
		l.want(0, l.arm("a", "60"))
		is(t, "state", l.stateOf("a"), "armed\n")
		l.want(undoRunning, own("undo-confirm", plan.Root, "a", "vm_firewall"))
		a := l.want(0, l.change("a", `printf '%s|' "$@"; echo said >&2`, "it's", "", "$(x)\n"))
		if a.Stdout != "it's||$(x)\n|" || a.Stderr != "said\n" {
			t.Errorf("the change answered %+v", a)
		}
		l.clock(1059)
		l.daemon(0)
		undone := filepath.Join(l.etc, "undo", "undone")
		write(l.T, undone, "step tailscale\nid z\n", 0o644)
		for range 2 { // its answer may be lost
			l.want(0, own("undo-confirm", plan.Root, "a", "vm_firewall"))
		}
		is(t, "what was undone of another step", l.read(undone), "step tailscale\nid z\n")
		must(t, os.Remove(undone))
		l.clock(2000)
		l.daemon(0)
		is(t, "state", l.stateOf("a"), "confirmed\n")
		l.want(0, own("undo-drop", plan.Root, "a"))
		is(t, "left behind", l.undoDir()+l.read(l.State, "restored"), "")
	})
}

// TestUndoTakenBack lets each reason come about: only the host decides.
func TestUndoTakenBack(t *testing.T) {
	tests := []struct {
		name string
		do   func(lab)
		why  string
	}{
		{"no one confirms", func(l lab) { l.clock(1060) }, "no confirmation within 60 s"},
		{"the clock is set back", func(l lab) { l.clock(900) }, "no confirmation within 60 s"},
		{"the Mac is restarted", func(l lab) { l.Set("boot", "{ sec = 8, usec = 0 }\n") }, "the Mac was restarted"},
		{"the change failed", func(l lab) { l.want(0, own("undo-now", plan.Root, "a", "the change failed")) }, "the change failed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			labs(t, func(t *testing.T, l lab) {
				l.want(0, l.arm("a", "60", "it's", "", "a\n\n", "$(x)"))
				l.want(0, l.change("a", ":"))
				l.daemon(0)
				if got := l.read(l.State, "restored"); got != "" {
					t.Fatalf("taken back at once: %q", got)
				}
				tt.do(l)
				l.daemon(0)
				is(t, "the arguments of the script that restores", l.read(l.State, "restored"), "<it's><><a\n\n><$(x)>\n")
				l.daemon(0)
				l.want(undoTaken, own("undo-confirm", plan.Root, "a", "vm_firewall"))
				state, text, _ := strings.Cut(l.stateOf("a"), "\n")
				u, ok := parseUndone(text)
				if state != "undone" || !ok || u.Step != "vm_firewall" || u.Why != tt.why || u.Exit != 3 || u.At.Unix() < 900 {
					t.Errorf("state %q, %+v of %q", state, u, text)
				}
				if n := strings.Count(l.read(l.State, "restored"), "\n\n>"); n != 1 {
					t.Errorf("restored %d times", n)
				}
				is(t, "left behind", l.undoDir(), "undone")
				// A confirmed change of another step leaves the note, one of the same drops it.
				for id, step := range map[string]string{"b": "other", "c": "vm_firewall"} {
					l.want(0, l.arm(id, "600"))
					l.want(0, l.change(id, ":"))
					l.want(0, own("undo-confirm", plan.Root, id, step))
					l.want(0, own("undo-drop", plan.Root, id))
				}
				is(t, "left behind", l.undoDir(), "")
			})
		})
	}
}

func TestUndoBusy(t *testing.T) {
	labs(t, func(t *testing.T, l lab) {
		l.want(0, l.arm("a", "60"))
		l.clock(1020)
		next := filepath.Join(l.etc, "undo", "next.c")
		must(t, os.Mkdir(next, 0o700)) // another run is about to arm
		if a := l.want(undoTaken, l.arm("b", "60")); a.Stdout != "40 vm_firewall\n" {
			t.Errorf("busy: %+v", a)
		}
		must(t, os.Remove(next))
		is(t, "left behind", l.undoDir(), "armed.a")
		l.clock(1060)
		l.daemon(0)
		l.want(0, l.arm("b", "60"))
	})
}

// TestUndoArmsAtOnce: of runs that arm at the same moment one continues at most, in each
// of the rounds that are this run's.
func TestUndoArmsAtOnce(t *testing.T) {
	labs(t, func(t *testing.T, l lab) {
		l.want(0, l.arm("first", "1"))
		l.clock(2000)
		l.daemon(0)
		for round := range scripttest.Places(t, slices.Repeat([]string{"round"}, 10)) {
			answers := make([]plan.Answer, 3)
			var wg sync.WaitGroup
			for i := range answers {
				wg.Go(func() { answers[i], _ = l.run(0, l.arm(fmt.Sprintf("r%d-%d", round, i), "60")) })
			}
			wg.Wait()
			won := 0
			for _, a := range answers {
				if a.Exit == 0 {
					won++
				}
			}
			if armed := strings.Count(l.undoDir(), "armed."); won > 1 || armed != won {
				t.Fatalf("%d runs continue, %d are armed: %+v", won, armed, answers)
			}
			l.clock(3000 + 100*round)
			l.daemon(0)
		}
	})
}

// TestUndoRace lets the confirmation and the undo run at the same moment, in as many
// rounds as are this run's: one of them wins, and the other knows. Then the undo moves the change away just before the confirmation does.
func TestUndoRace(t *testing.T) {
	labs(t, func(t *testing.T, l lab) {
		now := 1000
		for round := range scripttest.Places(t, slices.Repeat([]string{"round"}, 20)) {
			id := fmt.Sprint("r", round)
			l.want(0, l.arm(id, "60"))
			l.want(0, l.change(id, ":"))
			now += 60
			l.clock(now)
			l.Set("restored", "")
			var confirmed plan.Answer
			var both sync.WaitGroup
			both.Go(func() { l.daemon(0) })
			both.Go(func() { confirmed, _ = l.run(0, own("undo-confirm", plan.Root, id, "vm_firewall")) })
			both.Wait()
			restored := l.read(l.State, "restored") != ""
			if stands := confirmed.Exit == 0; stands == restored {
				t.Fatalf("confirmed: %+v, restored: %t", confirmed, restored)
			}
			l.want(0, own("undo-drop", plan.Root, id))
		}
		l.want(0, l.arm("late", "60"))
		l.want(0, l.change("late", ":"))
		l.tool("mv", `/bin/mv "$1" undoing.late; exec /bin/mv "$@"`)
		l.want(undoTaken, own("undo-confirm", plan.Root, "late", "vm_firewall"))
	})
}

// TestUndoDeletionKilled: an undo that is killed while it deletes a folder does not restore from the half that is left.
func TestUndoDeletionKilled(t *testing.T) {
	labs(t, func(t *testing.T, l lab) {
		l.want(0, l.arm("a", "60", "x"))
		l.clock(1060)
		l.tool("rm", `for one; do [ ! -d "$one" ] || { /bin/rm "$one/arg.1"; kill -9 0; }; done; exec /bin/rm "$@"`)
		is(t, "killed", l.daemon(0), true)
		must(t, os.Remove(filepath.Join(l.Bin, "rm")))
		l.daemon(0)
		is(t, "restored", l.read(l.State, "restored"), "<x>\n")
	})
}

// TestUndoJob: the job is registered once, and again only when it is a different one.
func TestUndoJob(t *testing.T) {
	labs(t, func(t *testing.T, l lab) {
		registrations := func() int { return strings.Count(l.read(l.State, "launchctl"), "bootstrap ") }
		next := 1000
		arm := func() {
			t.Helper()
			next += 100
			l.clock(next)
			l.daemon(0)
			l.want(0, l.arm(fmt.Sprint(next), "60"))
			l.clock(next + 60)
			l.daemon(0)
		}
		arm()
		arm()
		is(t, "registrations", registrations(), 1)
		plist := filepath.Join(l.lib, "dev.macfleet.undo.plist")
		is(t, "plist", l.read(plist), file("plists/undo.plist"))
		write(t, plist, strings.Replace(l.read(plist), ">5<", ">9<", 1), 0o644) // someone edits it
		arm()
		if got := l.read(plist); got != file("plists/undo.plist") || registrations() != 2 {
			t.Errorf("%d registrations, want 2; plist %q", registrations(), got)
		}
		l.sh(0, "rm -f "+l.State+"/loaded.dev.macfleet.undo") // someone unloads it
		arm()
		is(t, "registrations", registrations(), 3)
		// A text of an earlier version needs no registration.
		write(t, filepath.Join(l.etc, "undo", "run.sh"), "exit 0\n", 0o644)
		arm()
		is(t, "registrations", registrations(), 3)
		// A job that is loaded and does not run would take nothing back.
		l.Set("lazy", "")
		l.clock(next + 100)
		if a := l.want(1, l.arm("z", "60")); !strings.Contains(a.Stderr, "does not run") || strings.Contains(l.undoDir(), "armed") {
			t.Errorf("%+v, %q", a, l.undoDir())
		}
	})
}

// TestUndoChangeTooLate: a change that could outlive its undo is not started.
func TestUndoChangeTooLate(t *testing.T) {
	labs(t, func(t *testing.T, l lab) {
		script := "touch " + l.State + "/made"
		l.want(75, l.change("a", script)) // not armed
		l.want(0, l.arm("a", "60"))
		l.clock(1050)
		if a := l.want(75, l.change("a", script)); !strings.Contains(a.Stderr, "only 10 s are left") {
			t.Errorf("%+v", a)
		}
		l.want(undoRunning, own("undo-confirm", plan.Root, "a", "vm_firewall"))
		l.clock(1049)
		l.want(7, l.change("a", "echo out; echo oh >&2; exit 7"))
		if a := l.want(undoFailed, own("undo-confirm", plan.Root, "a", "vm_firewall")); a.Stderr != "oh\n" {
			t.Errorf("%+v", a)
		}
		l.clock(1060)
		l.daemon(0)
		l.want(75, l.change("a", script))
		if l.read(l.State, "made") != "" {
			t.Error("the change was made")
		}
	})
}
