package mac

import (
	"io/fs"
	"strings"
	"testing"
)

// Features of the interpreter that macOS's sh has: here-documents, traps on EXIT, local, getopts,
// arithmetic, mkdir as a lock.
func TestShell(t *testing.T) {
	check(t, "m1", []row{
		{script: "trap 'echo bye $?' EXIT; set -e; false; echo never", stdout: "bye 1\n", exit: 1},
		{script: "cat <<EOF >/tmp/h\n$((1+2)) $HOME\nEOF\nread -r a b </tmp/h; echo \"$b-$a\"", stdout: "/Users/m1-3\n"},
		{script: "f() { local x=1; [ $x = 1 ] && return 3; }; f; echo $?; g=$(echo a; exit 4); echo $? $g", stdout: "3\n4 a\n"},
		{script: "mkdir /tmp/lock && ! mkdir /tmp/lock 2>/dev/null && echo held; echo out; echo err >&2", stdout: "held\nout\n", stderr: "err\n"},
		{script: "x=1; (x=2; cd /tmp; echo $x $PWD); echo $x $PWD; echo a | { read -r y; echo \"got $y\"; }", stdout: "2 /tmp\n1 /Users/m1\ngot a\n"},
		{script: "while read -r l; do echo \"<$l>\"; done <<EOF\na\nb\nEOF\ncase /a/b in */b) echo yes;; esac; v=/x/y.z; echo ${v##*/} ${v%.z}", stdout: "<a>\n<b>\nyes\ny.z /x/y\n"},
		{script: "set -- a 'b c'; sh -c 'echo $# $0 \"$2\"' name \"$@\"; echo 'echo from stdin $1' | sh -s arg; sh -ec 'false; echo no'; echo $?", stdout: "2 name b c\nfrom stdin arg\n1\n"},
		{script: "exec sh -c 'echo replaced; exit 7'; echo never", stdout: "replaced\n", exit: 7},
		{script: "a=1 env | grep -c '^a=1$'; env -i /bin/sh -c 'echo ${HOME-none} $UID'; export Z=1; unset Z; env | grep -c ^Z=", stdout: "1\nnone 501\n0\n", exit: 1},
		{script: "sleep 0 & wait; echo done; if then", stderr: "sh: syntax error: 1:28: `if` must be followed by a statement list\n", exit: 2},
		{script: "test -x /bin/sh && test -d /tmp && sudo test -r /etc/sudoers && env test 1 = 1 && /bin/[ -n x ] && printf '%s\\n' ok", stdout: "ok\n"},
	})
}

// TestReadLine: read takes one line from a pipe or a file and leaves the rest, as macOS's sh does.
func TestReadLine(t *testing.T) {
	long := strings.Repeat("0123456789", 120)
	check(t, "m1", []row{
		{script: "printf 'one\\ntwo\\nrest' | { read -r a; read -r b; cat; echo; echo \"$a $b\"; }", stdout: "rest\none two\n"},
		{script: "printf 'one\\ntwo\\nrest' >f; { read -r a; read -r b; cat; echo; echo \"$a $b\"; } <f", stdout: "rest\none two\n"},
		{script: "printf '%s\\nx' " + long + " | { read -r a; cat; echo; echo $a; }", stdout: "x\n" + long + "\n"},
		{script: "printf '%s\\nx' " + long + " >f; { read -r a; cat; echo; echo $a; } <f", stdout: "x\n" + long + "\n"},
		{script: "printf 'a\\nend' | while read -r l || [ -n \"$l\" ]; do echo \"<$l>\"; done", stdout: "<a>\n<end>\n"},
		{script: "printf ' a|b c|d|e \\n' | { IFS='|' read -r x y z; echo \"$x,$y,$z,$IFS.\"; }", stdout: " a,b c,d|e , \t\n.\n"},
		{script: "printf '  two  words  here \\\\ \\n' | { read -r x y; echo \"<$x><$y>\"; }", stdout: "<two><words  here \\>\n"},
		{script: "printf '  it'\\''s \\\\n $HOME \\n' | { IFS= read -r x; printf '<%s>\\n' \"$x\"; }", stdout: "<  it's \\n $HOME >\n"},
		{script: "f() { local v; printf 'in\\n' >g; read -r v <g; echo $v; }; v=out; f; echo $v; read -r v </dev/null; echo \"$? <$v>\"", stdout: "in\nout\n1 <>\n"},
		{script: "set -e; : >g; read -r v <g || echo empty; read -r v <g; echo never", stdout: "empty\n", exit: 1},
	})
}

func TestPermissions(t *testing.T) {
	check(t, "m1", []row{
		{script: "echo x >/etc/x", stderr: "sh: /etc/x: Permission denied\n", exit: 1},
		{script: "cat /etc/sudoers; ls /var/root; mkdir /etc/d; rm /etc/sudoers; mv /etc/sudoers /tmp; chmod 777 /etc/sudoers; chown m1 /etc/sudoers; touch /etc/sudoers; ln -s a /etc/l; mktemp /etc/t.XXX", exit: 1,
			stderr: `cat: /etc/sudoers: Permission denied
ls: /var/root: Permission denied
mkdir: /etc/d: Permission denied
rm: /etc/sudoers: Permission denied
mv: rename /etc/sudoers to /tmp: Permission denied
chmod: Unable to change file mode on /etc/sudoers: Operation not permitted
chown: /etc/sudoers: Operation not permitted
touch: /etc/sudoers: Permission denied
ln: /etc/l: Permission denied
mktemp: mkstemp failed on /etc/t.XXX: Permission denied
`},
		{script: "[ -r /etc/sudoers ]; echo $?; [ -w /etc ]; echo $?; [ -x /tmp ]; echo $?; cd /var/root 2>/dev/null; echo $?; sudo -n cat /etc/sudoers.d/m1-nopasswd", stdout: "1\n1\n0\n1\nm1 ALL=(ALL) NOPASSWD: ALL\n"},
		// A file in a sticky folder can be removed only by its owner.
		{script: "sudo touch /tmp/r; rm /tmp/r; sudo rm /tmp/r", stderr: "rm: /tmp/r: Operation not permitted\n"},
		{script: "pmset -a sleep 0; scutil --set HostName x; defaults write /Library/Preferences/y a b 2>&1 | tail -n 1", stdout: "Could not write domain /Library/Preferences/y; exiting\n",
			stderr: "'pmset' must be run as root...\nHostName: This command requires elevated privileges\n"},
		{script: "touch f && stat -f '%Su %Sg %Lp' f; sudo touch g; stat -f '%Su %Sg' g; sudo -u m1 id -un; sudo sh -c 'echo $HOME $USER $SUDO_USER'; sudo -H sh -c 'echo $HOME'", stdout: "m1 staff 644\nroot staff\nm1\n/Users/m1 root m1\n/var/root\n"},
	})
}

func TestSudoWithPassword(t *testing.T) {
	t.Parallel()
	m := newMachine(t, func(f *Factory) { f.PasswordlessSudo = false })
	for _, want := range []row{
		{script: "sudo -n true", stderr: "sudo: a password is required\n", exit: 1},
		{script: "printf 'wrong\\n' | sudo -S -p '' cat", stderr: lecture + "Sorry, try again.\nsudo: no password was provided\nsudo: 1 incorrect password attempt\n", exit: 1},
		// The user is lectured until the first correct password.
		{script: "printf 'swordfish\\nrest' | sudo -S -p '' cat", stdout: "rest", stderr: lecture},
		{script: "printf 'swordfish\\nrest' | sudo -S -p '' cat", stdout: "rest"},
		{script: "printf 'a\\nb\\nc\\nd\\n' | sudo -S -p '' cat", stderr: "Sorry, try again.\nSorry, try again.\nsudo: 3 incorrect password attempts\n", exit: 1},
	} {
		stdout, stderr, exit := run(t, m, "m1", want.script)
		equal(t, row{want.script, stdout, stderr, exit}, want)
	}
	allow := func(name, text string, uid int, mode uint32) string {
		t.Helper()
		ok(t, m.WriteFile("/etc/sudoers.d/"+name, []byte(text), uid, 0, 0o777&fs.FileMode(mode)))
		_, stderr, exit := run(t, m, "m1", "sudo -n true")
		ok(t, m.Remove("/etc/sudoers.d/"+name))
		if exit == 0 {
			return "allowed"
		}
		return stderr
	}
	const all = "m1 ALL=(ALL) NOPASSWD: ALL\n"
	for _, c := range []struct{ name, text, want string }{
		{"good", all, "allowed"}, {"with.dot", all, "required"}, {"backup~", all, "required"},
		{"broken", "m1 what\n", "broken:1:8: syntax error"}, {"narrow", "m1 ALL = NOPASSWD: /usr/bin/true\n", "allowed"},
		{"other", "m1 ALL = NOPASSWD: /bin/ls\n", "required"}, {"group", "%admin ALL=(ALL) NOPASSWD: ALL", "allowed"},
	} {
		has(t, allow(c.name, c.text, 0, 0o440), c.want, c.name)
	}
	has(t, allow("open", all, 0, 0o666), "is world writable", "a writable file is used")
	has(t, allow("mine", all, 501, 0o440), "is owned by uid 501, should be 0", "the user's own file is used")
}

func TestStubs(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	for name, text := range map[string]string{
		"/stubs/cat": "#!/bin/sh\necho stub \"$0\" \"$@\"\n", "/stubs/plain": "echo plain\n", "/stubs/env": "#!/usr/bin/env bash\necho $1\n",
		"/stubs/binary": "\xcf\xfa\xed\xfe\x00\x00", "/stubs/python": "#!/usr/bin/python3\n",
	} {
		ok(t, m.WriteFile(name, []byte(text), 0, 0, 0o755))
	}
	ok(t, m.WriteFile("/stubs/off", nil, 0, 0, 0o644))
	script := "PATH=/stubs:$PATH; cat a; plain; env b; command -v cat; sudo cat c; PATH=/bin:/stubs; cat /dev/null; binary; python; off"
	stdout, stderr, exit := run(t, m, "m1", script)
	equal(t, stdout, "stub /stubs/cat a\nplain\nb\n/stubs/cat\nstub /stubs/cat c\n", "stdout")
	want := "sh: binary: cannot execute binary file\nsh: python: /usr/bin/python3: bad interpreter: not modelled\nsh: off: Permission denied\n"
	if stderr != want || exit != 126 {
		t.Errorf("stderr %q, want %q; exit %d", stderr, want, exit)
	}
}

func TestWatchdog(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	const host, done = "\nM host 501\n", "\nM done\n"
	framed := func(id, text, status string) string {
		return "\nM begin " + id + "\n" + text + "\nM end " + status + "\n"
	}
	one := func(out, errs, status string) (stdout, stderr string) {
		return host + framed("q", out, status) + done, framed("q", errs, status)
	}
	for _, tc := range []struct {
		name, who, input string
		words            []string
		out, errs        string // of the only question q
		status           string
		exit             int // of perl; 0: the answer is complete
	}{
		{name: "arguments", input: "M\nm1\n5\n3\na b4\na\nbc", words: []string{"q", "user", "2", "0", `printf '%s|' "$@"; cat; exit 3`}, out: "a b|a\nbc|", status: "3"},
		{name: "input", input: "M\nm1\n5\n3\nabc", words: []string{"q", "user", "0", "1", "cat; echo e >&2"}, out: "abc", errs: "e\n", status: "0"},
		{name: "too late", input: "M\nm1\n1\n", words: []string{"q", "user", "0", "0", "echo before; sleep 600 | cat; echo after"}, out: "before\n", errs: "watchdog: stopped after 1 s\n", status: "124"},
		{name: "too late without a tool", input: "M\nm1\n1\n", words: []string{"q", "user", "0", "0", "while :; do :; done"}, errs: "watchdog: stopped after 1 s\n", status: "124"},
		{name: "background processes are killed", input: "M\nm1\n9\n", words: []string{"q", "user", "0", "0", "sleep 600 & echo started"}, out: "started\n", status: "0"},
		{name: "no passwordless sudo", input: "M\nm1\n5\n", words: []string{"q", "root", "0", "0", "id -un"}, status: "needs-root"},
		{name: "cut input", input: "M\nm1\n5\n3\nab", words: []string{"q", "user", "1", "0", "echo never"}, exit: 91},
		{name: "no length", input: "M\nm1\n5\nab\n", words: []string{"q", "user", "1", "0", "echo never"}, exit: 91},
	} {
		words := ""
		for _, w := range append([]string{strings.TrimSpace(watchdog), "PATH=/usr/bin:/bin\n"}, tc.words...) {
			words += " " + quote(w)
		}
		stdout, stderr, exit := run(t, m, "m1", "printf '%s' "+quote(tc.input)+" | perl -e"+words)
		wantOut, wantErrs := one(tc.out, tc.errs, tc.status)
		if tc.exit != 0 {
			wantOut, wantErrs = "", ""
		}
		if stdout != wantOut || stderr != wantErrs || exit != tc.exit {
			t.Errorf("%s: exit %d, stdout %q, stderr %q", tc.name, exit, stdout, stderr)
		}
	}
	// As root it becomes the login user.
	text := "printf 'M\\nm1\\n5\\n' | sudo perl -e " + quote(strings.TrimSpace(watchdog)) + " '' a user 0 0 'echo $(id -un) $HOME $USER' b root 0 0 'id -un'"
	if stdout, stderr, _ := run(t, m, "m1", text); stdout != "\nM host 0\n"+framed("a", "m1 /Users/m1 m1\n", "0")+framed("b", "root\n", "0")+done {
		t.Errorf("as root: %q, %q", stdout, stderr)
	}
}

func TestStartupFiles(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	ok(t, m.WriteFile("/etc/zshenv", []byte("export FROM=zshenv; echo noise\n"), 0, 0, 0o644))
	equal(t, must(t, m, "m1", "zsh -c 'echo $FROM'; echo ${FROM-none}"), "noise\nzshenv\nnone\n")
	must(t, m, "m1", "echo 'exit 9' >.zshenv")
	if _, _, exit := run(t, m, "m1", "zsh -c 'echo never'"); exit != 9 {
		t.Errorf("exit %d", exit)
	}
}
