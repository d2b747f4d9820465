package hosts

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/macfleet/macfleet/plan"
)

func pinOf(t testing.TB, name, id string) plan.Pin {
	t.Helper()
	return plan.Pin{Name: name, ServerID: id, Key: keyText(newKey(t).PublicKey()),
		Since: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)}
}

// put returns a change that adds pins.
func put(pins ...plan.Pin) func([]plan.Pin) []plan.Pin {
	return func(have []plan.Pin) []plan.Pin { return append(have, pins...) }
}

func TestKnownHostsRoundTrip(t *testing.T) {
	t.Parallel()
	// The folder does not exist yet: the first run makes it.
	k := KnownHosts{Path: filepath.Join(t.TempDir(), "acme", "known_hosts")}
	if got, err := k.All(); err != nil || got != nil {
		t.Fatalf("All of a missing file = %v, %v, want nothing", got, err)
	}
	a, b, older := pinOf(t, "acme-1", "id-2"), pinOf(t, "acme-2", "id-1"), pinOf(t, "acme-1", "id-1")
	a.Serial, b.Serial, b.Unfinished = "C0700001", "C0700002", true
	a.Stage, a.Pooled, a.Earlier, a.Accepted = plan.Released, "acme pool", "SHA256:one SHA256:two", "ops@build 2026-03-04"
	must(t, k.Update(put(b, a, older)))
	want := []plan.Pin{older, a, b}
	got, err := k.All()
	must(t, err)
	is(t, "pins, by name and server id", got, want)
	text, err := os.ReadFile(k.Path)
	must(t, err)
	first := "acme-1,id-1 " + older.Key + " since=2026-03-04T05:06:07Z\n"
	if !strings.HasPrefix(string(text), first) {
		t.Errorf("file begins with %q, want ssh's own form %q", text, first)
	}
	info, err := os.Stat(k.Path)
	must(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode = %v, want 0600", info.Mode().Perm())
	}

	if err := k.Update(func(have []plan.Pin) []plan.Pin {
		return slices.DeleteFunc(have, func(p plan.Pin) bool { return p.Name == "acme-1" })
	}); err != nil {
		t.Fatal(err)
	}
	if got, err := k.All(); err != nil || !slices.Equal(got, []plan.Pin{b}) {
		t.Errorf("after a removal: %v, %v, want %v", got, err, b)
	}
	left, err := os.ReadDir(filepath.Dir(k.Path))
	must(t, err)
	if len(left) != 2 {
		t.Errorf("files other than the pins and their lock: %v", left)
	}
}

// TestKnownHostsUpdateWithoutChange leaves the file alone, comments included.
func TestKnownHostsUpdateWithoutChange(t *testing.T) {
	t.Parallel()
	k := KnownHosts{Path: filepath.Join(t.TempDir(), "known_hosts")}
	p := pinOf(t, "acme-1", "id-1")
	text := "# made by hand\n\n  acme-1,id-1 " + p.Key + " since=2026-03-04T05:06:07Z  \r\n"
	must(t, os.WriteFile(k.Path, []byte(text), 0o600))
	var seen []plan.Pin
	must(t, k.Update(func(have []plan.Pin) []plan.Pin { seen = have; return have }))
	is(t, "pins", seen, []plan.Pin{p})
	if got, err := os.ReadFile(k.Path); err != nil || string(got) != text {
		t.Errorf("file = %q, %v, want it untouched", got, err)
	}
}

func TestKnownHostsBrokenLine(t *testing.T) {
	t.Parallel()
	good := pinOf(t, "acme-1", "id-1")
	line := "acme-1,id-1 " + good.Key + " since=2026-03-04T05:06:07Z"
	base64 := strings.Fields(good.Key)[1]
	tests := []struct{ name, text string }{
		{"words", "what is this"},
		{"one word", "acme-9"},
		{"no server id", "acme-9 " + good.Key + " since=2026-03-04T05:06:07Z"},
		{"three names", "acme-9,id-9,x " + good.Key + " since=2026-03-04T05:06:07Z"},
		{"no time", "acme-9,id-9 " + good.Key},
		{"bad time", "acme-9,id-9 " + good.Key + " since=yesterday"},
		{"cut key", "acme-9,id-9 ssh-ed25519 " + base64[:20] + " since=2026-03-04T05:06:07Z"},
		{"type of another key", "acme-9,id-9 ssh-rsa " + base64 + " since=2026-03-04T05:06:07Z"},
		// ssh reads such a line as the opposite of a pin.
		{"revoked key", "@revoked acme-9,id-9 " + good.Key + " since=2026-03-04T05:06:07Z"},
		{"authority", "@cert-authority acme-9,id-9 " + good.Key + " since=2026-03-04T05:06:07Z"},
		{"revoked, written with a tab", "@revoked\tacme-9,id-9 " + good.Key + " since=2026-03-04T05:06:07Z"},
		{"revoked, without a time", "@revoked acme-9,id-9 " + good.Key},
		{"revoked for every host", "@revoked * " + good.Key},
		{"another mark", "@trusted acme-9,id-9 " + good.Key + " since=2026-03-04T05:06:07Z"},
		{"a mark in capitals", "@REVOKED acme-9,id-9 " + good.Key + " since=2026-03-04T05:06:07Z"},
		{"ssh's own line", "203.0.113.7 " + good.Key},
		{"ssh's own line with a name", "mac,203.0.113.7 " + good.Key},
		{"a port", "[acme-9]:2222 " + good.Key + " since=2026-03-04T05:06:07Z"},
		{"hashed", "|1|c2FsdHNhbHRzYWx0c2FsdHNhbHQ=|aGFzaGhhc2hoYXNoaGFzaGhhc2g= " + good.Key + " since=2026-03-04T05:06:07Z"},
		{"hashed, with a server id", "|1|c2FsdHNhbHRzYWx0c2FsdHNhbHQ=|aGFzaGhhc2hoYXNoaGFzaGhhc2g=,id-9 " + good.Key + " since=2026-03-04T05:06:07Z"},
		{"a pattern", "*,id-9 " + good.Key + " since=2026-03-04T05:06:07Z"},
		{"a negated name", "!acme-9,id-9 " + good.Key + " since=2026-03-04T05:06:07Z"},
		{"a port of a pin", "[acme-9]:2222,id-9 " + good.Key + " since=2026-03-04T05:06:07Z"},
		{"empty server id", "acme-9, " + good.Key + " since=2026-03-04T05:06:07Z"},
		{"empty name", ",id-9 " + good.Key + " since=2026-03-04T05:06:07Z"},
		{"unknown stage", "acme-9,id-9 " + good.Key + " since=2026-03-04T05:06:07Z stage=erasing"},
		// Longer than any reader's line buffer: nothing behind it may be lost.
		{"endless line", strings.Repeat("A", 1<<17)},
	}
	for _, tt := range tests {
		k := KnownHosts{Path: filepath.Join(t.TempDir(), "known_hosts")}
		text := line + "\n# comment\n" + tt.text + "\n" + line + "\n"
		must(t, os.WriteFile(k.Path, []byte(text), 0o600))
		got, err := k.All()
		if err == nil || got != nil || !strings.Contains(err.Error(), k.Path+":3: ") {
			t.Errorf("%s: All = %d pins, %v, want an error that names %s:3", tt.name, len(got), err, k.Path)
		}
		err = k.Update(func([]plan.Pin) []plan.Pin { t.Error("a broken file was changed"); return nil })
		if err == nil || !strings.Contains(err.Error(), k.Path+":3: ") {
			t.Errorf("%s: Update = %v, want an error that names %s:3", tt.name, err, k.Path)
		}
		if after, err := os.ReadFile(k.Path); err != nil || string(after) != text {
			t.Errorf("%s: the file is not what it was: %v", tt.name, err)
		}
	}
}

// TestKnownHostsUnkeepablePin: what would be lost or misread is not written.
func TestKnownHostsUnkeepablePin(t *testing.T) {
	t.Parallel()
	good := pinOf(t, "acme-1", "id-1")
	for _, name := range []string{"#acme", "@revoked", "acme 9", "acme,9", "acme\n9", "", " acme", "acme\x00"} {
		k := KnownHosts{Path: filepath.Join(t.TempDir(), "known_hosts")}
		must(t, k.Update(put(good)))
		bad := good
		bad.Name = name
		err := k.Update(put(bad))
		if back, _ := k.All(); err == nil && len(back) != 2 {
			t.Fatalf("%q was written and %d pins came back", name, len(back))
		}
		if err != nil && !strings.Contains(err.Error(), "rename the server") {
			t.Errorf("%q: error = %v, want a remedy", name, err)
		}
		if got, err := k.All(); err != nil || !slices.Contains(got, good) {
			t.Errorf("%q: pins = %v, %v: the other pin is lost", name, got, err)
		}
	}
}

// TestKnownHostsUpdatesDoNotLoseEachOther runs updates as several processes
// would: each with its own KnownHosts.
func TestKnownHostsUpdatesDoNotLoseEachOther(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "known_hosts")
	const writers, each = 8, 4
	var pins []plan.Pin
	for i := range writers * each {
		pins = append(pins, pinOf(t, fmt.Sprintf("acme-%02d", i), "id"))
	}
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				if err := (KnownHosts{Path: path}).Update(put(pins[w*each+i])); err != nil {
					t.Error(err)
				}
				// A concurrent reader sees a whole file, with its own pin.
				got, err := (KnownHosts{Path: path}).All()
				if err != nil || !slices.Contains(got, pins[w*each+i]) {
					t.Errorf("%d pins, %v: the one just written is not among them", len(got), err)
				}
			}
		})
	}
	wg.Wait()
	got, err := (KnownHosts{Path: path}).All()
	must(t, err)
	is(t, "pins", got, pins)
}

// TestKnownHostsUnusablePlace uses places that root cannot write to either.
func TestKnownHostsUnusablePlace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	must(t, os.MkdirAll(filepath.Join(dir, "folder", "known_hosts"), 0o700))
	must(t, os.MkdirAll(filepath.Join(dir, "locked", "known_hosts.lock"), 0o700))
	tests := []struct {
		name, path string
		read       bool // reading fails as well
	}{
		{"below a regular file", filepath.Join(dir, "file", "known_hosts"), true},
		{"is a folder", filepath.Join(dir, "folder", "known_hosts"), true},
		{"the lock is a folder", filepath.Join(dir, "locked", "known_hosts"), false},
	}
	for _, tt := range tests {
		k := KnownHosts{Path: tt.path}
		if _, err := k.All(); (err != nil) != tt.read {
			t.Errorf("%s: All = %v, want an error: %t", tt.name, err, tt.read)
		}
		err := k.Update(put(pinOf(t, "acme-1", "id-1")))
		if err == nil || !strings.Contains(err.Error(), "pinned host keys: ") {
			t.Errorf("%s: Update = %v, want an error that says what was written", tt.name, err)
		}
	}
}
