package view

import (
	"testing"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/plan"
)

// TestFixesOfSeveralHostsCanBePasted: a fix that several hosts share names hosts or selects them, and never says NAME.
func TestFixesOfSeveralHostsCanBePasted(t *testing.T) {
	t.Parallel()
	all := []string{"acme-production-runners-m2-00001", "acme-production-runners-m2-00002", "acme-production-runners-m2-00003", "acme-production-runners-m2-00004"}
	names := plan.NewNames(fleet.Owner{Name: "acme", Environment: "production"}, all)
	for _, test := range []struct {
		fix, fleet string
		hosts      int
		want       string
	}{
		{"macfleet apply --on name=NAME", "", 1, "macfleet apply --on name=00001"},
		{"run macfleet apply --on name=NAME (renames it)", "", 2, "run macfleet apply --on name=00001 --on name=00002 (renames it)"},
		{"macfleet apply --on name=NAME", "runners", 4, "macfleet apply --on fleet=runners"},
		{"macfleet apply --on name=NAME", "", 4, "macfleet apply"},
		{"macfleet apply --rollback --on name=NAME", "", 4, "macfleet apply --rollback --on name=00001 --on name=00002 --on name=00003 --on name=00004"},
		{"macfleet apply --on name=NAME --moved-from-cluster U", "runners", 4, "macfleet apply --on fleet=runners --moved-from-cluster U"},
		{"macfleet apply --on name=NAME --ask-password NAME", "", 2, "macfleet apply --on name=00001 --on name=00002 --ask-password 00001 --ask-password 00002"},
		{"macfleet hosts forget-key NAME; or not", "", 3, "macfleet hosts forget-key 00001 00002 00003; or not"},
		{"macfleet hosts forget-key NAME", "runners", 4, "macfleet hosts forget-key 00001; the same for the other 3 hosts"},
		{"macfleet unhold NAME", "runners", 4, "macfleet unhold fleet=runners"},
		{"kubectl uncordon NAME; macfleet cordon --undo NAME", "", 2, "kubectl uncordon " + all[0] + " " + all[1] + "; macfleet cordon --undo 00001 00002"},
		{"macfleet doctor NAME", "", 2, "macfleet doctor 00001; the same for the other 1 host"},
		{"macfleet replace NAME, or wait", "", 2, "macfleet replace 00001, or wait; the same for the other 1 host"},
		{"macfleet replace --cancel NAME", "", 2, "macfleet replace --cancel 00001; the same for the other 1 host"},
		{"macfleet reboot NAME --force-busy NAME", "runners", 4, "macfleet reboot 00001 --force-busy 00001; the same for the other 3 hosts"},
		{"macfleet release NAME", "", 2, "macfleet release " + all[0] + "; the same for the other 1 host"},
		{"look at NAME", "", 4, "look at 00001, 00002, 00003, 00004"},
		{"wait", "", 4, "wait"},
	} {
		if got := fixForAll(test.fix, names, all[:test.hosts], test.fleet); got != test.want {
			t.Errorf("%s for %d hosts of %q:\n%s\nwant\n%s", test.fix, test.hosts, test.fleet, got, test.want)
		}
	}
}
