package plan_test

import (
	"testing"
	"time"

	"github.com/macfleet/macfleet/plan"
)

// TestJoinPins: what two stores say of one server, each a pin or the note of a release, the other's older or newer. N is a note and P a pin.
func TestJoinPins(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	stored := map[byte]func(string, time.Time) []plan.Pin{
		'-': func(string, time.Time) []plan.Pin { return nil },
		'P': func(name string, at time.Time) []plan.Pin {
			return []plan.Pin{{ServerID: "id-1", Name: name, Since: at}}
		},
		'N': func(name string, at time.Time) []plan.Pin { // its pin is from long before the release
			return []plan.Pin{{ServerID: "id-1", Name: name, Since: noon.AddDate(0, -1, 0), Stage: plan.Released, StageSince: at}}
		},
	}
	for stores, want := range map[string][3]string{ // the other's is older, of the same time, newer
		"--": {"", "", ""}, "-P": {"other", "other", "other"}, "-N": {"other", "other", "other"}, "P-": {"first", "first", "first"}, "N-": {"first", "first", "first"},
		"PP": {"first", "first", "first"}, "NN": {"first", "first", "first"}, "PN": {"first", "first", "other"}, "NP": {"first", "first", "other"},
	} {
		for i, want := range want {
			first, other := stored[stores[0]]("first", noon), stored[stores[1]]("other", noon.Add(time.Duration(i-1)*time.Hour))
			got := ""
			for _, p := range plan.JoinPins(first, other) {
				got += p.Name
			}
			expect(t, stores, want, got)
		}
	}
	// The other store has the note and the pin after it.
	note, pin := stored['N']("note", noon.Add(time.Hour))[0], stored['P']("pin", noon.Add(2*time.Hour))[0]
	expect(t, "a later pin", []plan.Pin{pin}, plan.JoinPins(stored['N']("first", noon), []plan.Pin{pin, note}))
}
