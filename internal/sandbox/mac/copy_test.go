package mac

import (
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// manyFiles makes files in each way that a Mac's tools have.
const manyFiles = `cd /tmp; echo one >made; echo two >moved.old; mv moved.old moved; echo three >mode; chmod 600 mode
mkdir -p deep/er; echo four >deep/er/in; mv deep deeper; ln made second; ln -s made symbolic; cp -p /etc/sudoers copied; touch touched
echo five >written; chmod 640 written; echo six >>written`

// seen lists what stat says of every file of the machine.
func seen(t *testing.T, m *Machine) string {
	t.Helper()
	return must(t, m, "root", `for f in /tmp/* /tmp/deeper/er/in /etc/* /Users/m1/.ssh/* /Library/Preferences/*; do stat -f '%i %Su %Lp %z %m %c %N' "$f"; done`)
}

// TestCopiedMachine: a copy of a machine's folder is the same machine: no inode number and no time of change differs.
func TestCopiedMachine(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		copy string // a script with the folders in $1 and $2
	}{
		{"cp", `cp -a "$1" "$2"`},
		{"tar", `mkdir "$2" && tar -C "$1" -cf "$2.tar" . && tar -C "$2" -xf "$2.tar"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			must(t, m, "root", manyFiles)
			ok(t, m.Advance(time.Hour))
			must(t, m, "root", "cd /tmp; echo late >late; chmod 600 late; mv late later")
			copied := filepath.Join(t.TempDir(), "copy")
			if out, err := osexec.Command("sh", "-c", tc.copy, "sh", m.dir, copied).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			same, err := Open(copied)
			ok(t, err)
			if a, b := seen(t, m), seen(t, same); a != b {
				t.Errorf("the machine's files:\n%s\nand the copy's:\n%s", a, b)
			}
		})
	}
}

// TestChanged: what changes a file changes its time, and what replaces it its number.
func TestChanged(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		script           string
		changed, renewed bool
	}{
		{script: "cat /tmp/f"},
		{script: "cp /tmp/f /tmp/g; rm /tmp/g"},
		{script: "chmod 600 /tmp/f", changed: true},
		{script: "chown m1 /tmp/f", changed: true},
		{script: "echo more >>/tmp/f", changed: true},
		{script: "touch /tmp/f", changed: true},
		{script: "ln /tmp/f /tmp/g", changed: true},
		{script: "mv /tmp/f /tmp/g; mv /tmp/g /tmp/f", changed: true},
		{script: "mv /tmp/older /tmp/f", changed: true, renewed: true},
		{script: "rm /tmp/f; echo f >/tmp/f", changed: true, renewed: true},
		{script: "cp -p /etc/sudoers /tmp/f", changed: true},
	} {
		t.Run(tc.script, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			must(t, m, "root", "echo f >/tmp/f; echo older >/tmp/older")
			look := func() (inode, changed string) {
				inode, changed, _ = strings.Cut(must(t, m, "root", "stat -f '%i %c' /tmp/f"), " ")
				return inode, changed
			}
			inode, changed := look()
			ok(t, m.Advance(time.Hour))
			must(t, m, "root", tc.script)
			if i, c := look(); (i != inode) != tc.renewed || (c != changed) != tc.changed {
				t.Errorf("inode %s, then %s; changed %s, then %s", inode, i, changed, c)
			}
		})
	}
}

// TestChangedByHand: the machine sees an edit of its files with an editor, and one of its ledger.
func TestChangedByHand(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	must(t, m, "root", "echo f >/tmp/f; chmod 600 /tmp/f")
	before := must(t, m, "root", "stat -f '%i %c' /tmp/f")
	file := filepath.Join(m.Root(), "private/tmp/f")
	later := time.Now().Add(time.Minute)
	ok(t, os.WriteFile(file, []byte("edited\n"), 0o644))
	ok(t, os.Chtimes(file, later, later))
	if after := must(t, m, "root", "stat -f '%i %c' /tmp/f"); after == before {
		t.Errorf("before and after: %s", after)
	}
}
