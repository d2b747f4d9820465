package steps_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/plan"
)

// sudoer is a host whose sudo gives root for a password, for a good drop-in, or by
// other means. Its tools are this machine's, each behind a stub that may kill the
// script before the tool runs or after it.
type sudoer struct{ dir string }

const (
	sudoersFolder = "/etc/sudoers.d"
	sudoPassword  = "acme-Sentinel-1"
	// sudoTool gives root where a file named free exists or the drop-in is whole.
	sudoTool = `dir=%[1]s
echo "sudo $*" >>$dir/log
free() { [ -e $dir/free ] || cmp -s $dir/want $dir/sudoers.d/macfleet; }
case "$*" in
'-n true' | '-k -n true')
  free || { echo 'sudo: a password is required' >&2; exit 1; }
  ;;
'-n -u m1 '*) shift 3; exec "$@" ;;
'-n '*)
  free || exit 1
  shift
  exec "$@"
  ;;
'-k -S -p  '*)
  shift 4
  if ! [ -e $dir/nopasswd ] && ! free; then
    IFS= read -r given
    [ "$given" = "$(cat $dir/right)" ] || exit 1
  fi
  exec "$@"
  ;;
*) exit 9 ;;
esac
`
	killer = `#!/bin/sh
n=$(($(cat %[1]s/count) + 1))
echo $n >%[1]s/count
[ $n != "$(cat %[1]s/before)" ] || kill -9 0
`
)

func newSudoer(t *testing.T) sudoer {
	t.Helper()
	h := sudoer{t.TempDir()}
	for _, d := range []string{"bin", "sudoers.d"} {
		if err := os.MkdirAll(filepath.Join(h.dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	h.put(t, "right", sudoPassword+"\n")
	h.put(t, "want", dropIn)
	tools := map[string]string{
		"sudo": sudoTool, "chown": `[ "$1" = 0:0 ]`, "id": "echo m1", "sync": ":",
		"visudo": `[ "$1" = -cf ] && cmp -s %[1]s/want "$2"`,
	}
	for _, name := range []string{"rm", "mktemp", "chmod", "mv"} {
		path := need(t, name)
		tools[name] = path + ` "$@"`
	}
	for name, text := range tools {
		body := fmt.Sprintf(killer, h.dir) + strings.ReplaceAll(text, "%[1]s", h.dir) + "\n"
		if name != "sudo" { // which becomes what it runs
			body += fmt.Sprintf("end=$?\n[ $n != \"$(cat %s/after)\" ] || kill -9 0\nexit $end\n", h.dir)
		}
		h.put(t, "bin/"+name, body)
		if err := os.Chmod(filepath.Join(h.dir, "bin", name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

func (h sudoer) put(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(h.dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// run runs a change's script and kills it before or after its nth tool; 0 is
// never. It returns the exit code, -1 when killed, and how many tools ran.
func (h sudoer) run(t *testing.T, shell []string, c plan.Command, input string, before, after int) (exit, tools int) {
	t.Helper()
	h.put(t, "count", "0")
	h.put(t, "before", strconv.Itoa(before))
	h.put(t, "after", strconv.Itoa(after))
	script := strings.ReplaceAll(c.Script, sudoersFolder, filepath.Join(h.dir, "sudoers.d"))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, shell[0], append(append(append([]string{}, shell[1:]...), "-c", script, "sh"), c.Args...)...)
	cmd.Env = []string{"PATH=" + filepath.Join(h.dir, "bin") + ":/usr/bin:/bin"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var out bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &out, &out
	var ended *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &ended) {
		t.Fatal(err)
	}
	log, _ := os.ReadFile(filepath.Join(h.dir, "log"))
	if strings.Contains(string(log)+out.String(), "Sentinel") {
		t.Errorf("the password was seen:\n%s\n%s", log, out.String())
	}
	count, err := os.ReadFile(filepath.Join(h.dir, "count"))
	if err != nil {
		t.Fatal(err)
	}
	tools, _ = strconv.Atoi(strings.TrimSpace(string(count)))
	return cmd.ProcessState.ExitCode(), tools
}

// folder returns what counts in sudoers.d, and how many files there are that sudo
// passes over because of the dot.
func (h sudoer) folder(t *testing.T) (counts string, others int) {
	t.Helper()
	all, err := os.ReadDir(filepath.Join(h.dir, "sudoers.d"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		if strings.Contains(f.Name(), ".") {
			others++
			continue
		}
		text, err := os.ReadFile(filepath.Join(h.dir, "sudoers.d", f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		counts += f.Name() + ":" + string(text)
	}
	return counts, others
}

func installation(t *testing.T) plan.Command {
	t.Helper()
	f := step(t, "sudo", wantsSudo()).Diff(sudoView(false, map[string]plan.Answer{"sudo.root": failed(1, needsWord)}))
	return f.Changes[0].Command
}

func removal(t *testing.T) plan.Command {
	t.Helper()
	v := sudoView(true, nil)
	v.Proven = true
	return step(t, "sudo", fleet.Spec{}).Diff(v).Changes[0].Command
}

func inSudoShells(t *testing.T, test func(t *testing.T, shell []string)) {
	t.Parallel()
	for _, shell := range [][]string{{"dash"}, {"bash"}, {"bash", "--posix"}} {
		t.Run(strings.Join(shell, " "), func(t *testing.T) {
			t.Parallel()
			need(t, shell[0])
			test(t, shell)
		})
	}
}

func TestSudoInstall(t *testing.T) {
	inSudoShells(t, func(t *testing.T, shell []string) {
		const whole = "macfleet:" + dropIn
		for name, c := range map[string]struct {
			edit  func(sudoer)
			input string
			exit  int
			want  string
		}{
			"right password":         {func(sudoer) {}, sudoPassword + "\n", 0, whole},
			"wrong password":         {func(sudoer) {}, "another\n", 1, ""},
			"no password":            {func(sudoer) {}, "", 1, ""},
			"root by other means":    {func(h sudoer) { h.put(t, "free", "") }, "", 0, whole},
			"sudo asks for none":     {func(h sudoer) { h.put(t, "nopasswd", "") }, "touch " + t.TempDir() + "/x\n", 0, whole},
			"an older one":           {func(h sudoer) { h.put(t, "sudoers.d/macfleet", "garbage") }, sudoPassword + "\n", 0, whole},
			"what a killed one left": {func(h sudoer) { h.put(t, "sudoers.d/.macfleet.abc123", "half") }, sudoPassword + "\n", 0, whole},
			"refused by visudo": {func(h sudoer) { h.put(t, "want", "something else"); h.put(t, "sudoers.d/macfleet", "as it was") },
				sudoPassword + "\n", 1, "macfleet:as it was"},
		} {
			h := newSudoer(t)
			c.edit(h)
			exit, _ := h.run(t, shell, installation(t), c.input, 0, 0)
			if got, others := h.folder(t); exit != c.exit || got != c.want || others != 0 {
				t.Errorf("%s: exit %d, want %d; %d others beside %q", name, exit, c.exit, others, got)
			}
		}
	})
}

// TestSudoInstallKilled ends the script before and after each tool: the drop-in is
// whole or absent at every moment, and the next run finishes and cleans up.
func TestSudoInstallKilled(t *testing.T) {
	inSudoShells(t, func(t *testing.T, shell []string) {
		_, tools := newSudoer(t).run(t, shell, installation(t), sudoPassword+"\n", 0, 0)
		if tools < 8 {
			t.Fatalf("%d tools ran", tools)
		}
		for n := 1; n <= tools; n++ {
			for _, at := range [][2]int{{n, 0}, {0, n}} {
				h := newSudoer(t)
				h.run(t, shell, installation(t), sudoPassword+"\n", at[0], at[1])
				if got, _ := h.folder(t); got != "" && got != "macfleet:"+dropIn {
					t.Errorf("killed at %v: %q", at, got)
				}
				exit, _ := h.run(t, shell, installation(t), sudoPassword+"\n", 0, 0)
				if got, others := h.folder(t); exit != 0 || got != "macfleet:"+dropIn || others != 0 {
					t.Errorf("killed at %v, and run again: exit %d, %d others beside %q", at, exit, others, got)
				}
			}
		}
	})
}

func TestSudoRemove(t *testing.T) {
	inSudoShells(t, func(t *testing.T, shell []string) {
		for free, want := range map[bool]string{true: "", false: "macfleet:" + dropIn} {
			h := newSudoer(t)
			h.put(t, "sudoers.d/macfleet", dropIn)
			if free {
				h.put(t, "free", "")
			}
			exit, _ := h.run(t, shell, removal(t), "", 0, 0)
			if got, others := h.folder(t); (exit == 0) != free || got != want || others != 0 {
				t.Errorf("root by other means %t: exit %d, %d others beside %q", free, exit, others, got)
			}
		}
	})
}

// TestSudoRemoveKilled: whatever is left, the next run ends it.
func TestSudoRemoveKilled(t *testing.T) {
	inSudoShells(t, func(t *testing.T, shell []string) {
		fresh := func() sudoer {
			h := newSudoer(t)
			h.put(t, "sudoers.d/macfleet", dropIn)
			h.put(t, "free", "")
			return h
		}
		_, tools := fresh().run(t, shell, removal(t), "", 0, 0)
		for n := 1; n <= tools; n++ {
			for _, at := range [][2]int{{n, 0}, {0, n}} {
				h := fresh()
				h.run(t, shell, removal(t), "", at[0], at[1])
				if got, _ := h.folder(t); got != "" && got != "macfleet:"+dropIn {
					t.Errorf("killed at %v: %q", at, got)
				}
				exit, _ := h.run(t, shell, removal(t), "", 0, 0)
				if got, others := h.folder(t); exit != 0 || got != "" || others != 0 {
					t.Errorf("killed at %v, and run again: exit %d, %d others beside %q", at, exit, others, got)
				}
			}
		}
	})
}
