package fleet_test

import (
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet"
)

// TestIgnoreEnds checks an ignore around its last day, from two zones: the day is one of UTC.
func TestIgnoreEnds(t *testing.T) {
	t.Parallel()
	last := time.Date(2026, 12, 31, 0, 0, 0, 0, time.UTC)
	i := fleet.Ignore{Until: last}
	tokyo := time.FixedZone("JST", 9*3600)
	for at, want := range map[time.Time]bool{
		last: false, last.Add(24*time.Hour - 1): false, last.Add(24 * time.Hour): true,
		time.Date(2027, 1, 1, 8, 59, 0, 0, tokyo): false, time.Date(2027, 1, 1, 9, 0, 0, 0, tokyo): true,
	} {
		if got := i.Expired(at); got != want {
			t.Errorf("at %s expired is %t", at, got)
		}
	}
	first := last.Add(-fleet.MaxIgnore)
	for at, want := range map[time.Time]bool{first: false, first.Add(23 * time.Hour): false, first.Add(-time.Second): true, last.AddDate(1, 0, 0): false} {
		if got := i.TooLong(at); got != want {
			t.Errorf("at %s too long is %t", at, got)
		}
	}
}
