package plan_test

import (
	"strings"
	"testing"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/plan"
)

func TestSelectorsKnowListedHosts(t *testing.T) {
	t.Parallel()
	w := newWorld(3, 0, 0)
	w.outside(1, legacy)
	w.adopt(1, legacy)
	w.adopt(3, "acme-legacy-03") // which is missing
	w.member("macos", "m2", 2)
	for on, want := range map[string]string{"name=" + legacy: "1", "name=acme-legacy-*": "1", "fleet=macos": "1 2", "name=" + second: "2"} {
		w.sel.On = only(on)
		if err := plan.CheckSelection(w.cfg, w.snap, w.sel); err != nil {
			t.Error(err)
		}
		clear(w.snap.Hosts)
		p := w.plan(t)
		expect(t, on, want, strings.Join(each(p.Hosts, lastDigit), " "))
		if len(p.Lost) == 1 != (on != "name="+legacy && on != "name="+second) {
			t.Errorf("%s: lost %v", on, p.Lost)
		}
	}
	err := plan.CheckSelection(w.cfg, w.snap, plan.Selection{On: only("name=acme-legcy-01")})
	if err == nil || !strings.Contains(err.Error(), legacy) {
		t.Errorf("a mistyped name: %v", err)
	}
}

// TestOverride changes only one host.
func TestOverride(t *testing.T) {
	t.Parallel()
	w := members(4, 3)
	w.free(9)
	before := w.plan(t)
	w.list(fleet.Listed{Name: second, Fleet: "macos", Group: "m2", Spec: own(5)})
	after := w.plan(t)
	expect(t, "actions", append([]string{second + " alpha config-changed P"}, lines(before)...), lines(after))
	for i, h := range after.Hosts {
		if h.Name != second {
			expect(t, h.Name, before.Hosts[i], h)
		}
	}
	// A claim gets its name's block at once.
	w.list(fleet.Listed{Name: "acme-prod-macos-m2-00009", Fleet: "macos", Group: "m2", Spec: own(7)})
	p := w.compute()
	for _, a := range p.Actions {
		if a.Host == "acme-prod-macos-m2-00009" && a.Step == "alpha" && a.Fields[0].After != "7" {
			t.Errorf("the claimed host gets %+v", a.Fields)
		}
	}
	if len(p.Lost) != 0 {
		t.Errorf("lost %+v", p.Lost)
	}
}

// TestAdoptedHasItsOwnValues: the block of an adopted host may say more than its
// group.
func TestAdoptedHasItsOwnValues(t *testing.T) {
	t.Parallel()
	w := newWorld(2, 0, 0)
	w.adoptedMember(1, legacy)
	w.cfg.Hosts[0].Spec = own(5)
	w.member("macos", "m2", 2)
	expect(t, "actions", []string{legacy + " alpha config-changed P"}, lines(w.plan(t)))
}

// TestListedHostMissing: a block for a host that does not exist is not a clean fleet.
func TestListedHostMissing(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, remedy string }{
		{"acme-prod-macos-m2-00011", `did you mean "` + first + `"?`},
		{"acme-prod-macos-m2-fffff", "macfleet hosts -o name"}, // another machine is not a typing error
		{"zzz", "macfleet hosts -o name"},
	} {
		w := members(1, 1)
		w.list(fleet.Listed{Name: tc.name, Fleet: "macos", Group: "m2", Spec: own(5)})
		p := w.plan(t)
		if len(p.Actions) != 0 || len(p.Lost) != 1 {
			t.Fatalf("actions %v, lost %+v", lines(p), p.Lost)
		}
		l := p.Lost[0]
		explained(t, &l.Trouble)
		if l.Name != tc.name || l.Fleet != "macos" || l.Trouble.Code.String() != "listed-host-missing" || !strings.Contains(l.Trouble.Remedy, tc.remedy) {
			t.Errorf("lost %+v", l)
		}
		if p.Summarise().Complete() {
			t.Error("the plan calls itself complete")
		}
		w.sel.On = only("fleet=runners")
		if p = w.compute(); len(p.Lost) != 0 {
			t.Errorf("another fleet's run reports it: %+v", p.Lost)
		}
	}
	// One that vanished is lost already, and a witness knows it.
	w := newWorld(1, 0, 0)
	w.pin(1, first)
	w.list(fleet.Listed{Name: first, Fleet: "macos", Group: "m2", Spec: own(5)})
	if p := w.plan(t); len(p.Lost) != 1 || p.Lost[0].Trouble.Code.String() != "server-vanished" {
		t.Errorf("lost %+v", p.Lost)
	}
}
