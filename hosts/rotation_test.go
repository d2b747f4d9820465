package hosts

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/macfleet/macfleet/internal/scripttest"
	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/plan"
)

// keyFiles are the two files of a simulated Mac that sshd reads.
const (
	ownKeys      = "/Users/m1/.ssh/authorized_keys"
	providerKeys = "/Users/m1/.ssh/scw_authorized_keys"
)

// rotating returns a client with a new key, and the key of the Mac as the previous one.
func (s *simulation) rotating(next ssh.Signer) *Client {
	o := s.client().opts
	o.Key, o.Previous = next, s.key
	return New(o)
}

func line(key ssh.Signer) string { return keyText(key.PublicKey()) }

func print256(key ssh.Signer) string { return ssh.FingerprintSHA256(key.PublicKey()) }

// TestRotation takes a Mac from its previous key to a new one, and sees that only the accepted key is named.
func TestRotation(t *testing.T) {
	t.Parallel()
	s, next := newSimulation(t), newKey(t)
	person := line(newKey(t)) + " sam@laptop"
	if err := s.WriteFile(ownKeys, []byte("# people\n"+person), 501, 20, 0o640); err != nil { // the last line has no end
		t.Fatal(err)
	}
	c := s.rotating(next)
	conn := connect(t, c, acme1())
	seen := conn.Observe(within(t), nil)
	lists, _ := seen.Lists.Get()
	if seen.LoginKey != print256(s.key) || !slices.Equal(lists, []string{print256(s.key)}) {
		t.Fatalf("logged in with %s, lists %q: want the previous key", seen.LoginKey, lists)
	}
	must(t, conn.AuthorizeKey(within(t), "macfleet-acme"))
	if got, want := s.text(ownKeys), "# people\n"+person+"\n"+line(next)+" macfleet-acme"; got != want {
		t.Errorf("authorized keys:\n%s\nwant\n%s", got, want)
	}
	if seen := conn.Observe(within(t), nil); seen.LoginKey != print256(next) {
		t.Errorf("the connection is not the login with the new key: %s", seen.LoginKey)
	}
	if err := conn.AuthorizeKey(within(t), "macfleet-acme"); err != nil || strings.Count(s.text(ownKeys), line(next)) != 1 {
		t.Errorf("a second time: %v, %s", err, s.text(ownKeys))
	}
	must(t, conn.RetireKey(within(t)))
	if all := s.text(ownKeys) + s.text(providerKeys); strings.Contains(all, line(s.key)) || !strings.Contains(all, person) || !strings.Contains(all, line(next)) {
		t.Errorf("after the rotation:\n%s", all)
	}
	conn.Close()
	if _, err := s.client().Connect(within(t), acme1()); err == nil {
		t.Error("the previous key still logs in")
	}
	seen = connect(t, s.rotating(next), acme1()).Observe(within(t), nil)
	if lists, _ := seen.Lists.Get(); seen.LoginKey != print256(next) || !slices.Equal(lists, []string{print256(next)}) {
		t.Errorf("logged in with %s, lists %q", seen.LoginKey, lists)
	}
}

// TestPreviousKeyStays: without a login with the new key, nothing is removed.
func TestPreviousKeyStays(t *testing.T) {
	t.Parallel()
	s, next := newSimulation(t), newKey(t)
	conn := connect(t, s.rotating(next), acme1())
	before := s.text(providerKeys)
	err := conn.RetireKey(within(t))
	wantError(t, err, "key-not-installed", Authorising, print256(next))
	// A key with options may be refused from elsewhere.
	must(t, s.WriteFile(ownKeys, []byte(`from="127.0.0.1" `+line(next)+"\n"), 501, 20, 0o600))
	var failed *ScriptError
	if err := conn.RetireKey(within(t)); !errors.As(err, &failed) || failed.Answer.Exit != 3 {
		t.Errorf("with a line that has options: %v", err)
	}
	is(t, "without a login", s.text(providerKeys), before)
}

// TestKeyScriptsLeaveTheFile: a write that fails leaves the file as it was.
func TestKeyScriptsLeaveTheFile(t *testing.T) {
	t.Parallel()
	s, next := newSimulation(t), newKey(t)
	conn := connect(t, s.client(), acme1())
	before := line(next) + "\n" + line(s.key) + "\n"
	must(t, s.WriteFile(ownKeys, []byte(before), 501, 20, 0o640))
	full := "printf() { :; }\n" // as on a disk without space
	for name, command := range map[string]plan.Command{
		"add":  own("key-add", plan.Login, line(newKey(t)), "acme"),
		"drop": own("key-drop", plan.Login, line(next), line(s.key)),
	} {
		command.Script = full + command.Script
		if _, err := conn.Run(within(t), command, secret.Value{}); err == nil {
			t.Errorf("%s: no error", name)
		}
		if got, err := s.ReadFile(ownKeys); err != nil || string(got) != before {
			t.Errorf("%s left %q, %v", name, got, err)
		}
	}
}

// TestKeyScriptsKeepOthers: a file of keys keeps its mode and what is not the previous key, also a comment about it. A symbolic link
// stays one, and the file that it names is not touched.
func TestKeyScriptsKeepOthers(t *testing.T) {
	inThreeShells(t, func(t *testing.T, sh shell) {
		next, previous := newKey(t), newKey(t)
		for name, c := range map[string]struct {
			command plan.Command
			want    string
		}{
			"add":  {own("key-add", plan.Login, line(previous), "acme"), "# " + line(previous) + "\n" + line(next) + "\n" + line(previous) + " acme\n"},
			"drop": {own("key-drop", plan.Login, line(next), line(previous)), "# " + line(previous) + "\n" + line(next) + "\n"},
		} {
			home := t.TempDir()
			file, aside := filepath.Join(home, ".ssh/authorized_keys"), filepath.Join(home, "aside")
			before := "# " + line(previous) + "\n" + line(next) + "\n"
			if name == "drop" {
				before += line(previous) + "\n"
			}
			m := scripttest.New(t, sh.argv)
			write(t, file, before, 0o640)
			a := m.Run(c.command, "", "HOME="+home)
			got, err := os.ReadFile(file)
			info, serr := os.Stat(file)
			if must(t, errors.Join(err, serr)); a.Exit != 0 || string(got) != c.want || info.Mode() != 0o640 {
				t.Errorf("%s: %+v, mode %v, left\n%s", name, a, info.Mode(), got)
			}
			write(t, aside, before, 0o640)
			must(t, errors.Join(os.Remove(file), os.Symlink(aside, file)))
			a = m.Run(c.command, "", "HOME="+home)
			got, err = os.ReadFile(aside)
			info, serr = os.Lstat(file)
			if must(t, errors.Join(err, serr)); a.Exit != 1 || string(got) != before || info.Mode()&os.ModeSymlink == 0 {
				t.Errorf("%s through a link: %+v, mode %v, left\n%s", name, a, info.Mode(), got)
			}
		}
	})
}

// TestRotationOnOpenSSH offers two keys in one handshake of OpenSSH's own sshd, and names the accepted one.
func TestRotationOnOpenSSH(t *testing.T) {
	t.Parallel()
	for name, login := range map[string]func(key, previous ssh.Signer) ssh.Signer{
		"current":  func(key, _ ssh.Signer) ssh.Signer { return key },
		"previous": func(_, previous ssh.Signer) ssh.Signer { return previous },
	} {
		for kind, make := range map[string]func() ssh.Signer{"ed25519": func() ssh.Signer { return newKey(t) }, "rsa": func() ssh.Signer { return signer(t, newRSAKey(t)) }} {
			t.Run(name+" "+kind, func(t *testing.T) {
				t.Parallel()
				key, previous := make(), make()
				want := login(key, previous)
				m := newMac(t, 1, want.PublicKey())
				c := New(Options{User: me(t), Key: key, Previous: previous, Dial: m.book(), Prologue: withStubs(m.bin), Deadlines: patient()})
				for range 3 {
					conn := connect(t, c, m.target)
					if seen := conn.Observe(within(t), nil); seen.Trouble != nil || seen.LoginKey != print256(want) {
						t.Errorf("trouble %+v, logged in with %s, want %s", seen.Trouble, seen.LoginKey, print256(want))
					}
					conn.Close()
				}
				if name == "current" {
					return
				}
				// Only the first login offers a key that is refused.
				if n := strings.Count(m.log(), "Failed publickey"); n > 1 {
					t.Log(m.log())
					t.Errorf("%d refused keys in sshd's log", n)
				}
			})
		}
	}
}
