package rollout

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestLeaving: hosts that leave wait for those that stay, never start once one of these failed, and go one by one where one may be
// unavailable. One that takes no Pods any more waits for nothing.
func TestLeaving(t *testing.T) {
	t.Parallel()
	work := []Work{{ID: "a", Fleet: "runners", Lane: Leave, Works: true}, {ID: "b", Fleet: "runners", Lane: Leave, Works: true},
		{ID: "dead", Fleet: "runners", Lane: Leave}, {ID: "0", Fleet: "runners", Lane: Plain}}
	two := func(id string) bool { return id != "7" && id != "8" }
	for name, tc := range map[string]struct {
		limits Limits
		ends   func(*Rollout)
		ready  func(string) bool
		starts []string
		left   []Waiting
	}{
		"one that stays is running": {Limits{MaxUnavailable: 1}, func(*Rollout) {}, all, nil, []Waiting{{"a", StayRunning, nil}, {"b", StayRunning, nil}}},
		"one that stays failed": {Limits{MaxUnavailable: 1}, func(r *Rollout) { r.Failed("0") }, all, nil,
			[]Waiting{{"a", StayFailed, []string{"0"}}, {"b", StayFailed, []string{"0"}}}},
		"it is done":             {Limits{MaxUnavailable: 1}, func(r *Rollout) { r.Finished("0", start) }, all, []string{"a"}, []Waiting{{"b", Unavailable, nil}}},
		"two may be unavailable": {Limits{MaxUnavailable: 2}, func(r *Rollout) { r.Finished("0", start) }, all, []string{"a", "b"}, nil},
		"too few are Ready": {Limits{MaxUnavailable: 2, MinReady: 8}, func(r *Rollout) { r.Finished("0", start) }, two, nil,
			[]Waiting{{"a", TooFewReady, nil}, {"b", TooFewReady, nil}}},
		"more than exist must stay Ready": {Limits{MaxUnavailable: 2, MinReady: 12}, func(r *Rollout) { r.Finished("0", start) }, all, []string{"a", "b"}, nil},
	} {
		r := nine(tc.limits, work...)
		if got := r.Next(start, tc.ready); !slices.Equal(got, []string{"0", "dead"}) {
			t.Errorf("%s: first starts %q", name, got)
		}
		tc.ends(r)
		if diff := cmp.Diff(tc.starts, r.Next(start, tc.ready)) + cmp.Diff(tc.left, r.Waiting(start, tc.ready)); diff != "" {
			t.Errorf("%s: starts, and waits (-want +got):\n%s", name, diff)
		}
	}
}
