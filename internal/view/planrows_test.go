package view_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/view"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/plan/plantest"
)

func shortPlan(p *plan.Plan) string {
	var b bytes.Buffer
	view.NewText(&b, 0, false).Plan(p, view.PlanForm{})
	return b.String()
}

func wantRows(t *testing.T, text string, rows ...string) {
	t.Helper()
	for _, want := range rows {
		has(t, text, want)
	}
}

// TestRowsFold: what differs only in what is a host's own is one row, also of hosts that are none of the plan.
func TestRowsFold(t *testing.T) {
	t.Parallel()
	p := &plan.Plan{Owner: fleet.Owner{Name: "acme", Environment: "production"}, Fleets: []string{"builders"}}
	for n, zone := range []string{"fr-par-1", "fr-par-3"} {
		h := member(n+1, "builders")
		a := power(h)
		a.Step, a.Drift = "tart_kubelet", false
		a.Reason.Code = plantest.Code("config-changed")
		a.Fields = []plan.Field{{Name: "--node-labels", Before: "bakes=true,type=M2-L,zone=" + zone, After: "bakes=false,type=M2-L,zone=" + zone},
			{Name: "--flags", Before: "a,b", After: "a,b,c"}, {Name: "--more", Before: "a,b", After: "a"}}
		p.Hosts, p.Actions = append(p.Hosts, h), append(p.Actions, a)
		lost := plan.Trouble{Code: plantest.Code("server-vanished"), Text: "it is not in the inventory", Remedy: "macfleet hosts forget-key " + member(n+6, "web").Name}
		p.Lost = append(p.Lost, plan.Lost{Name: member(n+6, "web").Name, Fleet: "web", Trouble: lost})
		p.Orphans = append(p.Orphans, plan.Orphan{Name: member(n+4, "web").Name, Fleet: "web", Server: numbered(n+4, "x"), Ready: "-",
			Trouble: plan.Trouble{Code: plantest.Code("orphaned-member"), Text: `fleet "web" is not in the configuration any more`, Remedy: "restore it"}})
		p.Strays = append(p.Strays, numbered(n+8, "mac-"+zone))
		p.Rejected = append(p.Rejected, plan.Rejected{Server: inventory.Server{ID: zone, Name: "acme-pool-" + zone}, Trouble: plan.Trouble{Code: plantest.Code("server-not-ready"), Text: "locked", Remedy: "wait"}})
	}
	wantRows(t, shortPlan(p), "  CONFIG     all 2 hosts  tart_kubelet: --node-labels bakes=true → bakes=false, --flags adds c, --more drops b  [config-changed]\n",
		"  ORPHANED   2 members ", "web: 00004, 00005", "  LOST       2 servers ", "fix: macfleet hosts forget-key 00006 00007\n", "  UNMANAGED  2 servers ", "  SKIPPED    2 servers ",
		"; 2 orphaned members\n")
}

// TestOneHostHasItsName: the short plan and the full one name the one host that a row is about.
func TestOneHostHasItsName(t *testing.T) {
	t.Parallel()
	h := member(1, "runners")
	a := power(h)
	a.Step, a.Fields = "hostname", []plan.Field{{Name: "ComputerName", Before: "old-name", After: h.Name}}
	p := &plan.Plan{Owner: fleet.Owner{Name: "acme", Environment: "production"}, Fleets: []string{"runners"}, Hosts: []plan.Host{h}, Actions: []plan.Action{a}}
	wantRows(t, shortPlan(p), "hostname: ComputerName old-name → "+h.Name+"  [")
	var b bytes.Buffer
	view.NewText(&b, 0, false).Plan(p, view.PlanForm{Full: true})
	wantRows(t, b.String(), "ComputerName: old-name → "+h.Name+"\n")
	other := member(2, "runners")
	a.Host, a.ServerID, a.Fields = other.Name, other.Server.ID, []plan.Field{{Name: "ComputerName", Before: "old-name", After: other.Name}}
	p.Hosts, p.Actions = append(p.Hosts, other), append(p.Actions, a)
	wantRows(t, shortPlan(p), "hostname: ComputerName old-name → its name  [")
}

// TestRowsNameEachFleet: of a row with many hosts every fleet has its first ones, and counts its own others.
func TestRowsNameEachFleet(t *testing.T) {
	t.Parallel()
	p := &plan.Plan{Owner: fleet.Owner{Name: "acme", Environment: "production"}, Fleets: []string{"macos", "runners", "builders"}}
	for n := 1; n <= 9; n++ {
		p.Hosts = append(p.Hosts, member(n, "macos"))
	}
	p.Hosts = append(p.Hosts, plan.Host{Name: "acme-production-runners-m2-0000d", Fleet: "runners", Server: numbered(20, "d"), Member: true},
		plan.Host{Name: "acme-production-builders-m2-0000e", Fleet: "builders", Server: numbered(21, "e"), Member: true})
	for _, h := range p.Hosts[:10] {
		p.Actions = append(p.Actions, power(h))
	}
	wantRows(t, shortPlan(p), "10 hosts ", " macos: 00001, 00002, 00003, 00004, 00005, 00006 and 3 more; runners: 0000d\n")
}

// TestDeferredShowsWhatWaits: a row of what waits for a later run says the difference and both codes.
func TestDeferredShowsWhatWaits(t *testing.T) {
	t.Parallel()
	h := member(1, "runners")
	a := power(h)
	a.Deferral = &plan.Trouble{Code: plantest.Code("too-many-disrupted"), Text: "one run drains at most 1", Remedy: "run apply again"}
	p := &plan.Plan{Owner: fleet.Owner{Name: "acme", Environment: "production"}, Fleets: []string{"runners"}, Hosts: []plan.Host{h}, Actions: []plan.Action{a}}
	wantRows(t, shortPlan(p), "  DEFERRED  ", "power: sleep 10 min → never; one run drains at most 1  [sleep-enabled, too-many-disrupted]\n", "1 host: 1 deferred, 0 in sync")
}

// TestRowOfSilentHostsNamesNoAddress: hosts that fail alike share a row, and their addresses say nothing there.
func TestRowOfSilentHostsNamesNoAddress(t *testing.T) {
	t.Parallel()
	p := &plan.Plan{Owner: fleet.Owner{Name: "acme", Environment: "production"}, Fleets: []string{"runners"}}
	for n, address := range []string{"198.51.100.4", "198.51.100.5"} {
		h := member(n+1, "runners")
		h.Unknown = &plan.Trouble{Code: plantest.Code("unreachable"), Text: "dial tcp " + address + ":22: connect: no route to host"}
		h.Converged = plan.NotCompared
		p.Hosts = append(p.Hosts, h)
	}
	wantRows(t, shortPlan(p), "all 2 hosts  no route to host  [unreachable]\n")
}

// TestRowsOfTheSameHostsNameThemOnce: two differences of the same hosts are two rows under one list of names.
func TestRowsOfTheSameHostsNameThemOnce(t *testing.T) {
	t.Parallel()
	p := &plan.Plan{Owner: fleet.Owner{Name: "acme", Environment: "production"}, Fleets: []string{"macos", "runners"}, Hosts: []plan.Host{member(9, "macos")}}
	for n := 1; n <= 2; n++ {
		h := member(n, "macos")
		other := power(h)
		other.Step, other.Fields = "hostname", []plan.Field{{Name: "ComputerName", Before: "Mac", After: "mini"}}
		p.Hosts, p.Actions = append(p.Hosts, h), append(p.Actions, power(h), other)
	}
	if text := shortPlan(p); strings.Count(text, "00001, 00002") != 1 || !strings.Contains(text, "ComputerName") {
		t.Errorf("the hosts are not named once:\n%s", text)
	}
}
