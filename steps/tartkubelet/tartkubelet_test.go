package tartkubelet_test

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/stepstest"
)

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
	s := stepstest.StepOf(t, kubeletID, c.host)
	v.Facts = stepstest.With(nil, map[string]plan.Answer{s.Probes()[0].ID: c.mac.Answer(), backgroundProbe: stepstest.Said(c.mac.Background)})
	f := s.Diff(v)
	stepstest.Sound(t, kubeletID, v, f)
	return f
}

// namedKubelet is a case of a table.
type namedKubelet struct {
	name string
	edit func(*kubeletCase)
	want string
}

// kubeletCases are hosts and what the step says of them.
func kubeletCases() []namedKubelet {
	const young = "4242 1 00:03 /usr/local/bin/tart-kubelet\n"
	const stopped = "\tstate = running\n\truns = 3\n\tpid = 4242\n\tlast terminating signal = Terminated: 15\n"
	const waits = "\tstate = spawn scheduled\n\truns = 17\n"
	vm := func(names ...string) string { return strings.Join(names, "\n") + "\n" }
	builder := func(s *fleet.Spec) { s.GithubRunner = &fleet.GithubRunner{} }
	return []namedKubelet{
		{"healthy", func(*kubeletCase) {}, ""},
		{"factory", func(c *kubeletCase) {
			c.mac = stepstest.FactoryKubelet()
			c.view.Node = inventory.Absent[inventory.Node]()
		},
			"kubelet-missing binary, kubeconfig-missing kubeconfig, kubelet-missing run load"},
		{"killed-by-codesigning", func(c *kubeletCase) {
			c.mac.Page, c.mac.Processes = waits+"\tlast exit reason = OS_REASON_CODESIGNING\n", ""
		}, "killed-by-codesigning binary, killed-by-codesigning run load"},
		{"pinned to another program", func(c *kubeletCase) {
			c.mac.Page, c.mac.Processes = waits+"\tlast exit code = 78: EX_CONFIG\n", ""
			c.mac.Properties = "keepalive | runatload | needs LWCR update | managed LWCR | has LWCR"
		}, "kubelet-pin-outdated run load"},
		{"78, and nothing says why", func(c *kubeletCase) {
			c.mac.Page, c.mac.Processes = waits+"\tlast exit code = 78: EX_CONFIG\n", ""
		}, "kubelet-crash-loop run load"},
		{"a file of an older macfleet", func(c *kubeletCase) {
			c.mac.Plist = strings.Replace(c.mac.Plist, "\t<key>AbandonProcessGroup</key>\n\t<true/>\n", "", 1)
		}, "plist-changed-under-job run ask"},
		{"a file of an older macfleet, and a virtual machine runs", func(c *kubeletCase) {
			c.mac.Plist = strings.Replace(c.mac.Plist, "\t<key>AbandonProcessGroup</key>\n\t<true/>\n", "", 1)
			c.mac.Work = "77 run ci-a\n"
		}, "plist-changed-under-job run ask, busy"},
		{"a secret in the plist, and a virtual machine runs", func(c *kubeletCase) {
			c.mac.Withheld, c.mac.Work = strings.Repeat("e", 64), "77 run ci-a\n"
		}, "plist-changed-under-job run ask, busy"},
		{"another configuration, and a virtual machine runs", func(c *kubeletCase) {
			c.mac.Work = "77 run ci-a\n"
			c.want(func(s *fleet.Spec) { pods := 9; s.TartKubelet.MaxPods = &pods })
		}, "plist-changed-under-job run load"},
		{"killed once, runs since", func(c *kubeletCase) {
			c.mac.Page = "\tstate = running\n\truns = 4\n\tpid = 4242\n\tlast exit reason = OS_REASON_CODESIGNING\n"
		}, ""},
		{"kubelet-crash-loop between two starts", func(c *kubeletCase) { c.mac.Page, c.mac.Processes = stepstest.KubeletWaits, "" }, "kubelet-crash-loop run ask"},
		{"kubelet-crash-loop with a pid of the moment", func(c *kubeletCase) {
			c.mac.Page, c.mac.Processes = "\tstate = running\n\truns = 17\n\tpid = 4242\n\tlast exit code = 2\n", young
		}, "kubelet-crash-loop run kick"},
		{"young after the boot", func(c *kubeletCase) { c.mac.Processes = young }, "warns node-not-judged"},
		{"young after the boot, seen", func(c *kubeletCase) { c.mac.Processes = young; c.heard(-time.Second / 2) }, ""},
		{"young after the boot, the process before was seen", func(c *kubeletCase) { c.mac.Processes = young; c.heard(-3 * time.Second) }, "warns node-not-judged"},
		{"restarted by hand", func(c *kubeletCase) { c.mac.Page, c.mac.Processes = stopped, young }, "warns kubelet-settling"},
		{"ended by itself and well", func(c *kubeletCase) {
			c.mac.Page, c.mac.Processes = "\tstate = running\n\truns = 3\n\tpid = 4242\n\tlast exit code = 0\n", young
		}, "warns kubelet-settling"},
		{"restarted by hand, and gone while it was read", func(c *kubeletCase) { c.mac.Page, c.mac.Processes = stopped, "" }, "warns kubelet-settling"},
		{"a crash loop, and another configuration", func(c *kubeletCase) {
			c.mac.Page, c.mac.Processes = stepstest.KubeletWaits, ""
			c.want(func(s *fleet.Spec) { pods := 9; s.TartKubelet.MaxPods = &pods })
		}, "kubelet-crash-loop run load"},
		{"another configuration", func(c *kubeletCase) {
			c.want(func(s *fleet.Spec) { pods := 9; s.TartKubelet.MaxPods = &pods })
		}, "plist-changed-under-job run load"},
		{"another configuration, and an edited file", func(c *kubeletCase) {
			c.mac.Plist = c.mac.WithArgs("--host-cpu=9").Plist
			c.want(func(s *fleet.Spec) { pods := 9; s.TartKubelet.MaxPods = &pods })
		}, "plist-changed-under-job run load"},
		{"kubelet-stopped", func(c *kubeletCase) {
			c.mac.Page, c.mac.Processes = "\tstate = spawn scheduled\n\truns = 3\n\tlast terminating signal = Terminated: 15\n", ""
		}, "kubelet-stopped run ask"},
		{"kubelet-respawn-stuck", func(c *kubeletCase) {
			c.mac.Page, c.mac.Processes = "\tstate = not running\n\truns = 3\n\tlast exit code = 0\n", ""
		}, "kubelet-respawn-stuck run ask"},
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
		{"stale-binary-running", func(c *kubeletCase) {
			c.mac.Receipt = strings.Replace(c.mac.Receipt, "installed 1763000001", "installed 1763099000", 1)
		}, "stale-binary-running run ask"},
		{"stale, the file replaced by hand", func(c *kubeletCase) {
			c.mac.Stamp, c.mac.SHA, c.mac.Changed = "999 61000000 1763000000", stepstest.KubeletArtifact().SHA256, 1763099000
		}, "stale-binary-running run ask"},
		{"replaced by hand before the start", func(c *kubeletCase) {
			c.mac.Stamp, c.mac.SHA, c.mac.Changed = "999 61000000 1763000000", stepstest.KubeletArtifact().SHA256, 1763090000
		}, ""},
		{"edited program", func(c *kubeletCase) { c.mac.Stamp, c.mac.SHA = "999 5 1", strings.Repeat("ee", 32) }, "kubelet-edited binary, kubelet-edited run ask"},
		{"the program's mode", func(c *kubeletCase) { c.mac.Access = "501:20:755" }, "kubelet-edited binary, kubelet-edited run ask"},
		{"an older version", func(c *kubeletCase) {
			c.mac.Receipt = strings.Replace(c.mac.Receipt, "current "+stepstest.KubeletArtifact().SHA256+" 0.4.0", "current "+stepstest.OlderSHA()+" 0.3.0", 1)
		}, "kubelet-outdated binary, kubelet-outdated run ask"},
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
			c.mac.Others = map[string]string{"system/dev.tuist.tart-kubelet": "\tpath = /Library/LaunchDaemons/dev.tuist.tart-kubelet.plist\n\tprogram = /usr/local/bin/tart-kubelet\n\tpid = 77\n"}
			c.mac.Plists, c.mac.Processes = "/Library/LaunchDaemons/dev.tuist.tart-kubelet.plist\n", c.mac.Processes+"77 1 02:00:00 /usr/local/bin/tart-kubelet\n"
		}, "second-kubelet run kick"},
		{"second-kubelet of someone's", func(c *kubeletCase) {
			c.mac.Others = map[string]string{"gui/501/com.example.node": "\tprogram = /opt/tart-kubelet\n"}
		}, "refused second-kubelet"},
		{"second-kubelet behind a shell", func(c *kubeletCase) {
			c.mac.Others = map[string]string{"system/com.example.node": "\tprogram = /bin/sh\n\tpid = 70\n"}
			c.mac.Processes += "71 70 02:00 /opt/tart-kubelet\n"
		}, "refused second-kubelet"},
		{"its log is read by a job", func(c *kubeletCase) {
			c.mac.Others = map[string]string{"system/com.example.shipper": "\tprogram = /usr/bin/tail\n\tpid = 70\n"}
		}, ""},
		{"second-kubelet of the next boot", func(c *kubeletCase) { c.mac.Plists = "/Library/LaunchDaemons/com.example.node.plist\n" }, "refused second-kubelet"},
		{"second-kubelet by hand", func(c *kubeletCase) { c.mac.Processes += "99 1 02:00 /opt/tart-kubelet\n" }, "refused second-kubelet"},
		{"a legacy job", func(c *kubeletCase) {
			c.mac.Plists = "/Library/LaunchDaemons/com.example.node.plist\n"
			c.want(func(s *fleet.Spec) { s.TartKubelet.Legacy = []string{"com.example.node"} })
		}, "second-kubelet run kick"},
		{"btm-disallowed", func(c *kubeletCase) {
			c.mac.Background = "         Disposition: [enabled, disallowed, notified] (0x9)\n"
		}, "refused btm-disallowed"},
		{"btm-disallowed and dead", func(c *kubeletCase) {
			c.mac.Background, c.mac.Job, c.mac.Processes = "         Disposition: [enabled, disallowed, notified] (0x9)\n", 113, ""
		}, "kubelet-not-loaded run load, refused btm-disallowed"},
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
			c.host.LabelPrefix = "acme.dev"
			c.mac = c.mac.Labelled("acme.dev/fleet=macos,acme.dev/group=m2")
			c.node(func(n *inventory.Node) {
				n.Labels["acme.dev/fleet"], n.Labels["acme.dev/group"] = "runners", "m2"
			})
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
		}, "token-revoked kubeconfig, token-revoked run kick"},
		{"a Node without its zone", func(c *kubeletCase) { c.node(func(n *inventory.Node) { n.Labels = nil }) }, "watches node-labels-differ"},
		{"labels differ on a Node that is not Ready", func(c *kubeletCase) {
			c.host.LabelPrefix = "acme.dev"
			c.mac = c.mac.Labelled("acme.dev/fleet=macos,acme.dev/group=m2")
			c.node(func(n *inventory.Node) { n.Labels, n.Ready = nil, inventory.NotReady })
		}, "node-not-ready kubeconfig, node-not-ready run kick"},
		{"orphan-vm", func(c *kubeletCase) { c.mac.Machines = vm("bake", "tuist-golden-0123456789abcdef") }, "warns orphan-vm"},
		{"a machine of a Pod", func(c *kubeletCase) {
			c.mac.Machines = vm("ci-a")
			c.view.Pods = inventory.Present([]inventory.Pod{{Namespace: "ci", Name: "a"}})
		}, ""},
		{"no one knows the Pods", func(c *kubeletCase) {
			c.mac.Machines = vm("bake")
			c.view.Pods = inventory.Unread[[]inventory.Pod]("timeout")
		}, ""},
		{"a builder's machines", func(c *kubeletCase) {
			c.want(builder)
			c.mac = c.mac.WithArgs("--disable-vm-gc")
			c.mac.Machines = vm("bake")
		}, ""},
		{"a host becomes a builder", func(c *kubeletCase) { c.want(builder) }, "gc-on-builder run load"},
		{"a builder no more", func(c *kubeletCase) {
			c.mac = c.mac.WithArgs("--disable-vm-gc")
			c.mac.Machines = vm("bake")
		}, "plist-changed-under-job run load"},
		{"a builder no more that pushes", func(c *kubeletCase) {
			c.mac = c.mac.WithArgs("--disable-vm-gc")
			c.mac.Machines, c.mac.Work = vm("bake"), "77 push bake\n"
		}, "plist-changed-under-job run load, busy"},
		{"a busy runner", func(c *kubeletCase) { c.mac.Work, c.mac.Receipt = "77 run ci-a\n", "" }, "kubelet-unknown binary, kubelet-unknown run ask"},
		{"no room for Pods", func(c *kubeletCase) { c.mac.Hardware = "2\n17179869184\n" }, "plist-changed-under-job run load, refused reserve-too-large"},
		{"no artifact", func(c *kubeletCase) { c.want(func(s *fleet.Spec) { s.TartKubelet.Artifact = nil }) }, "kubelet-outdated binary, kubelet-outdated run ask, refused artifact-missing"},
	}
}

func TestKubeletIncidents(t *testing.T) {
	t.Parallel()
	for _, tc := range kubeletCases() {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := newKubeletCase()
			tc.edit(c)
			f := c.finding(t)
			if got := stepstest.Brief(f); got != tc.want {
				t.Errorf("%s\nwant %s\n%+v", got, tc.want, stepstest.FieldsOf(f))
			}
			for _, w := range f.Watched {
				f.Warnings = append(f.Warnings, w.Trouble)
			}
			for _, trouble := range append(f.Warnings, refusals(f)...) {
				if trouble.Text == "" || trouble.Remedy == "" {
					t.Errorf("%+v", trouble)
				}
			}
		})
	}
}

func refusals(f plan.Finding) []plan.Trouble {
	if f.Refused == nil {
		return nil
	}
	return []plan.Trouble{*f.Refused}
}

// identity edits what the cluster knows of the host's kubelet.
func (c *kubeletCase) identity(edit func(*inventory.Identity)) {
	i, _ := c.view.Identity.Get()
	edit(&i)
	c.view.Identity = inventory.Present(i)
}
