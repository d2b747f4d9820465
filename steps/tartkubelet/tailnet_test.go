package tartkubelet_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/scripttest"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/boundary"
	"github.com/macfleet/macfleet/steps/stepstest"
)

const (
	inTailnet      = "--node-ip-source=tailscale"
	tailnetAddress = "100.64.0.7"
)

// tailnetCase is a host whose kubelet serves metrics in the tailnet only.
type tailnetCase struct {
	*kubeletCase
	sockets []string
	address string
}

func newTailnetCase() *tailnetCase {
	c := &tailnetCase{newKubeletCase(), []string{tailnetAddress + ".8080", tailnetAddress + ".9091"}, tailnetAddress}
	c.want(func(s *fleet.Spec) { s.Tailscale = &fleet.Tailscale{} })
	c.mac = c.mac.WithArgs(inTailnet)
	c.node(func(n *inventory.Node) { n.InternalIP = tailnetAddress })
	return c
}

func (c *tailnetCase) find(t *testing.T) plan.Finding {
	t.Helper()
	c.view.Peers = []plan.HostPeer{{Peer: inventory.TailnetService, Seen: &plan.PeerSeen{Listing: inventory.Listing{Tailnet: &inventory.Tailnet{Devices: []inventory.Device{{ID: "n1", Name: ownName, Addresses: []string{c.address}}}}}}}}
	var sockets strings.Builder
	for _, one := range c.sockets {
		sockets.WriteString("tcp4       0      0  " + one + "        *.*                    LISTEN\n")
	}
	c.more = plan.Facts{boundary.Probe().ID: inventory.Present(stepstest.Said(sockets.String() + "\n== listeners 0\n" + c.address + "\n== address 0\n\n== end\n"))}
	return c.finding(t)
}

// TestInTheTailnet: where the kubelet's ports are open, which address its Node has, and what follows.
func TestInTheTailnet(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		edit func(*tailnetCase)
		want []string // code, script and words of the reason
	}{
		"in sync":                           {func(*tailnetCase) {}, nil},
		"no VM has metrics":                 {func(c *tailnetCase) { c.sockets = c.sockets[:1] }, nil},
		"tailscaled's own listener":         {func(c *tailnetCase) { c.sockets = append(c.sockets, tailnetAddress+".49152", "*.41641") }, nil},
		"on loopback, too":                  {func(c *tailnetCase) { c.sockets = append(c.sockets, "127.0.0.1.8080") }, nil},
		"8080 on every address":             {func(c *tailnetCase) { c.sockets = []string{"*.8080"} }, []string{"metrics-on-public", "8080", "every address"}},
		"9091 on the public address":        {func(c *tailnetCase) { c.sockets[1] = "192.0.2.10.9091" }, []string{"metrics-on-public", "9091", "192.0.2.10"}},
		"at a former address":               {func(c *tailnetCase) { c.address = "100.64.0.8" }, []string{"node-ip-not-tailnet", tailnetAddress}},
		"the Node has the public address":   {func(c *tailnetCase) { c.node(func(n *inventory.Node) { n.InternalIP = "192.0.2.10" }) }, []string{"node-ip-not-tailnet", "192.0.2.10", tailnetAddress}},
		"the Node's address is not known":   {func(c *tailnetCase) { c.node(func(n *inventory.Node) { n.InternalIP = "" }) }, nil},
		"the host's address is not known":   {func(c *tailnetCase) { c.address, c.sockets = "", nil }, nil},
		"joined since the kubelet was made": {func(c *tailnetCase) { c.mac = stepstest.SettledKubelet(ownName) }, []string{"plist-changed-under-job"}},
	} {
		c := newTailnetCase()
		tc.edit(c)
		f := c.find(t)
		if len(tc.want) == 0 {
			stepstest.Expect(t, name, "", stepstest.Brief(f))
			continue
		}
		if len(f.Changes) != 1 || f.Changes[0].Command.Name != "tart_kubelet-run" || f.Changes[0].Reason.Code.String() != tc.want[0] ||
			slices.ContainsFunc(tc.want[1:], func(word string) bool { return !strings.Contains(f.Changes[0].Reason.Text, word) }) {
			t.Errorf("%s: want %v, got %s", name, tc.want, stepstest.Brief(f))
			continue
		}
		if plist := f.Changes[0].Command.Args[1]; strings.Count(plist, "<string>"+inTailnet+"</string>") != 1 {
			t.Errorf("%s: the job is\n%s", name, plist)
		}
	}
}

const ownName = stepstest.Name // tables shadow name

// TestAYoungKubeletHasNotReportedYet: its Node still has the address that the one before it reported.
func TestAYoungKubeletHasNotReportedYet(t *testing.T) {
	t.Parallel()
	c := newTailnetCase()
	c.mac.Processes = young
	c.heard(-time.Minute)
	c.node(func(n *inventory.Node) { n.InternalIP = "192.0.2.10" })
	for _, change := range c.find(t).Changes {
		if change.Reason.Code.String() == "node-ip-not-tailnet" {
			t.Error("it is restarted again before it could report")
		}
	}
}

// TestOutsideATailnetNothingIsDifferent: such a host has neither the flag, nor the probe, nor the script's first lines.
func TestOutsideATailnetNothingIsDifferent(t *testing.T) {
	t.Parallel()
	c := newKubeletCase()
	c.mac = c.mac.WithArgs(inTailnet) // it has left
	f := c.finding(t)
	if len(f.Changes) != 1 || strings.Contains(f.Changes[0].Command.Args[1], inTailnet) || strings.Contains(f.Changes[0].Command.Script, "tailscale") {
		t.Errorf("a host that left: %s", stepstest.Brief(f))
	}
	for _, p := range stepstest.StepOf(t, kubeletID, c.host).Probes() {
		if p.ID == boundary.Probe().ID {
			t.Error("the boundary is probed")
		}
	}
}

// TestTheKubeletWaitsForTheTailnet: the run of one step does not put the flag on a host that has not joined.
func TestTheKubeletWaitsForTheTailnet(t *testing.T) {
	t.Parallel()
	c := newTailnetCase()
	c.mac = stepstest.SettledKubelet(ownName)
	change := c.find(t).Changes[0]
	scripttest.InShells(t, func(t *testing.T, shell []string) {
		for _, wait := range []string{"0", "1", "no tailscale"} {
			m := scripttest.New(t, shell, "/usr/local", "/etc/macfleet", "/Library", "/var/log", "/var/lib")
			m.Folders("/usr/local/lib/macfleet", "/Library/LaunchDaemons", "/var/log", "/var/lib")
			for _, tool := range []string{"chown", "sync", "codesign", "shasum"} {
				m.Tool(tool, "exit 0")
			}
			m.Tool("launchctl", `echo "$*" >>"$STATE/launchctl"; exit 1`)
			m.Tool("sleep", "exit 0")
			if wait != "no tailscale" {
				scripttest.Write(t, m.Path("/usr/local/bin/tailscale"), "#!/bin/sh\necho \"$*\" >\"$STATE/asked\"\nexit "+wait+"\n", 0o755)
			}
			a := m.Run(change.Command, "")
			if started := m.Kept("launchctl") != "no file"; started != (wait == "0") {
				t.Errorf("%s: launchctl was used: %v; %s", wait, started, a.Stderr)
			}
			if wait != "0" && (a.Exit == 0 || !strings.Contains(a.Stderr, "not in the tailnet") || m.Read("/Library/LaunchDaemons/dev.macfleet.tart-kubelet.plist") != "no file") {
				t.Errorf("%s: exit code %d, %s", wait, a.Exit, a.Stderr)
			}
			if wait != "no tailscale" && !strings.HasPrefix(m.Kept("asked"), "wait --timeout=") {
				t.Errorf("%s: tailscale was run with %q", wait, m.Kept("asked"))
			}
		}
	})
}
