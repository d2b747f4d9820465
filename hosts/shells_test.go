package hosts

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/scripttest"
	"github.com/macfleet/macfleet/plan"
)

// shell is one of the shells that /bin/sh may be.
type shell struct {
	name string
	argv []string
	// inner runs the questions in the same shell as well; otherwise the exact
	// text is run, whose questions go to this machine's /bin/sh.
	inner bool
}

func shells() []shell {
	return []shell{
		{"dash", []string{"dash"}, false}, {"dash, questions too", []string{"dash"}, true},
		{"bash", []string{"bash"}, false}, {"bash, questions too", []string{"bash"}, true},
		{"bash --posix", []string{"bash", "--posix"}, false}, {"bash --posix, questions too", []string{"bash", "--posix"}, true},
	}
}

// inner takes what the bootstrap runs out of a command line: a script and its
// arguments, with another shell in place of /bin/sh, if one is named.
func inner(t testing.TB, line, shell string) []string {
	t.Helper()
	text, ok := strings.CutPrefix(line, "/bin/sh -c "+quote(bootstrap)+" sh ")
	if !ok {
		t.Fatalf("the command line does not begin with the bootstrap: %q", head(line))
	}
	// Only a shell can say what quoted words mean.
	out, err := exec.CommandContext(within(t), "dash", "-c", "printf '%s\\0' "+text).Output()
	must(t, err)
	words := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	if shell != "" {
		for i := range words {
			words[i] = strings.ReplaceAll(words[i], "/bin/sh", shell)
		}
	}
	return words
}

// ask runs an exchange in a local shell and takes its output apart.
func (s shell) ask(t *testing.T, prologue, asUser string, limit int, questions []question) reply {
	t.Helper()
	need(t, s.argv[0], "perl")
	line, err := commandLine("", prologue, questions)
	must(t, err)
	wrapper := ""
	if s.inner {
		// All users can reach the wrapper.
		wrapper = filepath.Join(openDir(t), "sh")
		write(t, wrapper, "#!/bin/sh\nexec "+strings.Join(s.argv, " ")+` "$@"`+"\n", 0o755)
	}
	mark := rand.Text()
	input, err := data(mark, asUser, limit, questions)
	must(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.argv[0], append(append(append([]string{}, s.argv[1:]...), "-c"), inner(t, line, wrapper)...)...)
	// A process that outlives its question would hold the streams open.
	cmd.WaitDelay = time.Second
	var stdout, stderr bytes.Buffer
	// What follows the data is more than perl reads ahead: no question may read it.
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input+strings.Repeat("x", 1<<15)), &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\nstderr: %s", err, head(stderr.String()))
	}
	r, err := parse(mark, stdout.String(), stderr.String(), questions)
	must(t, err)
	if !r.whole {
		t.Errorf("the last mark is missing; stderr: %s", head(stderr.String()))
	}
	return r
}

// need skips a test on a machine without a program, see scripttest.
func need(t testing.TB, programs ...string) { t.Helper(); scripttest.Need(t, programs...) }

func openDir(t testing.TB) string { t.Helper(); return scripttest.OpenDir(t) }

func write(t testing.TB, path, text string, mode os.FileMode) {
	t.Helper()
	scripttest.Write(t, path, text, mode)
}

func me(t testing.TB) string {
	t.Helper()
	u, err := user.Current()
	must(t, err)
	return u.Username
}

func isRoot() bool { return os.Getuid() == 0 }

// withStubs returns a prologue that puts a folder of tools in front of the
// system's.
func withStubs(dir string) string {
	return strings.Replace(DefaultPrologue, "PATH=", "PATH="+dir+":", 1)
}

func login(id, script string, args ...string) question {
	return question{id: id, Command: probe(id, script, args...).Command}
}

// groupsOf is what id says of a user's groups.
func groupsOf(t testing.TB, name string) string {
	t.Helper()
	out, err := exec.CommandContext(within(t), "id", "-G", name).Output()
	must(t, err)
	return string(out)
}

func homeOf(t testing.TB, name string) string {
	t.Helper()
	u, err := user.Lookup(name)
	must(t, err)
	return u.HomeDir
}

func inEveryShell(t *testing.T, test func(*testing.T, shell)) {
	t.Parallel()
	for _, s := range shells() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			test(t, s)
		})
	}
}

// inThreeShells is for tests that wait for the watchdog, whose least limit is a
// whole second.
func inThreeShells(t *testing.T, test func(*testing.T, shell)) {
	inEveryShell(t, func(t *testing.T, s shell) {
		if s.inner {
			test(t, s)
		}
	})
}

func TestShellsAgree(t *testing.T) {
	inEveryShell(t, func(t *testing.T, s shell) {
		bin := filepath.Join(openDir(t), "bin")
		write(t, filepath.Join(bin, "sw_vers"), "#!/bin/sh\nprintf '26.3\\n'\n", 0o755)
		write(t, filepath.Join(bin, "pmset"), "#!/bin/sh\nprintf 'pmset %s|' \"$@\"\nprintf warn >&2\nexit 7\n", 0o755)
		questions := []question{
			login("a.stub", file("scripts/os-version.sh")),
			login("a.fails", "pmset -g custom"),
			login("a.quotes", `printf '%s' "it's" '$HOME' \\ "`+"\\`"+`"`),
			login("a.stdin", "cat; printf 'end\\n'"),
			login("a.silent", ":"),
			login("a.one-line-without-end", "printf x; printf y >&2"),
			login("a.locale", `printf '%s' "$LC_ALL"`),
			login("a.name", `printf '%s %s' "$0" "$#"`, "x", "y"),
			login("a.variables-of-the-exchange", `printf '%s' "${mark-}${run-}${epoch-}${1-}"`),
			login("a.errexit", "set -e; false; printf no"),
			login("a.absent", file("scripts/file.sh"), "host.json"),
			login("a.trap", `trap 'printf bye' EXIT; exit 5`),
			{id: "a.root", Command: plan.Command{Script: "id -u", As: plan.Root}},
		}
		root := unread("needs root")
		if isRoot() {
			root = said(0, "0\n", "")
		}
		want := plan.Facts{
			"a.stub":                      said(0, "26.3\n", ""),
			"a.fails":                     said(7, "pmset -g|pmset custom|", "warn"),
			"a.quotes":                    said(0, "it's$HOME\\`", ""),
			"a.stdin":                     said(0, "end\n", ""),
			"a.silent":                    said(0, "", ""),
			"a.one-line-without-end":      said(0, "x", "y"),
			"a.locale":                    said(0, "C", ""),
			"a.name":                      said(0, "sh 2", ""),
			"a.variables-of-the-exchange": said(0, "", ""),
			"a.errexit":                   said(1, "", ""),
			"a.absent":                    said(absent, "", ""),
			"a.trap":                      said(5, "bye", ""),
			"a.root":                      root,
		}
		if _, err := os.Stat("/etc/macfleet/host.json"); err == nil {
			delete(want, "a.absent") // this machine is a member itself
		}
		r := s.ask(t, withStubs(bin), me(t), 10, questions)
		if len(want) < len(questions) {
			delete(r.facts, "a.absent")
		}
		is(t, "answers", r.facts, want)
		if r.root != isRoot() {
			t.Errorf("root = %t, want %t", r.root, isRoot())
		}
	})
}

// hostile are argument values that a shell, read or a length could damage.
func hostile() []string {
	return []string{
		"", " ", "plain", "a b  c", " leading and trailing ", "tab\t", "\n", "\n\n", "a\nb", "trailing\n", "trailing\n\n\n",
		"\r\n", "it's", `"double"`, "$(touch acme)", "`touch acme`", "$HOME ${PATH}", `\`, `\\`, `\n`, `a\`, "\\\n", "*", "?[a-z]", "~",
		"-n", "--", "-e", "%s%d", "!!", "#", ";", "&", "|", "<", ">", "x", "xx", "größe 日本語 🖥", "\xff\xfe", "\x01\x1b[31m\x7f",
		"3\nabc", "0\n", strings.Repeat("acme'\"$\\\n", 625),
	}
}

// echo prints each argument with its own frame, so that none can hide in
// another.
const echo = `for v in "$@"; do printf '<%s>' "$v"; done`

func echoed(values []string) string {
	var b strings.Builder
	for _, v := range values {
		b.WriteString("<" + v + ">")
	}
	return b.String()
}

func TestShellsArguments(t *testing.T) {
	inEveryShell(t, func(t *testing.T, s shell) {
		all := hostile()
		questions := []question{login("a.all", echo, all...), login("a.none", echo), login("a.order", echo, "1", "", "3")}
		want := plan.Facts{
			"a.all":   said(0, echoed(all), ""),
			"a.none":  said(0, "", ""), // no argument of an earlier question is left over
			"a.order": said(0, "<1><><3>", ""),
		}
		r := s.ask(t, DefaultPrologue, me(t), 10, questions)
		is(t, "answers", r.facts, want)
	})
}

// TestShellsHarmful asks harmful questions, each between two good ones: whatever
// a question does, the others are answered.
func TestShellsHarmful(t *testing.T) {
	inEveryShell(t, func(t *testing.T, s shell) {
		flood := strings.Repeat("x", 1<<20)
		mark := "ffffffffffffffffffffffffffffffff"
		harmful := []struct {
			script string
			want   inventory.Seen[plan.Answer]
		}{
			{"kill -9 $$", said(128+9, "", "")},
			{"printf before; kill -TERM $$", said(128+15, "before", "")},
			{"exec >&-; exit 3", said(3, "", "")},
			{"exec >&- 2>&-; printf lost", unread("")},
			{"exec 0<&-; exit 2", said(2, "", "")},
			{"head -c 1048576 /dev/zero | tr '\\0' x", said(0, flood, "")},
			{"head -c 1048576 /dev/zero | tr '\\0' x >&2; exit 1", said(1, "", flood)},
			{"printf '\\n" + mark + " end 0\\n\\n" + mark + " done\\n'", said(0, "\n"+mark+" end 0\n\n"+mark+" done\n", "")},
			{"printf '\\nbegin a.0\\nend 0\\ndone\\n'", said(0, "\nbegin a.0\nend 0\ndone\n", "")},
			{"exit 255", said(255, "", "")},
			{"exit 124", said(124, "", "")},
			{"exit 91", said(91, "", "")},
			{"cd /; id=no as=root count=9 status=9 mark=no; exit 8", said(8, "", "")},
			{"printf '\\033[2J\\007'", said(0, "\x1b[2J\x07", "")},
			// What runs on after its question is killed with it.
			{"sleep 1000 & printf left", said(0, "left", "")},
		}
		questions := []question{login("good.0", "printf good")}
		for i, h := range harmful {
			questions = append(questions, login(fmt.Sprintf("bad.%d", i), h.script), login(fmt.Sprintf("good.%d", i+1), "printf good"))
		}
		r := s.ask(t, DefaultPrologue, me(t), 10, questions)
		if got := r.facts.Get("good.0"); cmp.Diff(said(0, "good", ""), got, whole) != "" {
			t.Errorf("the first good question: %+v", got)
		}
		for i, h := range harmful {
			got, after := r.facts.Get(fmt.Sprintf("bad.%d", i)), r.facts.Get(fmt.Sprintf("good.%d", i+1))
			if a, ok := got.Get(); h.want.IsUnread() {
				// How a shell takes a write to a closed stream is its own affair.
				if !ok || a.Stdout != "" || a.Stderr != "" {
					t.Errorf("%s: %+v, want an answer", h.script, got)
				}
			} else if diff := cmp.Diff(h.want, got, whole); diff != "" {
				t.Errorf("%s (-want +got):\n%s", h.script, head(diff))
			}
			if cmp.Diff(said(0, "good", ""), after, whole) != "" {
				t.Errorf("the question after %q: %+v", h.script, after)
			}
		}
	})
}

// witness is a named pipe: a process that opened it holds it as long as it lives.
type witness struct{ path string }

func newWitness(t testing.TB, dir string) (witness, *os.File) {
	t.Helper()
	w := witness{filepath.Join(dir, "witness")}
	must(t, syscall.Mkfifo(w.path, 0o622))
	must(t, os.Chmod(w.path, 0o622))
	// Without O_NONBLOCK the open would wait for a writer.
	f, err := os.OpenFile(w.path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	must(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return w, f
}

// allDead fails unless the processes wrote what they were to write and then all
// went away.
func allDead(t testing.TB, f *os.File, wrote string) {
	t.Helper()
	must(t, f.SetReadDeadline(time.Now().Add(patience)))
	got, err := io.ReadAll(f)
	if err != nil {
		t.Errorf("a process lives on after its question: %v", err)
	}
	if string(got) != wrote {
		t.Errorf("the processes wrote %q, want %q", got, wrote)
	}
}

const stoppedByWatchdog = "timed out and was stopped"

// TestShellsWatchdog lets a question hang, with grandchildren that do not want
// to end either.
func TestShellsWatchdog(t *testing.T) {
	inThreeShells(t, func(t *testing.T, s shell) {
		w, f := newWitness(t, openDir(t))
		family := `exec 3>"$1"; printf up >&3; printf part; (trap "" TERM; sleep 1000 & sleep 1000) & sleep 1000`
		r := s.ask(t, DefaultPrologue, me(t), 1, []question{
			login("good.0", "printf good"),
			login("bad.0", family, w.path),
			login("good.1", "cat; "+echo, "x\n"),
			login("bad.1", "printf part; kill -STOP $$"),
			login("good.2", "printf good"),
		})
		want := plan.Facts{"good.0": said(0, "good", ""), "bad.0": unread(stoppedByWatchdog), "good.1": said(0, "<x\n>", ""),
			"bad.1": unread(stoppedByWatchdog), "good.2": said(0, "good", "")}
		is(t, "answers", r.facts, want)
		allDead(t, f, "up")
	})
}

// TestWatchdogKills stops a question that ignores the polite signal. No shell
// has a part in it, so one is enough.
func TestWatchdogKills(t *testing.T) {
	t.Parallel()
	w, f := newWitness(t, openDir(t))
	stubborn := `trap "" TERM; exec 3>"$1"; printf up >&3; while :; do sleep 1000; done`
	r := shells()[0].ask(t, DefaultPrologue, me(t), 1, []question{login("bad.0", stubborn, w.path), login("good.0", "printf good")})
	want := plan.Facts{"bad.0": unread(stoppedByWatchdog), "good.0": said(0, "good", "")}
	is(t, "answers", r.facts, want)
	allDead(t, f, "up")
}

// TestShellsInput gives questions more than a pipe holds: what one does not read costs it nothing, and
// what one never comes to read costs its own answer.
func TestShellsInput(t *testing.T) {
	inThreeShells(t, func(t *testing.T, s shell) {
		flood := strings.Repeat("acme\n", 1<<16)
		with := func(id, script string) question {
			q := login(id, script)
			q.input = hidden(t, flood)
			return q
		}
		r := s.ask(t, DefaultPrologue, me(t), 2, []question{
			with("a.reads", "wc -c"), with("a.reads-a-line", "read -r line; printf '%s' \"$line\""), with("a.reads-nothing", "exit 3"),
			with("a.hangs", "sleep 1000"), login("a.none", "cat"),
		})
		if a, _ := r.facts.Get("a.reads").Get(); strings.TrimSpace(a.Stdout) != fmt.Sprint(len(flood)) {
			t.Errorf("the question read %q bytes of %d", a.Stdout, len(flood))
		}
		delete(r.facts, "a.reads")
		want := plan.Facts{"a.reads-a-line": said(0, "acme", ""), "a.reads-nothing": said(3, "", ""), "a.hangs": unread(stoppedByWatchdog), "a.none": said(0, "", "")}
		is(t, "answers", r.facts, want)
	})
}

// TestShellsUnknownUser: a question for a login user that the host does not have fails and runs as no other user.
func TestShellsUnknownUser(t *testing.T) {
	t.Parallel()
	r := shells()[0].ask(t, DefaultPrologue, "no-such-user", 10, []question{login("a.user", "id -un"), {id: "a.root", Command: plan.Command{Script: "id -un", As: plan.Root}}})
	want := plan.Facts{"a.user": unread("needs root"), "a.root": unread("needs root")}
	if isRoot() {
		want = plan.Facts{"a.user": said(126, "", "watchdog: cannot become no-such-user\n"), "a.root": said(0, "root\n", "")}
	}
	is(t, "answers", r.facts, want)
}

// TestShellsLoginUserOfRoot asks as the login user where the exchange itself
// runs as root, as on a host with passwordless sudo.
func TestShellsLoginUserOfRoot(t *testing.T) {
	if !isRoot() {
		t.Skip("only root can become another user; the tests through sshd take this path by sudo")
	}
	inThreeShells(t, func(t *testing.T, s shell) {
		need(t, "sudo")
		w, f := newWitness(t, openDir(t))
		all, bin := hostile(), openDir(t)
		write(t, filepath.Join(bin, "id"), "#!/bin/sh\n/usr/bin/id \"$@\" | if [ $# = 2 ]; then sed 's/$/ 4711/'; else cat; fi\n", 0o755)
		r := s.ask(t, withStubs(bin), "nobody", 1, []question{
			login("a.user", "cat; id -un; id -G; printf '%s' \"$HOME $USER\""),
			login("a.arguments", echo, all...),
			login("a.path", `printf '%s' "$PATH"`),
			login("a.fails", "exit 9"),
			login("a.hangs", `exec 3>"$1"; printf up >&3; sleep 1000 & sleep 1000`, w.path),
			{id: "a.root", Command: plan.Command{Script: "id -un", As: plan.Root}},
		})
		const other = "nobody"
		want := plan.Facts{
			"a.user":      said(0, other+"\n"+strings.TrimSpace(groupsOf(t, other))+" 4711\n"+homeOf(t, other)+" "+other, ""),
			"a.arguments": said(0, echoed(all), ""),
			"a.path":      said(0, bin+":/usr/bin:/bin:/usr/sbin:/sbin", ""),
			"a.fails":     said(9, "", ""),
			"a.hangs":     unread(stoppedByWatchdog),
			"a.root":      said(0, "root\n", ""),
		}
		is(t, "answers", r.facts, want)
		allDead(t, f, "up")
	})
}

// TestShellsCutData: a script whose data ends early must not make up answers.
func TestShellsCutData(t *testing.T) {
	inEveryShell(t, func(t *testing.T, s shell) {
		need(t, s.argv[0], "perl")
		questions := []question{login("a.b", echo, "acme"), login("a.c", echo, "fleet")}
		line, err := commandLine("", DefaultPrologue, questions)
		must(t, err)
		for _, input := range []string{"", testMark + "\n", testMark + "\n" + me(t) + "\n10\n", testMark + "\n" + me(t) + "\n10\n4\nacme",
			testMark + "\n" + me(t) + "\n10\n4\nacme5\nfle"} {
			cmd := exec.CommandContext(within(t), s.argv[0], append(append(append([]string{}, s.argv[1:]...), "-c"), inner(t, line, "")...)...)
			cmd.Stdin = strings.NewReader(input)
			out, err := cmd.Output()
			if cmd.ProcessState.ExitCode() != 91 {
				t.Errorf("data %q: %v, want exit 91", input, err)
			}
			if strings.Contains(string(out), " done\n") {
				t.Errorf("data %q: the last mark came anyway", input)
			}
		}
	})
}
