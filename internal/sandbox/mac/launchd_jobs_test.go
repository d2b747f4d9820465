package mac

import (
	"context"
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestIntervalJobs(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	file := scriptJob(t, m, "tick", "<key>StartInterval</key><integer>60</integer>", "date +%s >>/tmp/ticks")
	must(t, m, "root", "launchctl bootstrap system "+file)
	ticks := func() int { return strings.Count(must(t, m, "root", "cat /tmp/ticks 2>/dev/null || true"), "\n") }
	if n := ticks(); n != 0 {
		t.Fatalf("%d runs at the load, want none", n)
	}
	for i, c := range []struct {
		after time.Duration
		want  int
	}{{59 * time.Second, 0}, {2 * time.Second, 1}, {58 * time.Second, 1}, {2 * time.Second, 2}, {time.Hour, 3}} {
		advance(t, m, c.after)
		equal(t, ticks(), c.want, "step", i, "runs")
	}
	advance(t, m, time.Hour)
	ok(t, m.Settle(t.Context()))
	equal(t, field(t, m, "system/tick", "runs"), "4", "runs")
	must(t, m, "root", "launchctl bootout system/tick")
	advance(t, m, time.Hour)
	equal(t, ticks(), 4, "runs after the bootout")
}

// TestJobProcess checks the environment of a job's process.
func TestJobProcess(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	show := "id -un; pwd; env | sort; echo \"[$*]\""
	files := "<key>StandardOutPath</key><string>/tmp/NAME</string>"
	for name, extra := range map[string]string{
		"rooted": "", "mine": "<key>UserName</key><string>m1</string><key>WorkingDirectory</key><string>/Users/m1</string><key>EnvironmentVariables</key><dict><key>PATH</key><string>/bin:/usr/bin</string></dict>",
		"ghost": "<key>UserName</key><string>ghost</string>", "lost": "<key>WorkingDirectory</key><string>/nowhere</string>",
	} {
		file := scriptJob(t, m, name, atLoad+strings.Replace(files, "NAME", name, 1)+extra, show)
		must(t, m, "root", "launchctl bootstrap system "+file)
	}
	expect(t, m, "root", row{script: "cat /tmp/rooted", stdout: "root\n/\nPATH=/usr/bin:/bin:/usr/sbin:/sbin\nPWD=/\nXPC_SERVICE_NAME=rooted\n[]\n"})
	expect(t, m, "root", row{script: "cat /tmp/mine", stdout: "m1\n/Users/m1\nHOME=/Users/m1\nLOGNAME=m1\nPATH=/bin:/usr/bin\nPWD=/Users/m1\nSHELL=/bin/zsh\nUSER=m1\nXPC_SERVICE_NAME=mine\n[]\n"})
	for _, name := range []string{"ghost", "lost"} {
		equal(t, field(t, m, "system/"+name, "last exit code"), "78: EX_CONFIG", name, "last exit code")
	}
	// Output that the user may not write, and files that are not programs.
	put(t, m, "/tmp/plain", "x", 0, 0o644)
	put(t, m, "/tmp/python", "#!/usr/bin/python3\n", 0, 0o755)
	for name, c := range map[string]struct{ extra, program, exit string }{
		"unwritable": {"<key>UserName</key><string>m1</string><key>StandardErrorPath</key><string>/var/log/x.log</string>", "/usr/bin/true", "78: EX_CONFIG"},
		"missing":    {"", "/usr/local/bin/nowhere", "78: EX_CONFIG"},
		"mode":       {"", "/tmp/plain", "78: EX_CONFIG"},
		"python":     {"", "/tmp/python", "126"},
		"tool":       {"", "/usr/bin/false", "1"},
		"bare":       {"", "true", "0"},
		"asleep":     {"", "/bin/sleep", "1"},
	} {
		file := "/Library/LaunchDaemons/" + name + ".plist"
		put(t, m, file, plistOf(name, atLoad+c.extra, c.program), 0, 0o644)
		must(t, m, "root", "launchctl bootstrap system "+file)
		if got := field(t, m, "system/"+name, "last exit code"); got != c.exit && name != "asleep" {
			t.Errorf("%s: last exit code = %s, want %s", name, got, c.exit)
		}
	}
}

// TestSleepingJobs checks that sleeping jobs take no real time, and are seen to sleep.
func TestSleepingJobs(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	long := scriptJob(t, m, "nap", atLoad+"<key>StandardOutPath</key><string>/tmp/nap</string>", "a=$(date +%s); sleep 100; b=$(date +%s); echo $((b - a >= 100)); exit 3")
	forever := scriptJob(t, m, "forever", alwaysUp, "while :; do echo x >>/tmp/forever; sleep 300; done")
	must(t, m, "root", "launchctl bootstrap system "+long+"; launchctl bootstrap system "+forever)
	expect(t, m, "root", row{script: "cat /tmp/nap", stdout: "1\n"})
	pid := field(t, m, "system/nap", "pid")
	if pid == "" || field(t, m, "system/nap", "last exit code") != "(never exited)" {
		t.Errorf("the job does not sleep: pid %q", pid)
	}
	advance(t, m, 101*time.Second)
	equal(t, field(t, m, "system/nap", "last exit code"), "3", "last exit code")
	advance(t, m, time.Hour)
	equal(t, field(t, m, "system/forever", "state")+" "+field(t, m, "system/forever", "runs"), "running 1", "a script without an end")
	// A program of a script that is not modelled makes the job a daemon.
	wrapper := scriptJob(t, m, "wrapper", alwaysUp, "exec /usr/local/bin/inner")
	put(t, m, "/usr/local/bin/inner", "\xcf\xfa\xed\xfe\x00", 0, 0o755)
	must(t, m, "root", "launchctl bootstrap system "+wrapper)
	equal(t, field(t, m, "system/wrapper", "state"), "running", "a wrapper: state")
}

// TestJobsThatDriveLaunchd checks that a job may call launchctl, also on itself, and that each job
// starts once.
func TestJobsThatDriveLaunchd(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	other := scriptJob(t, m, "other", atLoad, "echo other >>/tmp/log")
	for name, script := range map[string]string{
		"again":  "echo again >>/tmp/log; launchctl kickstart -k system/again; echo status $? >>/tmp/log",
		"leaves": "echo leaves >>/tmp/log; launchctl bootout system/leaves; echo never >>/tmp/log",
		"loads":  "echo loads >>/tmp/log; launchctl bootstrap system " + other + "; launchctl print system/loads | grep -q running && echo seen >>/tmp/log",
	} {
		file := scriptJob(t, m, name, atLoad, script)
		must(t, m, "root", "launchctl bootstrap system "+file)
		if name == "leaves" {
			expect(t, m, "root", row{script: "launchctl print system/leaves 2>/dev/null", exit: 113})
		}
	}
	got := strings.Fields(must(t, m, "root", "launchctl bootout system/again; sort /tmp/log"))
	counts := map[string]int{}
	for _, word := range got {
		counts[word]++
	}
	if counts["other"] != 1 || counts["leaves"] != 1 || counts["loads"] != 1 || counts["seen"] != 1 || counts["never"] != 0 || counts["status"] != 0 || counts["again"] < 1 {
		t.Errorf("log: %v", counts)
	}
}

// TestJobsOfTheSession checks the agents of the user at the screen.
func TestJobsOfTheSession(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	put(t, m, "/Users/m1/Library/LaunchAgents/mine.plist", plistOf("mine", atLoad, "/usr/bin/tee", "-a", "/Users/m1/log"), 501, 0o644)
	put(t, m, "/Library/LaunchAgents/all.plist", plistOf("all", atLoad+"<key>StandardOutPath</key><string>/tmp/all</string>", "/usr/bin/id", "-un"), 0, 0o644)
	put(t, m, "/Library/LaunchAgents/background.plist", plistOf("background", "<key>LimitLoadToSessionType</key><string>Background</string>", "/usr/bin/true"), 0, 0o644)
	put(t, m, "/Users/m1/Library/LaunchAgents/stranger.plist", plistOf("stranger", "", "/usr/bin/true"), 1, 0o644)
	logIn := func() {
		t.Helper()
		if err := m.asRoot(func(v *visit, _ *proc) error {
			if err := v.setConsole(console{User: "m1", Since: v.session.now()}); err != nil {
				return err
			}
			return v.startAgents(v.session.loginUser())
		}); err != nil {
			t.Fatal(err)
		}
	}
	logIn()
	expect(t, m, "root", row{script: "cat /tmp/all; stat -f %Su /Users/m1/log", stdout: "m1\nm1\n"})
	expect(t, m, "m1", row{script: `launchctl print gui/501 | grep -c -E "session = Aqua|mine|all|background|stranger"`, stdout: "3\n"})
	expect(t, m, "m1", row{script: "launchctl list", stdout: "PID\tStatus\tLabel\n"}) // the background domain
	must(t, m, "m1", "launchctl bootout gui/501/mine && launchctl bootstrap gui/501 Library/LaunchAgents/mine.plist && launchctl kickstart gui/501/mine")
	expect(t, m, "m1", row{script: "launchctl bootstrap user/501 Library/LaunchAgents/mine.plist", exit: 134, stderr: "Bootstrap failed: 134: Service cannot load in requested session\n"})
	must(t, m, "m1", "launchctl bootstrap user/501 /Library/LaunchAgents/background.plist && launchctl list | grep -q background")
	ok(t, m.asRoot(func(v *visit, _ *proc) error { return v.endSession(loginUID) }))
	expect(t, m, "root", row{script: "launchctl print gui/501/mine 2>/dev/null", exit: 113})
}

func TestProcesses(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	file := daemonJob(t, m, "acme", alwaysUp+"<key>UserName</key><string>m1</string>")
	must(t, m, "root", "launchctl bootstrap system "+file)
	advance(t, m, 3*time.Hour)
	check := []row{
		{script: "pgrep -x loginwindow; pgrep -x acmed; pgrep -lf 'acmed --fl'; pgrep -u m1 acme; pgrep -x acme", stdout: "164\n601\n601 /usr/local/bin/acmed --flag\n601\n", exit: 1},
		{script: "pgrep -q WindowServer"},
		{script: "ps -axo pid=,comm= | grep -v System", stdout: "    1 /sbin/launchd\n  601 /usr/local/bin/acmed\n"},
		{script: "ps -p 601 -o pid,user,command", stdout: "  PID USER  COMMAND\n  601 m1    /usr/local/bin/acmed --flag\n"},
		{script: "ps -p 601 -o etime= | cut -c 1-4", stdout: "03:0\n"},
		{script: "ps -p 99999 -o pid=", exit: 1},
		{script: "ps aux", stderr: "ps: option not modelled: aux\n", exit: 64},
		{script: "ps -ax", stderr: "ps: option not modelled: ps without -o\n", exit: 64},
		{script: "pgrep", stderr: "usage: pgrep [-flqx] [-u euid,...] pattern ...\n", exit: 2},
	}
	for _, want := range check {
		expect(t, m, "m1", want)
	}
}

// TestJobsOfTwoProcesses reads one machine in two processes and many goroutines: each run of a job
// happens once, and none is lost.
func TestJobsOfTwoProcesses(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	scriptJob(t, m, "count", "", "n=$(cat /tmp/n 2>/dev/null); echo $((n + 1)) >/tmp/n")
	must(t, m, "root", "launchctl bootstrap system /Library/LaunchDaemons/count.plist")
	var wg sync.WaitGroup
	wg.Go(func() {
		other := osexec.CommandContext(t.Context(), os.Args[0])
		other.Env = append(os.Environ(), otherProcess+"="+filepath.Dir(m.Root()), otherWork+"=kick")
		if out, err := other.CombinedOutput(); err != nil {
			t.Errorf("the other process: %v\n%s", err, out)
		}
	})
	for range 2 {
		wg.Go(func() {
			if err := kickOften(t.Context(), m); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	ok(t, m.Settle(t.Context()))
	runs := field(t, m, "system/count", "runs")
	equal(t, strings.TrimSpace(must(t, m, "root", "cat /tmp/n")), runs, "runs, counted and reported")
}

// otherWork returns the task of the test's other process.
const otherWork = "MACFLEET_TEST_WORK"

func kickOften(ctx context.Context, m *Machine) error {
	for range rounds {
		r, err := m.Run(ctx, "root", "launchctl kickstart system/count")
		if err != nil || r.Exit != 0 {
			return fmt.Errorf("exit %d, %s, %w", r.Exit, r.Stderr, err)
		}
	}
	return nil
}

// TestRunnerDied interrupts a read of the machine while it runs a job.
func TestRunnerDied(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	file := scriptJob(t, m, "acme", alwaysUp, "echo x >>/tmp/x")
	must(t, m, "root", "launchctl bootstrap system "+file)
	if err := m.changeJob("system/acme", func(j *job, now time.Time) {
		j.PID, j.Busy, j.Started, j.Due, j.Ends = 999, true, now, time.Time{}, time.Time{}
	}); err != nil {
		t.Fatal(err)
	}
	equal(t, field(t, m, "system/acme", "last terminating signal"), "Killed: 9", "last terminating signal")
	advance(t, m, 11*time.Second)
	if got := must(t, m, "root", "wc -l </tmp/x"); strings.TrimSpace(got) != "2" {
		t.Errorf("%s runs", got)
	}
}

// TestAJobReplacesAnother: a job that takes another one out of launchd and waits until its label is free sees that happen, and
// loads it again.
func TestAJobReplacesAnother(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	other := scriptJob(t, m, "other", alwaysUp, "sleep 100000")
	must(t, m, "root", "launchctl bootstrap system "+other)
	file := scriptJob(t, m, "replaces", atLoad+"<key>StandardOutPath</key><string>/tmp/said</string>",
		"launchctl bootout system/other; i=0; while launchctl print system/other >/dev/null 2>&1; do i=$((i + 1)); [ $i -lt 31 ] || exit 9; sleep 1; done; launchctl bootstrap system "+other+"; echo loaded $?")
	must(t, m, "root", "launchctl bootstrap system "+file)
	expect(t, m, "root", row{script: "cat /tmp/said", stdout: "loaded 0\n"})
	if pid := field(t, m, "system/other", "pid"); pid == "" {
		t.Error("the other job does not run")
	}
}
