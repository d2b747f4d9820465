package scriptlint_test

import (
	"strings"
	"testing"

	"github.com/macfleet/macfleet/internal/scriptlint"
)

const unlisted = "is not on the list of what every shell and host has"

// badScripts are refused for both kinds.
var badScripts = []struct{ script, want string }{
	{"/usr/bin/pmset -g", "call /usr/bin/pmset by its bare name"},
	{"./tool", "call ./tool by its bare name"},
	{"/bin/bash -c true", "call /bin/bash by its bare name"},
	{"systemsetup -getrestartfreeze", "systemsetup " + unlisted},
	{"sed -i s/a/b/ f", "sed " + unlisted},
	{"sed -n 1p f", "sed " + unlisted},
	{"awk '{print}' f", "awk " + unlisted},
	{"python3 -c 'print(1)'", "python3 " + unlisted},
	{"git status", "git " + unlisted},
	{"umask 077", "umask " + unlisted},
	{"kill -9 1", "kill " + unlisted},
	{"ulimit -n", "ulimit " + unlisted},
	{"x=1\nlocal x", "local " + unlisted},
	{"source f", "source " + unlisted},
	{". ./f", ". " + unlisted},
	{"echo $(umask)", "umask " + unlisted},
	{"echo `umask`", "umask " + unlisted},
	{"x=\"a $(umask) b\"", "umask " + unlisted},
	{"cat <<E\n$(umask)\nE\n", "umask " + unlisted},
	{"if umask; then :; fi", "umask " + unlisted},
	{"true | umask", "umask " + unlisted},
	{"f() { umask; }\nf", "umask " + unlisted},
	{"X=1 umask", "umask " + unlisted},
	{"! umask", "umask " + unlisted},
	{`\umask 077`, "is not on the list"},
	{"exec umask", "umask " + unlisted},
	{"sudo umask", "umask " + unlisted},
	{"sudo -n -H -u m1 umask", "umask " + unlisted},
	{"trap 'rm -f x' HUP", "only a trap on EXIT"},
	{"trap 'rm -f x' EXIT HUP", "only a trap on EXIT"},
	{"trap 'rm -f x' HUP EXIT", "only a trap on EXIT"},
	{"trap 'rm -f x' INT TERM", "only a trap on EXIT"},
	{"trap - EXIT INT", "only a trap on EXIT"},
	{"trap", "only a trap on EXIT"},
	{"trap 'x' $signal", "only a trap on EXIT"},
	{"set -o pipefail", "only set -e, set -u and set --"},
	{"set -euo pipefail", "only set -e, set -u and set --"},
	{"set -x", "only set -e, set -u and set --"},
	{"set +e", "only set -e, set -u and set --"},
	{"set", "only set -e, set -u and set --"},
	{"set $options", "only set -e, set -u and set --"},
	{"exec 3<f", "file descriptor 3"},
	{"read -r x 3<f", "file descriptor 3"},
	{"echo x 9>f", "file descriptor 9"},
	{"echo x >&3", "only the file descriptors 0, 1 and 2"},
	{"read -r x <&5", "only the file descriptors 0, 1 and 2"},
	{"echo x >&f", "only the file descriptors 0, 1 and 2"},
	{"echo x >&$fd", "only the file descriptors 0, 1 and 2"},
	{"[[ -e f ]]", "[[ " + unlisted},
	{"[[ a == a* && b ]]", "[[ " + unlisted},
	{"cat <(echo x)", "scripts.sh:1:"},
	{"local a=(1 2)", "scripts.sh:1:"},
	{"a=(1 2)", "scripts.sh:1:"},
	{"echo ${a[0]}", "scripts.sh:1:"},
	{"echo ${a//b/c}", "scripts.sh:1:"},
	{"function f { :; }", "scripts.sh:1:"},
	{"()00", "a function needs a name"}, // which the parser lets pass,
	{"((i++))", "is not on the list"},
	{"if true", "scripts.sh:1:"},
	{"echo 'open", "scripts.sh:1:"},
	{"$tool x", "the command's name is not a plain word"},
	{`"$@"`, "the command's name is not a plain word"},
	{`"$1" x`, "the command's name is not a plain word"},
	{"$(echo rm) x", "the command's name is not a plain word"},
	{"r$m x", "the command's name is not a plain word"},
	{`exec "$@"`, "the command's name is not a plain word"},
	{`sudo -n "$1"`, "the command's name is not a plain word"},
}

func TestEveryScript(t *testing.T) {
	t.Parallel()
	for _, tc := range badScripts {
		for name, kind := range map[string]scriptlint.Kind{"change": scriptlint.Change, "probe": scriptlint.Probe} {
			faults := scriptlint.Check("scripts.sh", tc.script, kind)
			if !strings.Contains(strings.Join(faults, "\n"), tc.want) {
				t.Errorf("%s %q: %q, want %q", name, tc.script, faults, tc.want)
			}
		}
	}
}

// writingScripts are accepted as a change and refused as a probe.
var writingScripts = []struct{ script, want string }{
	{"defaults write com.apple.screensaver idleTime -int 0", "must not write, and defaults does"},
	{"defaults -currentHost write com.apple.screensaver idleTime -int 0", "and defaults does"},
	{"defaults delete com.apple.screensaver", "and defaults does"},
	{"defaults", "and defaults does"},
	{`defaults "$1" x`, "and defaults does"},
	{"pmset -a sleep 0", "and pmset does"},
	{`pmset "-a" sleep 0`, "and pmset does"},
	{"pmset sleepnow", "and pmset does"},
	{"pmset", "and pmset does"},
	{"arp -d 192.0.2.1", "and arp does"},
	{"nc -l 22", "and nc does"},
	{"mdutil -a -i off", "and mdutil does"},
	{"xcode-select -s /Applications/Xcode.app", "and xcode-select does"},
	{"xcodebuild -license accept", "and xcodebuild does"},
	{"unzip x.zip", "and unzip does"},
	{"scutil --set HostName x", "and scutil does"},
	{`scutil "$1" HostName`, "and scutil does"},
	{"scutil", "and scutil does"},
	{"launchctl bootstrap system f", "and launchctl does"},
	{"launchctl bootout system/x", "and launchctl does"},
	{"launchctl kickstart -k system/x", "and launchctl does"},
	{"launchctl load f", "and launchctl does"},
	{`launchctl "$1" system/x`, "and launchctl does"},
	{"launchctl", "and launchctl does"},
	{"sysctl -w x=1", "and sysctl does"},
	{"sysctl x=1", "and sysctl does"},
	{"dd of=f", "and dd does"},
	{"dd if=a of=b bs=1", "and dd does"},
	{`dd of="$1"`, "and dd does"},
	{`dd "of=$1"`, "and dd does"},
	{"dd of=$1", "and dd does"},
	{"dd 'of=f'", "and dd does"},
	{`dd "o"f=f`, "and dd does"},
	{`dd "$1"`, "and dd does"},
	{"rm -f f", "and rm does"},
	{"mkdir d", "and mkdir does"},
	{"mktemp", "and mktemp does"},
	{"touch f", "and touch does"},
	{"cp a b", "and cp does"},
	{"mv a b", "and mv does"},
	{"ln a b", "and ln does"},
	{"chmod 0644 f", "and chmod does"},
	{"chown 0:0 f", "and chown does"},
	{"rmdir d", "and rmdir does"},
	{"x=$(mktemp)", "and mktemp does"},
	{"[ -e f ] || rm f", "and rm does"},
	{"f() { rm x; }\nf", "and rm does"},
	{"exec rm f", "and rm does"},
	{"sudo rm f", "and rm does"},
	{"sudo -n pmset -a sleep 0", "and pmset does"},
	{`sudo -n -H -u "$1" defaults write a b c`, "and defaults does"},
	{"exec sudo -n rm f", "and rm does"},
	{"echo x >f", "must not write to a file"},
	{"echo x >>f", "must not write to a file"},
	{"echo x >|f", "must not write to a file"},
	{"cat <>f", "must not write to a file"},
	{"cat 2>f", "must not write to a file"},
	{">f", "must not write to a file"},
	{`echo x >"$1"`, "must not write to a file"},
	{"{ echo x; } >f", "must not write to a file"},
	{"echo x >/dev/nullx", "must not write to a file"},
	{"echo x >/dev/null/../f", "must not write to a file"},
}

func TestProbesMustNotWrite(t *testing.T) {
	t.Parallel()
	for _, tc := range writingScripts {
		faults := scriptlint.Check("scripts.sh", tc.script, scriptlint.Probe)
		if len(faults) != 1 || !strings.Contains(faults[0], tc.want) {
			t.Errorf("probe %q: %q, want only %q", tc.script, faults, tc.want)
		}
		if faults := scriptlint.Check("scripts.sh", tc.script, scriptlint.Change); faults != nil {
			t.Errorf("change %q: %q", tc.script, faults)
		}
	}
}

// TestGoodScripts checks scripts that are accepted for both kinds.
func TestGoodScripts(t *testing.T) {
	t.Parallel()
	for _, script := range []string{
		"",
		"# only a comment\n",
		"pmset -g custom",
		"scutil --get \"$1\"",
		"defaults read /Library/Preferences/com.apple.screensaver loginWindowIdleTime",
		"defaults -currentHost read com.apple.screensaver idleTime",
		"launchctl print gui/501",
		"launchctl print-disabled system",
		"sysctl -n kern.boottime",
		"[ -e /etc/macfleet/host.json ] || exit 4\ncat /etc/macfleet/host.json",
		"set -e\nset -u\nset -eu\nset -- \"$@\" x",
		"set --",
		"trap 'echo left' EXIT",
		"trap - EXIT",
		"trap '' EXIT",
		"echo x 2>&1 >&2 2>/dev/null </dev/null",
		"x=$(dd bs=1 count=\"$length\" 2>/dev/null; printf x)\nx=${x%x}",
		"f() { echo \"$1\"; }\nf x | grep y",
		"umask() { :; }\numask", // a function of the script
		"while read -r line; do case $line in a*) continue ;; *) break ;; esac; done <f",
		"i=0\nwhile [ \"$i\" -lt 3 ]; do i=$((i + 1)); done",
		"for a in \"$@\"; do printf '%s\\n' \"$a\"; done",
		"cat <<E\n$x\nE\n",
		"exec 2>/dev/null",
		"/bin/sh -c 'true'",
		"sudo -n true",
		"sudo -n -H -u \"$user\" /bin/sh -c true",
		"X=1 echo x",
		"x=1",
		"sw_vers -productVersion; ioreg -rd1 -c IOPlatformExpertDevice | grep Serial; shasum -a 256 f; stat -f %z f",
	} {
		for name, kind := range map[string]scriptlint.Kind{"change": scriptlint.Change, "probe": scriptlint.Probe} {
			if faults := scriptlint.Check("scripts.sh", script, kind); faults != nil {
				t.Errorf("%s %q: %q", name, script, faults)
			}
		}
	}
}

// TestFaultsHaveAPlace checks that all faults are reported, each with its line.
func TestFaultsHaveAPlace(t *testing.T) {
	t.Parallel()
	faults := scriptlint.Check("steps/x.sh", "true\numask 0\n  rm f >g\n", scriptlint.Probe)
	want := []string{"steps/x.sh:2:1: umask", "steps/x.sh:3:3: a probe must not write, and rm", "steps/x.sh:3:8: a probe must not write to a file"}
	if len(faults) != len(want) {
		t.Fatalf("faults %q", faults)
	}
	for i := range want {
		if !strings.HasPrefix(faults[i], want[i]) {
			t.Errorf("fault %q, want %q", faults[i], want[i])
		}
	}
}

// FuzzCheck checks that no text makes the lint fail, and that a probe has all faults of a change.
func FuzzCheck(f *testing.F) {
	for _, seed := range []string{"", "pmset -g\n", "sudo -u\n", "exec\n", "sudo -n exec sudo dd of=x", "f(){ f; }\nexec f", "trap x EXIT", "echo x >&3 <<E\n$(rm x)\nE\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		change := scriptlint.Check("f.sh", text, scriptlint.Change)
		probe := strings.Join(scriptlint.Check("f.sh", text, scriptlint.Probe), "\n")
		for _, fault := range change {
			if !strings.Contains(probe, fault) {
				t.Errorf("%q: a change has the fault %q, a probe %q", text, fault, probe)
			}
		}
	})
}
