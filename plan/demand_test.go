package plan_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/plan"
)

// TestLeave multiplies what a group can be: no host leaves unless replicas was lowered, a run started to release it, or a person gave a number.
func TestLeave(t *testing.T) {
	t.Parallel()
	cases := 0
	for members := range 6 {
		for quarantined := range min(members, 2) + 1 {
			for replicas := range 6 {
				for before := range 7 {
					for started := range min(members, 2) + 1 {
						for released := -1; released < 3; released++ {
							c := plan.Crowd{Members: members, Serving: members - quarantined, Replicas: replicas, Before: before, Started: started, Released: released}
							typedOnly, more, surplus := c.Leave()
							leave := typedOnly + more
							tooMany := members - replicas
							if tooMany < 0 || replicas > 0 && members-quarantined <= replicas {
								tooMany = 0
							}
							typed := max(0, released)
							lowered := 0
							if before > replicas { // then the quarantined ones, whose places others have, leave too
								lowered = before - replicas + quarantined
							}
							typed += max(lowered, started)
							if typedOnly != min(tooMany, max(lowered, started)) {
								t.Errorf("%+v: %d leave for a typed cause", c, typedOnly)
							}
							if want := min(tooMany, typed); leave != want || surplus != tooMany-want {
								t.Errorf("%+v: %d leave, %d are surplus; want %d and %d", c, leave, surplus, want, tooMany-want)
							}
							cases++
						}
					}
				}
			}
		}
	}
	if cases != 6888 {
		t.Error(cases, "cases")
	}
}

// TestSurplus: a host leaves because replicas was lowered, and for no other reason. What is surplus is drift, and the host stays.
func TestSurplus(t *testing.T) {
	t.Parallel()
	sized := func(w *world, n int, size string) {
		w.pin(n, w.cfg.HostName("macos", "m2", serverID(n)))
		w.snap.Pins[len(w.snap.Pins)-1].GroupSize = size
	}
	all := func(size string) func(*world) {
		return func(w *world) {
			for n := 1; n <= 3; n++ {
				sized(w, n, size)
			}
		}
	}
	for name, tc := range map[string]struct {
		change         func(*world)
		leave, surplus int
	}{
		"lowered":                         {all("macos.m2=3"), 1, 0},
		"lowered from more":               {all("macos.m2=9"), 1, 0},
		"not lowered":                     {all("macos.m2=2"), 0, 1},
		"one pin knows a lower number":    {func(w *world) { all("macos.m2=3")(w); sized(w, 1, "macos.m2=2") }, 0, 1},
		"only one pin knows":              {func(w *world) { sized(w, 2, "macos.m2=3") }, 1, 0},
		"no pin knows":                    {func(*world) {}, 0, 1},
		"of the group that it moved from": {all("runners.m2=5"), 0, 1},
		"of a group with a longer name":   {all("macos.m2=x=5"), 0, 1},
		"a person releases one":           {func(w *world) { w.sel.ReleaseSurplus = 1 }, 1, 0},
		"a person releases more":          {func(w *world) { w.sel.ReleaseSurplus = 7 }, 1, 0},
		"a run started with one":          {func(w *world) { sized(w, 2, ""); w.snap.Pins[0].Stage = plan.Leaving }, 1, 0},
		"only some steps":                 {func(w *world) { w.sel.Steps = []plan.StepID{"alpha"}; w.sel.ReleaseSurplus = 1 }, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := members(2, 3)
			w.sel.ReleaseSurplus = 0
			tc.change(w)
			p := w.plan(t)
			leave, surplus := 0, 0
			for _, h := range p.Hosts {
				if h.Leaves {
					leave++
				}
				for _, x := range h.Warnings {
					if x.Code.String() == "surplus" {
						surplus++
						explained(t, &x.Trouble)
						if !x.Drift || len(x.Fields) != 1 || x.Fields[0].Before != "3" || x.Fields[0].After != "2" || h.Leaves {
							t.Errorf("%+v", x)
						}
					}
				}
			}
			if leave != tc.leave || surplus != tc.surplus {
				t.Errorf("%d leave, %d are surplus", leave, surplus)
			}
		})
	}
}

// TestSurplusOfTwoGroups: the number that a person gives is for all groups together.
func TestSurplusOfTwoGroups(t *testing.T) {
	t.Parallel()
	for released, want := range []int{0, 1, 2, 3, 3} {
		w := newWorld(1, 0, 1)
		for n := 1; n <= 3; n++ {
			w.member("macos", "m2", n)
		}
		w.member("runners", "m2", 4)
		w.member("runners", "m2", 5)
		w.sel.ReleaseSurplus = released
		leave := 0
		for _, h := range w.plan(t).Hosts {
			if h.Leaves {
				leave++
			}
		}
		if leave != want {
			t.Errorf("%d released: %d leave", released, leave)
		}
	}
}

// TestListedIntoAFullGroup: a host block or a moved block that fills a group too much erases nothing.
func TestListedIntoAFullGroup(t *testing.T) {
	t.Parallel()
	w := members(2, 2)
	w.sel.ReleaseSurplus = 0
	w.server(7, "mini-7")
	w.hosts[serverID(7)] = clean(7)
	w.cfg.Hosts = []fleet.Listed{{Name: "mini-7", Fleet: "macos", Group: "m2", ServerID: serverID(7)}}
	for n := 1; n <= 2; n++ {
		w.pin(n, w.cfg.HostName("macos", "m2", serverID(n)))
		w.snap.Pins[n-1].GroupSize = "macos.m2=2"
	}
	p := w.plan(t)
	for _, a := range p.Actions {
		if a.Disruption == plan.Wipe {
			t.Errorf("%s of %s", a.Kind, a.Host)
		}
	}
	if pins, changed := p.Resized(w.snap.Pins); changed {
		t.Errorf("the size of a group that has too many is noted: %+v", pins)
	}
}

// TestResized: the pins of members note the size of a group that has no more hosts than configured, those of others nothing.
func TestResized(t *testing.T) {
	t.Parallel()
	for replicas, want := range map[int]string{1: "macos.m2=9", 2: "macos.m2=2", 3: "macos.m2=3"} {
		w := members(replicas, 2)
		for n := 1; n <= 2; n++ {
			w.pin(n, w.cfg.HostName("macos", "m2", serverID(n)))
			w.snap.Pins[n-1].GroupSize = "macos.m2=9"
		}
		w.pin(8, "another")
		going := w.snap.Pins[0]
		going.Stage, going.GroupSize = plan.Wiping, ""
		pins, changed := w.plan(t).Resized(append(slices.Clone(w.snap.Pins), going))
		got := fmt.Sprint(pins[0].GroupSize, " ", pins[1].GroupSize, " ", pins[2].GroupSize, " ", pins[3].GroupSize, " ", changed)
		if full := fmt.Sprint(want, " ", want, "   ", want != "macos.m2=9"); got != full {
			t.Errorf("replicas %d: %q, want %q", replicas, got, full)
		}
		if _, again := w.plan(t).Resized(pins); again {
			t.Error("a second time changes it again")
		}
	}
}
