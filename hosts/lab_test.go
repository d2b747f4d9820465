package hosts

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/macfleet/macfleet/plan"
)

// lab is a machine without SSH: folders in place of those that no test may write
// to, and stubs of launchd and the clock.
type lab struct {
	t     testing.TB
	shell []string
	etc   string // /etc/macfleet
	lib   string // /Library/LaunchDaemons
	state string
	bin   string
	stdin string // of the scripts that run here
}

func labs(t *testing.T, test func(*testing.T, lab)) {
	t.Parallel()
	needRoot(t)
	for _, argv := range [][]string{{"dash"}, {"bash", "--posix"}} {
		t.Run(argv[0], func(t *testing.T) {
			t.Parallel()
			need(t, argv[0])
			test(t, newLab(t, argv))
		})
	}
}

// stubs are the tools of the lab. STATE is its folder, SH its shell. launchd has
// forgotten a job when its file is gone, and does not run one that "lazy" names.
const launchctlStub = `job=${2##*/}
echo "$*" >>STATE/launchctl
session() {
  case $1 in gui/*)
    [ -e STATE/session ] && return
    echo "Domain does not support specified action" >&2
    exit 125 ;;
  esac
}
start() {
  [ ! -e STATE/lazy ] || return 0
  runs=0
  if [ -e "STATE/runs.$1" ]; then read -r runs <"STATE/runs.$1"; fi
  echo $((runs + 1)) >"STATE/runs.$1"
  read -r program <"STATE/loaded.$1"
  env -i PATH=/usr/bin:/bin SH "$program" >>STATE/daemon 2>&1 || :
}
case $1 in
print)
  session "$2"
  case $2 in gui/*/*) ;; gui/*) echo "	session = Aqua"; exit ;; esac
  [ -e "STATE/loaded.$job" ] || { echo "Could not find service" >&2; exit 113; }
  exit=0
  if [ ! -e "STATE/runs.$job" ]; then exit='(never exited)'; fi
  if [ -e "STATE/slow" ]; then echo '	pid = 42'; else echo "	last exit code = $exit"; fi ;;
bootstrap)
  session "$2"
  job=${3##*/}
  job=${job%.plist}
  if [ ! -e "STATE/loaded.$job" ]; then
    label=$(grep -o 'dev\.macfleet\.[a-zA-Z0-9_.-]*<' "$3" | tr -d '<')
    program=$(grep -o '/etc/macfleet[^<]*' "$3")
    [ ! -e "STATE/loaded.$label" ] || { echo "Bootstrap failed: 5: Input/output error" >&2; exit 5; }
    echo "ETC${program#/etc/macfleet}" >"STATE/loaded.$label"
    [ -e STATE/slow ] || start "$label"
  fi ;;
bootout)
  [ -e "STATE/loaded.$job" ] || { echo "Boot-out failed: 3: No such process" >&2; exit 3; }
  rm -f "STATE/loaded.$job" "STATE/runs.$job" ;;
kickstart)
  [ -e "STATE/loaded.$job" ] || { echo "Could not find service" >&2; exit 113; }
  start "$job" ;;
enable) ;;
*) echo "launchctl $1?" >&2; exit 64 ;;
esac
`

func newLab(t testing.TB, argv []string) lab {
	t.Helper()
	dir := openDir(t)
	l := lab{t: t, shell: argv, etc: filepath.Join(dir, "etc"), lib: filepath.Join(dir, "lib"), state: filepath.Join(dir, "state"), bin: filepath.Join(dir, "bin")}
	for _, d := range []string{l.etc, l.lib, l.state, l.bin} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	l.tool("launchctl", launchctlStub)
	l.tool("sysctl", `[ "$2" != kern.bootsessionuuid ] || exit 1; cat STATE/boot`)
	l.tool("date", `cat STATE/clock`)
	l.tool("sync", `:`)
	l.tool("sleep", `exec /bin/sleep 0.01`)
	l.clock(1000)
	l.put("boot", "{ sec = 7, usec = 0 }\n")
	return l
}

func (l lab) words() *strings.Replacer {
	return strings.NewReplacer("STATE", l.state, "ETC", l.etc, "SH", strings.Join(l.shell, " "))
}

func (l lab) tool(name, text string) {
	write(l.t, filepath.Join(l.bin, name), "#!/bin/dash\n"+l.words().Replace(text)+"\n", 0o755)
}

func (l lab) put(name, text string) { write(l.t, filepath.Join(l.state, name), text, 0o644) }

func (l lab) clock(seconds int) { l.put("clock", strconv.Itoa(seconds)+"\n") }

// mortal makes every tool count its calls and end the whole script at one of them.
func (l lab) mortal() {
	const count = `[ -z "${KILL_AT-}" ] || { read -r n <STATE/calls; n=$((n + 1)); echo $n >STATE/calls; [ "$n" != "$KILL_AT" ] || kill -9 0; }
`
	for _, name := range []string{"cat", "dd", "shasum", "chmod", "chown", "cp", "mkdir", "mktemp", "mv", "rm", "tail", "touch", "grep", "id",
		"launchctl", "sysctl", "date", "sync", "sleep"} {
		if stub := l.read(l.bin, name); stub != "" {
			l.tool(name, count+strings.TrimPrefix(stub, "#!/bin/dash\n"))
			continue
		}
		real, err := exec.LookPath(name)
		if err != nil {
			l.t.Fatal(err)
		}
		l.tool(name, count+"exec "+real+` "$@"`)
	}
}

// prologue is what stands in front of every script.
func (l lab) prologue() string { return withStubs(l.bin) }

// here turns a Mac's paths into those of the lab. Paths in arguments stay.
func (l lab) here(text string) string {
	return strings.NewReplacer("/etc/macfleet", l.etc, "/Library/LaunchDaemons", l.lib, "/bin/sh", l.wrapper()).Replace(text)
}

// wrapper is the lab's shell as one program.
func (l lab) wrapper() string {
	path := filepath.Join(l.bin, "..", "sh")
	if _, err := os.Stat(path); err != nil {
		write(l.t, path, "#!/bin/dash\nexec "+strings.Join(l.shell, " ")+` "$@"`+"\n", 0o755)
	}
	return path
}

// run runs a script; at is the call of a tool at which it is killed, 0 for none.
func (l lab) run(at int, c plan.Command) (a plan.Answer, killed bool) {
	l.t.Helper()
	return l.sh(at, l.prologue()+l.here(c.Script), c.Args...)
}

func (l lab) sh(at int, script string, args ...string) (a plan.Answer, killed bool) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	argv := append(append([]string{}, l.shell[1:]...), append([]string{"-c", script, "sh"}, args...)...)
	cmd := exec.CommandContext(ctx, l.shell[0], argv...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = time.Second
	if at > 0 {
		l.put("calls", "0\n")
		cmd.Env = append(os.Environ(), "KILL_AT="+strconv.Itoa(at))
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(l.stdin), &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		l.t.Fatal(err)
	}
	status, _ := cmd.ProcessState.Sys().(syscall.WaitStatus)
	return plan.Answer{Exit: cmd.ProcessState.ExitCode(), Stdout: stdout.String(), Stderr: stderr.String()}, status.Signaled()
}

// daemon runs what launchd runs every few seconds.
func (l lab) daemon(at int) (killed bool) {
	l.t.Helper()
	path := filepath.Join(l.etc, "undo", "run.sh")
	if _, err := os.Stat(path); err != nil {
		return false
	}
	_, killed = l.sh(at, strings.Join(l.shell, " ")+` "$1"`, path)
	return killed
}

// read returns a file of the lab, or "".
func (l lab) read(path ...string) string {
	text, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		return ""
	}
	return string(text)
}

// undoDir lists what lies in the folder of undos, the constant files left out.
func (l lab) undoDir() string {
	entries, _ := os.ReadDir(filepath.Join(l.etc, "undo"))
	var names []string
	for _, e := range entries {
		if e.Name() != "run.sh" {
			names = append(names, e.Name())
		}
	}
	return strings.Join(names, " ")
}
