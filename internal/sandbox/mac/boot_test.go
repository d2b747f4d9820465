package mac

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

// TestBootOrder checks what a restart loses, keeps and starts.
func TestBootOrder(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	scriptJob(t, m, "b", atLoad, "echo b >>/tmp/order; sysctl -n kern.boottime | cut -d , -f 1 >/tmp/boottime")
	scriptJob(t, m, "a", atLoad, "echo a >>/tmp/order")
	scriptJob(t, m, "idle", "", "echo idle >>/tmp/order")
	daemonJob(t, m, "up", alwaysUp)
	put(t, m, "/Library/LaunchDaemons/bad.plist", "<plist>", 0, 0o644)
	put(t, m, "/Library/LaunchDaemons/open.plist", plistOf("open", atLoad, "/usr/bin/true"), 0, 0o666)
	put(t, m, "/Library/LaunchDaemons/notes.txt", plistOf("notes", atLoad, "/usr/bin/true"), 0, 0o644)
	put(t, m, "/tmp/hand.plist", plistOf("hand", alwaysUp, "/usr/local/bin/upd"), 0, 0o644)
	must(t, m, "root", "launchctl bootstrap system /tmp/hand.plist; launchctl disable system/idle; launchctl bootout system/com.openssh.sshd")
	before := must(t, m, "root", "sysctl -n kern.boottime; touch /tmp/kept")
	ok(t, m.asRoot(func(v *visit, _ *proc) error { return v.keep(inMemory("x"), 1) }))
	advance(t, m, 26*time.Hour+5*time.Minute)
	expect(t, m, "m1", row{script: "uptime | cut -d ' ' -f 3-7", stdout: "up 1 day, 2:05, 0\n"})
	ok(t, m.Reboot(t.Context()))
	expect(t, m, "root", row{script: "cat /tmp/order; ls /tmp/kept; launchctl list | cut -f 3; launchctl print system/com.openssh.sshd | grep state; launchctl print system/com.apple.pfctl | grep -E 'runs|last exit'",
		stdout: "a\nb\n/tmp/kept\nLabel\na\nb\ncom.apple.backgroundtaskmanagementd\ncom.apple.loginwindow\ncom.apple.pfctl\ncom.openssh.sshd\nup\n\tstate = not running\n\truns = 1\n\tlast exit code = 0\n"})
	after := must(t, m, "root", "sysctl -n kern.boottime")
	if after == before || !strings.HasPrefix(after, strings.TrimSpace(must(t, m, "root", "cat /tmp/boottime"))) {
		t.Errorf("started %s, before %s", after, before)
	}
	if data, err := m.remembers(inMemory("x")); data != nil || err != nil {
		t.Errorf("memory after a restart: %s, %v", data, err)
	}
	expect(t, m, "m1", row{script: "uptime | grep -c ' up [0-9]* secs, 0 users, load averages: '", stdout: "1\n"})
}

func TestRestartTools(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	daemonJob(t, m, "acme", atLoad)
	expect(t, m, "m1", row{script: "shutdown -r now", stderr: "shutdown: NOT super-user\n", exit: 1})
	expect(t, m, "m1", row{script: "reboot", stderr: "reboot: Operation not permitted\n", exit: 1})
	expect(t, m, "root", row{script: "shutdown -h now", stderr: "shutdown: option not modelled: -h now\n", exit: 64})
	for _, script := range []string{"reboot", "shutdown -r now"} {
		before := must(t, m, "root", "sysctl -n kern.boottime")
		// The script that requests it is killed, also one with sudo in between.
		_, _, exit := run(t, m, "m1", "sudo -n "+script+"; echo x >/tmp/after")
		equal(t, exit, exitTerminated, script, "exit")
		advance(t, m, time.Second)
		if after := must(t, m, "root", "[ ! -e /tmp/after ] && sysctl -n kern.boottime"); after == before {
			t.Errorf("%s: the machine is still up", script)
		}
	}
}

// TestRestartTakesTime checks that the machine does not answer until it is up.
func TestRestartTakesTime(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	setSwitch(t, m, bootTimeSwitch, "90s")
	ok(t, m.Reboot(t.Context()))
	advance(t, m, 80*time.Second)
	if err := m.Settle(t.Context()); !errors.Is(err, ErrDown) {
		t.Errorf("Settle: %v", err)
	}
	if _, err := m.Run(t.Context(), "root", "true"); !errors.Is(err, ErrDown) {
		t.Errorf("Run: %v", err)
	}
	advance(t, m, 10*time.Second)
	must(t, m, "root", "true")
}

// TestRestartEndsConnections checks that connections of this process break at once, whatever runs
// there, and those of another one at their next command.
func TestRestartEndsConnections(t *testing.T) {
	t.Parallel()
	key := newKey(t)
	m := newMachine(t, func(f *Factory) { f.AuthorizedKeys = []string{authorized(key)} })
	other, err := Open(m.dir)
	ok(t, err)
	near, err := dial(t, m, "m1", key, &events{})
	ok(t, err)
	far, err := dial(t, other, "m1", key, &events{})
	ok(t, err)
	busy, err := near.NewSession()
	ok(t, err)
	ok(t, busy.Start("sleep 1000"))
	if got, _, _ := exec(t, far, "echo hi", ""); got != "hi\n" {
		t.Errorf("before: %q", got)
	}
	ok(t, m.Reboot(t.Context()))
	var missing *ssh.ExitMissingError
	if err := busy.Wait(); !errors.As(err, &missing) {
		t.Errorf("a running command: %v", err)
	}
	last, err := far.NewSession()
	ok(t, err)
	var out bytes.Buffer
	last.Stdout = &out
	if err := last.Run("echo hi"); err == nil || out.Len() > 0 {
		t.Errorf("over a connection from before: %q, %v", out.String(), err)
	}
}

// TestRestartThatIsNoted checks that a restart ends what still runs, even if the process that
// requested it did not.
func TestRestartThatIsNoted(t *testing.T) {
	t.Parallel()
	m, client := login(t, &events{})
	ok(t, m.asRoot(func(v *visit, _ *proc) error { return v.shutDown() }))
	ok(t, m.Settle(t.Context()))
	if err := client.Wait(); err == nil {
		t.Error("the connection ended cleanly")
	}
	must(t, m, "root", "true")
}

// TestBrokenBackgroundItems checks a database that its daemon cannot read.
func TestBrokenBackgroundItems(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	daemonJob(t, m, "acme", atLoad)
	expect(t, m, "root", row{script: "sfltool dumpbtm | grep -E 'Name|Type|Identifier: a|URL|Path'", stdout: `                 Name: acmed
       Developer Name: (null)
                 Type: legacy daemon (0x10010)
           Identifier: acme
                  URL: file:///Library/LaunchDaemons/acme.plist
      Executable Path: /usr/local/bin/acmed
`})
	ok(t, m.BreakBackgroundItems())
	expect(t, m, "root", row{script: "sfltool dumpbtm", stderr: "sfltool: backgroundtaskmanagementd does not answer\n", exit: 1})
	must(t, m, "root", "launchctl bootstrap system /Library/LaunchDaemons/acme.plist") // loaded by hand it works
	for _, c := range []struct {
		script string
		exit   int
	}{{"true", 113}, {"mv /var/db/com.apple.backgroundtaskmanagement/BackgroundItems-v16.btm /tmp", 0}} {
		must(t, m, "root", c.script)
		ok(t, m.Reboot(t.Context()))
		expect(t, m, "root", row{script: "launchctl print system/acme >/dev/null 2>&1", exit: c.exit})
	}
}

func TestClock(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	seconds := func() time.Time {
		t.Helper()
		at, err := time.Parse("2006-01-02T15:04:05\n", must(t, m, "m1", "date -u +%Y-%m-%dT%H:%M:%S"))
		ok(t, err)
		return at
	}
	before := seconds()
	advance(t, m, 36*time.Hour)
	advance(t, m, 36*time.Hour)
	if d := seconds().Sub(before); d < 72*time.Hour || d > 73*time.Hour {
		t.Errorf("the clock moved by %s", d)
	}
	if err := m.Advance(-time.Second); err == nil {
		t.Error("the clock moved back")
	}
	// Nothing is loaded, so reading the machine leaves nothing behind.
	ok(t, m.Settle(t.Context()))
	if held, err := m.pending(); held != nil || err != nil {
		t.Errorf("pending: %v, %v", held, err)
	}
}

// TestJobsThatRestart checks that a job may restart the machine, and that with one that does so at
// every start the machine stays down, but a read of it returns.
func TestJobsThatRestart(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	scriptJob(t, m, "once", atLoad, "[ -e /tmp/once ] && exit 0; touch /tmp/once; shutdown -r now; touch /tmp/never")
	before := must(t, m, "root", "sysctl -n kern.boottime")
	ok(t, m.Reboot(t.Context()))
	advance(t, m, time.Second)
	expect(t, m, "root", row{script: "ls /tmp; launchctl print system/once | grep runs", stdout: "once\n\truns = 1\n"})
	if after := must(t, m, "root", "sysctl -n kern.boottime"); after == before {
		t.Error("the machine is still up")
	}
	scriptJob(t, m, "always", atLoad, "reboot")
	ok(t, m.Reboot(t.Context()))
	if _, err := m.Run(t.Context(), "root", "true"); !errors.Is(err, ErrDown) {
		t.Errorf("Run: %v", err)
	}
	ok(t, m.Remove("/Library/LaunchDaemons/always.plist"))
	advance(t, m, time.Second)
	must(t, m, "root", "true")
}
