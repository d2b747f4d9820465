package plan_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

func hold(until time.Time) *inventory.Hold {
	return &inventory.Hold{Who: "sam@desk", Reason: "its fan", Since: noon.Add(-time.Hour), Until: until}
}

// TestHold: either place is enough, of two the later end counts, and what cannot be
// read holds.
func TestHold(t *testing.T) {
	t.Parallel()
	over, soon, late := noon, noon.Add(time.Minute), noon.Add(48*time.Hour)
	for _, tc := range []struct {
		name         string
		marker, node *inventory.Hold
		unread       string
		want         string // of the trouble or the warning
	}{
		{"nobody", nil, nil, "", ""},
		{"marker", hold(soon), nil, "", "held by sam@desk until 2026-11-21 12:01 UTC (its fan)"},
		{"Node", nil, hold(soon), "", "held by sam@desk until 2026-11-21 12:01 UTC (its fan)"},
		{"the later of two", hold(soon), hold(late), "", "until 2026-11-23 12:00 UTC"},
		{"the later of two, the other way", hold(late), hold(soon), "", "until 2026-11-23 12:00 UTC"},
		{"one is over", hold(over), hold(soon), "", "until 2026-11-21 12:01 UTC"},
		{"one is over, the other way", hold(soon), hold(over), "", "until 2026-11-21 12:01 UTC"},
		{"over", hold(over), nil, "", "expired"},
		{"both over", hold(over), hold(over.Add(-time.Hour)), "", "expired"},
		{"without an end", &inventory.Hold{Who: "sam@desk", Reason: "its fan"}, nil, "", "until an unknown time: it has no end time (its fan)"},
		{"not to be read", nil, nil, "it is no JSON", "by an unknown person: the hold in its Node cannot be read: it is no JSON"},
		{"over, and not to be read", hold(over), nil, "it is no JSON", "by an unknown person: the hold in its Node cannot be read: it is no JSON"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(1, 0, 0)
			w.snap.Taken = noon
			w.member("macos", "m2", 1)
			w.node(1, first, inventory.Ready)
			w.change(1, func(h *plan.HostSeen) {
				m, _ := h.Marker.Get()
				m.Hold = tc.marker
				h.Marker = inventory.Present(m)
				h.Facts["alpha.get"] = inventory.Present(plan.Answer{Stdout: "bad"})
			})
			nodes, _ := w.snap.Nodes.Get()
			nodes[0].Hold, nodes[0].HoldUnread = tc.node, tc.unread
			p := w.plan(t)
			if len(p.Actions) != 1 || len(p.Hosts) != 1 {
				t.Fatalf("%+v", p)
			}
			refusal, host := p.Actions[0].Refusal, p.Hosts[0]
			warned := slices.ContainsFunc(host.Warnings, func(s plan.StepWarning) bool { return s.Code.String() == "hold-expired" })
			switch {
			case tc.want == "" || tc.want == "expired":
				if refusal != nil || warned != (tc.want == "expired") || host.ActiveHold() != nil {
					t.Errorf("refusal %+v, warnings %+v", refusal, host.Warnings)
				}
			case refusal == nil || refusal.Code.String() != "held" || !strings.Contains(refusal.Text, tc.want) || !strings.Contains(refusal.Remedy, "macfleet unhold "+first):
				t.Errorf("refusal %+v, wanted %q", refusal, tc.want)
			case p.Summarise().Complete() || !p.Summarise().Compared() || host.Converged != plan.Differs || host.MarkerStale():
				t.Errorf("summary %+v, host %+v", p.Summarise(), host)
			}
		})
	}
}

func TestParseUntil(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"90m": "2026-11-21 13:30", "12h": "2026-11-22 00:00", "3d": "2026-11-24 12:00", "2w": "2026-12-05 12:00", "30d": "2026-12-21 12:00",
		"2026-11-25": "2026-11-25 00:00", "2026-11-25 18:00": "2026-11-25 18:00", "2026-11-25T18:00:00+01:00": "2026-11-25 17:00",
		"": "invalid time", "soon": "invalid time", "-3d": "invalid time", "d": "invalid time", "70000d": "invalid time", "1.5d": "invalid time",
		"-1h": "in the past", "0d": "in the past", "2026-11-21": "in the past", "31d": "30 days", "721h": "30 days", "2027-01-01": "30 days",
	} {
		got, err := plan.ParseUntil(text, noon)
		said := got.Format("2006-01-02 15:04")
		if err != nil {
			said = err.Error()
		}
		if !strings.Contains(said, want) {
			t.Errorf("%q: %s, wanted %s", text, said, want)
		}
	}
}
