package plan_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/plan"
)

var someNames = []string{
	"acme-production-macos-m2-fba75", "acme-production-macos-m2-7aca1", "acme-production-runners-m2-1088a",
	"acme-production-runners-m2-2ab66", "acme-production-runners-m2-3bb66",
	"acme-production-builders-m2-5e1f0", "acme-production-builders-m4-5e1f0", // one short form for two
	"mini-01", "build-mini-01", "other-prod-macos-m2-fba76",
}

func TestShortNames(t *testing.T) {
	t.Parallel()
	n := plan.NewNames(fleet.Owner{Name: "acme", Environment: "production"}, someNames)
	expect(t, "prefix", "acme-production-", n.Prefix())
	for name, want := range map[string]string{
		"acme-production-macos-m2-fba75":    "macos/fba75",
		"acme-production-builders-m4-5e1f0": "acme-production-builders-m4-5e1f0",
		"mini-01":                           "mini-01",
		"other-prod-macos-m2-fba76":         "other-prod-macos-m2-fba76",
		"acme-production-macos-m2-00000":    "acme-production-macos-m2-00000", // not among them
	} {
		expect(t, "short form of "+name, want, n.Short(name))
	}
	expect(t, "prefix of whole names", "", plan.NewNames(fleet.Owner{}, []string{"mini-01", "mini-02", ""}).Prefix())
	expect(t, "prefix of two owners", "", plan.NewNames(fleet.Owner{}, someNames).Prefix())
	expect(t, "short form of any owner", "macos/fba76", plan.NewNames(fleet.Owner{}, someNames).Short("other-prod-macos-m2-fba76"))
}

func TestFindNames(t *testing.T) {
	t.Parallel()
	n := plan.NewNames(fleet.Owner{Name: "acme", Environment: "production"}, someNames)
	for _, tc := range []struct {
		text string
		want []string // the names, or, after "!", parts of the error
	}{
		{"acme-production-macos-m2-fba75", []string{"acme-production-macos-m2-fba75"}},
		{"macos/fba75", []string{"acme-production-macos-m2-fba75"}},
		{"fba75", []string{"acme-production-macos-m2-fba75"}},
		{"m2-1088a", []string{"acme-production-runners-m2-1088a"}},
		{"088a", []string{"acme-production-runners-m2-1088a"}},
		{"88a", []string{"!", "at least 4 characters"}},
		{"mini-01", []string{"mini-01"}}, // the name itself counts before the end of another
		{"ni-01", []string{"!", "2 names", "build-mini-01, mini-01"}},
		{"bb66", []string{"acme-production-runners-m2-3bb66"}},
		{"builders/5e1f0", []string{"!", "acme-production-builders-m2-5e1f0, acme-production-builders-m4-5e1f0"}},
		{"5e1f0", []string{"!", "2 names"}},
		{"m4-5e1f0", []string{"acme-production-builders-m4-5e1f0"}},
		{"runners/*", []string{"acme-production-runners-m2-1088a", "acme-production-runners-m2-2ab66", "acme-production-runners-m2-3bb66"}},
		{"*-macos-*", []string{"acme-production-macos-m2-7aca1", "acme-production-macos-m2-fba75", "other-prod-macos-m2-fba76"}},
		{"*-mini-*", []string{"build-mini-01"}},
		{"tart/*", []string{"!", "no host matches"}},
		{"1088b", []string{"!", "did you mean acme-production-runners-m2-1088a?"}},
		{"runners/1088b", []string{"!", "did you mean acme-production-runners-m2-1088a?"}},
		{"7aca", []string{"!", "did you mean acme-production-macos-m2-7aca1?"}}, // the beginning of a suffix
		{"runners/108", []string{"!", "did you mean acme-production-runners-m2-1088a?"}},
		{"5e1f", []string{"!", "type more of the name: acme-production-builders-m2-5e1f0, acme-production-builders-m4-5e1f0 contain it"}},
		{"10bbb", []string{"!", "no host matches", "hosts are "}}, // two wrong characters are another host
		{"x[", []string{"!", "not complete"}},
		{"", []string{"!", "no host matches"}},
	} {
		got, err := n.Find(tc.text)
		if tc.want[0] != "!" {
			if err != nil || !slices.Equal(got, tc.want) {
				t.Errorf("%s: %v, %v", tc.text, got, err)
			}
			continue
		}
		for _, part := range tc.want[1:] {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %v, %v lacks %q", tc.text, got, err, part)
			}
		}
	}
}

// TestResolveOnce: a part of a name becomes the full name of the one host that it stands for when
// the lists are read, and means no other host that comes later.
func TestResolveOnce(t *testing.T) {
	t.Parallel()
	w := mixed()
	w.member("runners", "m2", 6).Name = "renamed-by-hand"
	w.pin(6, "acme-prod-runners-m2-00006")
	for _, tc := range []struct{ text, want string }{
		{"name=macos/00001", "name=" + first},
		{"name=0002,fleet=macos", "name=" + second + ",fleet=macos"},
		{"name=00005", "name=acme-prod-macos-m2-00005"}, // a claim's final name
		{"name=" + first, "name=" + first},
		{"name=macos/*", "name=macos/*"},
		{"fleet=00001", "fleet=00001"},
		{"name=runners/00006", "name=acme-prod-runners-m2-00006"},
	} {
		sel, err := plan.Resolve(w.cfg, w.snap, selection([]string{tc.text}, []string{tc.text}))
		if err != nil {
			t.Errorf("%s: %v", tc.text, err)
			continue
		}
		expect(t, tc.text, []string{tc.want, tc.want}, []string{sel.On[0].String(), sel.Exclude[0].String()})
		if (len(sel.Meant) > 0) != (tc.text != tc.want) {
			t.Errorf("%s: meant %v", tc.text, sel.Meant)
		}
	}
	for _, end := range []string{"0000", "m2-00009", "nd"} {
		sel, err := plan.Resolve(w.cfg, w.snap, plan.Selection{On: only("name=" + end)})
		if err == nil {
			err = plan.CheckSelection(w.cfg, w.snap, sel)
		}
		if err == nil {
			t.Errorf("%s selects %v", end, sel.On)
		}
	}
	sel, err := plan.Resolve(w.cfg, w.snap, plan.Selection{ForceBusy: []string{"macos/00002", "nobody"}})
	if err != nil {
		t.Fatal(err)
	}
	expect(t, "force busy", []string{second, "nobody"}, sel.ForceBusy)
}

// TestAnAmbiguousEndIsRefused wherever a host is named, also where one of the two is in the pool
// or was lost.
func TestAnAmbiguousEndIsRefused(t *testing.T) {
	t.Parallel()
	w := mixed()
	w.server(8, "somebody-else-m2-00002").Type = "M1-M"
	w.pin(0xb0004, "acme-prod-macos-m2-b0004")
	for _, text := range []string{"m2-00002", "0004"} {
		if _, err := plan.Find(w.cfg, w.snap, text); err == nil || !strings.Contains(err.Error(), "matches 2 names") {
			t.Errorf("Find(%s): %v", text, err)
		}
		if _, err := plan.HolderOf(w.cfg, w.snap, text); err == nil || !strings.Contains(err.Error(), "matches 2 names") {
			t.Errorf("HolderOf(%s): %v", text, err)
		}
	}
	s, err := plan.Find(w.cfg, w.snap, "macos/00002")
	if err != nil || s.Name != second {
		t.Errorf("by its short form: %v, %v", s.Name, err)
	}
	h, err := plan.HolderOf(w.cfg, w.snap, "b0004")
	if err != nil || !h.Gone || h.Name != "acme-prod-macos-m2-b0004" {
		t.Errorf("a pin's name by its end: %+v, %v", h, err)
	}
}
