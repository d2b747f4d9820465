package hosts

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

func TestEnterLeft(t *testing.T) {
	t.Parallel()
	at := time.Unix(1794000000, 0).UTC()
	for name, c := range map[string]struct {
		text string
		want plan.HostSeen
	}{
		"nothing": {"", plan.HostSeen{}},
		"all": {"pending power\npending vm_firewall\nundone step vm_firewall\nundone id 7\nundone when 1794000000\nundone why no confirmation within 60 s\n" +
			"undone exit 1\nrefused scrypt:AAAA refused 1 1794000000\nrefused scrypt:BBBB trying 2 1794000000\n",
			plan.HostSeen{Pending: []plan.StepID{"power", "vm_firewall"},
				Undone:   &plan.Undone{Step: "vm_firewall", At: at, Why: "no confirmation within 60 s", Exit: 1},
				Refusals: []plan.Refusal{{Seal: "scrypt:AAAA", Refused: true, Tries: 1, At: at}, {Seal: "scrypt:BBBB", Tries: 2, At: at}}}},
		"rubbish": {"refused\nrefused a b c d\nrefused a refused 1\nundone why\nsomething else\n\n", plan.HostSeen{}},
	} {
		seen := plan.HostSeen{Facts: plan.Facts{left: inventory.Present(plan.Answer{Stdout: c.text})}}
		enterLeft(&seen)
		if len(seen.Facts) > 0 {
			t.Errorf("%s: what a refused password is known by stayed among the facts", name)
		}
		seen.Facts = nil
		if diff := cmp.Diff(c.want, seen, cmp.Comparer(func(a, b inventory.Seen[string]) bool { return true }),
			cmp.Comparer(func(a, b inventory.Seen[plan.Marker]) bool { return true }), cmp.Comparer(func(a, b inventory.Seen[plan.Claim]) bool { return true })); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
