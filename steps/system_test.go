package steps_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/stepstest"
)

// TestSystem: what a Mac answers about updates, Spotlight and leases, and what follows.
func TestSystem(t *testing.T) {
	t.Parallel()
	var (
		updates   = []string{"automatic-updates-on", "system-set-updates", "root", "0"}
		spotlight = []string{"spotlight-on", "system-set-spotlight", "root", "off"}
		leases    = []string{"leases-too-long", "system-set-leases", "root", "600"}
		good      = stepstest.System("0", "600", "disabled")
		on        = fleet.System{AutomaticUpdates: new(true), Spotlight: new(true), AddressLease: new(86400)}
	)
	edited := func(a plan.Answer, from, to string) plan.Answer {
		return stepstest.Said(strings.Replace(a.Stdout, from, to, 1))
	}
	for name, tc := range map[string]struct {
		desired fleet.System
		seen    plan.Answer
		want    [][]string
	}{
		"in sync":               {fleet.System{}, good, nil},
		"as delivered":          {fleet.System{}, stepstest.System("1", "", "enabled"), [][]string{updates, spotlight, leases}},
		"one setting is on":     {fleet.System{}, edited(good, "CriticalUpdateInstall = 0", "CriticalUpdateInstall = 1"), [][]string{updates}},
		"one setting is unset":  {fleet.System{}, edited(good, "    AutomaticDownload = 0;\n", ""), [][]string{updates}},
		"apps are updated":      {fleet.System{}, edited(good, "0\n\n== apps 0", "1\n\n== apps 0"), [][]string{updates}},
		"nothing was ever set":  {fleet.System{}, edited(edited(good, "== updates 0", "== updates 1"), "AutomaticCheckEnabled = 0", "x"), [][]string{updates}},
		"one volume is indexed": {fleet.System{}, edited(good, "Indexing disabled", "Indexing enabled"), [][]string{spotlight}},
		"a day-long lease":      {fleet.System{}, stepstest.System("0", "86400", "disabled"), [][]string{leases}},
		"wanted on":             {on, stepstest.System("1", "86400", "enabled"), nil},
		"wanted on, and off":    {on, stepstest.System("0", "86400", "disabled"), [][]string{{"system-differs", "system-set-updates", "root", "1"}, {"system-differs", "system-set-spotlight", "root", "on"}}},
	} {
		f := stepstest.Diff(t, "system", fleet.Spec{System: &tc.desired}, stepstest.With(nil, map[string]plan.Answer{"system.state": tc.seen}))
		stepstest.Expect(t, name, tc.want, stepstest.ChangesOf(f))
	}
	for days, want := range map[int]bool{0: false, 44: false, 45: true, 49: true, 90: true} {
		seen := edited(good, "1763086400", strconv.Itoa(1763000000+days*86400+3600))
		f := stepstest.Diff(t, "system", fleet.Spec{System: &fleet.System{}}, stepstest.With(nil, map[string]plan.Answer{"system.state": seen}))
		if got := f.Restart != nil; got != want || len(f.Changes) > 0 || got && f.Restart.Code.String() != "uptime-49-days" {
			t.Errorf("after %d days: %+v", days, f)
		}
		if f := stepstest.Diff(t, "system", fleet.Spec{System: &fleet.System{RebootAfter: new(0)}}, stepstest.With(nil, map[string]plan.Answer{"system.state": seen})); f.Restart != nil {
			t.Errorf("without a limit, after %d days: %+v", days, f.Restart)
		}
	}
	for name, odd := range map[string]plan.Answer{
		"mdutil fails":         edited(good, "== spotlight 0", "== spotlight 1"),
		"an unknown state":     edited(edited(good, "Indexing disabled", "Indexing paused"), "Indexing disabled", "Indexing paused"),
		"no time of the start": edited(good, "sec = 1763000000", "sec = x"),
		"cut off":              stepstest.Said(good.Stdout[:len(good.Stdout)/2]),
		"90 days, and failed":  {Stdout: strings.Replace(good.Stdout, "1763086400", strconv.Itoa(1763000000+90*86400), 1), Exit: 1},
	} {
		f := stepstest.Diff(t, "system", fleet.Spec{System: &fleet.System{}}, stepstest.With(nil, map[string]plan.Answer{"system.state": odd}))
		stepstest.Expect(t, name, []string{"system.state"}, stepstest.UnreadOf(f))
		if f.Restart != nil {
			t.Errorf("%s: it restarts although something is unread: %+v", name, f.Restart)
		}
	}
}
