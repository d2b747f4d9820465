package sandbox_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

// ask runs one command as the fleet would.
func (p *patient) ask(command string) (string, error) {
	p.Helper()
	out, _, err := exec(p.Context(), p.world, signer(p, p.world), p.host.Address, command)
	return out, err
}

func TestSlow(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	p.inject("slow")
	const text = "acme, at last"
	got, err := p.ask("printf '" + text + "'")
	must(t, err)
	p.want("answer", got, text)
	p.heal("slow")
}

func TestSilent(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	p.inject("silent")
	conn, err := p.world.DialContext(t.Context(), "tcp", p.host.Address+":22")
	must(t, err)
	defer conn.Close()
	must(t, conn.SetReadDeadline(time.Now().Add(100*time.Millisecond)))
	if n, err := conn.Read(make([]byte, 1)); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read %d bytes, %v; want silence", n, err)
	}
	if got := accessLog(t, p.dir, "ssh "+p.host.Name); !slices.Equal(got, []string{"ssh " + p.host.Name + " connect"}) {
		t.Errorf("log: %q", got)
	}
	p.heal("silent")
	if _, err := p.ask("true"); err != nil {
		t.Errorf("after healing: %v", err)
	}
}

// TestSilentEnds closes a world while a silent host holds a connection.
func TestSilentEnds(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	p.inject("silent")
	conn, err := p.world.DialContext(context.Background(), "tcp", p.host.Address+":22")
	must(t, err)
	defer conn.Close()
	must(t, p.world.Close())
	if _, err := io.ReadAll(conn); err != nil && !strings.Contains(err.Error(), "reset") {
		t.Error(err)
	}
}

func TestDiesInCommand(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	p.inject("dies-in-command")
	for range 2 { // every time
		got, err := p.ask("printf 0123456789; : >/tmp/done")
		var exit *ssh.ExitError
		if err == nil || errors.As(err, &exit) || !strings.HasPrefix("01234", got) {
			t.Errorf("got %q, %v; want at most half of it, and a broken connection", got, err)
		}
		p.want("what the command did", p.run("ls /tmp; rm /tmp/done"), "done")
	}
	p.heal("dies-in-command")
	got, err := p.ask("printf 0123456789")
	if err != nil || got != "0123456789" {
		t.Errorf("after healing: %q, %v", got, err)
	}
}

func TestGarbledOutput(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	commands := []string{"pmset -g custom", "scutil --get ComputerName", "defaults read com.acme.ci idle", "sudo -n /bin/sh -c 'pmset -g custom'"}
	if _, err := p.ask("defaults write com.acme.ci idle -int 3"); err != nil {
		t.Fatal(err)
	}
	before := map[string]string{}
	for _, c := range commands {
		text, err := p.ask(c)
		if err != nil {
			t.Fatalf("%s: %v", c, err)
		}
		before[c] = text
	}
	p.inject("garbled-output")
	for _, c := range commands {
		if text, err := p.ask(c); err != nil || text == before[c] || text == "" {
			t.Errorf("%s prints %q, %v; want another text", c, text, err)
		}
	}
	// What a person does on the Mac itself is unchanged, and so is every other tool.
	p.want("pmset past SSH", p.run("pmset -g custom"), strings.TrimSpace(before["pmset -g custom"]))
	if text, err := p.ask("sw_vers -productVersion"); err != nil || strings.Contains(text, "plist") {
		t.Errorf("sw_vers prints %q, %v", text, err)
	}
	p.heal("garbled-output")
	for _, c := range commands {
		if text, err := p.ask(c); err != nil || text != before[c] {
			t.Errorf("after healing %s prints %q, %v", c, text, err)
		}
	}
}

func TestLoginNoise(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	file := filepath.Join(p.host.Root, "Users", "m1", ".zshenv")
	p.inject("login-noise")
	got, err := p.ask("printf answer")
	before, after, found := strings.Cut(got, "answer")
	if err != nil || !found || !strings.Contains(before, "Welcome to acme") || !strings.Contains(after, "bye") {
		t.Errorf("got %q, %v; want noise before and after the answer", got, err)
	}
	p.heal("login-noise")
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("the file did not exist before: %v", err)
	}

	write := func(text string) {
		t.Helper()
		must(t, os.WriteFile(file, []byte(text), 0o644))
	}
	write("export ACME=1\n")
	p.inject("login-noise")
	text, err := os.ReadFile(file)
	must(t, err)
	write(string(text) + "export ACME=2\n")
	p.heal("login-noise")
	if text, err = os.ReadFile(file); err != nil || string(text) != "export ACME=1\nexport ACME=2\n" {
		t.Errorf("after healing: %q, %v", text, err)
	}
}

func TestKeyRefused(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	file := filepath.Join(p.host.Root, "Users", "m1", ".ssh", "scw_authorized_keys")
	before, err := os.ReadFile(file)
	must(t, err)
	p.inject("key-not-installed")
	if _, err := p.ask("true"); err == nil || !strings.Contains(err.Error(), "unable to authenticate") {
		t.Errorf("got %v, want a refusal", err)
	}
	if got := accessLog(t, p.dir, "ssh "+p.host.Name); !slices.Equal(got, []string{"ssh " + p.host.Name + " connect"}) {
		t.Errorf("log: %q", got)
	}
	p.heal("key-not-installed")
	if text, err := os.ReadFile(file); err != nil || string(text) != string(before) {
		t.Errorf("after healing: %q, %v", text, err)
	}
	if _, err := p.ask("true"); err != nil {
		t.Errorf("after healing: %v", err)
	}

	// A key that was added meanwhile stays.
	const other = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEY7C0nXW2jYkDsCCL1X1gpUN6pYTcHsvXdTOJ1ha1pW globex\n"
	p.inject("key-not-installed")
	must(t, os.WriteFile(file, []byte(other), 0o600))
	p.heal("key-not-installed")
	if text, err := os.ReadFile(file); err != nil || !strings.HasSuffix(string(text), other) {
		t.Errorf("after healing: %q, %v", text, err)
	}
	if _, err := p.ask("true"); err != nil {
		t.Errorf("after healing: %v", err)
	}
}
