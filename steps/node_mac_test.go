package steps_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps"
	"github.com/macfleet/macfleet/steps/stepstest"
)

// nodeMac is a machine of stub tools on which the scripts of tart and tart_kubelet
// run. Paths in scripts and arguments are those of its folder.
type nodeMac struct {
	t                testing.TB
	shell            []string
	root, bin, state string
	spec             fleet.Spec
	rollback         bool
}

// tools are those that the scripts call: all are one stub.
const nodeTools = "chmod chown codesign cp date df id launchctl mkdir mktemp mv ps rm sfltool shasum sleep stat sync sysctl tar"

func newNodeMac(t testing.TB, shell ...string) *nodeMac {
	t.Helper()
	for _, tool := range []string{shell[0], "cmp", "sha256sum", "sed"} {
		need(t, tool)
	}
	dir := t.TempDir()
	m := &nodeMac{t: t, shell: shell, root: filepath.Join(dir, "root"), bin: filepath.Join(dir, "bin"), state: filepath.Join(dir, "state")}
	for _, folder := range []string{m.bin, m.state, m.path("/Library/LaunchDaemons"), m.path("/usr/local/lib/macfleet/artifacts"), m.path("/var/log"), m.path("/var/lib")} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	stub := filepath.Join(dir, "stub")
	if err := os.WriteFile(stub, []byte(file(t, "testdata/stubs/kubelet.sh")), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, tool := range strings.Fields(nodeTools) {
		if err := os.Symlink(stub, filepath.Join(m.bin, tool)); err != nil {
			t.Fatal(err)
		}
	}
	m.set("clock", "2000000000")
	m.set("pids", "500")
	m.set("count", "0\n")
	m.set("kill", "never\n")
	m.spec = fleet.Spec{Tart: &fleet.Tart{Artifact: m.artifact("2.32.1", tartArchive(t, "2.32.1"))},
		TartKubelet: &fleet.TartKubelet{Artifact: m.artifact("0.4.0", "version=0.4.0\n")}}
	return m
}

func (m *nodeMac) path(path string) string { return filepath.Join(m.root, path) }

func (m *nodeMac) set(name, text string) { m.write(filepath.Join(m.state, name), text) }

func (m *nodeMac) get(name string) string {
	text, _ := os.ReadFile(filepath.Join(m.state, name)) // what is not there is nothing
	return strings.TrimSpace(string(text))
}

func (m *nodeMac) write(path, text string) {
	m.t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		m.t.Fatal(err)
	}
}

// count is how many tools were called.
func (m *nodeMac) count() int {
	m.t.Helper()
	n, err := strconv.Atoi(m.get("count"))
	if err != nil {
		m.t.Fatal(err)
	}
	return n
}

func (m *nodeMac) read(path string) string {
	text, err := os.ReadFile(m.path(path))
	if err != nil {
		return "no file"
	}
	return string(text)
}

// artifact is one that the host was brought.
func (m *nodeMac) artifact(version, content string) *fleet.Artifact {
	m.t.Helper()
	sum := sha256.Sum256([]byte(content))
	a := &fleet.Artifact{Name: "sample", Version: version, SHA256: hex.EncodeToString(sum[:])}
	m.write(m.path(a.HostPath()), content)
	return a
}

// tartArchive is an archive of a bundle whose program is a shell script.
func tartArchive(t testing.TB, version string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	text := "#!/bin/sh\necho " + version + "\n"
	for _, h := range []tar.Header{{Name: "tart.app/", Typeflag: tar.TypeDir, Mode: 0o755}, {Name: "tart.app/Contents/", Typeflag: tar.TypeDir, Mode: 0o755},
		{Name: "tart.app/Contents/MacOS/", Typeflag: tar.TypeDir, Mode: 0o755}, {Name: "tart.app/Contents/MacOS/tart", Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(text))}} {
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Size > 0 {
			if _, err := w.Write([]byte(text)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// run runs a script; the paths that it names are the machine's.
func (m *nodeMac) run(c plan.Command, stdin string) plan.Answer {
	m.t.Helper()
	var pairs []string
	for _, top := range []string{"/etc/", "/Library/", "/usr/local/", "/var/", "/Users/"} {
		pairs = append(pairs, top, m.root+top)
	}
	here := strings.NewReplacer(pairs...)
	argv := append(append([]string{}, m.shell[1:]...), "-c", here.Replace(c.Script), "sh")
	for _, arg := range c.Args {
		argv = append(argv, here.Replace(arg))
	}
	cmd := exec.CommandContext(m.t.Context(), m.shell[0], argv...)
	cmd.Env = []string{"PATH=" + m.bin + ":/usr/bin:/bin", "LC_ALL=C", "STATE=" + m.state, "ROOT=" + m.root}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Stdin = strings.NewReader(stdin)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	_ = cmd.Run() // its exit code says it
	return plan.Answer{Exit: cmd.ProcessState.ExitCode(), Stdout: strings.ReplaceAll(out.String(), m.root, ""), Stderr: strings.ReplaceAll(errs.String(), m.root, "")}
}

const nodeToken = "eyJhbGciOiJub25lIn0.CLAIMS.c2lnbmF0dXJl"

func tokenOf(account string) string {
	return strings.Replace(nodeToken, "CLAIMS", stepstest.Claims(account, "tart-kubelet-"+name+"-token"), 1)
}

func (m *nodeMac) view(id plan.StepID) plan.View {
	v := stepstest.View(host(m.spec), nil)
	v.Node = inventory.Absent[inventory.Node]()
	v.Rollback = m.rollback
	_, err := os.Stat(m.path("/etc/macfleet/pending/" + string(id)))
	v.Pending = err == nil
	return v
}

// look asks the step's own probes. No answer may hold a secret.
func (m *nodeMac) look(id plan.StepID) plan.Finding {
	m.t.Helper()
	s := step(m.t, id, m.spec)
	v := m.view(id)
	v.Facts = make(plan.Facts)
	for _, p := range s.Probes() {
		a := m.run(p.Command, "")
		v.Facts[p.ID] = inventory.Present(a)
		if strings.Contains(a.Stdout+a.Stderr, "hunter2") || strings.Contains(a.Stdout, "c2lnbmF0dXJl") {
			m.t.Errorf("%s shows a secret:\n%s", p.ID, a.Stdout)
		}
	}
	f := s.Diff(v)
	sound(m.t, id, m.spec, f)
	if len(f.Unread) > 0 {
		m.t.Fatalf("%s: %+v", id, f.Unread)
	}
	return f
}

// perform does what a finding says, as far as it goes.
func (m *nodeMac) perform(f plan.Finding) plan.Answer {
	m.t.Helper()
	var a plan.Answer
	for _, c := range f.Changes {
		stdin := ""
		if c.Input == plan.Kubeconfig {
			token, err := secret.New(tokenOf(stepstest.AccountUID))
			if err != nil {
				m.t.Fatal(err)
			}
			input, err := steps.Input(steps.InputFor{Kind: c.Input, Host: host(m.spec), Join: stepstest.Join()}, token)
			if err != nil {
				m.t.Fatal(err)
			}
			stdin = input.Reveal()
		}
		if a = m.run(c.Command, stdin); a.Exit != 0 {
			return a
		}
	}
	return a
}

// apply performs what differs, proves it, and fails the test where it cannot.
func (m *nodeMac) apply(id plan.StepID) {
	m.t.Helper()
	f := m.look(id)
	if f.Refused != nil {
		m.t.Fatalf("refused: %+v", f.Refused)
	}
	if a := m.perform(f); a.Exit != 0 {
		m.t.Fatalf("%s: exit %d: %s", brief(f), a.Exit, a.Stderr)
	}
	m.proven(id)
}

// proven ends a step as the engine does, and wants nothing to be left.
func (m *nodeMac) proven(id plan.StepID) {
	m.t.Helper()
	if err := os.RemoveAll(m.path("/etc/macfleet/pending/" + string(id))); err != nil {
		m.t.Fatal(err)
	}
	if f := m.look(id); f.Facts != f.Wanted {
		m.t.Fatalf("left: %s %+v", brief(f), fieldsOf(f))
	}
	if faults := m.get("faults"); faults != "" {
		m.t.Errorf("faults: %s", faults)
	}
}

// picture is everything that lasts on the machine: names and contents, without the
// times and inodes of the receipts.
func (m *nodeMac) picture() map[string]string {
	m.t.Helper()
	out := make(map[string]string)
	err := filepath.WalkDir(m.root, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		name := strings.TrimPrefix(path, m.root)
		var lines []string
		for line := range strings.Lines(string(text)) {
			if !strings.HasSuffix(name, ".receipt") || !strings.HasPrefix(line, "file ") && !strings.HasPrefix(line, "installed ") {
				lines = append(lines, strings.ReplaceAll(line, m.root, ""))
			}
		}
		out[name] = strings.Join(lines, "")
		return err
	})
	if err != nil {
		m.t.Fatal(err)
	}
	delete(out, "/var/log/tart-kubelet.log")
	return out
}

func inNodeShells(t *testing.T, test func(*testing.T, *nodeMac)) {
	t.Parallel()
	for _, shell := range [][]string{{"dash"}, {"bash"}, {"bash", "--posix"}} {
		t.Run(strings.Join(shell, " "), func(t *testing.T) {
			t.Parallel()
			test(t, newNodeMac(t, shell...))
		})
	}
}
