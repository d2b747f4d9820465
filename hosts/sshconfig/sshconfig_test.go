package sshconfig

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func env(home string) Environment {
	return Environment{Home: home, User: "acme", UID: "501", LookupEnv: func(name string) (string, bool) {
		return "/run/acme%sock", name == "ACME_SOCK"
	}}
}

// read makes files in a home of their own and reads .ssh/config of them.
func read(t testing.TB, files map[string]string) (*Config, string, error) {
	t.Helper()
	home := t.TempDir()
	for name, text := range files {
		path := filepath.Join(home, ".ssh", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := Read(env(home), Sources(home)[:1])
	return c, home, err
}

func readOne(t testing.TB, text string) (*Config, string) {
	t.Helper()
	c, home, err := read(t, map[string]string{"config": text})
	if err != nil {
		t.Fatal(err)
	}
	return c, home
}

// TestAsSSH reads files with both this package and ssh itself.
func TestAsSSH(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, config, alias, want string }{
		{"nothing", "", "acme-1", "acme-1 22 -"},
		{"the first value wins", "Host acme-*\n Port 2\nHost acme-1\n Port 3\n HostName 192.0.2.1\n", "acme-1", "192.0.2.1 2 -"},
		{"a question mark is one character", "Host acme-?\n Port 2\n", "acme-", "acme- 22 -"},
		{"a question mark fits", "Host acme-?\n Port 2\n", "acme-1", "acme-1 2 -"},
		{"a tab between patterns", "Host x\tacme-1\n Port 2\n", "acme-1", "acme-1 2 -"},
		{"a quoted pattern", "Host \"acme-1\"\n Port 2\n", "acme-1", "acme-1 2 -"},
		{"not this one", "Host * !acme-1\n Port 2\n", "acme-1", "acme-1 22 -"},
		{"not that one", "Host * !acme-1\n Port 2\n", "acme-2", "acme-2 2 -"},
		{"equals signs", "Host=acme-1\nPort = 2\n\tHostName=\"192.0.2.7\"\n", "acme-1", "192.0.2.7 2 -"},
		{"comments", "# one\nHost acme-1 # two\n Port 2 # three\n  # four\n", "acme-1", "acme-1 2 -"},
		{"any case", "HOST acme-1\n pOrT 2\n", "acme-1", "acme-1 2 -"},
		{"a jump", "Host acme-1\n ProxyJump ops@bastion:2222\n", "acme-1", "acme-1 22 ops@bastion:2222"},
		{"a chain", "Host acme-1\n ProxyJump a,b\n", "acme-1", "acme-1 22 a,b"},
		{"no jump here", "Host acme-1\n ProxyJump none\nHost *\n ProxyJump bastion\n", "acme-1", "acme-1 22 -"},
		{"a jump of all", "Host acme-1\n ProxyJump none\nHost *\n ProxyJump bastion\n", "acme-2", "acme-2 22 bastion"},
		{"an IPv6 jump", "Host acme-1\n ProxyJump ops@[2001:db8::1]:2222\n", "acme-1", "acme-1 22 ops@[2001:db8::1]:2222"},
		{"a HostName with signs", "Host acme-*\n HostName %h.acme.dev\n", "acme-1", "acme-1.acme.dev 22 -"},
		{"Match all", "Match all\n Port 2\n", "acme-1", "acme-1 2 -"},
		{"Match a list", "Match host x,acme-*\n Port 2\n", "acme-1", "acme-1 2 -"},
		{"Match a list with exception", "Match host acme-*,!acme-1\n Port 2\n", "acme-1", "acme-1 22 -"},
		{"Match a user", "Match host acme-1 user globex\n Port 2\n", "acme-1", "acme-1 22 -"},
		{"Match the HostName", "Host acme-1\n HostName 192.0.2.1\nMatch host 192.0.2.*\n Port 2\n", "acme-1", "192.0.2.1 2 -"},
		{"Match the name given", "Host acme-1\n HostName 192.0.2.1\nMatch originalhost acme-1\n Port 2\n", "acme-1", "192.0.2.1 2 -"},
		{"Match not", "Match !host acme-2\n Port 2\n", "acme-1", "acme-1 2 -"},
		{"Match final", "Match final all\n Port 2\nHost acme-1\n HostName 192.0.2.1\n", "acme-1", "192.0.2.1 2 -"},
		{"Match final comes last", "Match final all\n Port 2\nHost acme-1\n Port 3\n", "acme-1", "acme-1 3 -"},
		{"Match final sees the HostName", "Match final host 192.0.2.1\n Port 2\nHost acme-1\n HostName 192.0.2.1\n", "acme-1", "192.0.2.1 2 -"},
		{"Host in the final pass", "Host 192.0.2.1\n Port 4\nHost acme-1\n HostName 192.0.2.1\nMatch final host x\n Port 2\n", "acme-1", "192.0.2.1 4 -"},
		{"a command that does not matter", "Match host x exec \"false\"\n Port 2\n", "acme-1", "acme-1 22 -"},
		{"ProxyCommand none goes before", "Host acme-1\n ProxyCommand none\n ProxyJump bastion\n", "acme-1", "acme-1 22 -"},
		{"words we do not use", "Host *\n ServerAliveInterval 5\n SetEnv A=b C=d\n", "acme-1", "acme-1 22 -"},
		{"DOS line ends", "Host acme-1\r\n Port 2\r\n", "acme-1", "acme-1 2 -"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, home := readOne(t, tt.config)
			s, err := c.Lookup("", tt.alias)
			if err != nil {
				t.Fatal(err)
			}
			if got := shortly(s, tt.alias); got != tt.want {
				t.Errorf("we read %q, want %q", got, tt.want)
			}
			if got := bySSH(t, filepath.Join(home, ".ssh", "config"), tt.alias); got != tt.want {
				t.Errorf("ssh reads %q, want %q", got, tt.want)
			}
		})
	}
}

func shortly(s Settings, alias string) string {
	host, number, jumps := s.HostName, s.Port, []string{}
	if host == "" {
		host = alias
	}
	if number == 0 {
		number = 22
	}
	for _, j := range s.Jumps {
		text := j.Host
		if strings.Contains(text, ":") {
			text = "[" + text + "]"
		}
		if j.User != "" {
			text = j.User + "@" + text
		}
		if j.Port != 0 {
			text += fmt.Sprintf(":%d", j.Port)
		}
		jumps = append(jumps, text)
	}
	if len(jumps) == 0 {
		jumps = []string{"-"}
	}
	return fmt.Sprintf("%s %d %s", host, number, strings.Join(jumps, ","))
}

func bySSH(t *testing.T, file, alias string) string {
	t.Helper()
	path, err := exec.LookPath("ssh")
	if err != nil {
		const text = "this test needs ssh: install Debian's package openssh-client"
		if os.Getenv("CI") != "" {
			t.Fatal(text)
		}
		t.Skip(text)
	}
	out, err := exec.CommandContext(t.Context(), path, "-G", "-F", file, alias).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	found := map[string]string{"proxyjump": "-"}
	for line := range strings.Lines(string(out)) {
		key, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		found[key] = rest
	}
	if found["proxyjump"] == "none" {
		found["proxyjump"] = "-"
	}
	return found["hostname"] + " " + found["port"] + " " + found["proxyjump"]
}

func TestSettings(t *testing.T) {
	t.Parallel()
	c, home := readOne(t, `Host acme-1
  IdentityFile ~/.ssh/id_acme-%n
  IdentityAgent ${ACME_SOCK}
  HostKeyAlias pinned
  User ops
  UserKnownHostsFile ~/.ssh/known_acme "/tmp/with blank"
  GlobalKnownHostsFile none
  HostName 2001:db8::1
  ProxyJump %r@jump-%n
Host 192.0.2.*
  Port 2222
  IdentityFile %d/by-address
Host *
  Port 24
  IdentityFile ~/.ssh/a#b
  IdentityFile none
`)
	file := func(name string) string { return filepath.Join(home, name) }
	shared := []Identity{{file(".ssh/a#b"), "~/.ssh/a#b"}}
	usual := []string{file(".ssh/known_hosts"), file(".ssh/known_hosts2"), "/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2"}
	tests := []struct {
		name  string
		user  string
		names []string
		want  Settings
	}{
		{"by name", "m1", []string{"acme-1"}, Settings{HostName: "2001:db8::1", Port: 24, User: "m1", Shared: shared, Alias: "pinned",
			Own: []Identity{{file(".ssh/id_acme-acme-1"), "~/.ssh/id_acme-acme-1"}}, Agent: "/run/acme%sock",
			Known: []string{file(".ssh/known_acme"), "/tmp/with blank"}, Jumps: []Hop{{Host: "jump-acme-1", User: "m1"}}}},
		{"by name and address", "", []string{"acme-1", "192.0.2.1"}, Settings{HostName: "2001:db8::1", Port: 2222, User: "ops", Shared: shared, Alias: "pinned",
			Own: []Identity{{file(".ssh/id_acme-acme-1"), "~/.ssh/id_acme-acme-1"}, {file("by-address"), "~/by-address"}}, Agent: "/run/acme%sock",
			Known: []string{file(".ssh/known_acme"), "/tmp/with blank"}, Jumps: []Hop{{Host: "jump-acme-1", User: "ops"}}}},
		{"by address", "m1", []string{"acme-2", "192.0.2.2"}, Settings{Port: 2222, User: "m1", Shared: shared, Known: usual,
			Own: []Identity{{file("by-address"), "~/by-address"}}}},
		{"only what is said of all", "m1", []string{"acme-3", "198.51.100.3"}, Settings{Port: 24, User: "m1", Shared: shared, Known: usual}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := c.Lookup(tt.user, tt.names...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("settings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestInclude(t *testing.T) {
	t.Parallel()
	c, _, err := read(t, map[string]string{
		"config":        "Include conf.d/*.conf missing\nHost acme-1\n Include ~/.ssh/inner\n Port 5\nHost *\n Port 7\n",
		"conf.d/b":      "Port 1\n",
		"conf.d/b.conf": "Host acme-2\n Port 2\n",
		"conf.d/a.conf": "Host acme-3\n Port 3\n",
		"inner":         "HostName inner\nHost acme-4\n Port 4\n",
	})
	if err != nil {
		t.Fatal(err)
	}
	for alias, want := range map[string]string{"acme-1": "inner 5 -", "acme-2": "acme-2 2 -", "acme-3": "acme-3 3 -", "acme-4": "acme-4 7 -"} {
		s, err := c.Lookup("", alias)
		if got := shortly(s, alias); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", alias, got, err, want)
		}
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		files map[string]string
		want  string // after the place
	}{
		{"a quote", map[string]string{"config": "Host a\n HostName \"x\n"}, "config:2: a quote is opened"},
		{"no value", map[string]string{"config": "\nHost\n"}, "config:2: Host has no value"},
		{"an empty value", map[string]string{"config": "Host a\n IdentityFile \"\"\n"}, "config:2: IdentityFile has no value"},
		{"two values", map[string]string{"config": "Host a\n IdentityFile ~/my key\n"}, "config:2: IdentityFile has more than one value; put a value with blanks into quotes"},
		{"a port", map[string]string{"config": "Port 70000\n"}, `config:1: "70000" is no port`},
		{"a jump", map[string]string{"config": "ProxyJump a,,b\n"}, "config:1: ProxyJump a,,b: a host is missing"},
		{"a jump's port", map[string]string{"config": "ProxyJump a:0\n"}, "config:1: ProxyJump a:0: the port is no number"},
		{"Match exec for all", map[string]string{"config": "Match exec \"true\"\n Port 2\n"}, "--ssh-config FILE"},
		{"Match without pattern", map[string]string{"config": "Match host\n"}, "config:1: Match host has no pattern"},
		{"Match all and more", map[string]string{"config": "Match all host x\n"}, "config:1: all goes with no other"},
		{"an included file", map[string]string{"config": "Include other\n", "other": "\n\nPort x\n"}, `other:3: "x" is no port`},
		{"a circle", map[string]string{"config": "Include config\n"}, "remove the Include that leads back"},
		{"a folder", map[string]string{"config/x": ""}, "is a directory; make it readable, or name another with --ssh-config FILE"},
		{"an included folder", map[string]string{"config": "Include conf*.d\n", "conf.d/x": ""}, "config:1: read"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, _, err := read(t, tt.files)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error = %v, want one with %q", err, tt.want)
			}
		})
	}
}

// TestFaultsOfOne are faults that show only when a machine is looked up.
func TestFaultsOfOne(t *testing.T) {
	t.Parallel()
	tests := []struct{ config, want string }{
		{"Host acme-1\n ProxyCommand nc %h %p\n", "config:2: macfleet starts no ProxyCommand to reach acme-1; write ProxyJump HOST"},
		{"Host acme-1\n IdentityFile ~globex/key\n", "config:2: macfleet does not know the home of another user"},
		{"Host acme-1\n IdentityFile ${NOT_SET}/key\n", "config:2: the variable ${NOT_SET} is not set"},
		{"Host acme-1\n HostName %z\n", "config:2: macfleet knows no %z in %z"},
		{"Host acme-1\n IdentityFile a%\n", "config:2: macfleet knows no % in a%"},
		{"Match host acme-1 exec \"true\"\n Port 2\n", "config:1: macfleet does not know whether Match exec applies to acme-1"},
		{"Match host acme-1 tagged x\n Port 2\n", "Match tagged"},
	}
	for _, tt := range tests {
		t.Run(tt.want, func(t *testing.T) {
			t.Parallel()
			c, _ := readOne(t, tt.config)
			_, err := c.Lookup("m1", "acme-1")
			var fault *FaultError
			if !errors.As(err, &fault) || !strings.Contains(err.Error(), tt.want) || fault.Remedy == "" {
				t.Errorf("error = %v, want one with %q", err, tt.want)
			}
			if _, err := c.Lookup("m1", "acme-2"); err != nil {
				t.Errorf("another machine: %v", err)
			}
		})
	}
}

func TestNoConfig(t *testing.T) {
	t.Parallel()
	var c *Config
	if s, err := c.Lookup("m1", "acme-1"); err != nil || !cmp.Equal(s, Settings{}) {
		t.Errorf("settings = %+v, %v", s, err)
	}
	if c, err := Read(env(t.TempDir()), Sources(t.TempDir())[:1]); err != nil || len(c.files) != 0 {
		t.Errorf("a file that is not there: %v, %v", c, err)
	}
	name := filepath.Join(t.TempDir(), "missing")
	if _, err := Read(env(""), []Source{{Path: name}}); err == nil || !strings.Contains(err.Error(), name) {
		t.Errorf("a file that was named and is not there: %v", err)
	}
}

// FuzzRead looks for texts that spoil the reader.
func FuzzRead(f *testing.F) {
	for _, text := range []string{"Host a\n Port 2\n", "Match final all\nHostName %h\n", "= x", "Host \"a", "ProxyJump u@[::1]:2,ssh://b:3/", "Host *a*b*c*\n"} {
		f.Add(text, "acme-1")
	}
	f.Fuzz(func(t *testing.T, text, name string) {
		if strings.Contains(strings.ToLower(text), "include") || len(text) > 1000 || len(name) > 100 {
			t.Skip("an Include reads files, and a long text takes too long")
		}
		lines, err := reader{}.parse("config", []byte(text), 0)
		if err != nil {
			return
		}
		c := &Config{env: env("/home/acme"), files: [][]line{lines}}
		s, err := c.Lookup("", name, "192.0.2.1")
		if err != nil {
			var fault *FaultError
			if !errors.As(err, &fault) || fault.Line < 1 {
				t.Errorf("error = %v, which names no line", err)
			}
			return
		}
		for _, j := range s.Jumps {
			if j.Host == "" || j.Port < 0 || j.Port > 65535 {
				t.Errorf("jump %+v", j)
			}
		}
	})
}
