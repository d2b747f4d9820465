package scriptlint_test

import (
	"strings"
	"testing"

	"github.com/macfleet/macfleet/internal/scriptlint"
)

const unlisted = "is not on the list of what every shell and host has"

// badScripts are refused for both kinds, by the fault; %s is the first word.
var badScripts = map[string][]string{
	"%s " + unlisted: {"systemsetup -getrestartfreeze", "sed -i s/a/b/ f", "sed -n 1p f", "awk '{print}' f", "python3 -c 'print(1)'",
		"git status", "umask 077", "kill -9 1", "ulimit -n", "source f", ". ./f", "[[ -e f ]]", "[[ a == a* && b ]]"},
	"call /usr/bin/pmset by its bare name": {"/usr/bin/pmset -g"},
	"call ./tool by its bare name":         {"./tool"},
	"call /bin/bash by its bare name":      {"/bin/bash -c true"},
	"umask " + unlisted: {"echo $(umask)", "echo `umask`", "x=\"a $(umask) b\"", "cat <<E\n$(umask)\nE\n", "if umask; then :; fi",
		"true | umask", "f() { umask; }\nf", "X=1 umask", "! umask", "exec umask", "sudo umask", "sudo -n -H -u m1 umask"},
	"local " + unlisted:  {"x=1\nlocal x"},
	"is not on the list": {`\umask 077`, "((i++))"},
	"only a trap on EXIT": {"trap 'rm -f x' HUP", "trap 'rm -f x' EXIT HUP", "trap 'rm -f x' HUP EXIT", "trap 'rm -f x' INT TERM",
		"trap - EXIT INT", "trap", "trap 'x' $signal"},
	"only set -e, set -u and set --":         {"set -o pipefail", "set -euo pipefail", "set -x", "set +e", "set", "set $options"},
	"file descriptor 3":                      {"exec 3<f", "read -r x 3<f"},
	"file descriptor 9":                      {"echo x 9>f"},
	"only the file descriptors 0, 1 and 2":   {"echo x >&3", "read -r x <&5", "echo x >&f", "echo x >&$fd"},
	"scripts.sh:1:":                          {"cat <(echo x)", "local a=(1 2)", "a=(1 2)", "echo ${a[0]}", "echo ${a//b/c}", "function f { :; }", "if true", "echo 'open"},
	"a function needs a name":                {"()00"},
	"the command's name is not a plain word": {"$tool x", `"$@"`, `"$1" x`, "$(echo rm) x", "r$m x", `exec "$@"`, `sudo -n "$1"`},
}

// fault completes a fault that names the first word.
func fault(want, script string) string {
	word, _, _ := strings.Cut(script, " ")
	return strings.ReplaceAll(want, "%s", word)
}

func TestEveryScript(t *testing.T) {
	t.Parallel()
	for want, scripts := range badScripts {
		for _, script := range scripts {
			want := fault(want, script)
			for name, kind := range map[string]scriptlint.Kind{"change": scriptlint.Change, "probe": scriptlint.Probe} {
				if faults := scriptlint.Check("scripts.sh", script, kind); !strings.Contains(strings.Join(faults, "\n"), want) {
					t.Errorf("%s %q: %q, want %q", name, script, faults, want)
				}
			}
		}
	}
}

// writingScripts are accepted as a change and refused as a probe, by the fault; %s is the first word.
var writingScripts = map[string][]string{
	"and %s does": {"defaults -currentHost write com.apple.screensaver idleTime -int 0", "defaults delete com.apple.screensaver", "defaults",
		`defaults "$1" x`, "pmset -a sleep 0", `pmset "-a" sleep 0`, "pmset sleepnow", "pmset", "arp -d 192.0.2.1", "nc -l 22",
		"mdutil -a -i off", "xcode-select -s /Applications/Xcode.app", "xcodebuild -license accept", "unzip x.zip", "scutil --set HostName x",
		`scutil "$1" HostName`, "scutil", "launchctl bootstrap system f", "launchctl bootout system/x", "launchctl kickstart -k system/x",
		"launchctl load f", `launchctl "$1" system/x`, "launchctl", "sysctl -w x=1", "sysctl x=1", "dd of=f", "dd if=a of=b bs=1", `dd of="$1"`,
		`dd "of=$1"`, "dd of=$1", "dd 'of=f'", `dd "o"f=f`, `dd "$1"`, "rm -f f", "mkdir d", "mktemp", "touch f", "cp a b", "mv a b", "ln a b",
		"chmod 0644 f", "chown 0:0 f", "rmdir d"},
	"must not write, and defaults does": {"defaults write com.apple.screensaver idleTime -int 0"},
	"and defaults does":                 {`sudo -n -H -u "$1" defaults write a b c`},
	"and pmset does":                    {"sudo -n pmset -a sleep 0"},
	"and rm does":                       {"[ -e f ] || rm f", "f() { rm x; }\nf", "exec rm f", "sudo rm f", "exec sudo -n rm f"},
	"and mktemp does":                   {"x=$(mktemp)"},
	"must not write to a file": {"echo x >f", "echo x >>f", "echo x >|f", "cat <>f", "cat 2>f", ">f", `echo x >"$1"`, "{ echo x; } >f",
		"echo x >/dev/nullx", "echo x >/dev/null/../f"},
}

func TestProbesMustNotWrite(t *testing.T) {
	t.Parallel()
	for want, scripts := range writingScripts {
		for _, script := range scripts {
			want := fault(want, script)
			if faults := scriptlint.Check("scripts.sh", script, scriptlint.Probe); len(faults) != 1 || !strings.Contains(faults[0], want) {
				t.Errorf("probe %q: %q, want only %q", script, faults, want)
			}
			if faults := scriptlint.Check("scripts.sh", script, scriptlint.Change); faults != nil {
				t.Errorf("change %q: %q", script, faults)
			}
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
