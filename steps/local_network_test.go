package steps_test

import (
	"strings"
	"testing"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/scripttest"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/stepstest"
)

// TestLocalNetwork: what was seen of the list of networks that jobs may reach, and what follows, by the version of macOS.
func TestLocalNetwork(t *testing.T) {
	t.Parallel()
	const at64, at2 = "inet 192.168.64.1 netmask 0xffffff00 broadcast 192.168.64.255", "inet 192.168.2.1 netmask 0xffffff00 broadcast 192.168.2.255"
	settled := stepstest.LocalNetwork{Wired: "192.168.64.0/24", Radio: "192.168.64.0/24", Written: 1762999000}
	running := settled
	const seven = "? (192.168.64.7) at 5e:e9:1e:0:53:7 on bridge100 ifscope [bridge]\n"
	running.Bridge, running.Neighbours = at64, seven
	type network = stepstest.LocalNetwork
	with := func(base network, change func(*network)) network {
		change(&base)
		return base
	}
	reached := func(line string) stepstest.LocalNetwork {
		return with(running, func(l *network) { l.Reached = line })
	}
	for name, tc := range map[string]struct {
		os     string
		seen   stepstest.LocalNetwork
		subnet string
		want   string
	}{
		"in sync":                        {"26.3", settled, "", ""},
		"a new Mac":                      {"26.3", stepstest.LocalNetwork{}, "", "set 192.168.64.0/24, restart"},
		"written, and not restarted":     {"26.3", with(settled, func(l *network) { l.Written = 1763000100 }), "", "restart"},
		"one of the lists":               {"26.3", with(settled, func(l *network) { l.Radio = "" }), "", "set 192.168.64.0/24, restart"},
		"a wider network":                {"26.3", with(settled, func(l *network) { l.Wired, l.Radio = "10.0.0.0/8 192.168.0.0/16", "192.168.0.0/16" }), "", ""},
		"others' networks stay":          {"26.3", with(settled, func(l *network) { l.Wired, l.Radio = "10.0.0.0/8", "10.0.0.0/8" }), "", "set 192.168.64.0/24 10.0.0.0/8, restart"},
		"another subnet is configured":   {"26.3", settled, "192.168.2.0/24", "set 192.168.2.0/24 192.168.64.0/24, restart"},
		"15.5":                           {"15.5", stepstest.LocalNetwork{}, "", "set 192.168.64.0/24, restart"},
		"15.4.1 has only the click":      {"15.4.1", stepstest.LocalNetwork{}, "", "warns local-network-click"},
		"15.2, and someone clicked":      {"15.2", with(running, func(l *network) { l.Reached = "allowed 1 192.168.64.7" }), "", "verify 1763000000 192.168.64.7"},
		"15.2, and a job reached one":    {"15.2", reached("allowed 1763000000 192.168.64.7"), "", ""},
		"14":                             {"14.7", stepstest.LocalNetwork{}, "", ""},
		"an unknown version":             {"", stepstest.LocalNetwork{}, "", "set 192.168.64.0/24, restart"},
		"27":                             {"27.0", settled, "", "warns local-network-unproven"},
		"27 without the list":            {"27.0", stepstest.LocalNetwork{}, "", "set 192.168.64.0/24, restart"},
		"27, and a job reached one":      {"27.0", reached("allowed 1763000000 192.168.64.7"), "", ""},
		"27, and one was reached before": {"27.0", reached("allowed 1762000000 192.168.64.7"), "", "verify 1763000000 192.168.64.7, warns local-network-unproven"},
		"a machine runs":                 {"26.3", running, "", "verify 1763000000 192.168.64.7"},
		"a machine ran":                  {"26.3", with(running, func(l *network) { l.Neighbours = "" }), "", ""},
		"one does not answer": {"26.3", with(running, func(l *network) {
			l.Neighbours = "? (192.168.64.7) at (incomplete) on bridge100 ifscope [bridge]\n"
		}), "", ""},
		"the host itself, and everyone": {"26.3", with(running, func(l *network) {
			l.Neighbours = "? (192.168.64.1) at 5e:e9:1e:0:53:1 on bridge100 ifscope permanent [bridge]\n? (192.168.64.255) at ff:ff:ff:ff:ff:ff on bridge100 ifscope [bridge]\n"
		}), "", ""},
		"two machines":                          {"26.3", with(running, func(l *network) { l.Neighbours = strings.Replace(seven, "64.7", "64.9", 1) + seven }), "", "verify 1763000000 192.168.64.7 192.168.64.9"},
		"reached":                               {"26.3", reached("allowed 1763000000 192.168.64.7"), "", ""},
		"reached before the restart":            {"26.3", reached("allowed 1762000000 192.168.64.7"), "", "verify 1763000000 192.168.64.7"},
		"denied":                                {"26.3", reached("denied 1763000000 192.168.64.7"), "", "verify 1763000000 192.168.64.7, warns local-network-denied"},
		"denied before the restart":             {"26.3", reached("denied 1762000000 192.168.64.7"), "", "verify 1763000000 192.168.64.7"},
		"none answered":                         {"26.3", reached("none 1763000000 192.168.64.7"), "", ""},
		"none answered, and there is a new one": {"26.3", reached("none 1763000000 192.168.64.8"), "", "verify 1763000000 192.168.64.7"},
		"a file of another":                     {"26.3", reached("rubbish"), "", "verify 1763000000 192.168.64.7"},
		"another network":                       {"26.3", with(running, func(l *network) { l.Bridge = at2 }), "", "refused subnet-moved"},
		"another network, as configured":        {"26.3", with(running, func(l *network) { l.Bridge = at2 }), "192.168.2.0/24", "set 192.168.2.0/24 192.168.64.0/24, restart"},
	} {
		spec := fleet.Spec{LocalNetwork: &fleet.LocalNetwork{}}
		if tc.subnet != "" {
			spec.LocalNetwork.Subnet = &tc.subnet
		}
		v := plan.View{Host: stepstest.Host(spec), Root: true, OSVersion: tc.os, Facts: plan.Facts{"local_network.state": inventory.Present(tc.seen.Answer())}}
		f := stepstest.Find(t, "local_network", v)
		got := stepstest.Lines(f, func(c plan.Change) string {
			return strings.TrimPrefix(c.Command.Name, "local_network-") + " " + strings.Replace(strings.Join(c.Command.Args, " "), " /Users/m1/.macfleet-local-network", "", 1)
		})
		if f.Restart != nil {
			got = append(got, "restart")
		}
		stepstest.Expect(t, name, tc.want, strings.Join(got, ", "))
	}
}

// TestLocalNetworkBeforeRoot: a new host restarts in the run that sets it up, before anything else of it is known.
func TestLocalNetworkBeforeRoot(t *testing.T) {
	t.Parallel()
	for os, restarts := range map[string]bool{"26.3": true, "15.5": true, "15.2": false, "14.7": false} {
		v := plan.View{Host: stepstest.Host(fleet.Spec{LocalNetwork: &fleet.LocalNetwork{}}), OSVersion: os,
			Facts: plan.Facts{"local_network.state": inventory.Unread[plan.Answer](plan.NeedsRoot)}}
		f := stepstest.StepOf(t, "local_network", v.Host).Diff(v)
		if (f.Restart != nil) != restarts {
			t.Errorf("macOS %s: restart %v", os, f.Restart)
		}
	}
}

// TestReached: a job's result says what the connections came to; one success is enough.
func TestReached(t *testing.T) {
	t.Parallel()
	scripttest.InShells(t, func(t *testing.T, shell []string) {
		m := scripttest.New(t, shell, "/Users")
		m.Folders("/Users/m1")
		m.Tool("nc", `for a; do host=$port port=$a; done; cat "$STATE/${host##*.}" >&2; exit 1`)
		v := plan.View{Host: stepstest.Host(fleet.Spec{LocalNetwork: &fleet.LocalNetwork{}}), Root: true, OSVersion: "26.3",
			Facts: plan.Facts{"local_network.state": inventory.Present(stepstest.LocalNetwork{Wired: "192.168.64.0/24", Radio: "192.168.64.0/24", Written: 1,
				Neighbours: "? (192.168.64.7) at 5e:e9:1e:0:53:7 on bridge100 ifscope [bridge]\n? (192.168.64.8) at 5e:e9:1e:0:53:8 on bridge100 ifscope [bridge]\n",
				Bridge:     "inet 192.168.64.1 netmask 0xffffff00 broadcast 192.168.64.255"}.Answer())}}
		c := stepstest.StepOf(t, "local_network", v.Host).Diff(v).Changes[0].Command
		c.Args[1] = m.Path(c.Args[1])
		const succeeded, denied, away = "Connection to host port 22 [tcp/ssh] succeeded!", "nc: connectx to host port 22 (tcp) failed: No route to host", "failed: Operation timed out"
		for _, tc := range []struct{ seven, eight, want string }{
			{succeeded, succeeded, "allowed"}, {denied, denied, "denied"}, {denied, succeeded, "allowed"}, {succeeded, denied, "allowed"},
			{away, away, "none"}, {away, denied, "denied"}, {"failed: Connection refused", away, "allowed"},
		} {
			m.Set("7", tc.seven)
			m.Set("8", tc.eight)
			a := m.Run(c, "")
			if got := strings.TrimSpace(m.Read("/Users/m1/.macfleet-local-network")); got != tc.want+" 1763000000 192.168.64.7 192.168.64.8" || (a.Exit != 0) != (tc.want == "denied") {
				t.Errorf("%v: exit code %d, %q; %s", tc, a.Exit, got, a.Stderr)
			}
		}
	})
}
