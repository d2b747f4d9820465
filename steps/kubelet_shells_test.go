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

// TestNodeScripts sets up a Mac, rolls both programs, and goes back.
func TestNodeScripts(t *testing.T) {
	inNodeShells(t, func(t *testing.T, m *nodeMac) {
		m.apply("tart")
		m.apply(kubeletID)
		if a := m.run(plan.Command{Script: "exec /usr/local/bin/tart --version"}, ""); a.Stdout != "2.32.1\n" && a.Exit != 0 {
			t.Errorf("the wrapper: %+v", a)
		}
		config := m.read("/etc/tart-kubelet/kubeconfig")
		if !strings.HasSuffix(config, "\n    token: "+tokenOf(stepstest.AccountUID)+"\n") || !strings.HasPrefix(config, stepstest.Kubeconfig(name)) {
			t.Errorf("the kubeconfig is\n%s", config)
		}
		if f := m.look(kubeletID); len(f.Changes) > 0 || f.Refused != nil {
			t.Errorf("again: %s", brief(f))
		}
		pid, runs := m.get("pid"), m.get("runs")
		m.spec.TartKubelet = &fleet.TartKubelet{Artifact: m.artifact("0.5.0", "version=0.5.0\n")}
		m.apply(kubeletID)
		if m.get("pid") == pid || m.get("runs") == runs || strings.Contains(m.get("calls"), "bootout") {
			t.Errorf("pid %s, %s runs:\n%s", m.get("pid"), m.get("runs"), m.get("calls"))
		}
		m.spec.Tart = &fleet.Tart{Artifact: m.artifact("2.33.0", tartArchive(t, "2.33.0"))}
		m.apply("tart")
		if !strings.Contains(m.read("/usr/local/lib/tart.app/Contents/MacOS/tart"), "2.33.0") {
			t.Error("the old bundle is there")
		}
		m.rollback = true
		m.apply("tart")
		m.apply(kubeletID)
		m.apply(kubeletID) // there is nothing more to do
		if got := m.read("/usr/local/bin/tart-kubelet"); got != "version=0.4.0\n" {
			t.Errorf("after the roll-back %q", got)
		}
		if got := m.read("/usr/local/lib/macfleet/tart_kubelet.receipt"); !strings.Contains(got, "\nrolled-back "+m.spec.TartKubelet.Artifact.SHA256+" 0.5.0\n") {
			t.Errorf("the receipt:\n%s", got)
		}
		m.rollback = false
		m.apply(kubeletID)
		if got := m.read("/usr/local/lib/macfleet/tart_kubelet.receipt"); strings.Contains(got, "rolled-back") || m.read("/usr/local/bin/tart-kubelet") != "version=0.5.0\n" {
			t.Errorf("forth again:\n%s", got)
		}
	})
}

// TestNodeScriptsPlist: another plist is loaded anew, the same one never.
func TestNodeScriptsPlist(t *testing.T) {
	inNodeShells(t, func(t *testing.T, m *nodeMac) {
		m.apply(kubeletID)
		m.spec.GithubRunner = &fleet.GithubRunner{}
		m.apply(kubeletID)
		if !strings.Contains(m.get("job"), "--disable-vm-gc") || strings.Count(m.get("calls"), "launchctl bootstrap system") != 2 {
			t.Errorf("launchd has\n%s\n%s", m.get("job"), m.get("calls"))
		}
		for what, edit := range map[string]func(){
			"the file edited":  func() { m.write(m.path(kubeletPlist), "x") },
			"the process gone": func() { _ = os.Remove(filepath.Join(m.state, "pid")) },
			"kubeconfig edited": func() {
				m.write(m.path("/etc/tart-kubelet/kubeconfig"), m.read("/etc/tart-kubelet/kubeconfig")+"# x\n")
			},
			"kubeconfig of before": func() {
				m.write(m.path("/etc/tart-kubelet/kubeconfig"), strings.Replace(m.read("/etc/tart-kubelet/kubeconfig"), tokenOf(stepstest.AccountUID), tokenOf("gone"), 1))
			},
			"the program edited": func() { m.write(m.path("/usr/local/bin/tart-kubelet"), "version=0.0\n") },
		} {
			edit()
			if f := m.look(kubeletID); len(f.Changes) == 0 {
				t.Errorf("%s: nothing differs", what)
			}
			m.apply(kubeletID)
		}
		if strings.Count(m.get("calls"), "launchctl bootstrap system") != 2 {
			t.Errorf("the job was registered without need:\n%s", m.get("calls"))
		}
	})
}

const kubeletPlist = "/Library/LaunchDaemons/dev.macfleet.tart-kubelet.plist"

// TestNodeScriptsTakeOver: the job of before is gone before ours starts.
func TestNodeScriptsTakeOver(t *testing.T) {
	inNodeShells(t, func(t *testing.T, m *nodeMac) {
		const legacy = "/Library/LaunchDaemons/dev.tuist.tart-kubelet.plist"
		m.set("legacy", "")
		m.write(m.path(legacy), "<string>/usr/local/bin/tart-kubelet</string>\n")
		m.apply(kubeletID)
		if m.read(legacy) != "no file" || strings.Contains(m.get("calls"), "bootout system/dev.macfleet") {
			t.Errorf("calls:\n%s", m.get("calls"))
		}
		m.write(m.path("/Library/LaunchDaemons/com.example.node.plist"), "<string>/opt/tart-kubelet</string>\n")
		if f := m.look(kubeletID); brief(f) != "refused second-kubelet" {
			t.Error(brief(f))
		}
	})
}

// TestNodeScriptsFail: a version that crashes ends the step with what its log
// says, and the one from before comes back.
func TestNodeScriptsFail(t *testing.T) {
	inNodeShells(t, func(t *testing.T, m *nodeMac) {
		m.apply("tart")
		m.apply(kubeletID)
		m.spec.TartKubelet = &fleet.TartKubelet{Artifact: m.artifact("0.5.0", "crashes\n")}
		a := m.perform(m.look(kubeletID))
		if a.Exit != 70 || !strings.Contains(lastOf(a.Stderr), "does not stay up: state = spawn scheduled;last exit code = 1;") ||
			!strings.HasSuffix(lastOf(a.Stderr), "this version crashes") {
			t.Errorf("exit %d: %s", a.Exit, a.Stderr)
		}
		if f := m.look(kubeletID); brief(f) != "kubelet-crash-loop run kick" {
			t.Error(brief(f))
		}
		m.rollback = true
		m.apply(kubeletID)
		if m.read("/usr/local/bin/tart-kubelet") != "version=0.4.0\n" || m.get("pid") == "" {
			t.Error("it is not back")
		}
		m.rollback = false

		bad := m.artifact("0.6.0", "version=0.6.0\n")
		m.write(m.path(bad.HostPath()), "other bytes\n")
		m.spec.TartKubelet = &fleet.TartKubelet{Artifact: bad}
		before := m.picture()
		if a := m.perform(m.look(kubeletID)); a.Exit != 1 || !strings.Contains(lastOf(a.Stderr), "not "+bad.SHA256) {
			t.Errorf("other bytes: exit %d: %s", a.Exit, a.Stderr)
		}
		expect(t, "the program", before["/usr/local/bin/tart-kubelet"], m.picture()["/usr/local/bin/tart-kubelet"])

		m.spec.TartKubelet = &fleet.TartKubelet{Artifact: m.artifact("0.7.0", "unsigned\n")}
		m.apply(kubeletID)
		if m.read("/usr/local/bin/tart-kubelet") != "signed\nunsigned\n" {
			t.Error("it is not signed")
		}
		calls := strings.Count(m.get("calls"), "codesign --force")
		m.apply(kubeletID)
		if calls != 1 || strings.Count(m.get("calls"), "codesign --force") != calls {
			t.Errorf("signed %d times at first", calls)
		}

		for what, content := range map[string]string{"no archive": "x", "an empty one": emptyArchive(t)} {
			m.spec.Tart = &fleet.Tart{Artifact: m.artifact("9", content)}
			if a := m.perform(m.look("tart")); a.Exit == 0 || !strings.Contains(m.read("/usr/local/lib/tart.app/Contents/MacOS/tart"), "2.32.1") {
				t.Errorf("%s: exit %d: %s", what, a.Exit, a.Stderr)
			}
		}
	})
}

func emptyArchive(t testing.TB) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if err := tar.NewWriter(z).Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestNodeScriptsIdle: Tart is not exchanged under a machine, neither by a plan nor
// by one that began since.
func TestNodeScriptsIdle(t *testing.T) {
	inNodeShells(t, func(t *testing.T, m *nodeMac) {
		m.apply("tart")
		m.spec.Tart = &fleet.Tart{Artifact: m.artifact("2.33.0", tartArchive(t, "2.33.0"))}
		f := m.look("tart")
		m.set("work", "  77 /usr/local/lib/tart.app/Contents/MacOS/tart run --no-graphics ci-a --dir=hunter2\n   78 /opt/homebrew/bin/packer build x.pkr.hcl\n")
		before := m.picture()
		if a := m.perform(f); a.Exit != 75 || !strings.Contains(a.Stderr, "77 run ci-a\n78 packer build\n") {
			t.Errorf("exit %d: %s", a.Exit, a.Stderr)
		}
		expect(t, "the Mac", before, m.picture())
		if f := m.look("tart"); brief(f) != "tart-outdated tart-install, refused waits-for-idle" || !strings.Contains(f.Refused.Text, "tart run ci-a (pid 77), packer build (pid 78)") {
			t.Errorf("%+v", f.Refused)
		}
	})
}

// TestNodeScriptsKilled kills the scripts at each call of a tool, in a first
// set-up and in a roll. The next run brings the Mac to where it would have been.
func TestNodeScriptsKilled(t *testing.T) {
	t.Parallel()
	for _, id := range []plan.StepID{"tart", kubeletID} {
		for _, scene := range []string{"first", "roll", "builder"} {
			if id == "tart" && scene == "builder" {
				continue
			}
			whole := newNodeMac(t, "dash")
			var before plan.Finding
			if scene != "first" {
				before = whole.look(id)
			}
			whole.ready(id, before)
			whole.turn(scene)
			f := whole.look(id)
			began := whole.count()
			if a := whole.perform(f); a.Exit != 0 {
				t.Fatalf("%s", a.Stderr)
			}
			calls := whole.count() - began
			whole.proven(id)
			want := whole.picture()
			for n := 1; n <= calls; n++ {
				if scene == "builder" && n%3 > 0 {
					continue // it is a roll without a program
				}
				shell := "dash"
				if n%5 == 0 {
					shell = "bash"
				}
				t.Run(string(id)+" "+scene+" "+strconv.Itoa(n), func(t *testing.T) {
					t.Parallel()
					m := newNodeMac(t, shell)
					m.ready(id, before)
					m.turn(scene)
					m.set("kill", strconv.Itoa(m.count()+n)+"\n")
					if a := m.perform(f); a.Exit == 0 {
						t.Fatalf("it was not killed")
					}
					m.set("kill", "never\n")
					m.apply(id)
					expect(t, "the Mac", want, m.picture())
					if id == kubeletID && (m.get("pid") == "" || m.get("runs-of") != whole.get("runs-of")) {
						t.Error("the process is of another program")
					}
				})
			}
		}
	}
}

// TestNodeScriptsRemove: what was made goes, and the Mac is as before.
func TestNodeScriptsRemove(t *testing.T) {
	inNodeShells(t, func(t *testing.T, m *nodeMac) {
		before := m.picture()
		m.apply("tart")
		m.apply(kubeletID)
		m.set("work", "77 /usr/local/bin/tart run ci-a\n")
		wanted := m.spec
		m.spec = none
		f := m.look(kubeletID)
		if brief(f) != "kubelet-not-wanted remove, refused waits-for-idle" {
			t.Error(brief(f))
		}
		if a := m.perform(f); a.Exit != 75 {
			t.Errorf("exit %d", a.Exit)
		}
		if err := os.Remove(filepath.Join(m.state, "work")); err != nil {
			t.Fatal(err)
		}
		for _, id := range []plan.StepID{kubeletID, "tart"} {
			m.apply(id)
		}
		expect(t, "the Mac", before, m.picture())
		if m.get("job") != "" {
			t.Error("launchd has the job")
		}
		m.spec = wanted
		m.apply("tart")
		m.apply(kubeletID)
	})
}

// ready makes the machine one on which a finding's changes were made and proven.
func (m *nodeMac) ready(id plan.StepID, f plan.Finding) {
	m.t.Helper()
	if a := m.perform(f); a.Exit != 0 {
		m.t.Fatalf("%+v", a)
	}
	if err := os.RemoveAll(m.path("/etc/macfleet/pending/" + string(id))); err != nil {
		m.t.Fatal(err)
	}
}

// turn makes another configuration of the one that the machine has, or gives it a
// past.
func (m *nodeMac) turn(scene string) {
	m.t.Helper()
	switch scene {
	case "first":
		m.set("legacy", "")
		m.write(m.path("/Library/LaunchDaemons/dev.tuist.tart-kubelet.plist"), "<string>/usr/local/bin/tart-kubelet</string>\n")
	case "builder":
		m.spec.GithubRunner = &fleet.GithubRunner{}
	case "roll":
		m.spec.Tart = &fleet.Tart{Artifact: m.artifact("2.33.0", tartArchive(m.t, "2.33.0"))}
		m.spec.TartKubelet = &fleet.TartKubelet{Artifact: m.artifact("0.5.0", "version=0.5.0\n")}
	}
}
