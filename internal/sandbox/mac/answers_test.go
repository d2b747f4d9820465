package mac

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// asks are questions that read the machine in each way that a question can.
var asks = []string{
	"cat /tmp/f 2>&1", "stat -f '%i %c %m %z %Lp %Su' /tmp/f", "ls /tmp", "ls -l /tmp/f", "readlink /tmp/l", "[ -r /tmp/l/f ]; echo $?", "[ -e /tmp/nothing ]; echo $?",
	"for f in /tmp/*; do echo $f; done", "shasum -a 256 /tmp/f", "pmset -g custom", "defaults read /Library/Preferences/x", "df -k /", "launchctl print system",
	"launchctl list", "ps -axo pid=,etime=,command=", "date +%s", "pfctl -s info", "pfctl -s rules", "scutil --get ComputerName; uptime", "sudo -n -l >/dev/null 2>&1; echo $?", "who", "sw_vers",
	"command -v tart; type cat", "fdesetup status", "ioreg -rd1 -c IOPlatformExpertDevice", "dscl . -read /Users/m1 UserShell", "visudo -c",
}

// TestRememberedAnswers changes a machine in many ways between two equal questions: the second answer is the one that
// a machine without a memory gives.
func TestRememberedAnswers(t *testing.T) {
	t.Parallel()
	tool := func(script string) func(*testing.T, *Machine) {
		return func(t *testing.T, m *Machine) { must(t, m, "root", script) }
	}
	byHand := func(change func(root string) error) func(*testing.T, *Machine) {
		return func(t *testing.T, m *Machine) {
			ok(t, change(m.Root()))
		}
	}
	call := func(change func(m *Machine) error) func(*testing.T, *Machine) {
		return func(t *testing.T, m *Machine) {
			ok(t, change(m))
		}
	}
	for name, change := range map[string]func(*testing.T, *Machine){
		"nothing":       tool("true"),
		"content":       tool("echo g >/tmp/f"),
		"mode":          tool("chmod 600 /tmp/f"),
		"owner":         tool("chown m1 /tmp/f"),
		"new file":      tool("echo n >/tmp/nothing"),
		"removed":       tool("rm /tmp/f"),
		"renamed":       tool("mv /tmp/f /tmp/h; mv /tmp/h /tmp/f"),
		"replaced":      tool("echo f >/tmp/h; mv /tmp/h /tmp/f"),
		"other link":    tool("rm /tmp/l; ln -s /etc /tmp/l"),
		"closed folder": tool("chmod 700 /tmp"),
		"settings":      tool("pmset -a sleep 7; scutil --set ComputerName other; defaults write /Library/Preferences/x a 2"),
		"job":           tool("printf '<plist><dict><key>Label</key><string>x</string><key>ProgramArguments</key><array><string>/bin/sleep</string><string>900</string></array><key>RunAtLoad</key><true/></dict></plist>' >/Library/LaunchDaemons/x.plist; launchctl bootstrap system /Library/LaunchDaemons/x.plist"),
		"rules":         tool("printf 'pass\\n' | pfctl -e -f - 2>/dev/null || :"),
		"content by hand": byHand(func(root string) error {
			return os.WriteFile(filepath.Join(root, "private/tmp/f"), []byte("h\n"), 0o644)
		}),
		"big file elsewhere": tool("i=0; while [ $i -lt 60 ]; do printf '%0100d' 0; i=$((i + 1)); done >/tmp/big"),
		"content by hand, same stamp": byHand(func(root string) error {
			file := filepath.Join(root, "private/tmp/f")
			info, err := os.Stat(file)
			if err != nil {
				return err
			}
			return errors.Join(os.WriteFile(file, []byte("i\n"), 0o644), os.Chtimes(file, info.ModTime(), info.ModTime()))
		}),
		"name by hand, same stamp": byHand(func(root string) error {
			folder := filepath.Join(root, "private/tmp")
			info, err := os.Stat(folder)
			if err != nil {
				return err
			}
			return errors.Join(os.Rename(folder+"/l", folder+"/m"), os.Chtimes(folder, info.ModTime(), info.ModTime()))
		}),
		"removed by hand": byHand(func(root string) error { return os.Remove(filepath.Join(root, "private/tmp/f")) }),
		"new by hand":     byHand(func(root string) error { return os.WriteFile(filepath.Join(root, "private/tmp/nothing"), nil, 0o644) }),
		"replaced by hand": byHand(func(root string) error {
			return os.Rename(filepath.Join(root, "private/tmp/l"), filepath.Join(root, "private/tmp/f"))
		}),
		"clock":             call(func(m *Machine) error { return m.Advance(time.Hour) }),
		"boot":              call(func(m *Machine) error { return m.Reboot(t.Context()) }),
		"full disk":         call(func(m *Machine) error { return m.SetFree(4096) }),
		"a program by hand": byHand(func(root string) error { return os.MkdirAll(filepath.Join(root, "usr/local/bin/tart"), 0o755) }),
		"sudo rules by hand": byHand(func(root string) error {
			return os.WriteFile(filepath.Join(root, "private/etc/sudoers.d/x"), []byte("broken ("), 0o644)
		}),
		"an empty ledger by hand": byHand(func(root string) error {
			return os.WriteFile(filepath.Join(filepath.Dir(root), ledgerFile), []byte("{}"), 0o600)
		}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			must(t, m, "root", "echo f >/tmp/f; ln -s . /tmp/l; defaults write /Library/Preferences/x a 1; chmod 755 /tmp")
			for range 2 {
				askAll(t, m)
			}
			change(t, m)
			var wrong []string
			for range 5 { // a second may pass between the two
				if wrong = differ(t, m); len(wrong) == 0 {
					return
				}
			}
			t.Errorf("remembered, and now:\n%s", strings.Join(wrong, "\n"))
		})
	}
}

// differ lists the questions whose remembered answer differs from the one without a memory.
func differ(t *testing.T, m *Machine) (all []string) {
	t.Helper()
	for as, said := range askAll(t, m) {
		for i, got := range said {
			if want := plainly(t, m, as, asks[i]); got != want {
				all = append(all, asks[i]+":\n"+got+"\n"+want)
			}
		}
	}
	return all
}

// plainly runs a question without the watchdog, so nothing is remembered.
func plainly(t *testing.T, m *Machine, as, script string) string {
	t.Helper()
	out, _, _ := run(t, m, as, "cd /; "+script)
	return out
}

// askEach is a command that asks all questions as root and as the login user in one exchange.
func askEach() string {
	words := []string{"perl", "-e", quote(strings.TrimSpace(watchdog)), quote("cd /; ")}
	for _, as := range []string{"root", "user"} {
		for _, script := range asks {
			words = append(words, "q", as, "0", "0", quote(script))
		}
	}
	return "printf 'M\\nm1\\n60\\n' | " + strings.Join(words, " ")
}

// askAll returns what each question printed on its standard output, by user.
func askAll(t *testing.T, m *Machine) map[string][]string {
	t.Helper()
	said := must(t, m, "root", askEach())
	var all []string
	for part := range strings.SplitSeq(said, "\nM begin q\n") {
		body, _, _ := strings.Cut(part, "\nM end ")
		all = append(all, body)
	}
	if all = all[1:]; len(all) != 2*len(asks) {
		t.Fatalf("%d answers in %q", len(all), said)
	}
	return map[string][]string{"root": all[:len(asks)], "m1": all[len(asks):]}
}

// TestRemembers: a question that reads nothing new does not run again. Where remembered answers are checked, a wrong one
// is an error; without a memory there is none.
func TestRemembers(t *testing.T) {
	t.Parallel()
	const serial = "REMEMBERED1"
	m := newMachine(t, func(f *Factory) { f.Serial = serial })
	askAll(t, m)
	allAnswers.mu.Lock()
	for e := allAnswers.recent.Front(); e != nil; e = e.Next() {
		if one := e.Value.(*remembered); strings.Contains(string(one.stdout), serial) {
			one.stdout = []byte("from memory")
		}
	}
	allAnswers.mu.Unlock()
	said, errs, _ := run(t, m, "root", askEach())
	wanted := map[string][2]int{"": {2, 0}, "check": {0, 2}, "off": {0, 0}}[answersMode()] // asked as two users
	equal(t, [2]int{strings.Count(said, "from memory"), strings.Count(errs, "the remembered answer is different now")}, wanted, "used, and found wrong")
}

// TestAnswerExpires: an answer that holds until a time does not count from then on.
func TestAnswerExpires(t *testing.T) {
	t.Parallel()
	s, err := newMachine(t).session()
	ok(t, err)
	defer s.close()
	for _, tc := range []struct {
		until time.Time
		holds bool
	}{{time.Time{}, true}, {time.Now().Add(time.Hour), true}, {time.Now().Add(-time.Second), false}} {
		p := &proc{session: s}
		equal(t, p.holds(&remembered{until: tc.until}, new(snapshot)), tc.holds, "until", tc.until, "holds")
	}
}
