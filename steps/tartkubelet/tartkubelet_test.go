package tartkubelet_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/maintest"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/stepstest"
)

func TestMain(m *testing.M) { maintest.Main(m) }

const name = stepstest.Name

// none wants nothing.
var none = fleet.Spec{}

const kubeletID, kubeletProbe, backgroundProbe = "tart_kubelet", "tart_kubelet.state/m1", "tart_kubelet.background"

// joined wants a kubelet.
var joined = fleet.Spec{TartKubelet: &fleet.TartKubelet{Artifact: stepstest.KubeletArtifact()}}

// kubeletCase is a host whose kubelet is judged.
type kubeletCase struct {
	mac  stepstest.Kubelet
	view plan.View
	spec fleet.Spec
	host fleet.Host
	more plan.Facts // answers to other probes
}

func newKubeletCase() *kubeletCase {
	return &kubeletCase{mac: stepstest.SettledKubelet(name), view: stepstest.View(stepstest.Host(joined), nil), spec: joined, host: stepstest.Host(joined)}
}

func (c *kubeletCase) node(edit func(*inventory.Node)) {
	n, _ := c.view.Node.Get()
	edit(&n)
	c.view.Node = inventory.Present(n)
}

// heard lets the Node's last heartbeat be that long after the host was read.
func (c *kubeletCase) heard(after time.Duration) {
	c.view.At = time.Unix(1763100000, 0)
	c.node(func(n *inventory.Node) { n.LastHeartbeat = c.view.At.Add(after) })
}

const (
	legacyJob   = "system/dev.tuist.tart-kubelet"
	legacyPlist = "/Library/LaunchDaemons/dev.tuist.tart-kubelet.plist"
	young       = "4242 1 00:03 /usr/local/bin/tart-kubelet\n"
	endedWell   = "\tstate = running\n\truns = 3\n\tpid = 4242\n\tlast exit code = 0\n"
)

// onePod is the Pod of the virtual machine ci-a.
var onePod = inventory.Present([]inventory.Pod{{Namespace: "ci", Name: "a"}})

// page sets what launchctl and ps show of the kubelet.
func page(page, processes string) func(*kubeletCase) {
	return func(c *kubeletCase) { c.mac.Page, c.mac.Processes = page, processes }
}

func (c *kubeletCase) receipt(old, fresh string) {
	c.mac.Receipt = strings.Replace(c.mac.Receipt, old, fresh, 1)
}

// older has the version before; previous has it to go back to.
func (c *kubeletCase) older() {
	c.receipt("current "+stepstest.KubeletArtifact().SHA256+" 0.4.0", "current "+stepstest.OlderSHA()+" 0.3.0")
}

func (c *kubeletCase) previous() {
	c.receipt("previous -", "previous "+stepstest.OlderSHA()+" 0.3.0")
	c.mac.Kept += stepstest.OlderSHA() + "\n"
}

// other adds a job to launchd.
func (c *kubeletCase) other(target, page string) { c.mac.Others = map[string]string{target: page} }

// keepsMachines has a kubelet that collects no garbage, and virtual machines.
func (c *kubeletCase) keepsMachines(machines string) {
	c.mac = c.mac.WithArgs("--disable-vm-gc")
	c.mac.Machines = machines
}

// want sets a specification.
func (c *kubeletCase) want(edit func(*fleet.Spec)) {
	desired := *c.spec.TartKubelet
	c.spec.TartKubelet = &desired
	edit(&c.spec)
	c.host = stepstest.Host(c.spec)
}

func (c *kubeletCase) finding(t testing.TB) plan.Finding {
	t.Helper()
	v := c.view
	v.Host = c.host
	v.Facts = stepstest.With(c.more, map[string]plan.Answer{stepstest.StepOf(t, kubeletID, c.host).Probes()[0].ID: c.mac.Answer(), backgroundProbe: stepstest.Said(c.mac.Background)})
	return stepstest.Find(t, kubeletID, v)
}

// namedKubelet is a case of a table.
type namedKubelet struct {
	name string
	edit func(*kubeletCase)
	want string
}

// kubeletCases are hosts and what the step says of them.
func kubeletCases() []namedKubelet {
	const stopped = "\tstate = running\n\truns = 3\n\tpid = 4242\n\tlast terminating signal = Terminated: 15\n"
	const waits = "\tstate = spawn scheduled\n\truns = 17\n"
	vm := func(names ...string) string { return strings.Join(names, "\n") + "\n" }
	builder := func(s *fleet.Spec) { s.GithubRunner = &fleet.GithubRunner{} }
	morePods := func(s *fleet.Spec) { s.TartKubelet.MaxPods = new(9) }
	const disallowed, older = "         Disposition: [enabled, disallowed, notified] (0x9)\n", "\t<key>AbandonProcessGroup</key>\n\t<true/>\n"
	withoutGroup := func(c *kubeletCase) { c.mac.Plist = strings.Replace(c.mac.Plist, older, "", 1) }
	labelled := func(c *kubeletCase, edit func(*inventory.Node)) {
		c.host.LabelPrefix = "acme.dev"
		c.mac = c.mac.Labelled("acme.dev/fleet=macos,acme.dev/group=m2")
		c.node(edit)
	}
	return []namedKubelet{
		{"healthy", func(*kubeletCase) {}, ""},
		{"factory", func(c *kubeletCase) {
			c.mac, c.view.Node = stepstest.FactoryKubelet(), inventory.Absent[inventory.Node]()
		},
			"kubelet-missing binary, kubeconfig-missing kubeconfig, kubelet-missing run load"},
		{"killed-by-codesigning", page(waits+"\tlast exit reason = OS_REASON_CODESIGNING\n", ""), "killed-by-codesigning binary, killed-by-codesigning run load"},
		{"pinned to another program", func(c *kubeletCase) {
			c.mac.Page, c.mac.Processes = waits+"\tlast exit code = 78: EX_CONFIG\n", ""
			c.mac.Properties = "keepalive | runatload | needs LWCR update | managed LWCR | has LWCR"
		}, "kubelet-pin-outdated run load"},
		{"78, and nothing says why", page(waits+"\tlast exit code = 78: EX_CONFIG\n", ""), "kubelet-crash-loop run load"},
		{"a file of an older macfleet", withoutGroup, "plist-changed-under-job run ask"},
		{"a file of an older macfleet, and a virtual machine runs", func(c *kubeletCase) { withoutGroup(c); c.mac.Work = "77 run ci-a\n" },
			"plist-changed-under-job run ask, busy"},
		{"a secret in the plist, and a virtual machine runs", func(c *kubeletCase) { c.mac.Withheld, c.mac.Work = strings.Repeat("e", 64), "77 run ci-a\n" },
			"plist-changed-under-job run ask, busy"},
		{"another configuration, and a virtual machine runs", func(c *kubeletCase) { c.mac.Work = "77 run ci-a\n"; c.want(morePods) }, "plist-changed-under-job run load"},
		{"killed once, runs since", page("\tstate = running\n\truns = 4\n\tpid = 4242\n\tlast exit reason = OS_REASON_CODESIGNING\n", "4242 1 01:00:00 /usr/local/bin/tart-kubelet\n"), ""},
		{"kubelet-crash-loop between two starts", page(stepstest.KubeletWaits, ""), "kubelet-crash-loop run ask"},
		{"kubelet-crash-loop with a pid of the moment", page("\tstate = running\n\truns = 17\n\tpid = 4242\n\tlast exit code = 2\n", young), "kubelet-crash-loop run kick"},
		{"young after the boot", func(c *kubeletCase) { c.mac.Processes = young }, "warns node-not-judged"},
		{"young after the boot, seen", func(c *kubeletCase) { c.mac.Processes = young; c.heard(-time.Second / 2) }, ""},
		{"young after the boot, the process before was seen", func(c *kubeletCase) { c.mac.Processes = young; c.heard(-3 * time.Second) }, "warns node-not-judged"},
		{"restarted by hand", page(stopped, young), "warns kubelet-settling"},
		{"ended by itself and well", page(endedWell, young), "warns kubelet-settling"},
		{"restarted by hand, and gone while it was read", page(stopped, ""), "warns kubelet-settling"},
		{"a crash loop, and another configuration", func(c *kubeletCase) { page(stepstest.KubeletWaits, "")(c); c.want(morePods) }, "kubelet-crash-loop run load"},
		{"another configuration", func(c *kubeletCase) { c.want(morePods) }, "plist-changed-under-job run load"},
		{"another configuration, and an edited file", func(c *kubeletCase) { c.mac.Plist = c.mac.WithArgs("--host-cpu=9").Plist; c.want(morePods) },
			"plist-changed-under-job run load"},
		{"kubelet-stopped", page("\tstate = spawn scheduled\n\truns = 3\n\tlast terminating signal = Terminated: 15\n", ""), "kubelet-stopped run ask"},
		{"kubelet-respawn-stuck", page("\tstate = not running\n\truns = 3\n\tlast exit code = 0\n", ""), "kubelet-respawn-stuck run ask"},
		{"not loaded", func(c *kubeletCase) { c.mac.Job, c.mac.Processes = 113, "" }, "kubelet-not-loaded run load"},
		{"disabled", func(c *kubeletCase) { c.mac.Job, c.mac.Processes, c.mac.Disabled = 113, "", true }, "kubelet-disabled run load"},
		{"plist-changed-under-job on the disk", func(c *kubeletCase) { c.mac.Plist = c.mac.WithArgs("--max-pods=9").Plist }, "plist-changed-under-job run ask"},
		{"plist-changed-under-job in memory", func(c *kubeletCase) { c.mac.Args = append(slices.Clone(c.mac.Args), "--max-pods=9") }, "plist-changed-under-job run load"},
		{"another plist in both", func(c *kubeletCase) { c.mac = c.mac.WithArgs("--max-pods=9") }, "plist-changed-under-job run load"},
		{"the plist's mode", func(c *kubeletCase) { c.mac.PlistMode = "0:0:666" }, "plist-changed-under-job run ask"},
		{"a secret in the plist", func(c *kubeletCase) { c.mac.Withheld = strings.Repeat("e", 64) }, "plist-changed-under-job run ask"},
		{"a label that sounds like a secret", func(c *kubeletCase) {
			sum := sha256.Sum256([]byte(c.mac.Plist))
			c.mac.Withheld = hex.EncodeToString(sum[:])
		}, ""},
		{"stale-binary-running", func(c *kubeletCase) { c.receipt("installed 1763000001", "installed 1763099000") }, "stale-binary-running run ask"},
		{"stale, the file replaced by hand", func(c *kubeletCase) {
			c.mac.Stamp, c.mac.SHA, c.mac.Changed = "999 61000000 1763000000", stepstest.KubeletArtifact().SHA256, 1763099000
		}, "stale-binary-running run ask"},
		{"replaced by hand before the start", func(c *kubeletCase) {
			c.mac.Stamp, c.mac.SHA, c.mac.Changed = "999 61000000 1763000000", stepstest.KubeletArtifact().SHA256, 1763090000
		}, ""},
		{"edited program", func(c *kubeletCase) { c.mac.Stamp, c.mac.SHA = "999 5 1", strings.Repeat("ee", 32) }, "kubelet-edited binary, kubelet-edited run ask"},
		{"the program's mode", func(c *kubeletCase) { c.mac.Access = "501:20:755" }, "kubelet-edited binary, kubelet-edited run ask"},
		{"an older version", (*kubeletCase).older, "kubelet-outdated binary, kubelet-outdated run ask"},
		{"not installed by macfleet", func(c *kubeletCase) { c.mac.Receipt = "" }, "kubelet-unknown binary, kubelet-unknown run ask"},
		{"no kubeconfig", func(c *kubeletCase) { c.mac.ConfigAccess = "" }, "kubeconfig-missing kubeconfig, kubeconfig-missing run kick"},
		{"another server", func(c *kubeletCase) { c.mac.ConfigServer = "https://127.0.0.1:6443" }, "kubeconfig-differs kubeconfig, kubeconfig-differs run kick"},
		{"another CA", func(c *kubeletCase) { c.mac.ConfigSHA = strings.Repeat("0", 64) }, "kubeconfig-differs kubeconfig, kubeconfig-differs run kick"},
		{"anyone reads the kubeconfig", func(c *kubeletCase) { c.mac.ConfigAccess = "m1:staff:644" }, "kubeconfig-differs kubeconfig, kubeconfig-differs run kick"},
		{"token of a ServiceAccount that is gone", func(c *kubeletCase) { c.mac.ConfigClaims = stepstest.Claims("other", "tart-kubelet-"+name+"-token") },
			"token-revoked kubeconfig, token-revoked run kick"},
		{"token of another Secret", func(c *kubeletCase) { c.mac.ConfigClaims = stepstest.Claims(stepstest.AccountUID, "other") }, "token-revoked kubeconfig, token-revoked run kick"},
		{"the identity is gone", func(c *kubeletCase) { c.view.Identity = inventory.Absent[inventory.Identity]() }, "token-revoked kubeconfig, token-revoked run kick"},
		{"a token that says nothing", func(c *kubeletCase) { c.mac.ConfigClaims = "" }, ""},
		{"the cluster is not known", func(c *kubeletCase) { c.view.Join = inventory.Unread[inventory.Join]("it was forbidden") }, "unread the cluster's address for hosts is unknown: it was forbidden"},
		{"identities are not known", func(c *kubeletCase) { c.view.Identity = inventory.Unread[inventory.Identity]("it was forbidden") },
			"unread the host's identity in the cluster is unknown: it was forbidden"},
		{"folders of someone else", func(c *kubeletCase) { c.mac.Folders = strings.Replace(c.mac.Folders, "m1:staff", "root:wheel", 1) }, "kubelet-folders run kick"},
		{"unfinished", func(c *kubeletCase) { c.view.Pending = true }, "unfinished run ask"},
		{"second-kubelet of before", func(c *kubeletCase) {
			c.other(legacyJob, "\tpath = "+legacyPlist+"\n\tprogram = /usr/local/bin/tart-kubelet\n\tpid = 77\n")
			c.mac.Plists, c.mac.Processes = legacyPlist+"\n", c.mac.Processes+"77 1 02:00:00 /usr/local/bin/tart-kubelet\n"
		}, "second-kubelet run kick"},
		{"second-kubelet of someone's", func(c *kubeletCase) { c.other("gui/501/com.example.node", "\tprogram = /opt/tart-kubelet\n") }, "refused second-kubelet"},
		{"second-kubelet behind a shell", func(c *kubeletCase) {
			c.other("system/com.example.node", "\tprogram = /bin/sh\n\tpid = 70\n")
			c.mac.Processes += "71 70 02:00 /opt/tart-kubelet\n"
		}, "refused second-kubelet"},
		{"its log is read by a job", func(c *kubeletCase) { c.other("system/com.example.shipper", "\tprogram = /usr/bin/tail\n\tpid = 70\n") }, ""},
		{"second-kubelet of the next boot", func(c *kubeletCase) { c.mac.Plists = "/Library/LaunchDaemons/com.example.node.plist\n" }, "refused second-kubelet"},
		{"second-kubelet by hand", func(c *kubeletCase) { c.mac.Processes += "99 1 02:00 /opt/tart-kubelet\n" }, "refused second-kubelet"},
		{"a legacy job", func(c *kubeletCase) {
			c.mac.Plists = "/Library/LaunchDaemons/com.example.node.plist\n"
			c.want(func(s *fleet.Spec) { s.TartKubelet.Legacy = []string{"com.example.node"} })
		}, "second-kubelet run kick"},
		{"btm-disallowed", func(c *kubeletCase) { c.mac.Background = disallowed }, "refused btm-disallowed"},
		{"btm-disallowed and dead", func(c *kubeletCase) { c.mac.Background, c.mac.Job, c.mac.Processes = disallowed, 113, "" }, "kubelet-not-loaded run load, refused btm-disallowed"},
		{"disk-full", func(c *kubeletCase) { c.mac.FreeKB = 20_000 }, "refused disk-full"},
		{"disk-full before an update", func(c *kubeletCase) { c.mac.FreeKB, c.mac.Receipt = 20_000, "" }, "kubelet-unknown binary, kubelet-unknown run ask, refused disk-full"},
		{"node-missing", func(c *kubeletCase) { c.view.Node = inventory.Absent[inventory.Node]() }, "node-missing kubeconfig, node-missing run kick"},
		{"no Node yet", func(c *kubeletCase) {
			c.view.Node, c.mac.Processes = inventory.Absent[inventory.Node](), "4242 1 00:42 /usr/local/bin/tart-kubelet\n"
		}, "warns node-not-judged"},
		{"young, seen, and not Ready", func(c *kubeletCase) {
			c.mac.Processes = "4242 1 00:42 /usr/local/bin/tart-kubelet\n"
			c.heard(-30 * time.Second)
			c.node(func(n *inventory.Node) { n.Ready = inventory.NotReady })
		}, "node-not-ready kubeconfig, node-not-ready run kick"},
		{"the cluster does not answer", func(c *kubeletCase) { c.view.Node = inventory.Unread[inventory.Node]("timeout") }, ""},
		{"node-not-ready", func(c *kubeletCase) { c.node(func(n *inventory.Node) { n.Ready = inventory.ReadyUnknown }) }, "node-not-ready kubeconfig, node-not-ready run kick"},
		{"different-provider-id", func(c *kubeletCase) {
			c.node(func(n *inventory.Node) { n.ProviderID = "scw-applesilicon://fr-par-1/other" })
		}, "different-provider-id run kick"},
		{"empty provider id", func(c *kubeletCase) { c.node(func(n *inventory.Node) { n.ProviderID = "" }) }, ""},
		{"node-labels-differ", func(c *kubeletCase) {
			labelled(c, func(n *inventory.Node) { n.Labels["acme.dev/fleet"], n.Labels["acme.dev/group"] = "runners", "m2" })
		}, "watches node-labels-differ"},
		{"a new token is requested", func(c *kubeletCase) { c.view.NewToken = true }, "token-rotation kubeconfig, token-rotation run kick"},
		{"an older token than the newest", func(c *kubeletCase) {
			c.identity(func(i *inventory.Identity) {
				i.Token, i.Spent = inventory.FirstToken(i.Host)+"-2", []string{inventory.FirstToken(i.Host)}
			})
		}, "token-rotation kubeconfig, token-rotation run kick"},
		{"the newest token", func(c *kubeletCase) {
			c.mac.ConfigClaims = stepstest.Claims(stepstest.AccountUID, inventory.FirstToken(c.host.Name)+"-2")
			c.identity(func(i *inventory.Identity) { i.Token = inventory.FirstToken(i.Host) + "-2" })
		}, ""},
		{"a token that was ended", func(c *kubeletCase) {
			c.identity(func(i *inventory.Identity) { i.Token = inventory.FirstToken(i.Host) + "-2" })
		},
			"token-revoked kubeconfig, token-revoked run kick"},
		{"a Node without its zone", func(c *kubeletCase) { c.node(func(n *inventory.Node) { n.Labels = nil }) }, "watches node-labels-differ"},
		{"labels differ on a Node that is not Ready", func(c *kubeletCase) {
			labelled(c, func(n *inventory.Node) { n.Labels, n.Ready = nil, inventory.NotReady })
		}, "node-not-ready kubeconfig, node-not-ready run kick"},
		{"orphan-vm", func(c *kubeletCase) { c.mac.Machines = vm("bake", "tuist-golden-0123456789abcdef") }, "warns orphan-vm"},
		{"a machine of a Pod", func(c *kubeletCase) { c.mac.Machines, c.view.Pods = vm("ci-a"), onePod }, ""},
		{"no one knows the Pods", func(c *kubeletCase) {
			c.mac.Machines, c.view.Pods = vm("bake"), inventory.Unread[[]inventory.Pod]("timeout")
		}, ""},
		{"a builder's machines", func(c *kubeletCase) { c.want(builder); c.keepsMachines("bake\n") }, ""},
		{"a host becomes a builder", func(c *kubeletCase) { c.want(builder) }, "gc-on-builder run load"},
		{"a builder no more", func(c *kubeletCase) { c.keepsMachines("bake\n") }, "plist-changed-under-job run load"},
		{"a builder no more that pushes", func(c *kubeletCase) { c.keepsMachines("bake\n"); c.mac.Work = "77 push bake\n" }, "plist-changed-under-job run load, busy"},
		{"a busy runner", func(c *kubeletCase) { c.mac.Work, c.mac.Receipt = "77 run ci-a\n", "" }, "kubelet-unknown binary, kubelet-unknown run ask"},
		{"no room for Pods", func(c *kubeletCase) { c.mac.Hardware = "2\n17179869184\n" }, "plist-changed-under-job run load, refused reserve-too-large"},
		{"no artifact", func(c *kubeletCase) { c.want(func(s *fleet.Spec) { s.TartKubelet.Artifact = nil }) }, "kubelet-outdated binary, kubelet-outdated run ask, refused artifact-missing"},
	}
}

// TestKubeletIncidents: what is done about each incident, and how it is reported, in the golden file.
func TestKubeletIncidents(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for _, tc := range kubeletCases() {
		c := newKubeletCase()
		tc.edit(c)
		f := c.finding(t)
		if got := stepstest.Brief(f); got != tc.want {
			t.Errorf("%s: %s\nwant %s\n%+v", tc.name, got, tc.want, stepstest.FieldsOf(f))
		}
		fmt.Fprintf(&b, "== %s\n%s\n", tc.name, reported(f))
	}
	if text := b.String(); strings.Contains(text, ": \n") || strings.Contains(text, "remedy: \n") {
		t.Error("a trouble has no text or no remedy")
	}
	golden(t, "tart_kubelet.txt", b.String())
}

// identity edits what the cluster knows of the host's kubelet.
func (c *kubeletCase) identity(edit func(*inventory.Identity)) {
	i, _ := c.view.Identity.Get()
	edit(&i)
	c.view.Identity = inventory.Present(i)
}
