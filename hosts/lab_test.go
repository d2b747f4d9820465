package hosts

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/internal/scripttest"
	"github.com/macfleet/macfleet/plan"
)

// lab is a machine without SSH: folders in place of those that no test may write
// to, and stubs of launchd and the clock.
type lab struct {
	*scripttest.Mac
	etc   string // /etc/macfleet
	lib   string // /Library/LaunchDaemons
	stdin string // of the scripts that run here
}

func labs(t *testing.T, test func(*testing.T, lab)) {
	t.Parallel()
	needRoot(t)
	scripttest.InShells(t, func(t *testing.T, argv []string) { test(t, newLab(t, argv)) }, "dash", "bash --posix")
}

// stubs are the tools of the lab. STATE is its folder, SH its shell. launchd has
// forgotten a job when its file is gone, and does not run one that "lazy" names.
const launchctlStub = `job=${2##*/}
echo "$*" >>STATE/launchctl
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
  case $2 in gui/*/*) ;; gui/*) . STATE/session; echo "	session = Aqua"; exit ;; esac
  [ -e "STATE/loaded.$job" ] || { echo "Could not find service" >&2; exit 113; }
  exit=0
  if [ ! -e "STATE/runs.$job" ]; then exit='(never exited)'; fi
  if [ -e "STATE/slow" ]; then echo '	pid = 42'; else echo "	last exit code = $exit"; fi ;;
bootstrap)
  job=${3##*/}
  job=${job%.plist}
  if [ ! -e "STATE/loaded.$job" ]; then
    label=$(grep -o 'dev\.macfleet\.[a-zA-Z0-9_.-]*<' "$3" | tr -d '<')
    program=$(grep -o '/etc/macfleet[^<;]*' "$3" | head -n 1)
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
	l := lab{Mac: scripttest.New(t, argv, "/etc/macfleet", "/Library/LaunchDaemons")}
	l.etc, l.lib = l.Path("/etc/macfleet"), l.Path("/Library/LaunchDaemons")
	l.Folders("/etc/macfleet", "/Library/LaunchDaemons")
	l.tool("launchctl", launchctlStub)
	l.tool("sysctl", `[ "$2" != kern.bootsessionuuid ] || exit 1; cat STATE/boot`)
	l.tool("date", `cat STATE/clock`)
	l.tool("sync", `:`)
	l.tool("sleep", `exec /bin/sleep 0.01`)
	l.clock(1000)
	l.Set("boot", "{ sec = 7, usec = 0 }\n")
	return l
}

func (l lab) words() *strings.Replacer {
	return strings.NewReplacer("STATE", l.State, "ETC", l.etc, "SH", strings.Join(l.Shell, " "))
}

func (l lab) tool(name, text string) {
	l.T.Helper()
	l.Tool(name, l.words().Replace(text))
}

func (l lab) clock(seconds int) { l.Set("clock", strconv.Itoa(seconds)+"\n") }

// mortal makes every tool count its calls and end the whole script at one of them.
func (l lab) mortal() {
	const count = `[ -z "${KILL_AT-}" ] || { echo "${0##*/}" >>STATE/called; read -r n <STATE/calls; n=$((n + 1)); echo $n >STATE/calls; [ "$n" != "$KILL_AT" ] || kill -9 0; }
`
	for _, name := range []string{"cat", "dd", "shasum", "chmod", "chown", "cp", "mkdir", "mktemp", "mv", "rm", "tail", "touch", "grep", "id",
		"launchctl", "sysctl", "date", "sync", "sleep"} {
		if stub := l.read(l.Bin, name); stub != "" {
			l.tool(name, count+strings.TrimPrefix(stub, "#!/bin/sh\n"))
			continue
		}
		real, err := exec.LookPath(name)
		if err != nil {
			l.T.Fatal(err)
		}
		l.tool(name, count+"exec "+real+` "$@"`)
	}
}

// prologue is what is in front of every script.
func (l lab) prologue() string { return withStubs(l.Bin) }

// here turns a Mac's paths into those of the lab. Paths in arguments stay.
func (l lab) here(text string) string {
	return strings.ReplaceAll(l.Here(text), "/bin/sh", l.wrapper())
}

// wrapper is the lab's shell as one program.
func (l lab) wrapper() string {
	path := filepath.Join(l.Bin, "..", "sh")
	if _, err := os.Stat(path); err != nil {
		write(l.T, path, "#!/bin/dash\nexec "+strings.Join(l.Shell, " ")+` "$@"`+"\n", 0o755)
	}
	return path
}

// run runs a script; at is the call of a tool at which it is killed, 0 for none.
func (l lab) run(at int, c plan.Command) (a plan.Answer, killed bool) {
	l.T.Helper()
	return l.sh(at, l.prologue()+strings.ReplaceAll(c.Script, "/bin/sh", l.wrapper()), c.Args...)
}

func (l lab) sh(at int, script string, args ...string) (a plan.Answer, killed bool) {
	l.T.Helper()
	var env []string
	if at > 0 {
		l.Set("calls", "0\n")
		l.Set("called", "")
		env = []string{"KILL_AT=" + strconv.Itoa(at)}
	}
	a = l.Run(plan.Command{Script: script, Args: args}, l.stdin, env...)
	return a, a.Exit == -1
}

// daemon runs what launchd runs every few seconds.
func (l lab) daemon(at int) (killed bool) {
	l.T.Helper()
	path := filepath.Join(l.etc, "undo", "run.sh")
	if _, err := os.Stat(path); err != nil {
		return false
	}
	_, killed = l.sh(at, strings.Join(l.Shell, " ")+` "$1"`, path)
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

// undoDir lists what is in the folder of undos, the constant files left out.
func (l lab) undoDir() string {
	entries, _ := os.ReadDir(filepath.Join(l.etc, "undo"))
	var names []string
	for _, e := range entries {
		if e.Name() != "run.sh" && e.Name() != "queue" {
			names = append(names, e.Name())
		}
	}
	return strings.Join(names, " ")
}
