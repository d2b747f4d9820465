package mac

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestHandEdits(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	put := func(name, text string) {
		t.Helper()
		path := filepath.Join(m.Root(), name)
		ok(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)))
	}
	put("/etc/macfleet/host.json", "{}")
	put("/Users/m1/notes", "x")
	// A new file of a person belongs to root, or in the user's home to the user.
	if got := must(t, m, "m1", "stat -f '%Su %Sg %Lp' /etc/macfleet /etc/macfleet/host.json ~/notes"); got != "root wheel 755\nroot wheel 644\nm1 staff 644\n" {
		t.Errorf("got %q", got)
	}
	put("/Library/Preferences/com.apple.PowerManagement.plist", "<?xml version=\"1.0\"?>\n<!-- by hand --><plist version=\"1.0\"><dict><key>AC Power</key><dict><key>System Sleep Timer</key><integer>42</integer></dict></dict></plist>")
	equal(t, must(t, m, "m1", "pmset -g custom | grep ' sleep '"), " sleep                42\n")
	// The entry of a removed file does not apply to a new file of the same name.
	must(t, m, "root", "echo secret >/etc/secret; chmod 600 /etc/secret")
	ok(t, os.Remove(filepath.Join(m.Root(), "/etc/secret")))
	must(t, m, "root", "touch /etc/other; chmod 640 /etc/other")
	put("/etc/secret", "no more")
	equal(t, must(t, m, "m1", "cat /etc/secret"), "no more")
}

func TestDamagedSettings(t *testing.T) {
	t.Parallel()
	for _, damage := range []string{"", "<plist><dict><key>", "bplist00\xff\xff\xff", "\x00\x01", "<plist><array/></plist>", strings.Repeat("<array>", 20_000)} {
		m := newMachine(t)
		for _, name := range []string{powerPlist, namesPlist, "/Library/Preferences/x.plist"} {
			ok(t, m.WriteFile(name, []byte(damage), 0, 0, 0o644))
		}
		for script, want := range map[string]string{
			"pmset -g custom": "Error reading", "pmset -a sleep 0": "Error writing", "scutil --get ComputerName": "not set",
			"scutil --set ComputerName x": "SCPreferences", "defaults read /Library/Preferences/x a": "does not exist",
			"defaults write /Library/Preferences/x a b": "Could not write domain",
		} {
			if _, stderr, exit := run(t, m, "root", script); exit != 1 || !strings.Contains(stderr, want) {
				t.Errorf("%.20q: %s: exit %d, stderr %q", damage, script, exit, stderr)
			}
		}
	}
	m := newMachine(t)
	must(t, m, "root", "rm "+namesPlist+" "+powerPlist)
	if _, stderr, exit := run(t, m, "root", "scutil --get ComputerName"); exit != 1 || stderr != "ComputerName: not set\n" {
		t.Errorf("exit %d, stderr %q", exit, stderr)
	}
	must(t, m, "root", "scutil --set ComputerName x; pmset -a sleep 0; pmset -g custom | grep -q ' sleep  *0$'")
}

func TestLinksStayInside(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	outside := t.TempDir()
	ok(t, os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o644))
	for name, target := range map[string]string{"abs": outside, "up": "../../../../../../../../../../.." + outside, "loop": "loop"} {
		ok(t, os.Symlink(target, filepath.Join(m.Root(), "private/tmp", name)))
	}
	for _, script := range []string{"cat /tmp/abs/secret", "cat /tmp/up/secret", "cat </tmp/up/secret", "echo x >/tmp/abs/secret", "ls /tmp/abs/", "cat /tmp/loop", "rm -r /tmp/abs/secret", "cd /tmp/abs", ". /tmp/abs/secret"} {
		if stdout, _, exit := run(t, m, "root", script); exit == 0 || stdout != "" {
			t.Errorf("%s: exit %d, %q", script, exit, stdout)
		}
	}
	if _, err := m.ReadFile("/tmp/up/secret"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("ReadFile: %v", err)
	}
	if err := m.WriteFile("/tmp/loop/x", nil, 0, 0, 0o644); err == nil {
		t.Error("WriteFile followed a circle of links")
	}
	if err := m.Remove("/tmp"); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(filepath.Join(outside, "secret")); err != nil || string(text) != "secret" {
		t.Errorf("outside: %q, %v", text, err)
	}
	equal(t, must(t, m, "root", "echo ~/x; cd /; echo ../../e*; cat ../../etc/sudoers | wc -l | tr -d ' '"), "/var/root/x\n../../etc\n6\n")
}

func TestHostileScripts(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	ok(t, m.WriteFile("/usr/local/bin/again", []byte("#!/bin/sh\n\"$0\"\n"), 0, 0, 0o755))
	for _, script := range []string{
		"f() { f; }; f", "x='eval \"$x\"'; eval \"$x\"", "/usr/local/bin/again", strings.Repeat("(", 100_000),
		strings.Repeat("if ", 20_000), "cat /\x00etc/sudoers", "cat " + strings.Repeat("a/", 5_000), "f() { $(f); }; f",
		"dd bs=99999999999 count=1", "head -n -5 /etc/hosts", "tr a", "cut -f 0", "stat -f '%", "stat -f '%H%' /etc", "chmod 99999 /etc", "date +%Q",
	} {
		if _, _, exit := run(t, m, "m1", script); exit == 0 {
			t.Errorf("%.40q: succeeded", script)
		}
	}
	huge := strings.Repeat("x", 300_000)
	equal(t, must(t, m, "m1", "printf %s "+huge+" | wc -c | tr -d ' '"), "300000\n")
	if _, stderr, exit := run(t, m, "m1", "touch "+huge); exit != 1 || !strings.Contains(stderr, "File name too long") {
		t.Errorf("exit %d, %.100q", exit, stderr)
	}
}

func TestTwoMachinesOneFolder(t *testing.T) {
	t.Parallel()
	first := newMachine(t)
	second, err := Open(filepath.Dir(first.Root()))
	ok(t, err)
	const each = 30
	var wg sync.WaitGroup
	for i, m := range []*Machine{first, second, first, second} {
		wg.Go(func() {
			for n := range each {
				script := fmt.Sprintf("f=$(mktemp /etc/w.XXXXXX); chmod 0640 $f; mv $f /etc/w-%d-%d; pmset -a sleep %d; defaults write /Library/Preferences/all k%d-%d -int 1; mkdir /etc/once 2>/dev/null && echo won >>/etc/winners", i, n, n, i, n)
				if _, stderr, _ := run(t, m, "root", script); stderr != "" {
					t.Errorf("stderr %q", stderr)
				}
			}
		})
	}
	wg.Wait()
	got := must(t, second, "root", "cat /etc/winners; stat -f %Lp /etc/w-* | sort | uniq -c; grep -c '<key>' /Library/Preferences/all.plist")
	equal(t, got, fmt.Sprintf("won\n %d 640\n%d\n", 4*each, 4*each))
}

func TestCreate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"root", "a b", "../x", ""} {
		f := factory()
		f.User = name
		if _, err := Create(filepath.Join(dir, "mac"), f); err == nil {
			t.Errorf("the user %q was accepted", name)
		}
	}
	if _, err := Create(dir, factory()); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over another folder: %v", err)
	}
	if _, err := Open(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty folder: %v", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
	m := newMachine(t)
	if _, err := m.Run(t.Context(), "ghost", "true"); err == nil {
		t.Error("a user that does not exist ran a script")
	}
	ok(t, m.WriteFile("/opt/a/b", []byte("x"), 501, 20, 0o600))
	equal(t, must(t, m, "root", "stat -f '%Su %Sg %Lp' /opt/a /opt/a/b"), "root wheel 755\nm1 staff 600\n")
	if data, err := m.ReadFile("/opt/a/b"); err != nil || !bytes.Equal(data, []byte("x")) {
		t.Errorf("read %q, %v", data, err)
	}
}

func BenchmarkCreate(b *testing.B) {
	dir := b.TempDir()
	start := time.Now()
	for n := 0; b.Loop(); n++ {
		if _, err := Create(filepath.Join(dir, fmt.Sprint(n)), factory()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(time.Since(start).Milliseconds())*500/float64(b.N), "ms/500")
}
