package tartkubelet_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/scripttest"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/stepstest"
)

// TestTornBundle: whatever is missing in Tart's bundle, or different from what was unpacked, is seen, and an apply
// makes the bundle whole. What someone added is not, and neither is a touched file nor a folder that moved on.
func TestTornBundle(t *testing.T) {
	inNodeTurn(t, func(t *testing.T, m *nodeMac) {
		m.apply("tart")
		contents := m.Path("/usr/local/lib/tart.app/Contents") + "/"
		for _, tc := range []struct {
			name, says string
			tear       func() error
		}{
			{"no Info.plist and no profile", "Contents/Info.plist is missing, Contents/embedded.provisionprofile is missing", func() error {
				return errors.Join(os.Remove(contents+"Info.plist"), os.Remove(contents+"embedded.provisionprofile"))
			}},
			{"no signature", "Contents/_CodeSignature is missing, Contents/_CodeSignature/CodeResources is missing",
				func() error { return os.RemoveAll(contents + "_CodeSignature") }},
			{"an edited file", "Contents/Info.plist is edited", func() error { return os.WriteFile(contents+"Info.plist", []byte("edited"), 0o644) }},
			{"a file that is a folder", "Contents/Info.plist is of another kind", func() error {
				return errors.Join(os.Remove(contents+"Info.plist"), os.Mkdir(contents+"Info.plist", 0o755))
			}},
			{"a file that is a link", "Contents/Info.plist is of another kind", func() error {
				return errors.Join(os.Rename(contents+"Info.plist", contents+"other"), os.Symlink("other", contents+"Info.plist"))
			}},
			{"a folder that is a link", "Contents/Resources is of another kind", func() error {
				return errors.Join(os.Rename(contents+"Resources", contents+"other2"), os.Symlink("other2", contents+"Resources"))
			}},
			{"another mode", "Contents/Info.plist is root:wheel:600", func() error { return os.Chmod(contents+"Info.plist", 0o600) }},
			{"a bundle that is a link", ". is a link", func() error {
				bundle := filepath.Dir(filepath.Dir(contents))
				return errors.Join(os.Rename(bundle, bundle+".moved"), os.Symlink(bundle+".moved", bundle))
			}},
			{"a file of Finder's", "", func() error { return os.WriteFile(contents+".DS_Store", []byte("x"), 0o644) }},
			{"a touched file", "", func() error { return os.Chtimes(contents+"Info.plist", time.Time{}, time.Unix(1_700_000_000, 0)) }},
		} {
			if err := tc.tear(); err != nil {
				t.Fatal(err)
			}
			f := m.look("tart")
			if tc.says == "" {
				stepstest.Expect(t, tc.name, "", stepstest.Brief(f))
				continue
			}
			if stepstest.Brief(f) != "tart-edited tart-install" || !strings.HasSuffix(f.Changes[0].Fields[0].Before, ", edited: "+tc.says) {
				t.Errorf("%s: %s, %+v", tc.name, stepstest.Brief(f), stepstest.FieldsOf(f))
				continue
			}
			m.apply("tart")
		}
	})
}

// TestUnverifiedBundle: without a whole note of what was unpacked, an apply writes it out of the archive, and touches
// nothing of the bundle: what is torn is seen then, and repaired.
func TestUnverifiedBundle(t *testing.T) {
	inNodeTurn(t, func(t *testing.T, m *nodeMac) {
		m.apply("tart")
		const note = "/usr/local/lib/macfleet/tart.bundle"
		contents, data := m.Path("/usr/local/lib/tart.app/Contents")+"/", m.Read(note)
		lines := strings.SplitAfter(strings.TrimSuffix(data, "\n"), "\n")
		folders := regexp.MustCompile(`(?m)^d \d+ \d+ \d+`) // whose inodes and times say nothing
		inode := func() os.FileInfo {
			i, err := os.Stat(contents + "Info.plist")
			if err != nil {
				t.Fatal(err)
			}
			return i
		}
		for name, text := range map[string]string{
			"none": "", "empty": "\n", "cut": data[:len(data)/2], "no end": strings.Join(lines[:len(lines)-1], ""),
			"a line less": strings.Join(append(slices.Clone(lines[:2]), lines[3:]...), ""), "no digest": strings.Join(lines[1:], ""),
			"another archive's": strings.Replace(data, "of ", "of 00", 1), "noise": "\x00\xff\n" + data,
		} {
			if m.Put(note, text); text == "" {
				remove(t, m.Path(note))
			}
			if got := stepstest.Brief(m.look("tart")); got != "tart-unverified tart-verify" {
				t.Fatalf("%s: %s", name, got)
			}
			if name != "none" && name != "cut" {
				continue
			}
			before := inode()
			m.apply("tart")
			if !os.SameFile(before, inode()) {
				t.Errorf("%s: a bundle that was whole was installed again", name)
			}
			stepstest.Expect(t, name+": the note", folders.ReplaceAllString(data, "d"), folders.ReplaceAllString(m.Read(note), "d"))
		}

		remove(t, m.Path(note), contents+"embedded.provisionprofile")
		scripttest.Write(t, contents+"Info.plist", "edited", 0o755)
		const says = "Contents/Info.plist is edited\nContents/embedded.provisionprofile is missing\n"
		if a := m.perform(m.look("tart")); a.Exit != 1 || !strings.Contains(a.Stderr, says) {
			t.Errorf("exit %d: %s", a.Exit, a.Stderr)
		}
		f := m.look("tart")
		const want = ", edited: Contents/Info.plist is edited, Contents/embedded.provisionprofile is missing"
		if got := stepstest.Brief(f); got != "tart-edited tart-install" || !strings.HasSuffix(f.Changes[0].Fields[0].Before, want) {
			t.Fatalf("a torn bundle without a note: %s %+v", got, stepstest.FieldsOf(f))
		}
		m.apply("tart")
	})
}

func remove(t testing.TB, paths ...string) {
	t.Helper()
	for _, path := range paths {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
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
		config := m.Read(kubeconfig)
		if !strings.HasSuffix(config, "\n    token: "+tokenOf(stepstest.AccountUID)+"\n") || !strings.HasPrefix(config, stepstest.Kubeconfig(name)) {
			t.Errorf("the kubeconfig is\n%s", config)
		}
		if f := m.look(kubeletID); len(f.Changes) > 0 || f.Refused != nil {
			t.Errorf("again: %s", stepstest.Brief(f))
		}
		pid, runs := m.Get("pid"), m.Get("runs")
		m.spec.TartKubelet = &fleet.TartKubelet{Artifact: m.artifact("0.5.0", "version=0.5.0\n")}
		m.apply(kubeletID)
		// launchd has pinned the program of before: a kick would start nothing.
		if m.Get("pid") == pid || m.Get("runs") != runs || strings.Count(m.Calls(), "launchctl bootout") != 1 ||
			strings.Count(m.Calls(), "launchctl bootstrap") != 2 || strings.Contains(m.Calls(), "kickstart") {
			t.Errorf("pid %s, %s runs:\n%s", m.Get("pid"), m.Get("runs"), m.Calls())
		}
		m.spec.Tart = &fleet.Tart{Artifact: m.artifact("2.33.0", tartArchive(t, "2.33.0"))}
		m.apply("tart")
		if !strings.Contains(m.Read("/usr/local/lib/tart.app/Contents/MacOS/tart"), "2.33.0") {
			t.Error("the old bundle exists")
		}
		m.rollback = true
		m.apply("tart")
		m.apply(kubeletID)
		m.apply(kubeletID) // there is nothing more to do
		if got := m.Read("/usr/local/bin/tart-kubelet"); got != "version=0.4.0\n" {
			t.Errorf("after the roll-back %q", got)
		}
		if got := m.Read("/usr/local/lib/macfleet/tart_kubelet.receipt"); !strings.Contains(got, "\nrolled-back "+m.spec.TartKubelet.Artifact.SHA256+" 0.5.0\n") {
			t.Errorf("the receipt:\n%s", got)
		}
		m.rollback = false
		m.apply(kubeletID)
		if got := m.Read("/usr/local/lib/macfleet/tart_kubelet.receipt"); strings.Contains(got, "rolled-back") || m.Read("/usr/local/bin/tart-kubelet") != "version=0.5.0\n" {
			t.Errorf("forth again:\n%s", got)
		}
	})
}

// TestNodeScriptsPlist: another plist is loaded again, and so is a program that someone had exchanged; the same ones never.
func TestNodeScriptsPlist(t *testing.T) {
	inNodeTurn(t, func(t *testing.T, m *nodeMac) {
		m.apply(kubeletID)
		m.spec.GithubRunner = &fleet.GithubRunner{}
		m.apply(kubeletID)
		if !strings.Contains(m.Get("job"), "--disable-vm-gc") || strings.Count(m.Calls(), "launchctl bootstrap system") != 2 {
			t.Errorf("launchd has\n%s\n%s", m.Get("job"), m.Calls())
		}
		for what, edit := range map[string]func(){
			"the file edited":   func() { m.Put(kubeletPlist, "x") },
			"the process gone":  func() { m.Unset("pid") },
			"kubeconfig edited": func() { m.Put(kubeconfig, m.Read(kubeconfig)+"# x\n") },
			"kubeconfig of before": func() {
				m.Put(kubeconfig, strings.Replace(m.Read(kubeconfig), tokenOf(stepstest.AccountUID), tokenOf("gone"), 1))
			},
			"the program edited": func() { m.Put("/usr/local/bin/tart-kubelet", "version=0.0\n") },
		} {
			edit()
			if f := m.look(kubeletID); len(f.Changes) == 0 {
				t.Errorf("%s: nothing differs", what)
			}
			m.apply(kubeletID)
		}
		if n := strings.Count(m.Calls(), "launchctl bootstrap system"); n != 3 {
			t.Errorf("the job was registered %d times, want 3:\n%s", n, m.Calls())
		}
	})
}

const (
	kubeletPlist = "/Library/LaunchDaemons/dev.macfleet.tart-kubelet.plist"
	kubeconfig   = "/etc/tart-kubelet/kubeconfig"
)

// TestNodeScriptsTakeOver: the job of before is gone before macfleet's starts.
func TestNodeScriptsTakeOver(t *testing.T) {
	inNodeTurn(t, func(t *testing.T, m *nodeMac) {
		m.Set("legacy", "")
		m.Put(legacyPlist, "<string>/usr/local/bin/tart-kubelet</string>\n")
		m.apply(kubeletID)
		if m.Read(legacyPlist) != "no file" || strings.Contains(m.Calls(), "bootout system/dev.macfleet") {
			t.Errorf("calls:\n%s", m.Calls())
		}
		m.Put("/Library/LaunchDaemons/com.example.node.plist", "<string>/opt/tart-kubelet</string>\n")
		if f := m.look(kubeletID); stepstest.Brief(f) != "refused second-kubelet" {
			t.Error(stepstest.Brief(f))
		}
	})
}

// TestNodeScriptsFail: a version that crashes ends the step with what its log says, and the one from before comes back.
func TestNodeScriptsFail(t *testing.T) {
	inNodeTurn(t, func(t *testing.T, m *nodeMac) {
		m.apply("tart")
		for _, c := range m.look(kubeletID).Changes {
			if c.Input != plan.Kubeconfig {
				continue
			}
			if a := m.run(c.Command, stepstest.Kubeconfig(name)); a.Exit != 1 || m.Read(kubeconfig) != "no file" {
				t.Errorf("a kubeconfig without its token: %+v", a)
			}
		}
		m.Set("flapping", "")
		if a := m.perform(m.look(kubeletID)); a.Exit != 70 {
			t.Errorf("a process that ends after some seconds: %+v", a)
		}
		m.Unset("flapping")
		m.apply(kubeletID)
		m.spec.TartKubelet = &fleet.TartKubelet{Artifact: m.artifact("0.5.0", "crashes\n")}
		a := m.perform(m.look(kubeletID))
		if a.Exit != 70 || !strings.HasSuffix(scripttest.LastLine(a.Stderr), "this version crashes (launchd: last exit code = 1; log: /var/log/tart-kubelet.log)") {
			t.Errorf("exit %d: %s", a.Exit, a.Stderr)
		}
		if f := m.look(kubeletID); stepstest.Brief(f) != "kubelet-crash-loop run ask" {
			t.Error(stepstest.Brief(f))
		}
		m.rollback = true
		m.apply(kubeletID)
		if m.Read("/usr/local/bin/tart-kubelet") != "version=0.4.0\n" || m.Get("pid") == "" {
			t.Error("it is not back")
		}
		m.rollback = false

		bad := m.artifact("0.6.0", "version=0.6.0\n")
		m.Put(bad.HostPath(), "other bytes\n")
		m.spec.TartKubelet = &fleet.TartKubelet{Artifact: bad}
		before := m.picture()
		if a := m.perform(m.look(kubeletID)); a.Exit != 1 || !strings.Contains(scripttest.LastLine(a.Stderr), "not "+bad.SHA256) {
			t.Errorf("other bytes: exit %d: %s", a.Exit, a.Stderr)
		}
		stepstest.Expect(t, "the program", before["/usr/local/bin/tart-kubelet"], m.picture()["/usr/local/bin/tart-kubelet"])

		m.spec.TartKubelet = &fleet.TartKubelet{Artifact: m.artifact("0.7.0", "unsigned\n")}
		m.apply(kubeletID)
		if m.Read("/usr/local/bin/tart-kubelet") != "signed\nunsigned\n" {
			t.Error("it is not signed")
		}
		calls := strings.Count(m.Calls(), "codesign --force")
		m.apply(kubeletID)
		if calls != 1 || strings.Count(m.Calls(), "codesign --force") != calls {
			t.Errorf("signed %d times at first", calls)
		}

		program := func(text string) string { return archive(t, []string{"Contents/MacOS/tart", "#!/bin/sh\n" + text}) }
		for what, content := range map[string]string{"no archive": "x", "an empty one": archive(t, nil), "no entitlement": program("exit 0\nnoentitlement\n"),
			"one that does not run": program("exit 1\n"), "one that does not run in its place": program("case $0 in *.tart.new.*) exit 0 ;; esac\nexit 1\n")} {
			m.spec.Tart = &fleet.Tart{Artifact: m.artifact("9", content)}
			if a := m.perform(m.look("tart")); a.Exit == 0 || !strings.Contains(m.Read("/usr/local/lib/tart.app/Contents/MacOS/tart"), "2.32.1") {
				t.Errorf("%s: exit %d: %s", what, a.Exit, a.Stderr)
			}
		}
		m.Put(m.spec.Tart.Artifact.HostPath(), tartArchive(t, "9.1"))
		if a := m.perform(m.look("tart")); a.Exit != 1 || !strings.HasPrefix(a.Stderr, "checksum mismatch") || !strings.Contains(m.Read("/usr/local/lib/tart.app/Contents/MacOS/tart"), "2.32.1") {
			t.Errorf("other bytes: exit %d: %s", a.Exit, a.Stderr)
		}
	})
}

// TestNodeScriptsIdle: Tart is not exchanged under a machine, neither by a plan nor by one that started since.
func TestNodeScriptsIdle(t *testing.T) {
	inNodeTurn(t, func(t *testing.T, m *nodeMac) {
		m.apply("tart")
		m.spec.Tart = &fleet.Tart{Artifact: m.artifact("2.33.0", tartArchive(t, "2.33.0"))}
		f := m.look("tart")
		m.Set("work", "  77     1    01:02 /usr/local/lib/tart.app/Contents/MacOS/tart run --no-graphics ci-a --dir=hunter2\n   78     1    01:02 /opt/homebrew/bin/packer build x.pkr.hcl\n")
		before := m.picture()
		if a := m.perform(f); a.Exit != 75 || !strings.Contains(a.Stderr, "77 run ci-a\n78 packer build\n") {
			t.Errorf("exit %d: %s", a.Exit, a.Stderr)
		}
		stepstest.Expect(t, "the Mac", before, m.picture())
		if f := m.look("tart"); stepstest.Brief(f) != "tart-outdated tart-install, busy" || plan.TaskTexts(f.Busy) != "tart run ci-a (pid 77), packer build (pid 78)" || f.Changes[0].Disruption != plan.Drain {
			t.Errorf("%+v", f)
		}
		wanted := m.spec
		m.spec.Tart = nil
		if a := m.perform(m.look("tart")); a.Exit != 75 {
			t.Errorf("removed: exit %d: %s", a.Exit, a.Stderr)
		}
		stepstest.Expect(t, "the Mac", before, m.picture())
		m.spec, m.force = wanted, true
		if a := m.perform(m.look("tart")); a.Exit != 0 {
			t.Errorf("by force: exit %d: %s", a.Exit, a.Stderr)
		}
		m.spec.Tart = nil
		if a := m.perform(m.look("tart")); a.Exit != 0 {
			t.Errorf("removed by force: exit %d: %s", a.Exit, a.Stderr)
		}
	})
}

// scene is a change that is killed: the machine on which it went through, what that left, and the calls that changed something.
type scene struct {
	id            plan.StepID
	name          string
	whole         *nodeMac
	before, after plan.Finding // what makes the machine of before, and the change
	want          map[string]string
	calls         []int
	tools         []string
}

func newScene(t *testing.T, id plan.StepID, name string) scene {
	s := scene{id: id, name: name, whole: newNodeMac(t, "dash")}
	if name != "first" {
		s.before = s.whole.look(id)
	}
	s.whole.ready(id, s.before)
	s.whole.turn(name)
	s.after = s.whole.look(id)
	s.whole.ForgetCalls()
	leaves := s.whole.traced(s.after)
	tools := s.whole.Tools()
	s.whole.verified(id)
	s.want = s.whole.picture()
	for i, left := range leaves {
		if i == 0 || left != leaves[i-1] {
			s.calls, s.tools = append(s.calls, i+1), append(s.tools, tools[i])
		}
	}
	return s
}

// TestNodeScriptsKilled kills the scripts at each call of a tool that changed something before, in a
// first set-up and in a roll. The next run brings the Mac to where it would have been.
func TestNodeScriptsKilled(t *testing.T) {
	t.Parallel()
	scenes := []scene{newScene(t, "tart", "first"), newScene(t, "tart", "roll"), newScene(t, kubeletID, "first"), newScene(t, kubeletID, "roll"), newScene(t, kubeletID, "builder")}
	var kinds []string
	var of []scene
	var calls []int
	for _, s := range scenes {
		kinds, calls, of = append(kinds, s.tools...), append(calls, s.calls...), append(of, slices.Repeat([]scene{s}, len(s.calls))...)
	}
	for place, shell := range scripttest.Places(t, kinds, "dash", "bash") {
		s, n := of[place-1], calls[place-1]
		t.Run(fmt.Sprint(s.id, s.name, n, shell), func(t *testing.T) {
			t.Parallel()
			m := newNodeMac(t, shell...)
			m.ready(s.id, s.before)
			m.turn(s.name)
			m.KillAt(m.Count() + n)
			if a := m.perform(s.after); a.Exit == 0 {
				t.Fatalf("it was not killed")
			}
			m.KillAt(0)
			m.apply(s.id)
			stepstest.Expect(t, "the Mac", s.want, m.picture())
			if s.id == kubeletID && (m.Get("pid") == "" || m.Get("runs-of") != s.whole.Get("runs-of")) {
				t.Error("the process is of another program")
			}
		})
	}
}

// TestNodeScriptsRemove: what was made goes, and the Mac is as before.
func TestNodeScriptsRemove(t *testing.T) {
	inNodeTurn(t, func(t *testing.T, m *nodeMac) {
		before := m.picture()
		m.apply("tart")
		m.apply(kubeletID)
		m.Set("work", "77 1 01:02 /usr/local/bin/tart run ci-a\n")
		wanted := m.spec
		m.spec = none
		f := m.look(kubeletID)
		if stepstest.Brief(f) != "kubelet-not-wanted remove, busy" {
			t.Error(stepstest.Brief(f))
		}
		if a := m.perform(f); a.Exit != 75 {
			t.Errorf("exit %d", a.Exit)
		}
		m.Unset("work")
		for _, id := range []plan.StepID{kubeletID, "tart"} {
			m.apply(id)
		}
		stepstest.Expect(t, "the Mac", before, m.picture())
		if m.Get("job") != "" {
			t.Error("launchd has the job")
		}
		m.spec = wanted
		m.apply("tart")
		m.apply(kubeletID)
		// A program that macfleet did not install stays.
		m.spec = none
		c := m.look(kubeletID).Changes[0].Command
		c.Args = []string{"", ""}
		if a := m.run(c, ""); a.Exit != 0 || m.Read("/usr/local/bin/tart-kubelet") != "version=0.4.0\n" {
			t.Errorf("%+v, the program: %s", a, m.Read("/usr/local/bin/tart-kubelet"))
		}
	})
}

// ready makes the machine one on which a finding's changes were made and verified.
func (m *nodeMac) ready(id plan.StepID, f plan.Finding) {
	m.T.Helper()
	if a := m.perform(f); a.Exit != 0 {
		m.T.Fatalf("%+v", a)
	}
	if err := os.RemoveAll(m.Path("/etc/macfleet/pending/" + string(id))); err != nil {
		m.T.Fatal(err)
	}
}

// traced performs a finding, and returns for each call of a tool a digest of what a kill there would leave behind.
func (m *nodeMac) traced(f plan.Finding) []string {
	m.T.Helper()
	began := m.Count()
	m.Set("tracing", "")
	if a := m.perform(f); a.Exit != 0 {
		m.T.Fatalf("%s", a.Stderr)
	}
	leaves := strings.Split(m.Get("../trace"), "\n")
	if m.Unset("tracing"); len(leaves) != m.Count()-began {
		m.T.Fatalf("%d states at %d calls", len(leaves), m.Count()-began)
	}
	return leaves
}

// turn makes another configuration of the one that the machine has, or gives it a past.
func (m *nodeMac) turn(scene string) {
	m.T.Helper()
	switch scene {
	case "first":
		m.Set("legacy", "")
		m.Put(legacyPlist, "<string>/usr/local/bin/tart-kubelet</string>\n")
	case "builder":
		m.spec.GithubRunner = &fleet.GithubRunner{}
	case "roll":
		m.spec.Tart = &fleet.Tart{Artifact: m.artifact("2.33.0", tartArchive(m.T, "2.33.0"))}
		m.spec.TartKubelet = &fleet.TartKubelet{Artifact: m.artifact("0.5.0", "version=0.5.0\n")}
	}
}
