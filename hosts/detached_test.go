package hosts

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/macfleet/macfleet/internal/scripttest"
	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/plan"
)

// jobs lists what is left of jobs in a lab.
func (l lab) jobs() string {
	entries, _ := os.ReadDir(filepath.Join(l.etc, "jobs"))
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

func (n *lines) jobClient() *Client {
	return n.client(func(o *Options) { o.Deadlines.Job = 50 * time.Millisecond })
}

func detachedChange(as plan.User, script string, args ...string) plan.Change {
	return plan.Change{Detached: true, Command: plan.Command{Name: "install", As: as, Script: script, Args: args}}
}

// TestRunDetached goes through a whole job, with every kind of argument.
func TestRunDetached(t *testing.T) {
	t.Parallel()
	for _, as := range []plan.User{plan.Root, plan.Login, plan.Gui} {
		t.Run(string(as), func(t *testing.T) {
			t.Parallel()
			n := newLines(t)
			n.Set("session", "")
			conn := connect(t, n.jobClient(), acme1())
			for range 2 {
				a, err := conn.RunDetached(within(t), "build_tools", detachedChange(as, "stat -c %a "+n.etc+"/jobs/build_tools/out >"+n.State+"/mode; cat; "+echo+"; echo oh >&2; exit 7", hostile()...))
				if !scriptFailed(err) {
					t.Fatal(err)
				}
				is(t, "answer", a, plan.Answer{Exit: 7, Stdout: echoed(hostile()), Stderr: "oh\n"})
				is(t, "left behind", n.jobs(), "")
				is(t, "mode of the output's folder", n.read(n.State, "mode"), "700\n")
			}
			// One label for each step: the database of background items must not grow.
			if strings.Contains(strings.ReplaceAll(n.read(n.State, "launchctl"), n.etc, ""), "/etc/macfleet/jobs") {
				t.Errorf("a lab's path was not replaced")
			}
			domain := "system"
			if as == plan.Gui {
				domain = "gui/0"
			}
			if got := strings.Count(n.read(n.State, "launchctl"), "bootout "+domain+"/dev.macfleet.job.build_tools\n"); got != 2 {
				t.Errorf("booted out %d times, want 2:\n%s", got, n.read(n.State, "launchctl"))
			}
		})
	}
}

// TestNoGuiSession: no user is logged in, the session is in the background only, or launchd fails.
func TestNoGuiSession(t *testing.T) {
	t.Parallel()
	for session, code := range map[string]string{"exit 125": "125", "echo '\tsession = Background'; exit": "0", "echo '\tsession = Aqua'; exit 36": "36"} {
		n := newLines(t)
		n.Set("session", session)
		conn, says := connect(t, n.jobClient(), acme1()), "no gui session of "+me(t)+": launchctl print gui/0 failed with exit code "+code
		_, detached := conn.RunDetached(within(t), "local_network", detachedChange(plan.Gui, ":"))
		_, run := conn.Run(within(t), plan.Command{Name: "ask", As: plan.Gui, Script: ":"}, secret.Value{})
		for _, err := range []error{detached, run} {
			wantError(t, err, "no-gui-session", Talking, says)
			if e := asError(t, err); !strings.HasSuffix(e.Remedy, "log in over VNC as "+me(t)) {
				t.Errorf("remedy %q", e.Remedy)
			}
		}
		facts, _, err := conn.Probe(within(t), []plan.Probe{{ID: "a.b", Command: plan.Command{Name: "ask", As: plan.Gui, Script: ":"}}, probe("a.c", "echo c")})
		must(t, err)
		is(t, "facts", facts, plan.Facts{"a.b": unread(says), "a.c": said(0, "c\n", "")})
		is(t, "left behind", n.jobs(), "")
	}
}

// TestGuiSession asks from within the session, together with other questions.
func TestGuiSession(t *testing.T) {
	t.Parallel()
	n := newLines(t)
	n.Set("session", "")
	conn := connect(t, n.jobClient(), acme1())
	ask := func(id, script string, args ...string) plan.Probe {
		return plan.Probe{ID: id, Command: plan.Command{Name: id, As: plan.Gui, Script: script, Args: args}}
	}
	facts, _, err := conn.Probe(within(t), []plan.Probe{ask("a.b", "cat; "+echo+"; echo oh >&2; exit 3", hostile()...), probe("a.c", "echo c"), ask("a.d", "id -un")})
	must(t, err)
	want := plan.Facts{"a.b": said(3, echoed(hostile()), "oh\n"), "a.c": said(0, "c\n", ""), "a.d": said(0, me(t)+"\n", "")}
	is(t, "facts", facts, want)
	a, err := conn.Run(within(t), plan.Command{Name: "ask", As: plan.Gui, Script: "echo x"}, secret.Value{})
	if err != nil || a != (plan.Answer{Stdout: "x\n"}) {
		t.Errorf("%+v, %v", a, err)
	}
	is(t, "left behind", n.jobs(), "")
	// One that does not end is ended, and its question unanswered.
	n.Set("slow", "")
	facts, _, err = conn.Probe(within(t), []plan.Probe{ask("a.b", ":")})
	must(t, err)
	is(t, "facts", facts, plan.Facts{"a.b": unread(stoppedByWatchdog)})
	is(t, "left behind", n.jobs(), "")
}

// finish lets a job that launchd started finish.
func (n *lines) finish(name string) {
	run := filepath.Join(n.etc, "jobs", name, "run")
	if os.Remove(filepath.Join(n.State, "slow")) != nil {
		return // it has ended
	}
	if a, killed := n.sh(0, `echo 1 >"$1/runs.dev.macfleet.job.$2"; exec dash "$3"`, n.State, name, run); killed || a.Exit != 0 {
		n.T.Errorf("%+v", a)
	}
}

// TestRunDetachedFinds waits for the job that an earlier run left.
func TestRunDetachedFinds(t *testing.T) {
	t.Parallel()
	n := newLines(t)
	n.Set("slow", "") // launchd has started it, and it runs on
	// It ends after the first exec, which finds it: one that ended before would be started again.
	var execs atomic.Int32
	n.lose = func(int32) (bool, bool) {
		if n.read(n.State, "finish") != "" && execs.Add(1) == 2 {
			n.finish("build_tools")
		}
		return false, false
	}
	conn := connect(t, n.jobClient(), acme1())
	first := detachedChange(plan.Root, "echo first >>"+n.State+"/log; echo first")
	_, err := conn.RunDetached(within(t), "build_tools", first)
	wantError(t, err, "job-running", Talking, "install is still running after")
	ctx, cancel := context.WithCancel(within(t))
	cancel()
	if _, err := conn.RunDetached(ctx, "build_tools", first); !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v", err)
	}
	for _, p := range n.peers {
		p.hungUp(t) // what was cancelled may have reached the host anyway
	}
	conn = connect(t, n.client(func(*Options) {}), acme1())
	n.Set("finish", "yes")
	a, err := conn.RunDetached(within(t), "build_tools", first)
	if err != nil || a.Stdout != "first\n" {
		t.Errorf("%+v, %v", a, err)
	}
	is(t, "what the job ran", n.read(n.State, "log"), "first\n")
	is(t, "left behind", n.jobs(), "")
}

// TestRunDetachedInterrupted breaks the line at every exec that is this run's: the job runs
// once.
func TestRunDetachedInterrupted(t *testing.T) {
	t.Parallel()
	for place := range scripttest.Places(t, breaks(3)) {
		number, ran := int32(place+1)/2, place%2 == 0
		n := newLines(t)
		n.lose = func(at int32) (before, after bool) { return at == number && !ran, at == number && ran }
		conn := connect(t, n.client(func(o *Options) {}), acme1())
		a, err := conn.RunDetached(within(t), "build_tools", detachedChange(plan.Root, "echo ran >>"+n.State+"/log; echo done"))
		if err != nil || a.Stdout != "done\n" {
			t.Errorf("exec %d, run %t: %+v, %v", number, ran, a, err)
		}
		if log := n.read(n.State, "log"); log != "ran\n" || n.jobs() != "" {
			t.Errorf("exec %d, run %t: the job ran %q; left behind: %q", number, ran, log, n.jobs())
		}
		conn.Close()
	}
}

func TestRunDetachedRefusesInput(t *testing.T) {
	t.Parallel()
	n := newLines(t)
	conn := connect(t, n.jobClient(), acme1())
	ch := detachedChange(plan.Root, ":")
	ch.Input = plan.LoginPassword
	if _, err := conn.RunDetached(within(t), "a", ch); err == nil || !strings.Contains(err.Error(), "must not have input") {
		t.Errorf("error = %v", err)
	}
}

// TestRunDetachedLost: a job that was ended from outside has no answer, and the
// next one runs.
func TestRunDetachedLost(t *testing.T) {
	t.Parallel()
	n := newLines(t)
	conn := connect(t, n.jobClient(), acme1())
	_, err := conn.RunDetached(within(t), "a", detachedChange(plan.Root, "kill -9 $PPID"))
	if err == nil || !strings.Contains(err.Error(), "install on acme-1 has no result") {
		t.Errorf("error = %v", err)
	}
	if a, err := conn.RunDetached(within(t), "a", detachedChange(plan.Root, "echo x")); err != nil || a.Stdout != "x\n" || n.jobs() != "" {
		t.Errorf("%+v, %v, left behind: %q", a, err, n.jobs())
	}
}

// TestJobStartKilled: whatever a killed start left, the next one starts the job.
func TestJobStartKilled(t *testing.T) {
	c := New(Options{User: "root"})
	killedEverywhere(t, func(t *testing.T, l lab, at int) bool {
		c.opts.Prologue = l.prologue()
		j := c.job("build_tools", plan.Command{As: plan.Root, Script: `echo "$1" >>` + l.State + "/log", Args: []string{"x"}})
		start := func(at int) (plan.Answer, bool) {
			return l.run(at, j.script("job-start", plan.Root, append([]string{"fresh"}, j.started()...)...))
		}
		_, killed := start(at)
		l.clock(1100) // a run that died is not waited for
		if a, _ := start(0); a.Exit != 0 {
			t.Errorf("killed at %d: %+v", at, a)
		}
		a, _ := l.run(0, j.script("job-look", plan.Root))
		if a.Stdout != "ended 0\n" || !strings.HasSuffix(l.read(l.State, "log"), "x\n") {
			t.Errorf("killed at %d: %+v, log %q", at, a, l.read(l.State, "log"))
		}
		if a, _ := l.run(0, j.script("job-drop", plan.Root)); a.Exit != 0 || l.jobs() != "" {
			t.Errorf("killed at %d: %+v, left behind: %q", at, a, l.jobs())
		}
		return killed
	})
}

// TestJobStartOvertaken: another run creates the job right before this one does. It counts as running for 30 seconds.
func TestJobStartOvertaken(t *testing.T) {
	labs(t, func(t *testing.T, l lab) {
		j := New(Options{User: "root", Prologue: l.prologue()}).job("a", plan.Command{As: plan.Root, Script: ":"})
		l.tool("mv", `mkdir ETC/jobs/a && echo other >ETC/jobs/a/digest && echo 1000 >ETC/jobs/a/born; exec /bin/mv "$@"`)
		a, _ := l.run(0, j.script("job-start", plan.Root, append([]string{"fresh"}, j.started()...)...))
		is(t, "answer", a, plan.Answer{Stdout: "other\n"})
		is(t, "files of the job", listed(t, filepath.Join(l.etc, "jobs", "a")), "born digest")
		for now, state := range map[int]string{1029: "running\n", 1030: "lost\n"} {
			l.clock(now)
			a, _ := l.run(0, j.script("job-look", plan.Root))
			is(t, "state", a.Stdout, state)
		}
	})
}
