package sandbox_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/macfleet/macfleet/internal/sandbox"
	"github.com/macfleet/macfleet/internal/sandbox/agent"
	"github.com/macfleet/macfleet/internal/sandbox/kube"
	"github.com/macfleet/macfleet/internal/sandbox/mac"
)

const (
	kubeletJob    = "system/dev.macfleet.tart-kubelet"
	kubeletBinary = "/usr/local/bin/tart-kubelet"
)

// installKubelet installs a fleet's kubelet on the host, with a token, and loads its job.
func (p *patient) installKubelet(token string) {
	p.Helper()
	plist := `<?xml version="1.0" encoding="UTF-8"?>
<plist version="1.0"><dict><key>Label</key><string>dev.macfleet.tart-kubelet</string><key>UserName</key><string>m1</string>
<key>RunAtLoad</key><true/><key>KeepAlive</key><true/><key>ProgramArguments</key><array>
<string>` + kubeletBinary + `</string><string>--node-name=mini-1</string><string>--kubeconfig=/etc/tart-kubelet/kubeconfig</string><string>--max-pods=3</string><string>--provider-id=scw-applesilicon://fr-par-1/` + p.host.ID + `</string>
</array></dict></plist>`
	config := `{"current-context":"c","contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],
"clusters":[{"name":"c","cluster":{"server":"http://127.0.0.1:1"}}],"users":[{"name":"u","user":{"token":"` + token + `"}}]}`
	for _, f := range []struct {
		name, text string
		uid        int
		mode       fs.FileMode
	}{
		{"/etc/tart-kubelet/kubeconfig", config, 501, 0o600},
		{"/Library/LaunchDaemons/dev.macfleet.tart-kubelet.plist", plist, 0, 0o644},
		{kubeletBinary, string(sandbox.Sample("https://artifacts.acme.dev/tart-kubelet-0.4.0")), 0, 0o755},
	} {
		must(p, p.mac().WriteFile(f.name, []byte(f.text), f.uid, 0, f.mode))
	}
	p.run("launchctl bootstrap system /Library/LaunchDaemons/dev.macfleet.tart-kubelet.plist")
}

// installTart unpacks Tart's bundle where a fleet has it.
func (p *patient) installTart() {
	p.Helper()
	p.mac() // which can download
	p.run("cd /tmp && curl -fsS -o t.tar.gz https://artifacts.acme.dev/tart-2.32.1.tar.gz && mkdir -p /usr/local/lib && tar -xzf t.tar.gz -C /usr/local/lib")
}

// mac returns the host's Mac as the world opens it: the cluster sees its kubelets.
func (p *patient) mac() *mac.Machine {
	p.Helper()
	machine, err := p.world.Mac(p.host.ID)
	must(p, err)
	p.machine = machine
	return machine
}

// agents returns the host's running kubelets that the cluster sees.
func (p *patient) agents() (running []agent.Kubelet) {
	p.Helper()
	data, err := os.ReadFile(filepath.Join(p.dir, "kubernetes", "agents.json"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		p.Fatal(err)
	}
	all := map[string][]agent.Kubelet{}
	must(p, json.Unmarshal(data, &all))
	for _, k := range all[p.host.ID] {
		if k.Runs() {
			running = append(running, k)
		}
	}
	return running
}

func (p *patient) later(d time.Duration) {
	p.Helper()
	must(p, p.machine.Advance(d))
}

// page returns a value of the page of the kubelet's job, or "".
func (p *patient) page(key string) string {
	p.Helper()
	for line := range strings.Lines(p.run("launchctl print " + kubeletJob)) {
		if k, value, ok := strings.Cut(strings.TrimSpace(line), " = "); ok && k == key {
			return value
		}
	}
	return ""
}

func newKubelet(t *testing.T) *patient {
	t.Helper()
	p := newPatient(t)
	p.installKubelet("a-token")
	return p
}

func TestTheClusterSeesKubelets(t *testing.T) {
	t.Parallel()
	p := newKubelet(t)
	all := p.agents()
	if len(all) != 1 || all[0].ServerID != p.host.ID || all[0].Address != p.host.Address || all[0].Version != "0.4.0" || all[0].Node != "mini-1" {
		t.Errorf("the cluster sees %+v", all)
	}
	p.run("launchctl bootout " + kubeletJob)
	if all := p.agents(); len(all) != 0 {
		t.Errorf("after its exit: %+v", all)
	}
}

func TestNoKubeletNoIncident(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	for _, incident := range []string{"killed-by-codesigning", "kubelet-crash-loop", "kubelet-respawn-stuck", "plist-changed-under-job",
		"stale-binary-running", "second-kubelet", "btm-disallowed"} {
		if err := p.world.Inject(p.host.ID, incident); err == nil || !strings.Contains(err.Error(), "has no kubelet") {
			t.Errorf("%s: %v", incident, err)
		}
	}
	if got := host(t, p.world, p.host.ID).Incidents; len(got) != 0 {
		t.Errorf("incidents %q", got)
	}
}

// TestKubeletIncidents injects each incident, detects it as macfleet would, repairs it as a person
// would, and heals it on another host.
func TestKubeletIncidents(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		incident string
		is       func(*patient) string // what shows it, or ""
		repair   []string
	}{
		{"killed-by-codesigning", func(p *patient) string {
			p.run("codesign -v " + kubeletBinary)
			if p.page("state") == "running" {
				return ""
			}
			return p.page("last exit reason")
		}, []string{"cp -p /usr/local/bin/tart-kubelet /tmp/k && mv /tmp/k /usr/local/bin/tart-kubelet && launchctl kickstart -k " + kubeletJob}},
		{"kubelet-crash-loop", func(p *patient) string {
			p.later(3 * time.Second)
			return strings.TrimPrefix(p.page("state"), "running")
		}, nil},
		{"kubelet-respawn-stuck", func(p *patient) string { return strings.TrimPrefix(p.page("state"), "running") }, []string{"launchctl kickstart " + kubeletJob}},
		{"plist-changed-under-job", func(p *patient) string {
			return p.run("launchctl print " + kubeletJob + " | grep max-pods=1 || true")
		}, []string{"launchctl bootout " + kubeletJob, "launchctl bootstrap system /Library/LaunchDaemons/dev.macfleet.tart-kubelet.plist"}},
		{"stale-binary-running", func(p *patient) string {
			return p.run("started=$(date -j -f '%a %b %d %T %Y' \"$(ps -p $(launchctl print " + kubeletJob + " | grep 'pid = ' | tr -dc 0-9) -o lstart=)\" +%s)\n" +
				"[ \"$(stat -f %c " + kubeletBinary + ")\" -le \"$started\" ] || echo old")
		}, []string{"launchctl bootout " + kubeletJob, "launchctl bootstrap system /Library/LaunchDaemons/dev.macfleet.tart-kubelet.plist"}},
		{"second-kubelet", func(p *patient) string { return p.run("launchctl list | grep tuist || true") },
			[]string{"launchctl bootout system/dev.tuist.tart-kubelet; rm /Library/LaunchDaemons/dev.tuist.tart-kubelet.plist"}},
		{"kubelet-pin-outdated", func(p *patient) string {
			if !strings.Contains(p.page("properties"), "needs LWCR update") {
				return ""
			}
			return p.page("last exit code")
		}, []string{"launchctl bootout " + kubeletJob, "launchctl bootstrap system /Library/LaunchDaemons/dev.macfleet.tart-kubelet.plist"}},
		{"btm-disallowed", func(p *patient) string { return p.run("sfltool dumpbtm | grep ' disallowed,' || true") }, nil},
	} {
		t.Run(c.incident, func(t *testing.T) {
			t.Parallel()
			p := newKubelet(t)
			p.later(time.Minute)
			equal(t, c.is(p), "", "before")
			p.inject(c.incident)
			if c.is(p) == "" {
				t.Error("the incident does not show")
			}
			if c.repair != nil {
				for _, script := range c.repair {
					p.run(script)
					p.later(4 * time.Second)
				}
				equal(t, c.is(p), "", "after the repair")
				pid := p.page("pid")
				p.heal(c.incident)
				p.want("pid of what was repaired", p.page("pid"), pid)
				p.inject(c.incident)
			}
			p.heal(c.incident)
			p.run("true")
			equal(t, c.is(p), "", "after healing")
			p.want("state", p.page("state"), "running")
			if all := p.agents(); len(all) != 1 {
				t.Errorf("the cluster sees %+v", all)
			}
		})
	}
}

func TestBackgroundItemAfterABoot(t *testing.T) {
	t.Parallel()
	p := newKubelet(t)
	p.inject("btm-disallowed")
	reboot := func() {
		must(t, p.machine.Reboot(t.Context()))
	}
	reboot()
	p.want("jobs after a boot", p.run("launchctl list | grep -c tart-kubelet || true"), "0")
	p.run("launchctl bootstrap system /Library/LaunchDaemons/dev.macfleet.tart-kubelet.plist; launchctl kickstart " + kubeletJob)
	p.want("state after a bootstrap", p.page("state"), "not running")
	p.run("sfltool resetbtm")
	reboot()
	p.want("state after a reset", p.page("state"), "running")
	p.inject("btm-disallowed")
	must(t, p.world.SetSwitch(p.host.ID, "background-item-allowed-by", "bootstrap"))
	p.run("launchctl bootout " + kubeletJob + "; launchctl bootstrap system /Library/LaunchDaemons/dev.macfleet.tart-kubelet.plist")
	p.want("state after a bootstrap that registers it again", p.page("state"), "running")
}

func TestMachineIncidents(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ incident, script, before, during string }{
		{"orphan-vm", "ls ~m1/.tart/vms 2>/dev/null || true", "", "macfleet-sandbox-orphan"},
		{"push-in-progress", "pgrep -f 'tart push' >/dev/null && echo pushes || true", "", "pushes"},
		{"disk-full", "df -m /tmp | tail -n 1 | tr -s ' ' | cut -d ' ' -f 4", "381469", "20"},
	} {
		t.Run(c.incident, func(t *testing.T) {
			t.Parallel()
			p := newPatient(t)
			script := strings.ReplaceAll(c.script, "~m1", "/Users/m1")
			p.want("before", p.run(script), c.before)
			p.inject(c.incident)
			p.want("during", p.run(script), c.during)
			p.heal(c.incident)
			p.want("after", p.run(script), c.before)
		})
	}
}

func TestSwappedHost(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	const serial = "ioreg -rd1 -c IOPlatformExpertDevice | grep IOPlatformSerialNumber"
	before := p.run(serial)
	p.inject("swapped-host")
	if got := p.run(serial); got == before {
		t.Error("the serial number is the same")
	}
	p.heal("swapped-host")
	p.want("serial number", p.run(serial), before)
}

func TestRunPod(t *testing.T) {
	t.Parallel()
	p := newKubelet(t)
	if err := p.world.RunPod(p.host.ID, "ci", "job-1"); err == nil {
		t.Error("a Pod runs without tart")
	}
	p.installTart()
	p.want("version", p.run("/usr/local/lib/tart.app/Contents/MacOS/tart --version"), "2.32.1")
	p.run("codesign -v /usr/local/lib/tart.app")
	must(t, p.machine.LogIn())
	must(t, p.world.RunPod(p.host.ID, "ci", "job-1"))
	p.want("processes", p.run("pgrep -f 'tart run ci-job-1($| )' | wc -l | tr -d ' '"), "1")
	p.run("launchctl kickstart -k " + kubeletJob)
	p.want("processes after a restart of the kubelet", p.run("pgrep -f 'tart run ci-job-1($| )' | wc -l | tr -d ' '"), "1")
	must(t, p.machine.Reboot(t.Context()))
	p.want("processes after a boot", p.run("pgrep -f 'tart run' | wc -l | tr -d ' '"), "0")
}

// kubeletToken returns the token of an account with a kubelet's rights.
func (p *patient) kubeletToken() string {
	p.Helper()
	const ns, name = "macfleet", "kubelet-for-test"
	cluster := p.world.ClusterForTest()
	make := func(resource, namespace, name string, content map[string]any) {
		err := cluster.Edit(kube.Object{Resource: resource, Namespace: namespace, Name: name}, func(map[string]any) map[string]any { return content })
		must(p, err)
	}
	all := []any{"*"}
	make("serviceaccounts", ns, name, map[string]any{})
	make("secrets", ns, name, map[string]any{"type": "kubernetes.io/service-account-token",
		"metadata": map[string]any{"annotations": map[string]any{"kubernetes.io/service-account.name": name}}})
	make("clusterroles", "", name, map[string]any{"rules": []any{map[string]any{"apiGroups": all, "resources": all, "verbs": all}}})
	make("clusterrolebindings", "", name, map[string]any{
		"subjects": []any{map[string]any{"kind": "ServiceAccount", "namespace": ns, "name": name}},
		"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}})
	secret, err := cluster.Read(kube.Object{Resource: "secrets", Namespace: ns, Name: name})
	must(p, err)
	data, _ := secret["data"].(map[string]any)
	encoded, _ := data["token"].(string)
	token, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(token) == 0 {
		p.Fatalf("no token: %v", err)
	}
	return string(token)
}

// A Pod that someone creates in the cluster has its virtual machine on the Mac: at once, also after a
// restart, and until the Pod is deleted.
func TestVirtualMachineOfAPod(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	p.installKubelet(p.kubeletToken())
	p.installTart()
	p.run("ln -s /usr/local/lib/tart.app/Contents/MacOS/tart /usr/local/bin/tart")
	must(t, p.machine.LogIn())
	const count = "pgrep -f 'tart run ci-job-1($| )' | wc -l | tr -d ' '"
	must(t, p.world.ClusterForTest().PutPod(p.agents()[0].Node, "ci", "job-1"))
	p.want("processes", p.run(count), "1")
	p.want("virtual machines", p.run("sudo -u m1 /usr/local/bin/tart list --quiet"), "ci-job-1")
	p.run("launchctl bootout " + kubeletJob)
	p.want("processes without the kubelet", p.run(count), "1")
	p.later(4 * time.Second)
	p.run("launchctl bootstrap system /Library/LaunchDaemons/dev.macfleet.tart-kubelet.plist")
	p.want("processes of a kubelet that finds it", p.run(count), "1")
	must(t, p.machine.Reboot(t.Context()))
	p.want("processes without a session", p.run(count), "0")
	must(t, p.machine.LogIn())
	p.want("processes in a new session", p.run(count), "1")
	p.want("files", p.run("ls /Users/m1/.tart/vms"), "ci-job-1")
	err := p.world.ClusterForTest().Edit(kube.Object{Resource: "pods", Namespace: "ci", Name: "job-1"}, func(content map[string]any) map[string]any {
		metadata, _ := content["metadata"].(map[string]any)
		metadata["deletionTimestamp"], metadata["deletionGracePeriodSeconds"] = "2026-03-02T11:42:00Z", 0
		return content
	})
	must(t, err)
	p.want("processes after the Pod", p.run(count), "0")
	p.want("files after the Pod", p.run("ls /Users/m1/.tart/vms"), "")
}

// TestSamples pins the digests that examples state.
func TestSamples(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"tart-2.32.1.tar.gz":                      "8cddcd69ec9da0d78993a11bc7c7b35f2d7cbd845c2d8c5b743063e8370f2c21",
		"tart-kubelet-0.4.0":                      "67964748c7d0214059725187b99e23e6a2c2d95ffcb8c31a3d9caf72c3c3f8c9",
		"tart-kubelet-darwin-arm64-0.5.0":         "b033cf9964c5b07804b7500dfcf2683ed0d39473f1395a4c7172eea1548f5f12",
		"node_exporter-1.9.0.darwin-arm64.tar.gz": "14f0f7a1256695b6584e764f809ee53a675dadaaa7dd7fa27d5b49c4ae13009e",
	} {
		sum := sha256.Sum256(sandbox.Sample("https://artifacts.acme.dev/x/" + name))
		equal(t, hex.EncodeToString(sum[:]), want, name, "has the digest")
	}
}

func TestDownloadsOfTheWorld(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	folder := filepath.Join(p.dir, "downloads", "mirror.globex.net", "a")
	must(t, os.MkdirAll(folder, 0o755))
	must(t, os.WriteFile(filepath.Join(folder, "tool"), []byte("by hand"), 0o644))
	for _, c := range []struct {
		address, text string
		err           error
	}{
		{"https://mirror.globex.net/a/tool", "by hand", nil},
		{"https://mirror.globex.net/a/../../secrets.json", "", fs.ErrNotExist},
		{"https://mirror.globex.net/b", "", fs.ErrNotExist},
		{"https://artifacts.acme.dev/tool", mac.SampleLine + "\ntool\n", nil},
		{"https://elsewhere.net/tool", "", mac.ErrNoHost},
	} {
		file, err := p.world.Download(c.address)
		if !errors.Is(err, c.err) {
			t.Errorf("%s: %v", c.address, err)
		}
		if err != nil {
			continue
		}
		text, err := io.ReadAll(file)
		if err != nil || !bytes.Equal(text, []byte(c.text)) {
			t.Errorf("%s: %q, %v", c.address, text, err)
		}
		if err := file.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Changes of a Mac whose world is closed are reported when the world opens it again.
func TestTheClusterSeesKubeletsLater(t *testing.T) {
	t.Parallel()
	p := newKubelet(t)
	apart, err := mac.Open(filepath.Join(p.dir, "macs", p.host.ID))
	must(t, err)
	must(t, apart.UnloadJob(kubeletJob))
	p.want("kubelets before the world opens the Mac", strconv.Itoa(len(p.agents())), "1")
	if _, err := open(t, p.dir, seed(2)).Mac(p.host.ID); err != nil {
		t.Fatal(err)
	}
	p.want("kubelets", strconv.Itoa(len(p.agents())), "0")
}

func TestTwoKubelets(t *testing.T) {
	t.Parallel()
	p := newKubelet(t)
	p.inject("second-kubelet")
	p.run("true")
	all := p.agents()
	if len(all) != 2 || all[0].Node != all[1].Node || all[0].Job == all[1].Job {
		t.Errorf("the cluster sees %+v", all)
	}
}
