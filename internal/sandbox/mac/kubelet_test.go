package mac

import (
	"strings"
	"testing"
	"time"

	"github.com/macfleet/macfleet/internal/sandbox/agent"
)

const (
	kubeletLabel = "system/dev.macfleet.tart-kubelet"
	goodConfig   = `apiVersion: v1
kind: Config
current-context: tart-kubelet
clusters:
- name: cluster
  cluster: {server: "https://api.acme.dev:6443", certificate-authority-data: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1BPT0KLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo=}
contexts:
- name: tart-kubelet
  context: {cluster: cluster, user: u}
users:
- name: u
  user: {token: secret-token}
`
)

// kubeletHost is a Mac with everything that a kubelet needs, and its job loaded.
type kubeletHost struct {
	*testing.T
	*Machine
	reported []agent.Kubelet
	pods     []agent.Pod
}

func newKubelet(t *testing.T, binary string, args ...string) *kubeletHost {
	t.Helper()
	h := &kubeletHost{T: t, Machine: newMachine(t)}
	h.Connect(Outside{
		Kubelets: func(all []agent.Kubelet) error { h.reported = all; return nil },
		Pods:     func(agent.Kubelet) ([]agent.Pod, error) { return h.pods, nil },
	})
	h.write("/usr/local/bin/tart-kubelet", binary, 0, 0o755)
	h.write("/etc/tart-kubelet/kubeconfig", goodConfig, loginUID, 0o600)
	h.write("/var/log/tart-kubelet.log", "", loginUID, 0o644)
	args = append([]string{"/usr/local/bin/tart-kubelet", "--node-name=mini-1", "--kubeconfig=/etc/tart-kubelet/kubeconfig"}, args...)
	var b strings.Builder
	for _, arg := range args {
		b.WriteString("<string>" + arg + "</string>")
	}
	h.write("/Library/LaunchDaemons/dev.macfleet.tart-kubelet.plist", `<?xml version="1.0" encoding="UTF-8"?>
<plist version="1.0"><dict><key>Label</key><string>dev.macfleet.tart-kubelet</string><key>UserName</key><string>m1</string>
<key>RunAtLoad</key><true/><key>KeepAlive</key><true/><key>StandardErrorPath</key><string>/var/log/tart-kubelet.log</string>
<key>ProgramArguments</key><array>`+b.String()+`</array></dict></plist>`, 0, 0o644)
	h.root("launchctl bootstrap system /Library/LaunchDaemons/dev.macfleet.tart-kubelet.plist")
	return h
}

func (h *kubeletHost) write(name, text string, uid int, mode uint32) {
	h.Helper()
	ok(h, h.WriteFile(name, []byte(text), uid, 0, permission(mode)))
}

func (h *kubeletHost) root(script string) string {
	h.Helper()
	return strings.TrimSpace(must(h, h.Machine, "root", script))
}

func (h *kubeletHost) later(d time.Duration) {
	h.Helper()
	ok(h, h.Advance(d))
}

// page returns a value of launchctl print for the kubelet's job, or "".
func (h *kubeletHost) page(key string) string {
	h.Helper()
	for line := range strings.Lines(h.root("launchctl print " + kubeletLabel)) {
		if k, value, ok := strings.Cut(strings.TrimSpace(line), " = "); ok && k == key {
			return value
		}
	}
	return ""
}

func (h *kubeletHost) running() []agent.Kubelet {
	var all []agent.Kubelet
	for _, k := range h.reported {
		if k.Runs() {
			all = append(all, k)
		}
	}
	return all
}

func TestKubeletRuns(t *testing.T) {
	t.Parallel()
	h := newKubelet(t, "version=0.4.0\n", "--host-cpu", "8", "--host-memory-mb=14336", "--max-pods=3", "--node-labels=acme.dev/fleet=runners",
		"--provider-id=scw-applesilicon://fr-par-1/x", "--disable-vm-gc")
	if len(h.reported) != 1 {
		t.Fatalf("got %+v", h.reported)
	}
	k := h.reported[0]
	if k.Node != "mini-1" || k.CPU != 8 || k.MemoryMB != 14336 || k.MaxPods != 3 || k.Labels["acme.dev/fleet"] != "runners" || k.GC ||
		k.ProviderID != "scw-applesilicon://fr-par-1/x" || k.Version != "0.4.0" || k.Token != "secret-token" || !k.Runs() || k.Job != "dev.macfleet.tart-kubelet" {
		t.Errorf("got %+v", k)
	}
	equal(t, h.page("state"), "running", "state")
	equal(t, h.root("pgrep -f tart-kubelet | wc -l | tr -d ' '; ps -axo command= | grep -c 'tart-kubelet --node-name=mini-1 '"), "1\n1", "ps shows")
	// A restart within two seconds: the cluster never saw the first run.
	h.root("launchctl kickstart -k " + kubeletLabel)
	if len(h.reported) != 1 || h.reported[0].PID == k.PID {
		t.Errorf("after a restart: %+v", h.reported)
	}
	ok(t, h.Reboot(t.Context()))
	if got := h.running(); len(got) != 1 || got[0].Node != "mini-1" {
		t.Errorf("after a boot: %+v", h.reported)
	}
	h.root("launchctl bootout " + kubeletLabel)
	equal(t, len(h.running()), 0, "after a bootout", h.reported)
}

func TestKubeletEnds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, binary, exit string
		args               []string
		before             func(*kubeletHost)
	}{
		{name: "unknown flag", args: []string{"--no-such-flag"}, exit: "2"},
		{name: "bad number", args: []string{"--host-cpu=many"}, exit: "2"},
		{name: "bad source", args: []string{"--node-ip-source=dns"}, exit: "1"},
		{name: "no tailscale", args: []string{"--node-ip-source=tailscale"}, exit: "1"},
		{name: "no kubeconfig", args: []string{"--kubeconfig=/nowhere"}, exit: "1"},
		{name: "crashes", binary: "version=0.5.0\ncrashes\n", exit: "2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.binary == "" {
				c.binary = "version=0.4.0\n"
			}
			h := newKubelet(t, c.binary, c.args...)
			h.later(1500 * time.Millisecond)
			equal(t, h.page("state"), "spawn scheduled", "state")
			equal(t, h.page("last exit code"), c.exit, "last exit code")
			h.later(time.Hour)
			if got := h.page("runs"); len(got) != 3 {
				t.Errorf("after an hour of crashes runs = %s", got)
			}
			equal(t, len(h.reported), 0, "the cluster saw", h.reported)
		})
	}
}

func TestKubeletThatThisMacRefuses(t *testing.T) {
	t.Parallel()
	h := newKubelet(t, "version=0.4.0\n")
	ok(t, h.RefuseKubelet("0.5.0"))
	h.root("f=$(mktemp /usr/local/bin/.new.XXXXXX) && printf 'version=0.5.0\\n' >$f && chmod 755 $f && mv $f /usr/local/bin/tart-kubelet && launchctl kickstart -k " + kubeletLabel)
	h.later(2 * time.Second)
	equal(t, h.page("pid"), "", "the kubelet runs as")
	h.root("f=$(mktemp /usr/local/bin/.new.XXXXXX) && printf 'version=0.4.0\\n' >$f && chmod 755 $f && mv $f /usr/local/bin/tart-kubelet && launchctl kickstart -k " + kubeletLabel)
	equal(t, h.page("state"), "running", "the previous version: state")
}

// Bytes that change in an executed inode are killed from then on; those in a new inode are not.
func TestSignatureCache(t *testing.T) {
	t.Parallel()
	h := newKubelet(t, "version=0.4.0\n")
	setSwitch(t, h.Machine, "launchd-pins-program", "never")
	h.root("printf 'version=0.5.0\\n' >/usr/local/bin/tart-kubelet; codesign -v /usr/local/bin/tart-kubelet && launchctl kickstart -k " + kubeletLabel)
	if state, reason := h.page("state"), h.page("last exit reason"); state != "spawn scheduled" || reason != "OS_REASON_CODESIGNING" {
		t.Errorf("state = %s, reason = %s", state, reason)
	}
	equal(t, h.root("launchctl list | grep tart-kubelet"), "-\t-9\tdev.macfleet.tart-kubelet", "list shows")
	if _, stderr, exit := run(t, h.Machine, "root", "/usr/local/bin/tart-kubelet"); exit != 137 || !strings.Contains(stderr, "Killed: 9") {
		t.Errorf("in a shell: %d, %s", exit, stderr)
	}
	h.root("codesign --force --sign - /usr/local/bin/tart-kubelet && launchctl kickstart -k " + kubeletLabel)
	equal(t, h.page("state"), "running", "after a new signature: state")
	h.root("cp -p /usr/local/bin/tart-kubelet /tmp/k && mv /tmp/k /usr/local/bin/tart-kubelet && launchctl kickstart -k " + kubeletLabel)
	equal(t, h.page("state"), "running", "after a new inode: state")
	ok(t, h.BreakSignature("/usr/local/bin/tart-kubelet"))
	h.root("launchctl kickstart -k " + kubeletLabel)
	equal(t, h.page("last exit reason"), "OS_REASON_CODESIGNING", "after other bytes were executed from the inode")
}

func TestCollection(t *testing.T) {
	t.Parallel()
	h := newKubelet(t, "version=0.4.0\n")
	withTart(h)
	h.pods = []agent.Pod{{Namespace: "ci", Name: "job-1"}}
	for _, name := range []string{"ci-job-1", "orphan"} {
		ok(t, h.StartVM(name))
	}
	ok(t, h.StartPush("image", "registry.acme.dev/image"))
	h.later(4 * time.Minute)
	equal(t, h.tart("list --quiet"), "ci-job-1\nimage\norphan", "before five minutes have passed")
	h.later(time.Minute)
	equal(t, h.tart("list --quiet"), "ci-job-1", "after five minutes")
	h.later(2 * time.Minute)
	pushes, err := h.Pushes()
	if err != nil || len(pushes) != 1 || pushes[0].Failure != `The file "nvram.bin" doesn't exist` {
		t.Errorf("pushes %+v, %v", pushes, err)
	}
}

func TestNoCollection(t *testing.T) {
	t.Parallel()
	h := newKubelet(t, "version=0.4.0\n", "--disable-vm-gc")
	withTart(h)
	ok(t, h.StartPush("image", "registry.acme.dev/image"))
	h.later(time.Hour)
	h.root("true")
	pushes, err := h.Pushes()
	if err != nil || len(pushes) != 1 || !pushes[0].Ended || pushes[0].Failure != "" {
		t.Errorf("pushes %+v, %v", pushes, err)
	}
}

func TestAVirtualMachineGoesWithItsPod(t *testing.T) {
	t.Parallel()
	h := newKubelet(t, "version=0.4.0\n", "--disable-vm-gc")
	has(t, h.reported[0].NoVMs, "/usr/local/bin/tart: no such file", "without tart")
	withTart(h)
	equal(t, h.reported[0].NoVMs, "", "with tart and a session")
	h.pods = []agent.Pod{{Namespace: "ci", Name: "a"}, {Namespace: "ci", Name: "b"}}
	for _, pod := range h.pods {
		ok(t, h.StartPod(pod))
	}
	equal(t, h.tart("list -q"), "ci-a\nci-b", "virtual machines")
	h.root("launchctl bootout " + kubeletLabel)
	h.pods[0].Deleted = true
	equal(t, h.tart("list -q"), "ci-a\nci-b", "without a kubelet to end it")
	h.later(4 * time.Second)
	h.root("launchctl bootstrap system /Library/LaunchDaemons/dev.macfleet.tart-kubelet.plist")
	equal(t, h.tart("list -q"), "ci-b", "after one Pod was deleted")
	ok(t, h.LogOut())
	has(t, h.reported[0].NoVMs, "Aqua session for uid 501", "without a session")
}

// A loaded job keeps its description when its file changes.
func TestChangedFileUnderAJob(t *testing.T) {
	t.Parallel()
	h := newKubelet(t, "version=0.4.0\n", "--max-pods=3")
	const file = "/Library/LaunchDaemons/dev.macfleet.tart-kubelet.plist"
	text, err := h.ReadFile(file)
	ok(t, err)
	h.write(file, strings.Replace(string(text), "--max-pods=3", "--max-pods=4", 1), 0, 0o644)
	h.root("launchctl kickstart -k " + kubeletLabel)
	equal(t, h.reported[0].MaxPods, 3, "after a kick")
	h.root("launchctl bootout " + kubeletLabel)
	h.later(4 * time.Second)
	h.root("launchctl bootstrap system " + file)
	equal(t, h.reported[0].MaxPods, 4, "after a bootout and a bootstrap")
}

// A kubelet that cannot write its log or read its kubeconfig prints nothing and is restarted again and
// again.
func TestKubeletThatMayNot(t *testing.T) {
	t.Parallel()
	h := newKubelet(t, "version=0.4.0\n")
	h.root("chown root /etc/tart-kubelet/kubeconfig; launchctl kickstart -k " + kubeletLabel)
	equal(t, h.page("last exit code"), "1", "kubeconfig of another user")
	h.root("chown m1 /etc/tart-kubelet/kubeconfig; chown root /var/log/tart-kubelet.log; launchctl kickstart -k " + kubeletLabel)
	equal(t, h.page("last exit code"), "78: EX_CONFIG", "log of another user")
	h.root("chown m1 /var/log/tart-kubelet.log; launchctl kickstart -k " + kubeletLabel)
	equal(t, h.page("state"), "running", "state")
}

// The real disk reuses the inode of a removed file; a Mac's never does. No new file is killed because
// of it.
func TestNewFilesAreNeverKilled(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	got := must(t, m, "root", `cd /tmp && mkdir d && for i in 1 2 3 4 5 6 7 8 9; do
		printf 'version=%s\n' "$i" >new && chmod 755 new && mv new prog && ./prog --version
		rm prog && printf 'version=%s0\n' "$i" >prog && chmod 755 prog && ./prog --version
		printf 'version=%s00\n' "$i" >d/prog && chmod 755 d/prog && d/prog --version && rm -r d && mkdir d
	done | wc -l | tr -d ' '`)
	equal(t, got, "27\n", "files that ran")
}
