package mac

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// FuzzDescribe checks that any file gives a job that can be started, or an error.
func FuzzDescribe(f *testing.F) {
	for _, text := range []string{
		"", "<plist>", "bplist00", plistOf("a", atLoad+alwaysUp, "/bin/sh", "-c", "true"), plistOf("a", "<key>StartInterval</key><integer>-5</integer>", "x"),
		plistOf("a", "<key>KeepAlive</key><dict><key>PathState</key><string>x</string></dict>", "x"), plistOf("a", "<key>ThrottleInterval</key><integer>99999999999999</integer>", "x"),
		"<plist version=\"1.0\"><dict><key>Label</key><integer>1</integer></dict></plist>",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := describe(data)
		if err == nil && (d.Label == "" || d.Program == "" || len(d.Args) == 0 || d.Interval < 0 || d.Throttle < 0 || d.ExitWithin <= 0 || d.Umask < 0) {
			t.Errorf("%+v", d)
		}
	})
}

func FuzzTarget(f *testing.F) {
	for _, text := range []string{"system", "system/a", "gui/501", "gui/501/a", "user/x", "gui//", "/", "gui/99999999999"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, label, ok := splitTarget(text)
		if ok && label != "" && d.kind == "system" && d.String()+"/"+label != text {
			t.Errorf("%q is read as %s and %q", text, d, label)
		}
	})
}

// TestPlanning checks that launchd starts no job that was booted out, none before its process has
// ended, and none sooner than the throttle allows.
func TestPlanning(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(1_800_000_000, 0)
		ago := func(name string) time.Time {
			return now.Add(-time.Duration(rapid.IntRange(0, 100).Draw(t, name)) * time.Second)
		}
		yes := rapid.Bool()
		j := &job{Started: ago("started"), Ends: ago("ends"), Stuck: yes.Draw(t, "stuck"),
			Exit:  ending{Code: rapid.IntRange(0, 2).Draw(t, "code"), Signal: rapid.SampledFrom([]int{0, 9}).Draw(t, "signal")},
			About: description{RunAtLoad: yes.Draw(t, "at load"), Throttle: time.Duration(rapid.IntRange(0, 60).Draw(t, "throttle")) * time.Second}}
		j.About.Keep.Always = yes.Draw(t, "always")
		if yes.Draw(t, "on success") {
			success := yes.Draw(t, "success")
			j.About.Keep.Success = &success
		}
		if yes.Draw(t, "interval") {
			j.About.Interval = time.Duration(rapid.IntRange(1, 60).Draw(t, "every")) * time.Second
		}
		if yes.Draw(t, "leaving") {
			j.Gone = now
		}
		j.plan(false, now)
		again := j.About.Keep.after(j.Exit)
		switch {
		case j.leaving() || j.Stuck || !again && j.About.Interval == 0:
			if !j.Due.IsZero() {
				t.Fatalf("it starts at %s: %+v", j.Due, j)
			}
		case j.Due.Before(j.Ends) || again && j.Due.Before(j.Started.Add(j.About.Throttle)):
			t.Fatalf("it starts too early, at %s: %+v", j.Due, j)
		}
	})
}

// TestKickedServices kickstarts the system's services that react to it.
func TestKickedServices(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	before := strings.TrimSpace(must(t, m, "root", "launchctl kickstart -p system/com.apple.loginwindow"))
	after := strings.TrimSpace(must(t, m, "root", "launchctl kickstart -k -p system/com.apple.loginwindow"))
	if before == "" || after == "" || before == after {
		t.Errorf("pid %q after %q", after, before)
	}
	expect(t, m, "m1", row{script: "pgrep -x loginwindow", stdout: after + "\n"})
	must(t, m, "root", "launchctl kickstart system/com.apple.pfctl && launchctl kickstart system/com.openssh.sshd")
	expect(t, m, "m1", row{script: "launchctl kickstart -k system/com.apple.loginwindow", exit: 1,
		stderr: "Could not kickstart service \"com.apple.loginwindow\": 1: Operation not permitted\n"})
	const ssh = "/System/Library/LaunchDaemons/ssh.plist"
	expect(t, m, "root", row{script: "launchctl bootstrap system " + ssh, stderr: "Bootstrap failed: 5: Input/output error\n", exit: 5})
	must(t, m, "root", "launchctl bootout system/com.openssh.sshd")
	expect(t, m, "root", row{script: "launchctl print system/com.openssh.sshd 2>/dev/null", exit: 113})
	expect(t, m, "root", row{script: "launchctl bootout system " + ssh, stderr: "Boot-out failed: 5: Input/output error\n", exit: 5})
	must(t, m, "root", "launchctl bootstrap system "+ssh+" && launchctl print system/com.openssh.sshd >/dev/null && launchctl bootout system "+ssh)
}

// TestJobDictionary checks list with one job.
func TestJobDictionary(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	file := scriptJob(t, m, "acme", atLoad, "exit 2")
	must(t, m, "root", "launchctl load "+file)
	expect(t, m, "root", row{script: "launchctl list acme", stdout: `{
	"LimitLoadToSessionType" = "System";
	"Label" = "acme";
	"OnDemand" = true;
	"LastExitStatus" = 512;
	"Program" = "/usr/local/bin/acme";
	"ProgramArguments" = (
		"/usr/local/bin/acme";
	);
};
`})
	must(t, m, "root", "launchctl unload "+file+"; ! launchctl list acme 2>/dev/null")
	must(t, m, "root", "launchctl unload -w "+file+" 2>/dev/null; launchctl print-disabled system | grep -q 'acme. => disabled'; launchctl load -w "+file+"; launchctl print-disabled system | grep -q 'acme. => enabled'")
}
