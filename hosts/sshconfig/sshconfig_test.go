package sshconfig

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/macfleet/macfleet/internal/scripttest"
)

// write writes a configuration into a separate file.
func write(t testing.TB, text string) string {
	t.Helper()
	scripttest.Need(t, "ssh")
	file := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func read(t testing.TB, text string) *Config {
	t.Helper()
	c, err := Read(write(t, text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestSettings looks machines up under a name and an address.
func TestSettings(t *testing.T) {
	t.Parallel()
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	c := read(t, `Host acme-1
  IdentityFile ~/.ssh/id_acme-%n
  IdentityFile keys/%h
  IdentityAgent /run/acme%%sock
  HostKeyAlias pinned
  User ops
  UserKnownHostsFile /home/acme/known_acme /tmp/other
  GlobalKnownHostsFile none
  HostName 2001:db8::1
  ProxyJump %r@jump-%n,ops@[2001:db8::2]:2222,inner:23,[::1]
Host acme-3
  HostName %h.acme.dev
  ProxyJump none
  IdentityAgent none
Host acme-4 192.0.2.4
  Port 22
Host 192.0.2.4
  HostName by-address
  ProxyJump gate
Host 192.0.2.1
  Port 2222
  IdentityFile ${HOME}/by-address
Host acme-5
  ProxyCommand none
Host *
  Port 24
  ProxyJump bastion
  IdentityFile ~/.ssh/a#b
  IdentityFile none
  UserKnownHostsFile /home/acme/known_all
  GlobalKnownHostsFile /home/acme/known_global
  IdentityAgent SSH_AUTH_SOCK
`)
	home := func(name string) Identity {
		return Identity{filepath.Join(me.HomeDir, name), "~/" + name}
	}
	shared := []Identity{home(".ssh/a#b")}
	known := []string{"/home/acme/known_all", "/home/acme/known_global"}
	first := Settings{HostName: "2001:db8::1", Port: 24, User: "m1", Shared: shared, Alias: "pinned",
		Own:   []Identity{home(".ssh/id_acme-acme-1"), {filepath.Join(wd, "keys/2001:db8::1"), filepath.Join(wd, "keys/2001:db8::1")}},
		Agent: "/run/acme%sock", Known: []string{"/home/acme/known_acme", "/tmp/other"},
		Jumps: []Hop{{Host: "jump-acme-1", User: "m1"}, {Host: "2001:db8::2", User: "ops", Port: 2222}, {Host: "inner", Port: 23}, {Host: "::1"}}}
	for i, own := range first.Own { // a test may run below its user's home
		if rest, ok := strings.CutPrefix(own.Path, me.HomeDir+"/"); ok {
			first.Own[i].Shown = "~/" + rest
		}
	}
	byAddress := filepath.Join(os.Getenv("HOME"), "by-address")
	both := first
	both.Port, both.User = 2222, "ops"
	both.Own = append(append([]Identity{}, first.Own...), Identity{byAddress, "~/by-address"})
	both.Jumps = append([]Hop{{Host: "jump-acme-1", User: "ops"}}, first.Jumps[1:]...)
	bastion := []Hop{{Host: "bastion"}}
	tests := []struct {
		name  string
		user  string
		names []string
		want  Settings
	}{
		{"by name", "m1", []string{"acme-1"}, first},
		{"by name and address", "", []string{"acme-1", "192.0.2.1"}, both},
		{"only what is reported about all", "m1", []string{"acme-2", "192.0.2.2"}, Settings{Port: 24, User: "m1", Shared: shared, Known: known, Jumps: bastion}},
		{"a name that ssh does not take", "m1", []string{"my mac", ""}, Settings{Port: 24, User: "m1", Shared: shared, Known: known, Jumps: bastion}},
		{"nothing of what is reported about all", "m1", []string{"acme-3", "192.0.2.3"},
			Settings{HostName: "acme-3.acme.dev", Port: 24, User: "m1", Shared: shared, Known: known, Agent: "none"}},
		{"the usual port, and the address for the rest", "m1", []string{"acme-4", "192.0.2.4"},
			Settings{HostName: "by-address", Port: 22, User: "m1", Shared: shared, Known: known, Jumps: []Hop{{Host: "gate"}}}},
		{"no command, and so no jump", "m1", []string{"acme-5"}, Settings{Port: 24, User: "m1", Shared: shared, Known: known}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := c.Lookup(tt.user, tt.names...)
			if err != nil {
				t.Fatal(err)
			}
			if byAddress != home("by-address").Path {
				for i := range got.Own { // HOME is not the user's own here
					got.Own[i].Shown = strings.Replace(got.Own[i].Shown, byAddress, "~/by-address", 1)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("settings (-want +got):\n%s", diff)
			}
		})
	}
}

// TestNothingConfigured: ssh's default keys are not the person's choice,
// and DNS is not read for a name.
func TestNothingConfigured(t *testing.T) {
	t.Parallel()
	c := read(t, "CanonicalizeHostname always\nCanonicalDomains acme.invalid\nCanonicalizeFallbackLocal no\n"+
		"UserKnownHostsFile none\nGlobalKnownHostsFile none\nHost acme-2\n IdentityFile ~/.ssh/id_rsa\n")
	if s, err := c.Lookup("m1", "acme-1", "192.0.2.1"); err != nil || !cmp.Equal(s, Settings{User: "m1", Port: 22}) {
		t.Errorf("settings = %+v, %v", s, err)
	}
	if s, err := c.Lookup("m1", "acme-2"); err != nil || len(s.Own) != 1 || s.Shared != nil {
		t.Errorf("settings = %+v, %v", s, err)
	}
}

// TestOneAnswerForMany compares what names get that share an answer with what ssh
// says of each.
func TestOneAnswerForMany(t *testing.T) {
	t.Parallel()
	inner := write(t, "Host acme-3\n Port 9\n")
	for name, tt := range map[string]struct {
		config string
		most   int // questions for all names
	}{
		"nothing":                   {"", 1},
		"all":                       {"Host *\n Port 2\nMatch all\n User x\nMatch final all\n Compression yes\n", 1},
		"some":                      {"Host acme-*\n Port 3\nHost 192.0.2.*\n IdentityFile ~/x\n", 3},
		"one":                       {"Host acme-1\n Port 3\n", 2},
		"not one":                   {"Host acme-* !acme-1\n Port 3\n", 3},
		"a question mark":           {"Host acme-?\n Port 3\n", 2},
		"quotes":                    {"Host \"acme-1\"\n Port 3\n", 99},
		"a tab and a sign":          {"Host=x\tacme-1\n Port=3\n", 2},
		"comments":                  {"Host x # acme-1\n Port 3\n", 2},
		"any case":                  {"hOST ACME-1 Acme-*\n Port 3\n", 3},
		"a name with its HostName":  {"Host acme-*\n HostName %h.acme.dev\n", 99},
		"a name of another":         {"Host acme-1 acme-2\n HostName acme-1.acme.dev\n", 99},
		"known hosts of each":       {"Host acme-*\n UserKnownHostsFile /tmp/%h\n", 99},
		"a hash of the name":        {"Host acme-*\n IdentityAgent /tmp/%C\n", 99},
		"a key of each":             {"Host acme-*\n IdentityFile /tmp/%n\n", 2},
		"Match":                     {"Match host acme-1,192.0.2.*\n Port 3\n", 99},
		"Match the user":            {"Match user m1 originalhost acme-2\n Port 3\n", 99},
		"Match exec":                {"Match exec \"test %n = acme-1\"\n Port 3\n", 99},
		"Match final by a HostName": {"Host acme-1\n HostName gate\nMatch final all\n User y\nHost gate\n Port 3\n", 2},
		"an Include":                {"Host acme-*\n Include " + inner + "\n", 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := write(t, tt.config)
			c, err := Read(file)
			if err != nil {
				t.Fatal(err)
			}
			var each *Config
			if each, err = Read(file); err != nil {
				t.Fatal(err)
			}
			each.each = true
			for _, n := range []string{"acme-1", "acme-2", "Acme-1", "ACME-2", "acme-33", "acme-3", "192.0.2.1", "192.0.2.2", "2001:db8::1"} {
				got, err := c.Lookup("m1", n)
				want, werr := each.Lookup("m1", n)
				if err != nil || werr != nil {
					t.Fatal(err, werr)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s (-ssh -G +got):\n%s", n, diff)
				}
			}
			if n := count(&c.asked); n > tt.most {
				t.Errorf("ssh was called %d times, at most %d are needed", n, tt.most)
			}
		})
	}
}

// TestFewQuestions: 500 hosts of which the configuration says the same are a handful
// of processes, and each name is read once.
func TestFewQuestions(t *testing.T) {
	t.Parallel()
	c := read(t, "Host acme-*\n IdentityFile ~/.ssh/id_acme\n ProxyJump bastion\nHost github.com\n User git\nHost *\n Compression yes\n")
	for range 2 {
		for i := range 500 {
			if s, err := c.Lookup("m1", fmt.Sprint("acme-", i), fmt.Sprint("192.0.2.", i)); err != nil || len(s.Jumps) != 1 || len(s.Own) != 1 {
				t.Fatalf("settings = %+v, %v", s, err)
			}
		}
	}
	if count(&c.asked) != 2 {
		t.Errorf("ssh was called %d times, want 2", count(&c.asked))
	}
}

// TestFaults are those of the whole configuration: ssh's own words say where.
func TestFaults(t *testing.T) {
	t.Parallel()
	for config, want := range map[string]string{
		"Host a\n HostName \"x\n": "config line 2: ",
		"Host a\n Port 70000\n":   "config line 2: Bad port '70000'.",
		"ProxyJump a,,b\n":        `config line 1: Invalid ProxyJump "a,,b"`,
		"Host a\n Foo x\n":        "config: line 2: Bad configuration option: foo",
	} {
		_, err := Read(write(t, config))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "debug1") {
			t.Errorf("%q: error = %v, want one with %q", config, err, want)
		}
	}
	dir := t.TempDir()
	if _, err := Read(dir); err == nil || !strings.Contains(err.Error(), "is a directory") {
		t.Errorf("a directory: %v", err)
	}
	if _, err := Read(filepath.Join(dir, "missing")); err == nil || !strings.Contains(err.Error(), "missing: No such file") {
		t.Errorf("a file that is missing: %v", err)
	}
}

// TestFaultsOfOne are faults that show only when a machine is looked up.
func TestFaultsOfOne(t *testing.T) {
	t.Parallel()
	for config, want := range map[string]string{
		"Host acme-1\n ProxyCommand nc %h %p\n":          "ProxyCommand is not supported, to reach acme-1 (nc %h %p); use ProxyJump HOST",
		"Host acme-1\n IdentityFile ~globex/key\n":       "another user's home is not supported",
		"Host acme-1\n IdentityFile a%z\n":               "unknown token %z in IdentityFile a%z",
		"Host acme-1\n IdentityFile ${NO_SUCH_NAME}/k\n": "NO_SUCH_NAME",
		"Host acme-1\n HostName %z\n":                    "unknown key %z",
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			c := read(t, config)
			if _, err := c.Lookup("m1", "acme-1"); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error = %v, want one with %q", err, want)
			}
			if _, err := c.Lookup("m1", "acme-2"); err != nil {
				t.Errorf("another machine: %v", err)
			}
		})
	}
}

func TestNoConfig(t *testing.T) {
	var c *Config
	if s, err := c.Lookup("m1", "acme-1"); err != nil || !cmp.Equal(s, Settings{User: "m1"}) {
		t.Errorf("settings = %+v, %v", s, err)
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := Read(""); !errors.Is(err, ErrNoSSH) {
		t.Errorf("without ssh: %v", err)
	}
}

func count(m *sync.Map) (n int) {
	for range m.Range {
		n++
	}
	return n
}
