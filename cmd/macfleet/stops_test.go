package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/macfleet/macfleet/internal/app"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/runlog"
)

// patience limits how long a macfleet runs that tests signal. None needs a minute.
const patience = 5 * time.Minute

// process is a separate macfleet, whose lines are read as they are printed.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	out    *bufio.Reader
	stderr bytes.Buffer
	said   strings.Builder
}

// started starts a macfleet on three plain fleets.
func started(t *testing.T, world string, args ...string) *process {
	t.Helper()
	return startedIn(t, nil, append([]string{"-C", "testdata/plain", "-e", "production", "--sandbox=" + world}, args...)...)
}

// startedIn starts a macfleet with additional environment variables.
func startedIn(t *testing.T, environ []string, args ...string) *process {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel) // it has ended, unless the test failed
	p := &process{t: t, cmd: exec.CommandContext(ctx, self)}
	p.cmd.Args = append([]string{"macfleet"}, args...)
	p.cmd.Env = append(os.Environ(), environ...)
	p.cmd.Stderr = &p.stderr
	out, err := p.cmd.StdoutPipe()
	must(t, err)
	p.out = bufio.NewReader(out)
	must(t, p.cmd.Start())
	return p
}

// until reads up to a line that contains a text.
func (p *process) until(text string) {
	p.t.Helper()
	for {
		line, err := p.out.ReadString('\n')
		p.said.WriteString(line)
		if strings.Contains(line, text) {
			return
		}
		if err != nil {
			p.t.Fatalf("it ended without %q:\n%s\n%s", text, p.said.String(), p.stderr.String())
		}
	}
}

func (p *process) signal(s os.Signal) {
	p.t.Helper()
	must(p.t, p.cmd.Process.Signal(s))
}

// end waits for the end, and returns the exit code and the whole output.
func (p *process) end() (int, string) {
	p.t.Helper()
	rest, err := io.ReadAll(p.out)
	must(p.t, err)
	p.said.Write(rest)
	var exit *exec.ExitError
	if err := p.cmd.Wait(); err != nil && !errors.As(err, &exit) {
		p.t.Fatal(err)
	}
	return p.cmd.ProcessState.ExitCode(), p.said.String() + p.stderr.String()
}

func matches(t *testing.T, text, pattern string) {
	t.Helper()
	if !regexp.MustCompile("(?m)" + pattern).MatchString(text) {
		t.Errorf("nothing matches %s in:\n%s", pattern, text)
	}
}

// lastOf reads the newest record of a world.
func lastOf(t *testing.T, world string) runlog.Record {
	t.Helper()
	path, err := runlog.Find(filepath.Join(world, "runs"), runlog.Last)
	must(t, err)
	r, err := runlog.Read(path)
	must(t, err)
	return r
}

// TestFirstStop: running actions are finished, and the rest is listed with the command that
// resumes. That holds for Ctrl-C, for the end of a job, and for a closed terminal, which
// sends its signal twice.
func TestFirstStop(t *testing.T) {
	t.Parallel()
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(s.String(), func(t *testing.T) {
			t.Parallel()
			world := t.TempDir()
			p := started(t, world, "apply", "--auto-approve", "--parallelism=1", "--verbose")
			p.until(" done (") // an action, as --verbose prints them
			p.signal(s)
			if s == syscall.SIGHUP {
				p.signal(s)
			}
			code, said := p.end()
			equal(t, code, app.ExitIncomplete, "exit", said)
			matches(t, said, `^Interrupted: finishing what runs`)
			matches(t, said, `^Interrupted: \d+ hosts? not `)
			matches(t, said, `builders/\w+: not started: sudo, claim, marker, hostname, power$`)
			matches(t, said, `^To resume: macfleet -C \S+ -e production --sandbox=\S+ apply --auto-approve --parallelism=1 --verbose$`)
			r := lastOf(t, world)
			if r.Outcome() != runlog.Incomplete || r.End.Stopped != "interrupted" || r.End.NotStarted == 0 || len(r.Open()) != 0 {
				t.Errorf("recorded as %q, %+v, open %v", r.Outcome(), r.End, r.Open())
			}
		})
	}
}

// TestInterrupted: the next plan reports a killed run and its unfinished actions, and the next
// apply resumes there.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	world := t.TempDir()
	p := started(t, world, "apply", "--auto-approve", "--parallelism=3", "--lock-lease=3s", "--verbose") // a short lease, so the next apply does not wait long
	p.until(" done (")                                                                                   // an action, as --verbose prints them
	p.signal(syscall.SIGKILL)
	_, _ = p.end()
	r := lastOf(t, world)
	if r.Outcome() != runlog.BrokeOff {
		t.Fatalf("recorded as %q", r.Outcome())
	}
	_, said := started(t, world, "runs").end()
	matches(t, said, ` apply production +interrupted +-$`)
	_, said = started(t, world, "plan").end()
	matches(t, said, `^Warning: run `+r.Head.ID+` of \S+ was interrupted at .* UTC, (during acme-production-\S+: \w+|between two actions)`)
	code, said := started(t, world, "apply", "--auto-approve").end()
	equal(t, code, app.ExitDone, "exit")
	matches(t, said, `^Warning: run `+r.Head.ID)
	code, said = started(t, world, "plan", "--detailed-exitcode").end()
	if code != app.ExitDone || strings.Contains(said, "Warning") {
		t.Errorf("exit %d:\n%s", code, said)
	}
	keptLimits(t, lastOf(t, world), 32)
}

// TestStopWhileReading: the first Ctrl-C ends a command that waits for the end of a pipe, and says which.
func TestStopWhileReading(t *testing.T) {
	t.Parallel()
	world := t.TempDir()
	const nothing = `^Error: interrupted while waiting for the end of \S+/pipe; nothing was changed$`
	simulated := "--sandbox=" + world
	for _, c := range []struct {
		name          string
		environ, args []string // PIPE stands for the pipe
		says          string
	}{
		{"plan file", nil, []string{simulated, "apply", "PIPE"}, nothing},
		{"variables", nil, []string{simulated, "validate", "--var-file", "PIPE"}, nothing},
		{"observation", nil, []string{simulated, "plan", "--snapshot", "PIPE"}, nothing},
		{"kubeconfig", []string{"KUBECONFIG=PIPE", "SCW_ACCESS_KEY=SCWXXXXXXXXXXXXXXXXX", "SCW_SECRET_KEY=5eed0000-0000-4000-8000-000000000001"},
			[]string{"plan", "--log-level", "off"}, `^Error: interrupted: stopped waiting for the kubeconfig$`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			pipe := filepath.Join(t.TempDir(), "pipe")
			must(t, syscall.Mkfifo(pipe, 0o600))
			for _, words := range [][]string{c.environ, c.args} {
				for i := range words {
					words[i] = strings.Replace(words[i], "PIPE", pipe, 1)
				}
			}
			p := startedIn(t, c.environ, append([]string{"-C", "testdata/plain", "-e", "production"}, c.args...)...)
			w, err := os.OpenFile(pipe, os.O_WRONLY, 0) // once macfleet reads it
			must(t, err)
			defer w.Close()
			p.signal(os.Interrupt)
			code, said := p.end()
			equal(t, code, app.ExitError, "exit")
			matches(t, said, c.says)
		})
	}
}

// TestTakeOver: without a cluster hosts store the lock of a run. The next run on the same machine takes it from a killed
// run, but not from a run of another machine or boot.
func TestTakeOver(t *testing.T) {
	t.Parallel()
	world := t.TempDir()
	hostCore := func(args ...string) *process {
		return startedIn(t, nil, append([]string{"-C", "../../examples/host-core", "--sandbox=" + world}, args...)...)
	}
	p := hostCore("apply", "--auto-approve", "--parallelism=1", "--verbose")
	p.until(" done (") // an action, as --verbose prints them
	p.signal(syscall.SIGKILL)
	_, _ = p.end()
	r := lastOf(t, world)
	boot := `"boot":"` + r.Head.Boot + `"`
	other := func(from, to string) {
		text, err := os.ReadFile(r.Path)
		if err == nil {
			err = os.WriteFile(r.Path, []byte(strings.Replace(string(text), from, to, 1)), 0o600)
		}
		must(t, err)
	}
	other(boot, `"boot":"another"`)
	if code, said := hostCore("apply", "--auto-approve", "--lock-timeout=0s").end(); code == app.ExitDone || strings.Contains(said, "Taking over") {
		t.Errorf("a run of another boot: exit %d:\n%s", code, said)
	}
	other(`"boot":"another"`, boot)
	code, said := hostCore("apply", "--auto-approve").end()
	equal(t, code, app.ExitDone, "exit", said)
	matches(t, said, `^Taking over the hosts of run `+r.Head.ID+` \(\S+\): its process on this machine has ended\.$`)
}

// TestSecondStop: macfleet exits at once and lists the actions whose result is unknown.
func TestSecondStop(t *testing.T) {
	t.Parallel()
	world := t.TempDir()
	if code, said := started(t, world, "apply", "--auto-approve").end(); code != app.ExitDone {
		t.Fatalf("exit %d:\n%s", code, said)
	}
	host := lastOf(t, world).Plan.Hosts[0].Name
	for _, incident := range []string{"slow", "sleep-enabled", "hostname-edited"} {
		if code, said := started(t, world, "sandbox", "inject", host, incident).end(); code != app.ExitDone {
			t.Fatalf("exit %d:\n%s", code, said)
		}
	}
	p := started(t, world, "apply", "--auto-approve", "--json", "--on", "name="+host)
	p.until(`"type":"apply_start"`)
	p.signal(os.Interrupt)
	p.signal(syscall.SIGTERM)
	code, said := p.end()
	if code != app.ExitLeft {
		t.Fatalf("exit %d:\n%s", code, said)
	}
	matches(t, said, `aborted: these actions may be half done: `+host+`: hostname; its lock expires at \S+ UTC, .*macfleet lock release --force \w+\); macfleet plan shows what is left`)
	r := lastOf(t, world)
	if open := r.Open(); r.Outcome() != runlog.LeftAtOnce || len(open) != 1 || open[0].Host != host {
		t.Errorf("recorded as %q, open %v", r.Outcome(), open)
	}
	_, said = started(t, world, "plan").end()
	matches(t, said, `^Warning: run `+r.Head.ID+` of \S+ was aborted at .* during `+host+`: hostname`)
}

// TestParallelismIsRecorded: the record shows that the limit was always kept.
func TestParallelismIsRecorded(t *testing.T) {
	t.Parallel()
	world := t.TempDir()
	if code, said := started(t, world, "apply", "--auto-approve", "--parallelism=3").end(); code != app.ExitDone {
		t.Fatalf("exit %d:\n%s", code, said)
	}
	r := lastOf(t, world)
	if r.Head.Limits.Hosts != 3 || r.End.Done != 65 {
		t.Errorf("limits %+v, end %+v", r.Head.Limits, r.End)
	}
	keptLimits(t, r, 3)
}

// keptLimits checks a record: every start has an end, times rise, and no more hosts were
// changed at once than allowed.
func keptLimits(t *testing.T, r runlog.Record, hosts int) {
	t.Helper()
	busy, most := make(map[string]string), 0
	for i, e := range r.Entries {
		if i > 0 && e.Time.Before(r.Entries[i-1].Time) {
			t.Errorf("line %d is older than the one before", i+1)
		}
		switch engine.EventType(e.Type) {
		case engine.Started:
			equal(t, busy[e.Host], "", e.Host, e.Action.Key(), "started during")
			busy[e.Host] = e.Action.Key()
		case engine.Done, engine.Failed:
			equal(t, busy[e.Host], e.Action.Key(), e.Host, "ended during")
			delete(busy, e.Host)
		}
		most = max(most, len(busy))
	}
	if most > hosts || len(busy) != 0 {
		t.Errorf("%d hosts at once of %d allowed; %v did not end", most, hosts, busy)
	}
}
