package mac

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// The vectors are files from Macs, written by macOS and other tools.
func TestOpenKcpassword(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		data, want string
		ok         bool
	}{
		{"1ced3f4abcbcba2ccaca4e82", "admin", true},
		{"0de82150a5d3af8ea3", "password", true},
		{"1cb86010e689ebdd9b802f7d", "a1234567890", true},
		{"1cb86010e689ebdd9b802f", "a1234567890", false}, // eleven bytes without an end: no login
		{"7d", "", true},
		{"", "", false},
		{"41fa3742bed9b9d4a3b91f", "<sealed>", true},
		{hex.EncodeToString([]byte("1CED3F4ABCBC\n")), "admin", true}, // in hexadecimal
	} {
		data, err := hex.DecodeString(c.data)
		ok(t, err)
		if got, ok := openKcpassword(data); got != c.want || ok != c.ok {
			t.Errorf("%s: %q %t, want %q %t", c.data, got, ok, c.want, c.ok)
		}
	}
	equal(t, hex.EncodeToString(sealedKcpassword()), "41fa3742bed9b9d4a3b91f", "sealed")
}

func TestKcpasswordComesBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		password := rapid.StringMatching(`[^\x00]{0,40}`).Draw(t, "password")
		size := rapid.IntRange(1, 12).Draw(t, "size")
		tail := rapid.SliceOf(rapid.Byte()).Draw(t, "tail")
		data := append(newKcpassword(password, size), tail...)
		if got, ok := openKcpassword(data); !ok || got != password {
			t.Fatalf("%q: got %q %t", password, got, ok)
		}
	})
}

func FuzzKcpassword(f *testing.F) {
	f.Add([]byte("41fa3742bed9b9d4a3b91f"))
	f.Add(sealedKcpassword())
	f.Fuzz(func(t *testing.T, data []byte) {
		if password, ok := openKcpassword(data); strings.Contains(password, "\x00") || !ok && len(password) > len(data) {
			t.Errorf("%q %t", password, ok)
		}
	})
}

// tries returns how often each tool tried a right and a wrong password, such as "sudo:wrong
// loginwindow:right".
func tries(t *testing.T, m *Machine) string {
	t.Helper()
	all, err := m.PasswordTries()
	ok(t, err)
	var words []string
	for _, try := range all {
		word := "wrong"
		if try.Right {
			word = "right"
		}
		if try.Locked {
			word += "-refused"
		}
		words = append(words, try.Tool+":"+word)
	}
	return strings.Join(words, " ")
}

func screen(t *testing.T, m *Machine) Screen {
	t.Helper()
	s, err := m.Screen()
	ok(t, err)
	return s
}

func wantScreen(t *testing.T, m *Machine, what string, want Screen) {
	t.Helper()
	if d := cmp.Diff(want, screen(t, m)); d != "" {
		t.Errorf("%s: -want +got:\n%s", what, d)
	}
}

const setUser = "defaults write /Library/Preferences/com.apple.loginwindow autoLoginUser -string m1"

func TestAutomaticLogin(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	fresh := Screen{Loginwindow: true}
	wantScreen(t, m, "fresh", fresh)
	ok(t, m.RestartLoginwindow())
	wantScreen(t, m, "nothing is set up", fresh)

	// A script writes the file byte by byte, in a different format than macOS.
	const write = `printf '\016\376\075\121\266\332\264\231\313\271\037' >/etc/kcpassword && chmod 600 /etc/kcpassword`
	must(t, m, "root", write)
	ok(t, m.RestartLoginwindow())
	wantScreen(t, m, "a file without a user", fresh)
	must(t, m, "root", setUser)
	wantScreen(t, m, "nothing happens before the kick", Screen{Loginwindow: true, AutoLogin: true})
	ok(t, m.RestartLoginwindow())
	wantScreen(t, m, "both", Screen{User: "m1", Loginwindow: true, AutoLogin: true})
	equal(t, tries(t, m), "loginwindow:right", "tries")

	must(t, m, "root", "defaults write /Library/Preferences/com.apple.loginwindow com.apple.login.mcx.DisableAutoLoginClient -bool true")
	ok(t, m.RestartLoginwindow())
	wantScreen(t, m, "forbidden", fresh)
	must(t, m, "root", "defaults delete /Library/Preferences/com.apple.loginwindow com.apple.login.mcx.DisableAutoLoginClient")
	ok(t, m.SetFileVault(true), m.RestartLoginwindow())
	wantScreen(t, m, "encrypted", Screen{Loginwindow: true, FileVault: true, AutoLogin: true})
	equal(t, tries(t, m), "loginwindow:right", "no new tries")
}

func TestWrongPasswordIsSealed(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	must(t, m, "root", setUser)
	for _, c := range []struct{ what, content string }{
		{"wrong", `\175`}, {"right, without an end", `\016\376\075\121\266\332\264\231\313`},
	} {
		must(t, m, "root", "printf '"+c.content+"' >/etc/kcpassword")
		ok(t, m.RestartLoginwindow())
		wantScreen(t, m, c.what, Screen{Loginwindow: true, Sealed: true})
	}
	if got := must(t, m, "root", "stat -f '%Su %Sg %Lp %z' /etc/kcpassword; xxd -p /etc/kcpassword"); got != "root wheel 600 11\n41fa3742bed9b9d4a3b91f\n" {
		t.Errorf("the sealed file: %q", got)
	}
	ok(t, m.RestartLoginwindow())
	equal(t, tries(t, m), "loginwindow:wrong loginwindow:wrong", "a sealed file has no password to try")
}

// TestSealedByDesign checks the other behaviour: the file has the mark although all is well.
func TestSealedByDesign(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	ok(t, m.SetSwitch(sealSwitch, sealsAll), m.SetAutoLogin(), m.RestartLoginwindow())
	well := Screen{User: "m1", Loginwindow: true, Sealed: true}
	wantScreen(t, m, "first", well)
	ok(t, m.RestartLoginwindow())
	wantScreen(t, m, "again", well)
	ok(t, m.SetPassword("changed"), m.RestartLoginwindow())
	wantScreen(t, m, "after a change of the password", Screen{Loginwindow: true, Sealed: true})
	ok(t, m.RestartLoginwindow())
	equal(t, tries(t, m), "loginwindow:right loginwindow:right loginwindow:wrong", "tries")
}

func TestKillall(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	ok(t, m.SetAutoLogin(), m.RestartLoginwindow())
	if _, stderr, exit := run(t, m, "m1", "killall -HUP loginwindow"); exit != 1 || stderr != "No matching processes belonging to you were found\n" {
		t.Errorf("as a user: %d %q", exit, stderr)
	}
	must(t, m, "root", "killall -HUP loginwindow")
	dead := Screen{AutoLogin: true}
	wantScreen(t, m, "killed", dead)
	if _, stderr, exit := run(t, m, "root", "killall -HUP loginwindow"); exit != 1 || stderr != "No matching processes were found\n" {
		t.Errorf("dead: %d %q", exit, stderr)
	}
	wantScreen(t, m, "it does not come back", dead)
	ok(t, m.RestartLoginwindow())
	wantScreen(t, m, "restarted", Screen{User: "m1", Loginwindow: true, AutoLogin: true})
}

func TestConsoleTools(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	show := func(script string) string {
		t.Helper()
		return must(t, m, "m1", script)
	}
	const owner = "stat -f '%Su %u %Sg %HT' /dev/console; [ -e /dev/console ] && ls -l /dev/console | cut -c 1-10; ls /dev; who | tr -s ' ' | cut -d ' ' -f 1,2"
	const store = "echo 'show State:/Users/ConsoleUser' | scutil | grep -E '^  (Name|UID) : '"
	equal(t, show(owner), "root 0 wheel Character Device\ncrw-------\nconsole\n", "at the login window")
	equal(t, show(store), "  Name : loginwindow\n  UID : 0\n", "at the login window")
	ok(t, m.LogIn())
	equal(t, show(owner), "m1 501 staff Character Device\ncrw--w----\nconsole\nm1 console\n", "in a session")
	equal(t, show(store), "  Name : m1\n  UID : 501\n", "in a session")
	ok(t, m.StopLoginwindow())
	equal(t, show("echo 'show State:/Users/ConsoleUser' | scutil"), "  No such key\n", "without loginwindow")
	ok(t, m.SetFileVault(true))
	equal(t, show("fdesetup status"), "FileVault is On.\n", "encrypted")
	for _, script := range []string{"echo x >/dev/console", "cat /dev/console", "rm -f /dev/console", "echo x >/dev/new", "mkdir /dev/d"} {
		if _, _, exit := run(t, m, "root", script); exit == 0 {
			t.Errorf("%s: done", script)
		}
	}
}

func TestBinaryFiles(t *testing.T) {
	check(t, "root", []row{
		// The tools with which scripts write and read bytes.
		{script: `printf '\175\000\377\012a\0001' >/tmp/b; od -An -v -tx1 /tmp/b; od -An -v -t x1 /tmp/b | tr -d ' \n'`,
			stdout: "           7d  00  ff  0a  61  00  31                                    \n7d00ff0a610031"},
		{script: "xxd -p /tmp/b; xxd -p -c 3 /tmp/b; xxd -p -l 2 </tmp/b; printf 41fa37 | xxd -r -p | od -An -v -tx1 -N 2 | tr -d ' \\n'", stdout: "7d00ff0a610031\n7d00ff\n0a6100\n31\n7d00\n41fa"},
		{script: "base64 </tmp/b; base64 </tmp/b | base64 -D | cmp - /tmp/b && echo same; dd if=/tmp/b bs=1 count=3 2>/dev/null | xxd -p; dd bs=1 count=3 </tmp/b 2>/dev/null | wc -c", stdout: "fQD/CmEAMQ==\nsame\n7d00ff\n       3\n"},
		{script: `tr '\377' '\101' </tmp/b | xxd -p; tr -d '\000' </tmp/b | xxd -p; tr -d '\000-\037' </tmp/b | xxd -p`, stdout: "7d00410a610031\n7dff0a6131\n7dff6131\n"},
		{script: `printf '\175\000\377\013a\0001' | cmp - /tmp/b; printf '\175' | cmp -s - /tmp/b`, stdout: "- /tmp/b differ: char 4, line 1\n", exit: 1},
		{script: "x=$(printf '%03o' 253); printf \"\\\\$x\" | xxd -p; printf '%b' '\\0375' | xxd -p", stdout: "fd\nfd\n"},
		{script: "xxd /tmp/b; od /tmp/b; xxd -p /nope; od -An -v -tx1 /nope", exit: 1,
			stderr: "xxd: option not modelled: xxd without -p, or with an output file\nod: option not modelled: od without -An -v -tx1\nxxd: /nope: No such file or directory\nod: /nope: No such file or directory\n"},
		{script: "i=0; while [ $i -lt 40 ]; do printf a; i=$((i+1)); done >/tmp/l; xxd -p /tmp/l; od -An -v -tx1 /tmp/l | wc -l", stdout: strings.Repeat("61", 30) + "\n" + strings.Repeat("61", 10) + "\n       3\n"},
	})
}
