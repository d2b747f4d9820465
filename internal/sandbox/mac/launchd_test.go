package mac

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"
)

// plistOf returns a job's property list: its label, its program with arguments, and other keys.
func plistOf(label, rest string, args ...string) string {
	var b strings.Builder
	b.WriteString("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<plist version=\"1.0\"><dict><key>Label</key><string>" + label + "</string><key>ProgramArguments</key><array>")
	for _, arg := range args {
		b.WriteString("<string>" + strings.NewReplacer("&", "&amp;", "<", "&lt;").Replace(arg) + "</string>")
	}
	return b.String() + "</array>" + rest + "</dict></plist>\n"
}

const (
	atLoad   = "<key>RunAtLoad</key><true/>"
	alwaysUp = "<key>KeepAlive</key><true/>"
)

func put(t testing.TB, m *Machine, name, data string, uid int, mode uint32) {
	t.Helper()
	gid := 0
	if uid != 0 {
		gid = staff
	}
	ok(t, m.WriteFile(name, []byte(data), uid, gid, fs.FileMode(mode)))
}

// daemonJob adds a job whose program is a daemon to a machine, with its file.
func daemonJob(t testing.TB, m *Machine, label, rest string) (file string) {
	t.Helper()
	put(t, m, "/usr/local/bin/"+label+"d", "\xcf\xfa\xed\xfe\x00 a program", 0, 0o755)
	file = "/Library/LaunchDaemons/" + label + ".plist"
	put(t, m, file, plistOf(label, rest, "/usr/local/bin/"+label+"d", "--flag"), 0, 0o644)
	return file
}

// scriptJob adds a job that runs a shell script to a machine.
func scriptJob(t testing.TB, m *Machine, label, rest, script string) (file string) {
	t.Helper()
	put(t, m, "/usr/local/bin/"+label, "#!/bin/sh\n"+script+"\n", 0, 0o755)
	file = "/Library/LaunchDaemons/" + label + ".plist"
	put(t, m, file, plistOf(label, rest, "/usr/local/bin/"+label), 0, 0o644)
	return file
}

func advance(t testing.TB, m *Machine, d time.Duration) {
	t.Helper()
	ok(t, m.Advance(d))
}

func setSwitch(t testing.TB, m *Machine, name, value string) {
	t.Helper()
	ok(t, m.SetSwitch(name, value))
}

func expect(t testing.TB, m *Machine, who string, want row) {
	t.Helper()
	stdout, stderr, exit := run(t, m, who, want.script)
	if got := (row{want.script, stdout, stderr, exit}); got != want {
		t.Errorf("%s\n got exit %d, stdout %q, stderr %q\nwant exit %d, stdout %q, stderr %q", want.script, exit, stdout, stderr, want.exit, want.stdout, want.stderr)
	}
}

// field returns a line of launchctl print.
func field(t testing.TB, m *Machine, target, key string) string {
	t.Helper()
	stdout, _, _ := run(t, m, "root", "launchctl print "+target)
	for line := range strings.Lines(stdout) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), key+" = "); ok {
			return value
		}
	}
	return ""
}

func TestJobPage(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	daemonJob(t, m, "acme", atLoad+alwaysUp+"<key>UserName</key><string>m1</string><key>StandardOutPath</key><string>/tmp/out</string><key>EnvironmentVariables</key><dict><key>A</key><string>1</string></dict>")
	must(t, m, "root", "launchctl bootstrap system /Library/LaunchDaemons/acme.plist")
	got := must(t, m, "m1", "launchctl print system/acme")
	want := `system/acme = {
	active count = 1
	path = /Library/LaunchDaemons/acme.plist
	type = LaunchDaemon
	state = running

	program = /usr/local/bin/acmed
	arguments = {
		/usr/local/bin/acmed
		--flag
	}

	stdout path = /tmp/out
	default environment = {
		PATH => /usr/bin:/bin:/usr/sbin:/sbin
	}

	environment = {
		A => 1
		XPC_SERVICE_NAME => acme
	}

	domain = system
	username = m1
	minimum runtime = 10
	exit timeout = 5
	runs = 1
	pid = 601
	immediate reason = speculative
	forks = 0
	execs = 1
	last exit code = (never exited)

	spawn type = daemon (3)
	jetsam priority = 40
	job state = running
	properties = keepalive | runatload | inferred program | managed LWCR | has LWCR
}
`
	equal(t, got, want)
	expect(t, m, "root", row{script: "stat -f '%Su %Lp' /tmp/out", stdout: "m1 644\n"})
}

func TestBootstrapCodes(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	file := daemonJob(t, m, "acme", atLoad)
	put(t, m, "/tmp/bad.plist", "<plist><dict>", 0, 0o644)
	put(t, m, "/tmp/none.plist", plistOf("none", ""), 0, 0o644)
	put(t, m, "/tmp/mine.plist", plistOf("mine", "", "/bin/echo"), 501, 0o644)
	put(t, m, "/tmp/open.plist", plistOf("open", "", "/bin/echo"), 0, 0o664)
	put(t, m, "/tmp/tight.plist", plistOf("tight", "", "/bin/echo"), 0, 0o700)
	put(t, m, "/tmp/calendar.plist", plistOf("calendar", "<key>StartCalendarInterval</key><dict/>", "/bin/echo"), 0, 0o644)
	const failed = "Bootstrap failed: 5: Input/output error\n"
	for _, c := range []struct {
		who string
		row
	}{
		{"root", row{script: "launchctl bootstrap system " + file}},
		{"root", row{script: "launchctl bootstrap system " + file, stderr: failed, exit: 5}},
		{"m1", row{script: "launchctl bootstrap system " + file, stderr: failed + "Try re-running the command as root for richer errors.\n", exit: 5}},
		{"root", row{script: "launchctl bootstrap system /tmp/bad.plist", stderr: failed, exit: 5}},
		{"root", row{script: "launchctl bootstrap system /tmp/none.plist", stderr: failed, exit: 5}},
		{"root", row{script: "launchctl bootstrap system /tmp/missing.plist", stderr: failed, exit: 5}},
		{"root", row{script: "launchctl bootstrap system /tmp/mine.plist", stderr: failed, exit: 5}},
		{"root", row{script: "launchctl bootstrap system /tmp/open.plist", stderr: failed, exit: 5}},
		{"root", row{script: "cd /tmp; launchctl bootstrap system tight.plist"}},
		{"root", row{script: "launchctl bootstrap system /tmp/calendar.plist", stderr: "launchctl: not modelled: StartCalendarInterval\n", exit: 64}},
		{"root", row{script: "launchctl print system/calendar >/dev/null 2>&1", exit: 113}},
		{"root", row{script: "launchctl bootstrap gui/501 " + file, stderr: "Bootstrap failed: 113: Could not find specified service\n", exit: 113}},
		{"m1", row{script: "launchctl bootstrap user/501 /tmp/mine.plist", stderr: "Bootstrap failed: 134: Service cannot load in requested session\n", exit: 134}},
		{"root", row{script: "launchctl bootout system/unknown", stderr: "Boot-out failed: 3: No such process\n", exit: 3}},
		{"root", row{script: "launchctl bootout system /tmp/mine.plist", stderr: "Boot-out failed: 5: Input/output error\n", exit: 5}},
		{"m1", row{script: "launchctl bootout system/acme", stderr: "Boot-out failed: 1: Operation not permitted\n", exit: 1}},
		{"root", row{script: "launchctl kickstart system/unknown", stderr: "Could not find service \"unknown\" in domain for system\n", exit: 113}},
		{"root", row{script: "launchctl print system/unknown", stderr: "Bad request.\nCould not find service \"unknown\" in domain for system\n", exit: 113}},
		{"root", row{script: "launchctl print gui/501", stderr: "Bad request.\nCould not find domain for user gui: 501\n", exit: 113}},
		{"root", row{script: "launchctl print gui/501/x", stderr: "Bad request.\nCould not find service \"x\" in domain for user gui: 501\n", exit: 113}},
		{"m1", row{script: "launchctl print user/501 | grep session", stdout: "\tsession = Background\n"}},
		{"m1", row{script: "launchctl list", stdout: "PID\tStatus\tLabel\n"}},
		{"root", row{script: "launchctl list unknown", stderr: "Could not find service \"unknown\" in domain for system\n", exit: 113}},
		{"m1", row{script: "launchctl error 5; launchctl error 0x71", stdout: "5: Input/output error\n113: Could not find specified service\n"}},
		{"m1", row{script: "launchctl asuser 501 true", stderr: "launchctl: option not modelled: asuser\n", exit: 64}},
		{"root", row{script: "launchctl load " + file, stderr: "Load failed: 5: Input/output error\nTry running `launchctl bootstrap` as root for richer errors.\n"}},
		{"root", row{script: "launchctl unload /tmp/missing.plist", stderr: "Unload failed: 5: Input/output error\nTry running `launchctl bootout` as root for richer errors.\n"}},
	} {
		expect(t, m, c.who, c.row)
	}
}

// TestSwitches checks that each switch changes what it describes.
func TestLaunchdSwitches(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	file := daemonJob(t, m, "acme", atLoad)
	put(t, m, "/tmp/mine.plist", plistOf("mine", "", "/bin/echo"), 501, 0o644)
	set := func(name, value string) { t.Helper(); setSwitch(t, m, name, value) }
	set(noSessionSwitch, "112")
	expect(t, m, "root", row{script: "launchctl print gui/501/x", stderr: "Bad request.\nCould not find domain for user gui: 501\n", exit: 112})
	set(noSessionSwitch, "125")
	expect(t, m, "root", row{script: "launchctl print gui/501", stderr: "Could not print domain: 125: Domain does not support specified action\n", exit: 125})
	expect(t, m, "root", row{script: "launchctl bootstrap gui/501 " + file, stderr: "Bootstrap failed: 125: Domain does not support specified action\n", exit: 125})
	expect(t, m, "root", row{script: "launchctl kickstart gui/501/x", stderr: "Could not kickstart service \"x\": 125: Domain does not support specified action\n", exit: 125})
	set(badRequestSwitch, "no")
	expect(t, m, "root", row{script: "launchctl print system/x", stderr: "Could not find service \"x\" in domain for system\n", exit: 113})
	set(ownerSwitch, "122")
	expect(t, m, "root", row{script: "launchctl bootstrap system /tmp/mine.plist", stderr: "Bootstrap failed: 122: Path had bad ownership/permissions\n", exit: 122})
	set(disabledSwitch, "119")
	expect(t, m, "root", row{script: "launchctl disable system/acme; launchctl bootstrap system " + file, stderr: "Bootstrap failed: 119: Service is disabled\n", exit: 119})
	set(overridesSwitch, "booleans")
	expect(t, m, "root", row{script: "launchctl print-disabled system | grep acme", stdout: "\t\t\"acme\" => true\n"})
	set(legacySwitch, "code")
	expect(t, m, "root", row{script: "launchctl load " + file, stderr: "Load failed: 119: Service is disabled\nTry running `launchctl bootstrap` as root for richer errors.\n", exit: 119})
	expect(t, m, "root", row{script: "launchctl load -w " + file})
	set(kickSwitch, "keeps")
	expect(t, m, "root", row{script: "a=$(launchctl kickstart -p system/acme); launchctl kickstart -k system/acme; [ \"$a\" = \"$(launchctl kickstart -p system/acme)\" ]"})
	set(protectedSwitch, "150")
	expect(t, m, "root", row{script: "launchctl kickstart -k system/com.apple.loginwindow", exit: 150,
		stderr: "Could not kickstart service \"com.apple.loginwindow\": 150: Operation not permitted while System Integrity Protection is engaged\n"})
	set(bootoutSwitch, "36")
	expect(t, m, "root", row{script: "launchctl bootout system/acme", stderr: "Boot-out failed: 36: Operation now in progress\n", exit: 36})
	set(drainCodeSwitch, "37")
	expect(t, m, "root", row{script: "launchctl bootstrap system " + file, stderr: "Bootstrap failed: 37: Operation already in progress\n", exit: 37})
}

// TestDraining is the race that leaves a job unloaded: a label is free only after its process has
// exited.
func TestDraining(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	file := daemonJob(t, m, "acme", atLoad+alwaysUp)
	idle := scriptJob(t, m, "idle", "", "true")
	must(t, m, "root", "launchctl bootstrap system "+file+"; launchctl bootstrap system "+idle)
	before := field(t, m, "system/acme", "pid")
	must(t, m, "root", "launchctl bootout system/acme")
	equal(t, field(t, m, "system/acme", "state"), "SIGTERMed", "state")
	expect(t, m, "root", row{script: "launchctl bootstrap system " + file, stderr: "Bootstrap failed: 5: Input/output error\n", exit: 5})
	expect(t, m, "root", row{script: "launchctl bootout system/acme", stderr: "Boot-out failed: 36: Operation now in progress\n", exit: 36})
	expect(t, m, "root", row{script: "launchctl kickstart system/acme", stderr: "Could not kickstart service \"acme\": 37: Operation already in progress\n", exit: 37})
	advance(t, m, 4*time.Second)
	expect(t, m, "root", row{script: "launchctl print system/acme 2>/dev/null", exit: 113})
	must(t, m, "root", "launchctl bootstrap system "+file)
	if after := field(t, m, "system/acme", "pid"); after == "" || after == before {
		t.Errorf("pid %q, before %q", after, before)
	}
	// A job without a process is removed at once.
	must(t, m, "root", "launchctl bootout system "+idle+" && launchctl bootstrap system "+idle)
	setSwitch(t, m, drainTimeSwitch, "0s")
	must(t, m, "root", "launchctl bootout system "+file+" && launchctl bootstrap system "+file)
}

func TestDisabledJobs(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	file := daemonJob(t, m, "acme", atLoad)
	must(t, m, "root", "launchctl disable system/acme; launchctl disable system/unknown; launchctl enable user/501/x")
	expect(t, m, "m1", row{script: "launchctl print-disabled system", stdout: "\n\tdisabled services = {\n\t\t\"acme\" => disabled\n\t\t\"unknown\" => disabled\n\t}\n"})
	expect(t, m, "m1", row{script: "launchctl print-disabled user/501 | grep x", stdout: "\t\t\"x\" => enabled\n"})
	expect(t, m, "root", row{script: "launchctl bootstrap system " + file, stderr: "Bootstrap failed: 5: Input/output error\n", exit: 5})
	expect(t, m, "m1", row{script: "launchctl enable system/acme", stderr: "Could not enable service: 1: Operation not permitted\n", exit: 1})
	ok(t, m.Reboot(t.Context()))
	expect(t, m, "root", row{script: "launchctl print system/acme 2>/dev/null", exit: 113})
	must(t, m, "root", "launchctl enable system/acme && launchctl bootstrap system "+file)
	// A file may disable its job, and an override may enable it.
	put(t, m, "/tmp/off.plist", plistOf("off", "<key>Disabled</key><true/>", "/bin/echo"), 0, 0o644)
	expect(t, m, "root", row{script: "launchctl bootstrap system /tmp/off.plist 2>/dev/null", exit: 5})
	must(t, m, "root", "launchctl enable system/off && launchctl bootstrap system /tmp/off.plist")
}

func TestThrottle(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	file := scriptJob(t, m, "crash", alwaysUp+"<key>StandardErrorPath</key><string>/tmp/crash.log</string>", "echo dying >&2; exit 7")
	must(t, m, "root", "launchctl bootstrap system "+file)
	for key, want := range map[string]string{"state": "spawn scheduled", "runs": "1", "last exit code": "7", "pid": "", "active count": "0"} {
		equal(t, field(t, m, "system/crash", key), want, key)
	}
	expect(t, m, "root", row{script: "launchctl list | grep crash", stdout: "-\t7\tcrash\n"})
	advance(t, m, 5*time.Second)
	equal(t, field(t, m, "system/crash", "runs"), "1", "within the throttle: runs")
	must(t, m, "root", "launchctl kickstart system/crash") // despite the throttle
	advance(t, m, 11*time.Second)
	equal(t, field(t, m, "system/crash", "runs"), "3", "runs")
	// Many missed times count once.
	advance(t, m, time.Hour)
	equal(t, field(t, m, "system/crash", "runs"), "4", "after an hour: runs")
	expect(t, m, "root", row{script: "cat /tmp/crash.log", stdout: "dying\ndying\ndying\ndying\n"})
}

func TestKeepAlive(t *testing.T) {
	t.Parallel()
	yes := func(key string, value bool) string {
		return fmt.Sprintf("<key>KeepAlive</key><dict><key>%s</key><%t/></dict>", key, value)
	}
	for _, c := range []struct {
		name, keep   string
		code, signal int
		again        bool
	}{
		{"always, clean", alwaysUp, 0, 0, true},
		{"always, failed", alwaysUp, 1, 0, true},
		{"not said", atLoad, 1, 0, false},
		{"on failure, clean", yes("SuccessfulExit", false), 0, 0, false},
		{"on failure, failed", yes("SuccessfulExit", false), 1, 0, true},
		{"on failure, killed", yes("SuccessfulExit", false), 0, 9, true},
		{"on success, clean", yes("SuccessfulExit", true), 0, 0, true},
		{"on success, failed", yes("SuccessfulExit", true), 3, 0, false},
		{"on a crash, crashed", atLoad + yes("Crashed", true), 0, 11, true},
		{"on a crash, failed", atLoad + yes("Crashed", true), 1, 0, false},
		{"but on a crash, failed", atLoad + yes("Crashed", false), 1, 0, true},
		{"but on a crash, crashed", atLoad + yes("Crashed", false), 0, 11, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			file := daemonJob(t, m, "acme", c.keep)
			must(t, m, "root", "launchctl bootstrap system "+file)
			pid := field(t, m, "system/acme", "pid")
			if pid == "" {
				t.Fatal("the job does not run")
			}
			ok(t, m.EndJob("system/acme", c.code, c.signal))
			equal(t, field(t, m, "system/acme", "pid"), "", "the job runs again too early")
			advance(t, m, 11*time.Second)
			got := field(t, m, "system/acme", "pid")
			if (got != "") != c.again || got == pid {
				t.Errorf("pid %q after %q", got, pid)
			}
		})
	}
}

func TestPathState(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	file := daemonJob(t, m, "acme", "<key>KeepAlive</key><dict><key>PathState</key><dict><key>/tmp/go</key><true/></dict></dict>")
	must(t, m, "root", "launchctl bootstrap system "+file)
	equal(t, field(t, m, "system/acme", "state"), "not running", "state")
	must(t, m, "root", "touch /tmp/go")
	equal(t, field(t, m, "system/acme", "state"), "running", "state")
}

// TestStuckJob checks a loaded job that has exited cleanly and is not restarted, although it should
// be.
func TestStuckJob(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	file := daemonJob(t, m, "acme", alwaysUp)
	must(t, m, "root", "launchctl bootstrap system "+file)
	ok(t, m.StickJob("system/acme"))
	advance(t, m, time.Hour)
	for key, want := range map[string]string{"state": "not running", "active count": "0", "last exit code": "0", "pid": ""} {
		equal(t, field(t, m, "system/acme", key), want, key)
	}
	must(t, m, "root", "launchctl kickstart system/acme")
	equal(t, field(t, m, "system/acme", "state"), "running", "state")
	if err := m.StickJob("system/unknown"); err == nil {
		t.Error("an unknown job is stuck")
	}
}
