// Package scripttest runs scripts in the shells that macOS's /bin/sh may be, in a folder that
// simulates a Mac, with stubs for its tools.
package scripttest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
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

// patience limits how long a script may run. It is far above what any script needs.
const patience = time.Minute

// Need skips a test on a machine that lacks a program. CI has them all, so the test fails there.
func Need(t testing.TB, programs ...string) {
	t.Helper()
	for _, name := range programs {
		if _, err := exec.LookPath(name); err != nil {
			Lacking(t, "this test needs Debian's packages bash, dash, jq, kubernetes-client, openssh-client, openssh-server, openssl, perl and sudo: %v", err)
		}
	}
}

// Lacking skips a test that this machine cannot run. In CI the test fails.
func Lacking(t testing.TB, what string, args ...any) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf(what, args...)
	}
	t.Skipf(what, args...)
}

// Shells are dash, bash, and bash in the mode of macOS's sh.
var Shells = []string{"dash", "bash", "bash --posix"}

// InShells runs a test in several shells in parallel, by default in Shells.
func InShells(t *testing.T, test func(t *testing.T, shell []string), shells ...string) {
	t.Helper()
	if shells == nil {
		shells = Shells
	}
	for _, shell := range shells {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			argv := strings.Fields(shell)
			Need(t, argv[0])
			test(t, argv)
		})
	}
}

// OpenDir creates a folder that every user can enter.
func OpenDir(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{filepath.Dir(dir), dir} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Write writes a file, with its folder, and sets the mode regardless of the umask.
func Write(t testing.TB, path, text string, mode os.FileMode) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), mode), os.Chmod(path, mode)); err != nil {
		t.Fatal(err)
	}
}

// Mac is a folder that simulates a Mac.
type Mac struct {
	T     testing.TB
	Shell []string
	Root  string // stands for /
	Bin   string // the stubs of tools
	State string // what the stubs remember

	here *strings.Replacer
}

// New creates a Mac without tools. Paths in scripts that start with one of tops are paths of the Mac.
func New(t testing.TB, shell []string, tops ...string) *Mac {
	t.Helper()
	dir := OpenDir(t)
	m := &Mac{T: t, Shell: shell, Root: filepath.Join(dir, "root"), Bin: filepath.Join(dir, "bin"), State: filepath.Join(dir, "state")}
	m.Folders("/", "/../bin", "/../state")
	var pairs []string
	for _, top := range tops {
		pairs = append(pairs, top, m.Root+top)
	}
	m.here = strings.NewReplacer(pairs...)
	return m
}

// Path returns the path of a file of the Mac.
func (m *Mac) Path(path string) string { return filepath.Join(m.Root, path) }

// Here replaces the Mac's paths in a text with real ones.
func (m *Mac) Here(text string) string { return m.here.Replace(text) }

// Folders creates folders of the Mac.
func (m *Mac) Folders(paths ...string) {
	m.T.Helper()
	for _, path := range paths {
		if err := os.MkdirAll(m.Path(path), 0o755); err != nil {
			m.T.Fatal(err)
		}
	}
}

// Put writes a file of the Mac.
func (m *Mac) Put(path, text string) {
	m.T.Helper()
	Write(m.T, m.Path(path), text, 0o644)
}

// Read returns a file of the Mac, or "no file".
func (m *Mac) Read(path string) string { return read(m.Path(path)) }

// Set writes a file of the stubs' state.
func (m *Mac) Set(name, text string) {
	m.T.Helper()
	Write(m.T, filepath.Join(m.State, name), text, 0o644)
}

// Unset removes a file of the stubs' state.
func (m *Mac) Unset(name string) {
	m.T.Helper()
	if err := os.Remove(filepath.Join(m.State, name)); err != nil {
		m.T.Fatal(err)
	}
}

// Get returns a file of the state without surrounding white space, or "".
func (m *Mac) Get(name string) string {
	text, _ := os.ReadFile(filepath.Join(m.State, name)) // a missing file is empty
	return strings.TrimSpace(string(text))
}

// Kept returns a file of the state, or "no file".
func (m *Mac) Kept(name string) string { return read(filepath.Join(m.State, name)) }

func read(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return "no file"
	}
	return string(text)
}

// Tool creates a stub.
func (m *Mac) Tool(name, text string) {
	m.T.Helper()
	Write(m.T, filepath.Join(m.Bin, name), "#!/bin/sh\n"+text+"\n", 0o755)
}

// callNoted starts a stub: it records the call, and kills the script at the call chosen by KillAt. It
// starts no process.
const callNoted = `#!/bin/sh
name=${0##*/}
echo "$name $*" >>"$STATE/calls"
echo "$name" >>"$STATE/tools"
read -r number <"$STATE/count"
read -r victim when <"$STATE/kill"
number=$((number + 1))
echo "$number" >"$STATE/count"
[ "$victim $when" != "$number before" ] || kill -9 0
`

// AfterCall ends a stub whose script may also be killed after the call.
const AfterCall = `
end=$?
[ "$victim $when" != "$number after" ] || kill -9 0
exit "$end"`

// Stub creates one stub for several tools, whose text finds the tool's name in $name. Its calls are
// recorded and counted.
func (m *Mac) Stub(text string, tools ...string) {
	m.T.Helper()
	m.ForgetCalls()
	m.KillAt(0)
	stub := filepath.Join(m.Bin, "..", "stub."+tools[0])
	Write(m.T, stub, callNoted+text+"\n", 0o755)
	for _, tool := range tools {
		if err := os.Symlink(stub, filepath.Join(m.Bin, tool)); err != nil {
			m.T.Fatal(err)
		}
	}
}

// ForgetCalls clears the recorded calls.
func (m *Mac) ForgetCalls() {
	m.T.Helper()
	m.Set("calls", "")
	m.Set("tools", "")
	m.Set("count", "0\n")
}

// Calls returns the recorded calls, one per line.
func (m *Mac) Calls() string { return m.Kept("calls") }

// Count returns the number of recorded calls.
func (m *Mac) Count() int {
	m.T.Helper()
	n, err := strconv.Atoi(m.Get("count"))
	if err != nil {
		m.T.Fatal(err)
	}
	return n
}

// Tools returns the tool of each recorded call.
func (m *Mac) Tools() []string { return strings.Fields(m.Kept("tools")) }

// KillAt kills later scripts, with all that they started, before call n; 0: never.
func (m *Mac) KillAt(n int) {
	m.T.Helper()
	m.Set("kill", strconv.Itoa(n)+" before\n")
}

// KillAfter is like KillAt, but kills after the call.
func (m *Mac) KillAfter(n int) {
	m.T.Helper()
	m.Set("kill", strconv.Itoa(n)+" after\n")
}

// Files returns the contents of the files below a folder, by name with a leading slash. Paths in them
// are those of a Mac.
func (m *Mac) Files(folder string) map[string]string {
	m.T.Helper()
	out := make(map[string]string)
	err := filepath.WalkDir(folder, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			out[strings.TrimPrefix(path, folder)] = m.plain(read(path))
		}
		return err
	})
	if err != nil {
		m.T.Fatal(err)
	}
	return out
}

func (m *Mac) plain(text string) string { return strings.ReplaceAll(text, m.Root, "") }

// Run runs a command's script. Stubs find the Mac in ROOT and their state in STATE. If a stub kills
// the script, the exit code is -1. The answer has the Mac's paths.
func (m *Mac) Run(c plan.Command, stdin string, env ...string) plan.Answer {
	m.T.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	argv := append(append(append([]string{}, m.Shell[1:]...), "-c", m.Here(c.Script), "sh"), c.Args...)
	cmd := exec.CommandContext(ctx, m.Shell[0], argv...)
	cmd.Env = append([]string{"PATH=" + m.Bin + ":/usr/bin:/bin", "LC_ALL=C", "STATE=" + m.State, "ROOT=" + m.Root}, env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = time.Second // a process left behind would keep the streams open
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
		m.T.Fatalf("%s: %v", c.Name, err)
	}
	return plan.Answer{Exit: cmd.ProcessState.ExitCode(), Stdout: m.plain(stdout.String()), Stderr: m.plain(stderr.String())}
}

// Done runs a command's script, which must succeed.
func (m *Mac) Done(c plan.Command, stdin string) plan.Answer {
	m.T.Helper()
	a := m.Run(c, stdin)
	if a.Exit != 0 {
		m.T.Fatalf("%s: exit code %d, %s%s\n%s", c.Name, a.Exit, a.Stdout, a.Stderr, m.Kept("calls"))
	}
	return a
}

// Fails runs a command's script, which must fail with a text in its errors.
func (m *Mac) Fails(c plan.Command, stdin, says string) {
	m.T.Helper()
	if a := m.Run(c, stdin); a.Exit == 0 || !strings.Contains(a.Stderr, says) {
		m.T.Errorf("%s: exit code %d, want %q in %s", c.Name, a.Exit, says, a.Stderr)
	}
}

// Archive packs files of a folder of the Mac into /usr/local/archive, and returns its digest.
func (m *Mac) Archive(folder string, names ...string) (digest string) {
	m.T.Helper()
	Need(m.T, "tar", "gzip", "sha256sum")
	args := append([]string{"-czf", m.Path("/usr/local/archive"), "-C", m.Path(folder)}, names...)
	if out, err := exec.CommandContext(m.T.Context(), "tar", args...).CombinedOutput(); err != nil {
		m.T.Fatalf("tar: %v\n%s", err, out)
	}
	sum := sha256.Sum256([]byte(m.Read("/usr/local/archive")))
	return hex.EncodeToString(sum[:])
}

// LastLine returns the last line, which is what a person sees.
func LastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// Text returns a file of the test's package.
func Text(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
