package mac

import (
	"strings"
	"testing"
)

func needsPassword(f *Factory) { f.PasswordlessSudo = false }

// unlectured is a Mac whose sudo only asks for a password.
func unlectured(t *testing.T) *Machine {
	t.Helper()
	m := newMachine(t, needsPassword)
	ok(t, m.SetSwitch(lectureSwitch, "never"))
	return m
}

func TestLockout(t *testing.T) {
	t.Parallel()
	for limit, last := range map[string]int{"10": 10, "5": 5} {
		m := unlectured(t)
		ok(t, m.SetSwitch(lockoutSwitch, limit))
		right := func() bool {
			_, _, exit := run(t, m, "m1", "echo swordfish | sudo -S -p '' true")
			return exit == 0
		}
		wrong := func(n int) {
			for range n {
				run(t, m, "m1", "dscl . -authonly m1 wrong")
			}
		}
		wrong(last - 1)
		if !right() {
			t.Errorf("limit %s: locked too early", limit)
		}
		wrong(last - 1)
		if !right() {
			t.Errorf("limit %s: a correct password does not reset the tally", limit)
		}
		wrong(last)
		if right() {
			t.Errorf("limit %s: not locked", limit)
		}
		if _, _, exit := run(t, m, "m1", "dscl . -authonly m1 swordfish"); exit == 0 {
			t.Errorf("limit %s: dscl accepts the password of a locked account", limit)
		}
		all, err := m.PasswordTries()
		if err != nil || len(all) != 3*last+2 {
			t.Errorf("%d tries, %v", len(all), err)
		}
		if end := all[len(all)-1]; !end.Right || !end.Locked || end.At.IsZero() {
			t.Errorf("the last try: %+v", end)
		}
		if got := must(t, m, "m1", "dscl . -read /Users/m1 AuthenticationAuthority"); !strings.HasSuffix(got, " ;tally;\n") {
			t.Errorf("a locked account's record: %q", got)
		}
		must(t, m, "root", "dscl . -delete /Users/m1 AuthenticationAuthority ';tally;'")
		if !right() {
			t.Errorf("limit %s: still locked", limit)
		}
		wrong(last)
		must(t, m, "root", "pwpolicy -u m1 -clearaccountpolicies")
		if got := must(t, m, "m1", "dscl . -read /Users/m1 AuthenticationAuthority"); strings.Contains(got, "tally") {
			t.Errorf("an unlocked account's record: %q", got)
		}
		if !right() {
			t.Errorf("limit %s: still locked after pwpolicy", limit)
		}
	}
}

// TestTriesAreBounded checks that a loop of tries does not fill the disk.
func TestTriesAreBounded(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	err := m.asRoot(func(v *visit, _ *proc) error {
		a := account{Tries: make([]PasswordTry, maxTriesKept)}
		if err := v.keepAccount(a); err != nil {
			return err
		}
		_, err := v.authenticate("sudo", v.session.loginUser(), "swordfish")
		return err
	})
	ok(t, err)
	all, err := m.PasswordTries()
	if err != nil || len(all) != maxTriesKept || !all[len(all)-1].Right {
		t.Errorf("%d tries, %v", len(all), err)
	}
}

func TestDirectory(t *testing.T) {
	check(t, "m1", []row{
		{script: "dscl . -read /Users/m1 UniqueID PrimaryGroupID NFSHomeDirectory UserShell; dscl . -read /Users/m1 Picture", stdout: "UniqueID: 501\nPrimaryGroupID: 20\nNFSHomeDirectory: /Users/m1\nUserShell: /bin/zsh\nNo such key: Picture\n"},
		{script: "dscl . -read /Users/ghost UniqueID", stderr: "<dscl_cmd> DS Error: -14136 (eDSRecordNotFound)\n", exit: 56},
		{script: "dscl . -authonly m1 swordfish && dscl /Local/Default -authonly m1 swordfish"},
		{script: "dscl . -authonly m1 wrong", stderr: "Authentication for node /Local/Default failed. (-14090, eDSAuthFailed)\n", exit: 78},
		{script: "dscl . -authonly ghost x", stderr: "Authentication for node /Local/Default failed. (-14136, eDSRecordNotFound)\n", exit: 56},
		{script: "dscl . -authonly root x 2>/dev/null", exit: 78},
		// Without a password dscl would ask for one at a terminal.
		{script: "dscl . -authonly m1", stderr: "dscl: option not modelled: . -authonly\n", exit: 64},
		{script: "dscl . -passwd /Users/m1 new", stderr: "<dscl_cmd> DS Error: -14120 (eDSPermissionError)\n", exit: 40},
		{script: "sudo dscl . -delete /Users/m1 AuthenticationAuthority ';tally;'", stderr: "<dscl_cmd> DS Error: -14134 (eDSAttributeNotFound)\n", exit: 54},
		{script: "sudo dscl . -passwd /Users/m1 new && dscl . -authonly m1 new && dscl . -authonly m1 swordfish 2>/dev/null", exit: 78},
		{script: "dscl localhost -authonly m1 secret; dscl", stderr: "dscl: option not modelled: localhost\ndscl: option not modelled: \n", exit: 64},
		{script: "dscl . -create /Users/m1 Password secret", stderr: "dscl: option not modelled: . -create\n", exit: 64},
	})
}

func TestSwitches(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	seen := map[string]bool{}
	for _, s := range Switches() {
		if seen[s.Name] || s.Summary == "" || len(s.Values) < 2 {
			t.Errorf("%+v", s)
		}
		seen[s.Name] = true
		ok(t, m.SetSwitch(s.Name, s.Values[1]))
	}
	values, err := m.Switched()
	ok(t, err)
	for i, s := range Switches() {
		equal(t, values[i], s.Values[1], s.Name)
	}
	if _, _, exit := run(t, m, "m1", "dscl . -authonly m1 wrong"); exit != 10 {
		t.Errorf("exit %d", exit)
	}
	if err := m.SetSwitch("no-such-switch", "x"); err == nil {
		t.Error("an unknown switch was set")
	}
}

func TestSudoAsks(t *testing.T) {
	t.Parallel()
	m := unlectured(t)
	for _, want := range []row{
		{script: "sudo -v", stderr: "sudo: a terminal is required to read the password; either use the -S option to read from standard input or configure an askpass helper\nsudo: a password is required\n", exit: 1},
		{script: "sudo -A true", stderr: "sudo: option not modelled: -A\n", exit: 64},
		{script: "sudo -k; echo swordfish | sudo -k -S -p '' -v"},
		{script: "echo swordfish | sudo -S -p 'Word: ' id -u", stdout: "0\n", stderr: "Word: "},
		// The input after a wrong password is tried as a password too.
		{script: "printf 'wrong\\nsecret payload\\n' | sudo -S -p '' cat", stderr: "Sorry, try again.\nSorry, try again.\nsudo: no password was provided\nsudo: 2 incorrect password attempts\n", exit: 1},
	} {
		stdout, stderr, exit := run(t, m, "m1", want.script)
		equal(t, row{want.script, stdout, stderr, exit}, want)
	}
	ok(t, m.WriteFile("/etc/sudoers.d/m1", []byte("m1 ALL=(ALL) NOPASSWD: ALL\n"), 0, 0, 0o440))
	// sudo does not ask for the password, so its line becomes the command's.
	equal(t, must(t, m, "m1", "printf 'swordfish\\nrest' | sudo -S -p '' cat"), "swordfish\nrest")
	// -v asks anyway: the rule of the group has no NOPASSWD.
	if _, stderr, exit := run(t, m, "m1", "sudo -n -v"); exit != 1 || stderr != "sudo: a password is required\n" {
		t.Errorf("sudo -n -v: %d %q", exit, stderr)
	}
	before := tries(t, m)
	must(t, m, "m1", "echo swordfish | sudo -S -p '' -v")
	equal(t, tries(t, m), before+" sudo:right", "tries")
}

func TestBrokenSudoers(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	ok(t, m.WriteFile("/etc/sudoers.d/careless", []byte("# a comment\nm1 ALL=(ALL) NOPASSWD ALL\n"), 0, 0, 0o440))
	const fault = "/private/etc/sudoers.d/careless:2:26: syntax error\n"
	if _, stderr, exit := run(t, m, "m1", "sudo -n true"); exit != 0 || stderr != fault {
		t.Errorf("skipped: exit %d, %q", exit, stderr)
	}
	ok(t, m.SetSwitch(sudoersSwitch, sudoersFatal))
	for _, who := range []string{"m1", "root"} {
		_, stderr, exit := run(t, m, who, "sudo -n true")
		if exit != 1 || !strings.Contains(stderr, "parse error in /private/etc/sudoers.d/careless near line 2\nsudo: no valid sudoers sources found, quitting\n") {
			t.Errorf("fatal for %s: exit %d, %q", who, exit, stderr)
		}
	}
	ok(t, m.WriteFile("/etc/sudoers.d/.hidden.careless", []byte("m1\n"), 0, 0, 0o440), m.Remove("/etc/sudoers.d/careless"))
	must(t, m, "m1", "sudo -n true")
}

func TestVisudo(t *testing.T) {
	check(t, "root", []row{
		{script: "visudo -c", stdout: "/etc/sudoers: parsed OK\n/private/etc/sudoers.d/m1-nopasswd: parsed OK\n"},
		{script: "visudo -cq; echo 'm1 ALL=(ALL) NOPASSWD: ALL' >/tmp/s; visudo -cf /tmp/s; visudo -c -f /tmp/s", stdout: "/tmp/s: parsed OK\n/tmp/s: parsed OK\n"},
		{script: "printf 'm1 ALL=(ALL\\n' >/tmp/s; visudo -cf /tmp/s", stderr: "/tmp/s:1:12: syntax error\n", exit: 1},
		{script: "visudo -cf /nope", stderr: "visudo: unable to open /nope: No such file or directory\n", exit: 1},
		{script: "cp /tmp/s /etc/sudoers.d/bad; visudo -c; rm /etc/sudoers.d/bad", stdout: "/etc/sudoers: parsed OK\n/private/etc/sudoers.d/m1-nopasswd: parsed OK\n", stderr: "/private/etc/sudoers.d/bad:1:12: syntax error\n"},
		{script: "echo 'm1 ALL=ALL' >/etc/sudoers.d/open; chmod 644 /etc/sudoers.d/open; visudo -c; chown m1 /etc/sudoers.d/open; visudo -c", exit: 1,
			stdout: strings.Repeat("/etc/sudoers: parsed OK\n/private/etc/sudoers.d/m1-nopasswd: parsed OK\n", 2),
			stderr: "/private/etc/sudoers.d/open: bad permissions, should be mode 0440\n/private/etc/sudoers.d/open: wrong owner (uid, gid) should be (0, 0)\n"},
		{script: "echo '@include /tmp/loop' >/tmp/loop; visudo -cqf /tmp/loop", stderr: "visudo: /tmp/loop: too many levels of includes\n", exit: 1},
		{script: "visudo", stderr: "visudo: option not modelled: visudo without -c\n", exit: 64},
	})
}

func TestSudoersSyntax(t *testing.T) {
	t.Parallel()
	for text, good := range map[string]bool{
		"m1 ALL=(ALL) NOPASSWD: ALL": true, "m1 ALL = NOPASSWD: /bin/ls, PASSWD: /bin/cat -u, !/bin/sh": true, "%admin ALL=(ALL:ALL) ALL # all of them": true,
		"m1, m2 ALL=(root, daemon) NOPASSWD:SETENV: ALL": true, "#501 ALL=ALL": true, "Defaults:m1 !requiretty": true, "User_Alias ADMINS = m1, m2": true,
		"m1 ALL=(ALL) \\\n NOPASSWD: ALL": true, "": true, "# m1 what": true, "#includedir /nope": true,
		"m1": false, "m1 ALL": false, "m1 ALL=": false, "m1 ALL=(ALL": false, "m1 ALL=(ALL) NOPASSWD ALL": false, "m1 ALL=(ALL) NOPASWD: ALL": false,
		"m1 ALL=(ALL) NOPASSWD: ls": false, "m1 ALL=(ALL) NOPASSWD: ALL,": false, "what is this": false, "Defaults": false, "@nonsense": false,
	} {
		if _, fault := parseSudoers(text + "\n"); (fault == nil) != good {
			t.Errorf("%q: fault %v", text, fault)
		}
	}
}

func FuzzSudoers(f *testing.F) {
	f.Add("m1 ALL=(ALL) NOPASSWD: ALL\n")
	f.Add("m1 ALL = \\\n")
	f.Fuzz(func(t *testing.T, text string) {
		entries, fault := parseSudoers(text)
		if fault != nil && (len(entries) > 0 || fault.line < 1 || fault.line > strings.Count(text, "\n")+1) {
			t.Errorf("%d entries, fault %v", len(entries), fault)
		}
	})
}
