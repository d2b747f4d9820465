package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/macfleet/macfleet/internal/app"
)

// place is the example configuration with a separate world.
type place struct {
	t   *testing.T
	dir string
}

func newPlace(t *testing.T) place {
	t.Helper()
	p := place{t: t, dir: t.TempDir()}
	must(t, copyExample(p.dir))
	return p
}

// command is a separate process: the real main.
func (p place) command(ctx context.Context, args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(ctx, patience)
	p.t.Cleanup(cancel)
	c := exec.CommandContext(ctx, "macfleet", append([]string{"-C", p.dir}, args...)...)
	c.Env = append(os.Environ(), "HOME="+p.dir, "MACFLEET_ENVIRONMENT=production", "MACFLEET_SANDBOX="+filepath.Join(p.dir, "world"), "MACFLEET_VAR_runners=2")
	c.WaitDelay = time.Second
	return c
}

// says runs a command to its end.
func (p place) says(code int, args ...string) (stdout, stderr string) {
	p.t.Helper()
	c := p.command(p.t.Context(), args...)
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	_ = c.Run() // the exit code is checked
	if got := c.ProcessState.ExitCode(); got != code {
		p.t.Fatalf("macfleet %s: exit %d, want %d\n%s%s", strings.Join(args, " "), got, code, out.String(), errs.String())
	}
	return out.String(), errs.String()
}

// shortLock is for runs that are stopped or killed, because the next run waits that long. A run
// that should finish has the time that a busy machine needs.
const shortLock = "--lock-lease=3s"

// pausing is an apply that pauses between two actions, because its output is not read. The
// lock is renewed meanwhile.
type pausing struct {
	place
	cmd   *exec.Cmd
	out   *os.File
	lines *bufio.Reader
	said  []string
}

// pipeSize is Linux's F_SETPIPE_SZ: a small pipe fills up soon.
const pipeSize = 1031

func (p place) pausing() *pausing {
	p.t.Helper()
	r, w, err := os.Pipe()
	must(p.t, err)
	if _, _, errno := syscall.Syscall(syscall.SYS_FCNTL, w.Fd(), pipeSize, 4096); errno != 0 {
		p.t.Fatal(errno)
	}
	a := &pausing{place: p, cmd: p.command(context.Background(), "apply", "--auto-approve", "--json", "--parallelism", "1", shortLock), out: r, lines: bufio.NewReaderSize(r, 64)}
	a.cmd.Stdout = w
	must(p.t, a.cmd.Start())
	_ = w.Close() // now held by the process
	p.t.Cleanup(func() { _ = r.Close() })
	for !strings.Contains(a.read(), `"type":"apply_complete"`) {
	}
	a.until("it waits for its reader", func() bool { return a.writing() && !a.locks() })
	return a
}

// read returns the next line, "" at the end.
func (a *pausing) read() string {
	line, err := a.lines.ReadString('\n')
	if err == nil {
		a.said = append(a.said, line)
		return line
	}
	return ""
}

// end reads the rest and returns the exit code.
func (a *pausing) end() int {
	for a.read() != "" {
	}
	_ = a.cmd.Wait() // the exit code is checked
	return a.cmd.ProcessState.ExitCode()
}

func (a *pausing) until(what string, is func() bool) {
	a.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for range 12_000 {
		if is() {
			return
		}
		<-tick.C
	}
	a.t.Fatalf("%s: not within a minute", what)
}

// writing reports whether a thread of the process is in a write to standard output.
func (a *pausing) writing() bool {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/syscall", a.cmd.Process.Pid))
	return slices.ContainsFunc(files, func(name string) bool {
		text, err := os.ReadFile(name)
		return err == nil && strings.HasPrefix(string(text), fmt.Sprintf("%d 0x1 ", syscall.SYS_WRITE))
	})
}

// locks reports whether the process holds a lock on a file of the world, as it does while it
// simulates an answer. Stopped then, it would stop everyone. The record of its run, which it
// keeps locked until its end, does not count.
func (a *pausing) locks() bool {
	text, err := os.ReadFile("/proc/locks")
	must(a.t, err)
	records, _ := filepath.Glob(filepath.Join(a.dir, "world", "runs", "*"))
	own := make(map[string]bool) // by inode
	for _, name := range records {
		if info, err := os.Stat(name); err == nil {
			own[fmt.Sprint(info.Sys().(*syscall.Stat_t).Ino)] = true
		}
	}
	for _, l := range regexp.MustCompile(fmt.Sprintf(`FLOCK +ADVISORY +\S+ +%d \S+:(\d+) `, a.cmd.Process.Pid)).FindAllSubmatch(text, -1) {
		if !own[string(l[1])] {
			return true
		}
	}
	return false
}

func (a *pausing) signal(s syscall.Signal) {
	a.t.Helper()
	must(a.t, a.cmd.Process.Signal(s))
}

// stop stops the process while it holds no lock that others need.
func (a *pausing) stop() {
	a.t.Helper()
	a.until("it can be stopped", func() bool {
		a.signal(syscall.SIGSTOP)
		a.until("it is stopped", func() bool {
			text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", a.cmd.Process.Pid))
			return err == nil && strings.Contains(string(text), ") T ")
		})
		if !a.locks() {
			return true
		}
		a.signal(syscall.SIGCONT)
		return false
	})
}

// macs are the digests of all files of all simulated Macs.
func (p place) macs() map[string]string {
	p.t.Helper()
	out := make(map[string]string)
	err := filepath.WalkDir(filepath.Join(p.dir, "world", "macs"), func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || !strings.Contains(name, "/root/") {
			return err
		}
		text, err := os.ReadFile(name)
		out[name] = fmt.Sprintf("%x", sha256.Sum256(text))
		return err
	})
	must(p.t, err)
	return out
}

// writes returns the changing requests to the simulated Scaleway and Kubernetes from a place
// in the record on.
func (p place) writes(from int) []string {
	var out []string
	for line := range strings.Lines(p.record()[from:]) {
		if regexp.MustCompile(` (POST|PUT|PATCH|DELETE) `).MatchString(line) {
			out = append(out, line)
		}
	}
	return out
}

func (p place) record() string {
	p.t.Helper()
	text, err := os.ReadFile(filepath.Join(p.dir, "world", "access.log"))
	must(p.t, err)
	return string(text)
}

// TestTwoAtOnce: the second apply waits, names the holder, and then plans from the result of
// the first.
func TestTwoAtOnce(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	first := p.pausing()
	if _, stderr := p.says(app.ExitError, "apply", "--auto-approve", "--lock-timeout", "0"); !strings.Contains(stderr, "lock held by ") {
		t.Errorf("without waiting: %s", stderr)
	}
	stdout, _ := p.says(app.ExitDone, "plan")
	has(t, stdout, "[apply-in-progress]", "a plan meanwhile says")
	if _, stderr := p.says(app.ExitError, "hosts", "forget-key", "no-such-host"); !strings.Contains(stderr, " applying acme-production since ") {
		t.Errorf("a command without a lock: %s", stderr)
	}
	second := p.command(t.Context(), "apply", "--auto-approve")
	var out bytes.Buffer
	second.Stdout = &out
	errs, err := second.StderrPipe()
	if err == nil {
		err = second.Start()
	}
	must(t, err)
	lines := bufio.NewScanner(errs)
	for lines.Scan() && !strings.Contains(lines.Text(), "Waiting for the lock of acme-production: ") {
	}
	equal(t, first.end(), app.ExitDone, "the first exited with", strings.Join(first.said, ""))
	for lines.Scan() {
	}
	if err := second.Wait(); err != nil || !strings.Contains(out.String(), "No changes. All 6 hosts") {
		t.Errorf("the second: %v\n%s", err, out.String())
	}
}

// TestStoppedPastTheLock: an apply that is stopped until its lock expires, while another takes
// over, changes nothing more when it resumes.
func TestStoppedPastTheLock(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	first := p.pausing()
	first.stop()
	p.says(app.ExitDone, "apply", "--auto-approve")
	from, before := len(p.record()), p.macs()
	first.signal(syscall.SIGCONT)
	equal(t, first.end(), app.ExitIncomplete, "exit code")
	if text := strings.Join(first.said, ""); !strings.Contains(text, "lock-lost: ") || !strings.Contains(text, `"lock_lost":"`) {
		t.Errorf("it says\n%s", text)
	}
	if w := p.writes(from); len(w) > 0 {
		t.Errorf("it changed\n%s", strings.Join(w, ""))
	}
	if diff := cmp.Diff(before, p.macs()); diff != "" {
		t.Errorf("on the Macs (-before +after):\n%s", diff)
	}
}

// TestKilled: the lock of a killed run expires, and the next apply resumes where it stopped.
func TestKilled(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	first := p.pausing()
	first.stop() // not while it holds a file lock
	first.signal(syscall.SIGKILL)
	first.end()
	if stdout, _ := p.says(app.ExitDone, "lock", "status"); !strings.Contains(stdout, ": lock held by ") {
		t.Errorf("status: %s", stdout)
	}
	if stdout, _ := p.says(app.ExitDone, "apply", "--auto-approve"); !strings.Contains(stdout, "6/6 hosts converged") {
		t.Errorf("the next apply: %s", stdout)
	}
}

// TestInterruptReleasesTheLock: after Ctrl-C the next apply does not wait.
func TestInterruptReleasesTheLock(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	first := p.pausing()
	first.signal(syscall.SIGINT)
	equal(t, first.end(), app.ExitIncomplete, "exit code", strings.Join(first.said, ""))
	if stdout, _ := p.says(app.ExitDone, "lock", "status"); !strings.Contains(stdout, "not locked") {
		t.Errorf("status: %s", stdout)
	}
	p.says(app.ExitDone, "apply", "--auto-approve", "--lock-timeout", "0")
}

// TestReleasedByForce: a run whose lock is released by force changes nothing more. The
// release needs the run's name.
func TestReleasedByForce(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	first := p.pausing()
	status, _ := p.says(app.ExitDone, "lock", "status")
	id := regexp.MustCompile(`(?m)^ *run +(\S+)$`).FindStringSubmatch(status)
	if id == nil {
		t.Fatalf("status: %s", status)
	}
	for _, args := range [][]string{{"--auto-approve"}, {"--force", "another"}, nil} {
		if _, stderr := p.says(app.ExitError, append([]string{"lock", "release"}, args...)...); stderr == "" {
			t.Errorf("%q was let through", args)
		}
	}
	if stdout, _ := p.says(app.ExitDone, "lock", "release", "--force", id[1]); !strings.Contains(stdout, "released the lock of ") {
		t.Errorf("release: %s", stdout)
	}
	first.until("it notices", first.lost)
	from := len(p.record())
	if code := first.end(); code != app.ExitIncomplete || !strings.Contains(strings.Join(first.said, ""), "released with --force") {
		t.Errorf("exit code %d:\n%s", code, strings.Join(first.said, ""))
	}
	if why := lastOf(t, filepath.Join(p.dir, "world")).End.Stopped; why != "the lock is lost: it was released with --force" {
		t.Errorf("it was stopped, by its record, because of %q", why)
	}
	if w := p.writes(from); len(w) > 0 {
		t.Errorf("it changed\n%s", strings.Join(w, ""))
	}
}

// lost reports whether the process has logged that it lost the lock.
func (a *pausing) lost() bool {
	logs, _ := filepath.Glob(filepath.Join(a.dir, "world", "logs", "*-apply-*.log"))
	return slices.ContainsFunc(logs, func(name string) bool {
		text, err := os.ReadFile(name)
		return err == nil && strings.Contains(string(text), "lock lost")
	})
}
