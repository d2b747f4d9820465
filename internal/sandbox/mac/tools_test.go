package mac

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type row struct {
	script string
	stdout string
	stderr string
	exit   int
}

func check(t *testing.T, user string, rows []row) {
	t.Helper()
	t.Parallel()
	m := newMachine(t)
	for _, want := range rows {
		stdout, stderr, exit := run(t, m, user, want.script)
		if d := cmp.Diff(want, row{want.script, stdout, stderr, exit}, cmp.AllowUnexported(row{})); d != "" {
			t.Errorf("-want +got:\n%s", d)
		}
	}
}

func TestSettings(t *testing.T) {
	check(t, "root", []row{
		// Unset names: the text on stderr, exit 1.
		{script: "scutil --get ComputerName; scutil --get LocalHostName; scutil --get HostName", stdout: "Mac mini\nMac-mini\n", stderr: "HostName: not set\n", exit: 1},
		{script: "scutil --set HostName a.b && scutil --get HostName && hostname && hostname -s", stdout: "a.b\na.b\na\n"},
		// LocalHostName accepts letters, digits and hyphens only.
		{script: "scutil --set LocalHostName a.b", stderr: "LocalHostName: invalid name: letters, digits and hyphens only\n", exit: 1},
		// A new Mac sleeps.
		{script: "pmset -g custom", stdout: `AC Power:
 Sleep On Power Button 1
 autorestart          0
 powernap             1
 networkoversleep     0
 disksleep            10
 sleep                1
 ttyskeepawake        1
 displaysleep         10
 tcpkeepalive         1
 womp                 1
`},
		{script: "pmset -a sleep 0 displaysleep 0 disksleep 0 && pmset -g | grep -E ' (display|disk)?sleep '", stdout: " disksleep            0\n sleep                0\n displaysleep         0\n"},
		// Booleans read as 1 and 0; the domain of another host is a separate file.
		{script: "defaults -currentHost write com.apple.screensaver idleTime -int 5; defaults -currentHost read com.apple.screensaver idleTime; defaults write x b -bool true; defaults read x b", stdout: "5\n1\n"},
		{script: "ls /var/root/Library/Preferences /var/root/Library/Preferences/ByHost", stdout: "/var/root/Library/Preferences:\nByHost\nx.plist\n\n/var/root/Library/Preferences/ByHost:\ncom.apple.screensaver.5B1B6C30-0000-4000-8000-0123456789AB.plist\n"},
		{script: "defaults read /Library/Preferences/com.apple.screensaver loginWindowIdleTime 2>&1 | tail -n 1", stdout: "The domain/default pair of (/Library/Preferences/com.apple.screensaver, loginWindowIdleTime) does not exist\n"},
		{script: "defaults read missing key 2>/dev/null", exit: 1},
		{script: "defaults write /Library/Preferences/l a -array one 10.0.0.0/8 && defaults read /Library/Preferences/l a && stat -f '%Su %Sg %Lp' /Library/Preferences/l.plist", stdout: "(\n    one,\n    \"10.0.0.0/8\"\n)\nroot wheel 644\n"},
		{script: "defaults delete /Library/Preferences/l a && defaults read /Library/Preferences/l a 2>/dev/null", exit: 1},
		{script: "sw_vers; sw_vers -productVersion; sw_vers -buildVersion", stdout: "ProductName:\t\tmacOS\nProductVersion:\t\t26.3\nBuildVersion:\t\t25D125\n26.3\n25D125\n"},
		{script: "ioreg -rd1 -c IOPlatformExpertDevice | grep -E 'IOPlatform(SerialNumber|UUID)'", stdout: "      \"IOPlatformSerialNumber\" = \"HQ2X4Y7Z91\"\n      \"IOPlatformUUID\" = \"5B1B6C30-0000-4000-8000-0123456789AB\"\n"},
		{script: "fdesetup status; uname; uname -rm; sysctl -n hw.ncpu", stdout: "FileVault is Off.\nDarwin\n25.3.0 arm64\n8\n"},
	})
}

// TestToolFaults: each is caused and cured, and its script shows which.
func TestToolFaults(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	for _, f := range ToolFaults() {
		for _, step := range []struct {
			script string
			shown  bool
		}{{f.Cure, false}, {f.Cause, true}, {f.Cure, false}} {
			_, stderr, exit := run(t, m, "root", step.script)
			shows, _, _ := run(t, m, "root", f.Shows)
			if exit != 0 || strings.Contains(shows, f.Text) != step.shown {
				t.Errorf("%s: after %q (exit code %d, %s) %q prints %q", f.Name, step.script, exit, stderr, f.Shows, shows)
			}
		}
	}
}

func TestFiles(t *testing.T) {
	check(t, "root", []row{
		{script: "mkdir -p /etc/macfleet && chmod 0755 /etc/macfleet && stat -f '%Su %Sg %Lp %HT' /etc/macfleet", stdout: "root wheel 755 Directory\n"},
		{script: "f=$(mktemp /etc/macfleet/.host.XXXXXX) && printf '%s' hello >\"$f\" && stat -f '%OLp %z' \"$f\" && chmod 0644 \"$f\" && chown 0:0 \"$f\" && mv -f \"$f\" /etc/macfleet/host.json && sync && cat /etc/macfleet/host.json && ls -a /etc/macfleet", stdout: "600 5\nhello.\n..\nhost.json\n"},
		// A hard link does not replace an existing file: the arbiter of a race.
		{script: "cd /tmp; echo a >a; echo b >b; ln a c && cat c; ln b c; echo $?; cat c", stdout: "a\n1\na\n", stderr: "ln: c: File exists\n"},
		{script: "readlink /etc /tmp; readlink -f /etc/sudoers; ls -ld /etc | cut -d ' ' -f 1; pwd -P; cd /etc && pwd && pwd -P", stdout: "private/etc\nprivate/tmp\n/private/etc/sudoers\nlrwxr-xr-x\n/private/var/root\n/etc\n/private/etc\n"},
		{script: "stat -f %z /nope", stderr: "stat: /nope: stat: No such file or directory\n", exit: 1},
		{script: "cat /nope; rm /nope; rm -f /nope; rmdir /tmp/nope; mv /nope /tmp; cp /nope /tmp", exit: 1, stderr: `cat: /nope: No such file or directory
rm: /nope: No such file or directory
rmdir: /tmp/nope: No such file or directory
mv: rename /nope to /tmp: No such file or directory
cp: /nope: No such file or directory
`},
		{script: "mkdir /tmp/d; mkdir /tmp/d; mkdir /tmp/x/y; rm /tmp/d; rm -r /tmp/d; [ -e /tmp/d ]", exit: 1, stderr: `mkdir: /tmp/d: File exists
mkdir: /tmp/x/y: No such file or directory
rm: /tmp/d: is a directory
`},
		{script: "touch /tmp/m; chmod u=rwx,go= /tmp/m; stat -f %Lp /tmp/m; chmod a+r /tmp/m; stat -f %Lp /tmp/m; chmod -R go-r /tmp/m; stat -f '%p %Sp' /tmp/m", stdout: "700\n744\n100700 -rwx------\n"},
		// cp onto a file keeps its inode.
		{script: "echo old >/tmp/old; echo new >/tmp/new; i=$(stat -f %i /tmp/old); cp /tmp/new /tmp/old; [ \"$i\" = \"$(stat -f %i /tmp/old)\" ] && cat /tmp/old; cp -p /etc/sudoers /tmp/s && stat -f %Lp /tmp/s", stdout: "new\n440\n"},
		{script: "umask; umask 077; umask; echo x >/tmp/u; stat -f %Lp /tmp/u; (umask 022; echo x >/tmp/v); umask; stat -f %Lp /tmp/v; sh -c umask", stdout: "0022\n0077\n600\n0077\n644\n0077\n"},
		{script: "chown m1:staff /tmp/u && stat -f '%Su:%Sg %u %g' /tmp/u; chown ghost /tmp/u", stdout: "m1:staff 501 20\n", stderr: "chown: ghost: illegal user name\n", exit: 1},
		{script: "rm /bin/cat; [ -x /bin/cat ] && ls /bin/cat", stdout: "/bin/cat\n", stderr: "rm: /bin/cat: Operation not permitted\n"},
		{script: "for f in /etc/sud*; do echo $f; done; ln -s /etc/sudoers /tmp/l; [ -L /tmp/l ] && head -n 1 /tmp/l; ln -sf /nope /tmp/l; cat /tmp/l", stdout: "/etc/sudoers\n/etc/sudoers.d\n# The system's sudo policy.\n", stderr: "cat: /tmp/l: No such file or directory\n", exit: 1},
	})
}

func TestText(t *testing.T) {
	check(t, "m1", []row{
		{script: "printf '3\\n1\\n2\\n2\\n' | sort -u | tr '\\n' ' '; printf 'b\\na\\n' | sort -r | head -n 1; printf '10\\n9\\n' | sort -n | tail -n 1", stdout: "1 2 3 b\n10\n"},
		{script: "printf 'a:b:c\\n' | cut -d : -f 2,3; printf abc | cut -c 2; printf 'a\\na\\nb\\n' | uniq -c; printf 'x\\n' | wc -l; printf abc | wc -c", stdout: "b:c\nb\n   2 a\n   1 b\n       1\n       3\n"},
		{script: "printf 'one\\ntwo\\n' | grep -q two; echo $?; printf 'one\\n' | grep two; echo $?; grep x /nope; echo $?; grep -s x /nope; printf 'a+b\\n' | grep -c 'a+b'; printf 'ab\\n' | grep -E 'a+b$'; printf 'a.c\\nabc\\n' | grep -Fx a.c; printf 'FOO\\n' | grep -iv foo", exit: 1,
			stdout: "0\n1\n2\n1\nab\na.c\n", stderr: "grep: /nope: No such file or directory\n"},
		{script: "printf hello | base64; printf aGVsbG8= | base64 -D; printf aGVsbG8= | base64 --decode; printf abc | shasum -a 256", stdout: "aGVsbG8=\nhellohelloba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  -\n"},
		{script: "printf 'ABC\\n' | tr A-Z a-z; printf 'a1b2\\n' | tr -d '[:digit:]'; printf 'x\\n' | tee /tmp/t | cat; cmp /tmp/t /tmp/t && cmp -s /tmp/t /etc/zshrc", stdout: "abc\nab\nx\n", stderr: "cmp: /etc/zshrc: No such file or directory\n", exit: 2},
		{script: "basename /a/b.c .c; dirname /a/b; date -u -r 0 +%Y-%m-%dT%H:%M:%S; true; false", stdout: "b\n/a\n1970-01-01T00:00:00\n", exit: 1},
		{script: "xattr -p com.apple.quarantine /etc/sudoers", stderr: "xattr: /etc/sudoers: No such xattr: com.apple.quarantine\n", exit: 1},
		{script: "id; id -u; id -un; id -u root; id ghost; whoami", stdout: "uid=501(m1) gid=20(staff) groups=20(staff),12(everyone),61(localaccounts),80(admin)\n501\nm1\n0\nm1\n", stderr: "id: ghost: no such user\n"},
		{script: "echo -e 'a\\tb'; bash -c \"echo -e 'a\\tb'\"; /bin/echo -n x", stdout: "-e a\tb\na\tb\nx"},
	})
}

func TestLoudFailures(t *testing.T) {
	check(t, "m1", []row{
		{script: "frobnicate", stderr: "sh: frobnicate: command not found\n", exit: 127},
		{script: "/usr/bin/frobnicate", stderr: "sh: /usr/bin/frobnicate: No such file or directory\n", exit: 127},
		{script: "cat --squeeze", stderr: "cat: option not modelled: --squeeze\n", exit: 64},
		{script: "csrutil status", stderr: "sh: csrutil: command not found\n", exit: 127},
		{script: "perl -e 'print 1'", stderr: "sh: perl: not modelled: a text other than the watchdog\n", exit: 127},
		{script: "cat <(echo hi)", stderr: "sh: not modelled: process substitution\n", exit: 64},
		{script: "eval 'cat <(echo hi)'; [ /a -ef /b ]; echo ~root", stderr: "sh: not modelled: ~user\n", exit: 64},
		{script: "eval 'cat <(echo hi)'; [ /a -ef /b ]", stderr: "sh: option not modelled: process substitution\nsh: option not modelled: [ -ef\n", exit: 64},
		{script: "kill 1", stderr: "kill: unsupported builtin\n", exit: 2},
		{script: "PATH=/stubs; cat /dev/null", stderr: "sh: cat: command not found\n", exit: 127},
		{script: "/etc; /etc/sudoers", stderr: "sh: /etc: is a directory\nsh: /etc/sudoers: Permission denied\n", exit: 126},
		{script: "command -v cat pmset chown echo /bin/sh; command -v ghost; echo $?; f() { :; }; command -v f; command -v /usr/bin/true", stdout: "/bin/cat\n/usr/bin/pmset\n/usr/sbin/chown\necho\n/bin/sh\n1\nf\n/usr/bin/true\n"},
	})
}
