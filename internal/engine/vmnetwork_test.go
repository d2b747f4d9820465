package engine_test

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/sandbox"
	"github.com/macfleet/macfleet/internal/sandbox/mac"
	"github.com/macfleet/macfleet/plan"
)

// network is a host with virtual machines whose network is checked all the time.
type network struct {
	*testing.T
	w    *sandbox.World
	e    *engine.Engine
	mac  *mac.Machine
	host string

	mu      sync.Mutex
	running bool
	calls   []string // of pfctl, those that change something
	cut     []string // after which of them the network or pf was off
}

// newNetwork gives a host of the pool that a run is about to claim, with Tart and a session.
func newNetwork(t *testing.T, switches map[string]string) *network {
	t.Helper()
	w, _ := world(t, 3)
	c := config("production", 1)
	c.Fleets[0].Groups[0].Spec = fleet.Spec{VMFirewall: &fleet.VMFirewall{}}.WithBuiltIn().WithDefaults()
	n := &network{T: t, w: w, e: run(t, w, c)}
	n.host = planned(t, n.e).Hosts[0].Server.Name
	n.mac = macOf(t, w, n.host)
	for name, value := range switches {
		must(n.T, w.SetSwitch(n.host, name, value))
	}
	const app = "/usr/local/lib/tart.app/Contents/"
	for _, name := range []string{"MacOS/tart", "Info.plist", "embedded.provisionprofile", "_CodeSignature/CodeResources"} {
		must(n.T, n.mac.WriteFile(app+name, []byte("program=tart\nversion=2.32.1\n"), 0, 0, 0o755))
	}
	must(n.T, n.mac.LogIn())
	n.mac.Watch(n.look)
	return n
}

// look notes what the calls of pfctl before this tool have done.
func (n *network) look(argv []string, _ map[string]string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if online, err := n.mac.GuestsOnline(); n.running && (err != nil || !online) && len(n.calls) > 0 {
		n.cut = append(n.cut, n.calls[len(n.calls)-1])
	}
	if line := strings.Join(argv, " "); argv[0] == "pfctl" && !strings.Contains(line, " -s") && !strings.Contains(line, "-vs") {
		n.calls = append(n.calls, line)
	}
}

// starts and ends a virtual machine.
func (n *network) starts(name string) { n.Helper(); must(n.T, n.mac.StartVM(name)); n.runs(true) }
func (n *network) ends(name string)   { n.Helper(); n.runs(false); must(n.T, n.mac.RemoveVM(name)) }

func (n *network) runs(yes bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.running = yes
}

// is compares pf: enabled or not, how many references there are, and how many points of vmnet and of macfleet.
func (n *network) is(when, want string) {
	n.Helper()
	got := printed(n.T, n.mac, `pfctl -s info | head -n 1 | cut -d ' ' -f 2; pfctl -s References | tail -n +3 | wc -l | tr -d ' '
{ pfctl -sr; pfctl -sn; } | grep -c internet-sharing; pfctl -sr | grep -c '^anchor "macfleet"'`)
	online, err := n.mac.GuestsOnline()
	must(n.T, err)
	text := strings.Join(strings.Fields(got), " ")
	if online {
		text += " online"
	}
	if text != want {
		n.Errorf("%s pf is %s, want %s", when, text, want)
	}
}

// called counts calls of pfctl so far that begin so.
func (n *network) called(begin string) (count int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, line := range n.calls {
		if strings.HasPrefix(line, begin) {
			count++
		}
	}
	return count
}

// TestVirtualMachinesKeepTheirNetwork: a virtual machine has a network before, during and after the first apply of
// the firewall and a change of its rules; when it stops, pf continues, and the next one has a network too.
func TestVirtualMachinesKeepTheirNetwork(t *testing.T) {
	t.Parallel()
	for name, switches := range map[string]map[string]string{
		"as documented":            nil,
		"a full load would cut it": {"full-load-nat": "broken"},
		"nothing enables pf":       {"pf-after-boot": "disabled"},
		"vmnet needs a reference":  {"vmnet-without-references": "fails"},
		"it sends nothing":         {"guest-traffic": "none"},
	} {
		parallel(t, name, func(t *testing.T) {
			n := newNetwork(t, switches)
			others, three := "2", "3" // references
			if switches["pf-after-boot"] == "disabled" {
				others, three = "1", "2"
			}
			n.starts("one")
			n.is("before", "Enabled "+others+" 4 0 online")
			converges(t, n.e)
			n.is("after the first apply", "Enabled "+three+" 4 1 online")
			group := &n.e.Config.Fleets[0].Groups[0]
			group.Spec = fleet.Spec{VMFirewall: &fleet.VMFirewall{Block: []string{"10.0.0.0/8"}}}.WithBuiltIn().WithDefaults()
			converges(t, n.e)
			n.is("after other rules", "Enabled "+three+" 4 1 online")
			n.ends("one")
			// Of the points that were put back with what is scrubbed and filtered vmnet knows nothing. They lead to nothing.
			n.is("after the virtual machine's end", "Enabled "+others+" 2 1")
			n.starts("two")
			n.is("with the next one", "Enabled "+three+" 6 1 online")
			if p := planned(t, n.e); len(p.Actions) != 0 {
				t.Errorf("a plan then: %+v", p.Actions)
			}
			if len(n.cut) > 0 || n.called("pfctl -f") > 0 || n.called("pfctl -E") != 1 {
				t.Errorf("pf or the network was off after %q; of the calls %q", n.cut, n.calls)
			}
			group.Spec = fleet.Spec{}.WithBuiltIn()
			converges(t, n.e)
			n.is("without the firewall", "Enabled "+others+" 6 1 online")
		})
	}
}

// TestFullLoadWaitsForVirtualMachines: where macOS's own points are gone, only a load of the main ruleset brings them
// back. Virtual machines that nothing drains are waited for.
func TestFullLoadWaitsForVirtualMachines(t *testing.T) {
	t.Parallel()
	n := newNetwork(t, map[string]string{"vmnet-adds": "everything", "full-load-nat": "broken"})
	converges(t, n.e)
	n.starts("one")
	p := planned(t, n.e)
	if len(p.Actions) != 1 || p.Actions[0].Reason.Code.String() != "stock-anchors-missing" || p.Actions[0].Refusal == nil || p.Actions[0].Refusal.Code.String() != "waits-for-idle" {
		t.Fatalf("%+v", p.Actions)
	}
	if r := apply(t, n.e); r.Converged() || n.called("pfctl -f") > 0 {
		t.Errorf("the main ruleset was loaded under a virtual machine: %q", n.calls)
	}
	n.is("then", "Enabled 3 4 0 online")
	n.ends("one")
	converges(t, n.e)
	n.is("once it has ended", "Enabled 2 0 1")
}

// TestFullLoadAfterThePlan: a virtual machine starts after the plan of an idle host. The change ends as busy, nothing
// is loaded and nothing is taken back by a load.
func TestFullLoadAfterThePlan(t *testing.T) {
	t.Parallel()
	n := newNetwork(t, map[string]string{"full-load-nat": "broken"})
	converges(t, n.e)
	const text = "scrub-anchor \"com.apple/*\"\nrdr-anchor \"com.apple/*\"\nanchor \"com.apple/*\"\nanchor \"macfleet\"\n"
	must(n.T, n.mac.WriteFile("/tmp/rules", []byte(text), 0, 0, 0o644))
	printed(t, n.mac, "pfctl -f /tmp/rules")
	p := planned(t, n.e)
	if len(p.Actions) != 1 || p.Actions[0].Reason.Code.String() != "stock-anchors-missing" || p.Actions[0].Disruption != plan.NoDisruption {
		t.Fatalf("%+v", p.Actions)
	}
	n.starts("one")
	loads := n.called("pfctl -f")
	r := performed(t, n.e, p)
	if len(r.Failures) != 1 || !strings.Contains(r.Failures[0].Err.Error(), "virtual machines run") {
		t.Errorf("failures %+v", r.Failures)
	}
	if n.called("pfctl -f") != loads || len(n.cut) > 0 {
		t.Errorf("the main ruleset was loaded under a virtual machine: %q", n.calls)
	}
	n.ends("one")
	converges(t, n.e)
}

// TestFail2banDropsTheAnchor: a second writer of pf drops the anchor. The plan names it, and one apply brings the
// anchor back, without a load of the main ruleset and without a fight.
func TestFail2banDropsTheAnchor(t *testing.T) {
	t.Parallel()
	n := newNetwork(t, nil)
	n.starts("one")
	converges(t, n.e)
	n.runs(false) // fail2ban itself cuts the network
	must(n.T, n.w.Inject(planned(t, n.e).Hosts[0].Name, "fail2ban-reloads-pf"))
	p := planned(t, n.e)
	if len(p.Actions) != 1 || p.Actions[0].Reason.Code.String() != "unreferenced-anchor" || !strings.Contains(p.Actions[0].Reason.Text, "fail2ban") || p.Actions[0].Disruption != plan.NoDisruption {
		t.Fatalf("%+v", p.Actions)
	}
	if cut := codesOf(p, p.Hosts[0].Name); !slices.Contains(cut, "warning vm-network-cut") {
		t.Errorf("said is %q", cut)
	}
	if apply(t, n.e); n.called("pfctl -f") > 0 || n.called("pfctl -R") != 2 {
		t.Errorf("calls %q", n.calls)
	}
	n.ends("one")
	n.starts("two")
	n.is("with the next virtual machine", "Enabled 3 4 1 online")
	if p := planned(t, n.e); len(p.Actions) != 0 {
		t.Errorf("afterwards %+v", p.Actions)
	}
}
