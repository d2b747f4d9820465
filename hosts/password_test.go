package hosts

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/macfleet/macfleet/internal/scripttest"
	"github.com/macfleet/macfleet/plan"
)

const (
	loginPassword = "acme-Sentinel-1 $HOME '\""
	sealed        = "scrypt:AAAA"
)

// gate is a host's sudo and dscl as stubs: they note their arguments and their
// environment, and answer as the test says.
type gate struct {
	*scripttest.Mac
	home string
}

// sudoStub takes only the right password. What the file mode holds changes that.
const sudoStub = `{ echo "sudo $*"; env; } >>%[1]s/log
mode=$(cat %[1]s/mode)
case "$*" in
'-k -n -v')
  [ "$mode" != free ] || exit 0
  echo 'sudo: a password is required' >&2
  exit 1
  ;;
'-k -S -p  -v')
  IFS= read -r given
  echo try >>%[1]s/tries
  [ "$mode" != killed ] || kill -9 0
  if [ "$mode" = odd ]; then echo 'sudo: unable to initialize policy plugin' >&2; exit 1; fi
  if [ "$mode" = unheard ]; then echo 'sudo: account validation failure, is your account locked?' >&2; exit 1; fi
  [ "$given" != "$(cat %[1]s/right)" ] || exit 0
  if [ "$mode" = worded ]; then echo '1 incorrect password attempt' >&2; else echo 'Sorry, try again.' >&2; fi
  exit 1
  ;;
esac
exit 9`

const dsclStub = `{ echo "dscl $*"; env; } >>%[1]s/log
printf 'AuthenticationAuthority: ;ShadowHash;'
[ "$(cat %[1]s/mode)" != locked ] || printf ' ;tally;'
echo`

func newGate(t *testing.T, mode, right string) gate {
	t.Helper()
	g := gate{scripttest.New(t, nil), t.TempDir()}
	g.Tool("sudo", fmt.Sprintf(sudoStub, g.State))
	g.Tool("dscl", fmt.Sprintf(dsclStub, g.State))
	g.Set("right", right+"\n")
	g.Set("mode", mode)
	return g
}

func (g gate) tries() int { return strings.Count(g.Get("tries"), "try") }

// check runs password-check.sh, in its own process group that a stub may kill.
func (g gate) check(t *testing.T, s shell, now int) (exit int, said string) {
	t.Helper()
	need(t, s.argv[0])
	return g.checkAs(t, s, now, g.remembered(t))
}

// remembered is what the host shows of earlier tries.
func (g gate) remembered(t *testing.T) string {
	t.Helper()
	var all []plan.Refusal
	if text, err := os.ReadFile(filepath.Join(g.home, ".macfleet", "refused")); err == nil {
		for line := range strings.Lines(string(text)) {
			all = append(all, parseRefusal(line))
		}
	}
	return tries(all)
}

// checkAs is check of a run that saw something else of earlier tries.
func (g gate) checkAs(t *testing.T, s shell, now int, remembered string) (exit int, said string) {
	t.Helper()
	command := own("password-check", plan.Login, fmt.Sprint(now), remembered)
	command.Script = withStubs(g.Bin) + command.Script
	g.Shell = s.argv
	a := g.Run(command, loginPassword+"\n"+sealed+"\n", "HOME="+g.home)
	if all := g.Get("log") + a.Stdout + a.Stderr; strings.Contains(all, "Sentinel") {
		t.Errorf("the password was seen:\n%s", all)
	}
	return a.Exit, a.Stdout + a.Stderr
}

// note is what the host remembers; no other user may read it.
func (g gate) note(t *testing.T) string {
	t.Helper()
	path := filepath.Join(g.home, ".macfleet/refused")
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return ""
	}
	must(t, err)
	folder, err := os.Stat(filepath.Dir(path))
	if err != nil || folder.Mode().Perm() != 0o700 || info.Mode().Perm() != 0o600 {
		t.Errorf("modes %v and %v, %v", info.Mode(), folder, err)
	}
	text, err := os.ReadFile(path)
	must(t, err)
	return string(text)
}

func TestPasswordCheck(t *testing.T) {
	const other = "scrypt:BBBB refused 1 1600000000\n"
	inThreeShells(t, func(t *testing.T, s shell) {
		for _, c := range []struct {
			mode, right, before string
			exit, tries         int
			after, said         string
		}{
			{"normal", loginPassword, "", 0, 1, "", ""},
			{"normal", loginPassword, other + sealed + " trying 1 1600000000\n", 0, 1, other, ""},
			{"normal", "another", "", 3, 1, sealed + " refused 1 1700000000\n", "the host refused the password"},
			{"worded", "another", other, 3, 1, other + sealed + " refused 1 1700000000\n", "the host refused the password"},
			{"normal", "another", sealed + " trying 1 1600000000\n", 3, 1, sealed + " refused 2 1700000000\n", "refused"},
			{"locked", loginPassword, other, 5, 0, other, "the account is locked"},
			{"free", loginPassword, other, 6, 0, other, "asks for no password here"},
			{"odd", loginPassword, other, 4, 1, other, "unable to initialize policy plugin"},
			{"unheard", loginPassword, other, 4, 1, other + sealed + " trying 1 1700000000\n", "is your account locked"},
			{"unheard", loginPassword, sealed + " trying 1 1600000000\n", 4, 1, sealed + " trying 2 1700000000\n", "is your account locked"},
		} {
			g := newGate(t, c.mode, c.right)
			if c.before != "" {
				write(t, filepath.Join(g.home, ".macfleet/refused"), c.before, 0o600)
			}
			exit, said := g.check(t, s, 1700000000)
			if exit != c.exit || g.tries() != c.tries || !strings.Contains(said, c.said) {
				t.Errorf("%s: exit %d after %d tries, want %d after %d; it said %q", c.mode, exit, g.tries(), c.exit, c.tries, said)
			}
			is(t, c.mode+": noted", g.note(t), c.after)
		}
	})
}

// TestPasswordCheckMeanwhile: a run that looked before another one tried tries
// nothing, whether a line was added, or says another thing now.
func TestPasswordCheckMeanwhile(t *testing.T) {
	inThreeShells(t, func(t *testing.T, s shell) {
		for _, c := range []struct{ looked, now string }{
			{"", sealed + " refused 1 1600000000\n"},
			{sealed + " trying 1 1600000000\n", sealed + " refused 1 1600000000\n"},
			{sealed + " trying 1 1600000000\n", sealed + " trying 2 1600000000\n"},
			{sealed + " trying 1 1600000000\n", ""},
			{"no record\n", sealed + " refused 1 1600000000\n"},
		} {
			g := newGate(t, "normal", "another")
			write(t, filepath.Join(g.home, ".macfleet/refused"), c.looked, 0o600)
			looked := g.remembered(t)
			write(t, filepath.Join(g.home, ".macfleet/refused"), c.now, 0o600)
			if exit, said := g.checkAs(t, s, 1700000000, looked); exit != 7 || g.tries() != 0 {
				t.Errorf("%q became %q: exit %d after %d tries, %s", c.looked, c.now, exit, g.tries(), said)
			}
		}
		// A run that died leaves its lock. It expires, also where the clock was set back since.
		for age, exit := range map[time.Duration]int{0: 8, time.Hour: 0, -time.Hour: 0} {
			g := newGate(t, "normal", loginPassword)
			write(t, filepath.Join(g.home, ".macfleet/trying"), fmt.Sprintln(time.Now().Add(-age).Unix()), 0o600)
			if got, said := g.check(t, s, 1700000000); got != exit || (g.tries() == 1) != (exit == 0) {
				t.Errorf("with a lock from %s ago: exit %d after %d tries, %s", age, got, g.tries(), said)
			}
		}
		// Two runs find that lock, and the other one is faster.
		g := newGate(t, "normal", loginPassword)
		write(t, filepath.Join(g.home, ".macfleet/trying"), "1700000000\n", 0o600)
		g.Tool("rm", `/bin/rm "$@"; case $* in *.try.*) ;; *) echo 1700000000 >"$HOME/.macfleet/trying" ;; esac`)
		if exit, said := g.check(t, s, 1700000000); exit != 8 || g.tries() != 0 {
			t.Errorf("with a lock of a faster run: exit %d after %d tries, %s", exit, g.tries(), said)
		}
		g = newGate(t, "normal", loginPassword)
		write(t, filepath.Join(g.home, ".macfleet/refused"), "no record\n", 0o600)
		if exit, said := g.check(t, s, 1700000000); exit != 0 {
			t.Errorf("with a line that cannot be read: exit %d, %s", exit, said)
		}
	})
}

// TestPasswordCheckKilled ends the script between its note and sudo's answer: the
// try is noted, and the second one spends the password.
func TestPasswordCheckKilled(t *testing.T) {
	inThreeShells(t, func(t *testing.T, s shell) {
		g := newGate(t, "killed", loginPassword)
		for n, spent := range []bool{false, true} {
			if exit, said := g.check(t, s, 1700000000+n); exit != -1 {
				t.Fatalf("exit %d, %s", exit, said)
			}
			r := parseRefusal(strings.TrimSuffix(g.note(t), "\n"))
			if r.Seal != sealed || r.Refused || r.Tries != n+1 || r.Spent() != spent || r.At.Unix() != int64(1700000000+n) {
				t.Errorf("after %d kills: %q", n+1, g.note(t))
			}
			if exit, said := g.check(t, s, 1700000000+n); exit != 8 {
				t.Errorf("while another run may still be trying: exit %d, %s", exit, said)
			}
			must(t, os.WriteFile(filepath.Join(g.home, ".macfleet/trying"), []byte("1700000000\n"), 0o600))
		}
		g.Set("mode", "normal")
		if exit, said := g.check(t, s, 1700000009); exit != 0 || g.note(t) != "" {
			t.Errorf("the right password at last: exit %d, %s, noted %q", exit, said, g.note(t))
		}
	})
}

// TestSecretInput sends a secret through a whole exchange: the script reads it,
// and no command line nor environment of any process on the way holds it.
func TestSecretInput(t *testing.T) {
	inEveryShell(t, func(t *testing.T, s shell) {
		g := newGate(t, "normal", loginPassword)
		text := loginPassword + "\n" + sealed + "\n"
		spy := `IFS= read -r a; IFS= read -r b; printf '%s|%s|' "$a" "$b"; cat; tr '\0' '\n' <"/proc/$$/cmdline" >>"$1"; env >>"$1"; dscl`
		q := login("change", spy, filepath.Join(g.State, "log"))
		q.input = hidden(t, text)
		line, err := commandLine("", DefaultPrologue, []question{q})
		if err != nil || strings.Contains(line, "Sentinel") {
			t.Errorf("the command line holds the secret: %v", err)
		}
		r := s.ask(t, withStubs(g.Bin), me(t), 10, []question{login("before", "cat"), q, login("after", "cat")})
		a, ok := r.facts.Get("change").Get()
		if !ok || a.Exit != 0 || !strings.HasPrefix(a.Stdout, loginPassword+"|"+sealed+"|Auth") {
			t.Errorf("the script read %+v", a)
		}
		for _, id := range []string{"before", "after"} {
			if b, ok := r.facts.Get(id).Get(); !ok || b.Stdout != "" {
				t.Errorf("%s read %q", id, b.Stdout)
			}
		}
		if log := g.Get("log"); strings.Contains(log, "Sentinel") || !strings.Contains(log, "PATH=") {
			t.Errorf("the secret was seen, or nothing was:\n%s", log)
		}
	})
}
