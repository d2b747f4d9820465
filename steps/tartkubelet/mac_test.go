package tartkubelet_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/scripttest"
	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps"
	"github.com/macfleet/macfleet/steps/stepstest"
)

// nodeMac is a machine of stub tools on which the scripts of tart and tart_kubelet
// run. Paths in scripts and arguments are those of its folder.
type nodeMac struct {
	*scripttest.Mac
	spec     fleet.Spec
	rollback bool
	force    bool
}

// tools are those that the scripts call: all are one stub.
const nodeTools = "chmod chown codesign cp date df id launchctl mkdir mktemp mv ps readlink rm sfltool shasum sleep stat sync sysctl tar"

func newNodeMac(t testing.TB, shell ...string) *nodeMac {
	t.Helper()
	scripttest.Need(t, shell[0], "cmp", "sha256sum", "sed")
	m := &nodeMac{Mac: scripttest.New(t, shell, "/etc/", "/Library/", "/usr/local/", "/var/", "/Users/")}
	m.Folders("/Library/LaunchDaemons", "/usr/local/lib/macfleet/artifacts", "/var/log", "/var/lib")
	m.Stub(scripttest.Text(t, "testdata/kubelet.sh"), strings.Fields(nodeTools)...)
	m.Set("clock", "2000000000")
	m.Set("pids", "500")
	m.spec = fleet.Spec{Tart: &fleet.Tart{Artifact: m.artifact("2.32.1", tartArchive(t, "2.32.1"))},
		TartKubelet: &fleet.TartKubelet{Artifact: m.artifact("0.4.0", "version=0.4.0\n")}}
	return m
}

// artifact is one that the host was brought.
func (m *nodeMac) artifact(version, content string) *fleet.Artifact {
	m.T.Helper()
	sum := sha256.Sum256([]byte(content))
	a := &fleet.Artifact{Name: "sample", Version: version, SHA256: hex.EncodeToString(sum[:])}
	m.Put(a.HostPath(), content)
	return a
}

// tartArchive is an archive of a bundle whose program is a shell script.
func tartArchive(t testing.TB, version string) string {
	t.Helper()
	return archive(t, []string{"", "", "Contents/", "", "Contents/Info.plist", "<plist/>", "Contents/MacOS/", "",
		"Contents/MacOS/tart", "#!/bin/sh\necho " + version + "\n", "Contents/embedded.provisionprofile", "profile",
		"Contents/Resources/", "", "Contents/Resources/two words.txt", "two words",
		"Contents/_CodeSignature/", "", "Contents/_CodeSignature/CodeResources", "<plist/>"})
}

// archive is an archive of a bundle with these names and texts.
func archive(t testing.TB, files []string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for file := range slices.Chunk(files, 2) {
		h := tar.Header{Name: "tart.app/" + file[0], Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(file[1]))}
		if strings.HasSuffix(h.Name, "/") {
			h.Typeflag = tar.TypeDir
		}
		head := w.WriteHeader(&h)
		if _, err := w.Write([]byte(file[1])); errors.Join(head, err) != nil {
			t.Fatal(head, err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// run runs a script; the paths that it and its arguments name are the machine's.
func (m *nodeMac) run(c plan.Command, stdin string) plan.Answer {
	m.T.Helper()
	args := make([]string, len(c.Args))
	for i, arg := range c.Args {
		args[i] = m.Here(arg)
	}
	c.Args = args
	return m.Run(c, stdin)
}

const nodeToken = "eyJhbGciOiJub25lIn0.CLAIMS.c2lnbmF0dXJl"

func tokenOf(account string) string {
	return strings.Replace(nodeToken, "CLAIMS", stepstest.Claims(account, "tart-kubelet-"+name+"-token"), 1)
}

func (m *nodeMac) view(id plan.StepID) plan.View {
	v := stepstest.View(stepstest.Host(m.spec), nil)
	v.Node = inventory.Absent[inventory.Node]()
	v.Rollback, v.Force = m.rollback, m.force
	_, err := os.Stat(m.Path("/etc/macfleet/pending/" + string(id)))
	v.Pending = err == nil
	return v
}

// look asks the step's own probes. No answer may hold a secret.
func (m *nodeMac) look(id plan.StepID) plan.Finding {
	m.T.Helper()
	s := stepstest.Step(m.T, id, m.spec)
	v := m.view(id)
	v.Facts = make(plan.Facts)
	for _, p := range s.Probes() {
		a := m.run(p.Command, "")
		v.Facts[p.ID] = inventory.Present(a)
		if strings.Contains(a.Stdout+a.Stderr, "hunter2") || strings.Contains(a.Stdout, "c2lnbmF0dXJl") {
			m.T.Errorf("%s shows a secret:\n%s", p.ID, a.Stdout)
		}
	}
	f := s.Diff(v)
	stepstest.Sound(m.T, id, v, f)
	if len(f.Unread) > 0 {
		m.T.Fatalf("%s: %+v", id, f.Unread)
	}
	return f
}

// perform does what a finding says, as far as it goes.
func (m *nodeMac) perform(f plan.Finding) plan.Answer {
	m.T.Helper()
	var a plan.Answer
	for _, c := range f.Changes {
		stdin := ""
		if c.Input == plan.Kubeconfig {
			token, odd := secret.New(tokenOf(stepstest.AccountUID))
			input, err := steps.Input(steps.InputFor{Kind: c.Input, Host: stepstest.Host(m.spec), Join: stepstest.Join()}, token)
			if err = errors.Join(odd, err); err != nil {
				m.T.Fatal(err)
			}
			stdin = input.Reveal()
		}
		if a = m.run(c.Command, stdin); a.Exit != 0 {
			return a
		}
	}
	return a
}

// apply performs what differs, verifies it, and fails the test where it cannot.
func (m *nodeMac) apply(id plan.StepID) {
	m.T.Helper()
	f := m.look(id)
	if f.Refused != nil {
		m.T.Fatalf("refused: %+v", f.Refused)
	}
	if a := m.perform(f); a.Exit != 0 {
		m.T.Fatalf("%s: exit %d: %s", stepstest.Brief(f), a.Exit, a.Stderr)
	}
	if !m.view(id).Pending && len(f.Changes) > 0 {
		m.T.Errorf("%s: nothing says that it was started", stepstest.Brief(f))
	}
	m.verified(id)
}

// verified ends a step as the engine does, and wants nothing to be left.
func (m *nodeMac) verified(id plan.StepID) {
	m.T.Helper()
	if err := os.RemoveAll(m.Path("/etc/macfleet/pending/" + string(id))); err != nil {
		m.T.Fatal(err)
	}
	if f := m.look(id); len(f.Changes)+len(f.Unread) > 0 || f.Refused != nil {
		m.T.Fatalf("left: %s %+v", stepstest.Brief(f), stepstest.FieldsOf(f))
	}
	if faults := m.Get("faults"); faults != "" {
		m.T.Errorf("faults: %s", faults)
	}
}

// picture is everything that lasts on the machine: names and contents, without the times and inodes of the receipts.
func (m *nodeMac) picture() map[string]string {
	m.T.Helper()
	out := m.Files(m.Root)
	for name, text := range out {
		if strings.HasSuffix(name, ".bundle") {
			out[name] = regexp.MustCompile(`(?m)^([fdl]) \d+ \d+ \d+ `).ReplaceAllString(text, "$1 ")
		}
		if strings.HasSuffix(name, "tart_kubelet.job") { // the property list names paths of this folder
			out[name], _, _ = strings.Cut(text, "\n")
		}
		if !strings.HasSuffix(name, ".receipt") {
			continue
		}
		var lines []string
		for line := range strings.Lines(text) {
			if !strings.HasPrefix(line, "file ") && !strings.HasPrefix(line, "installed ") {
				lines = append(lines, line)
			}
		}
		out[name] = strings.Join(lines, "")
	}
	delete(out, "/var/log/tart-kubelet.log")
	return out
}

func inNodeShells(t *testing.T, test func(*testing.T, *nodeMac)) {
	t.Parallel()
	scripttest.InShells(t, func(t *testing.T, shell []string) { test(t, newNodeMac(t, shell...)) })
}

// inNodeTurn is inNodeShells in one of the shells by turns.
func inNodeTurn(t *testing.T, test func(*testing.T, *nodeMac)) {
	t.Parallel()
	scripttest.InTurn(t, func(t *testing.T, shell []string) { test(t, newNodeMac(t, shell...)) })
}
