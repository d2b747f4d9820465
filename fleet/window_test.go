package fleet

import (
	"errors"
	"testing"
	"time"
)

func TestWindow(t *testing.T) {
	t.Parallel()
	const nights, weekend, always = "Mon-Fri 22:00-06:00 Europe/Paris", "Sat,Sun 00:00-24:00", "daily 00:00-24:00"
	for _, c := range []struct {
		window, at string
		open       bool
		next       string
	}{
		{nights, "2026-11-23T21:59:59+01:00", false, "2026-11-23T22:00:00+01:00"}, // a Monday
		{nights, "2026-11-23T22:00:00+01:00", true, "2026-11-24T22:00:00+01:00"},
		{nights, "2026-11-24T05:59:59+01:00", true, "2026-11-24T22:00:00+01:00"},
		{nights, "2026-11-24T06:00:00+01:00", false, "2026-11-24T22:00:00+01:00"},
		{nights, "2026-11-23T03:00:00+01:00", false, "2026-11-23T22:00:00+01:00"}, // it does not open on Sunday
		{nights, "2026-11-28T03:00:00+01:00", true, "2026-11-30T22:00:00+01:00"},  // Friday's, on Saturday
		{nights, "2026-11-28T23:00:00+01:00", false, "2026-11-30T22:00:00+01:00"},
		{nights, "2026-11-23T20:30:00Z", false, "2026-11-23T22:00:00+01:00"},
		{nights, "2026-07-06T20:30:00Z", true, "2026-07-07T22:00:00+02:00"}, // summer time
		{weekend, "2026-11-28T00:00:00Z", true, "2026-11-29T00:00:00Z"},
		{weekend, "2026-11-29T23:59:59Z", true, "2026-12-05T00:00:00Z"},
		{weekend, "2026-11-30T00:00:00Z", false, "2026-12-05T00:00:00Z"},
		{always, "2026-11-30T23:59:59Z", true, "2026-12-01T00:00:00Z"},
	} {
		w, err := ParseWindow(c.window)
		at, odd := time.Parse(time.RFC3339, c.at)
		next, later := time.Parse(time.RFC3339, c.next)
		if err := errors.Join(err, odd, later); err != nil {
			t.Fatal(err)
		}
		if got := w.Contains(at); got != c.open {
			t.Errorf("%s at %s: open %v", c.window, c.at, got)
		}
		if got := w.Opens(at); !got.Equal(next) {
			t.Errorf("%s after %s: opens %s, not %s", c.window, c.at, got, c.next)
		}
	}
}

// TestOpen takes the first of several windows.
func TestOpen(t *testing.T) {
	t.Parallel()
	var g Guardrails
	at := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC) // a Wednesday
	if open, _ := g.Open(at); !open {
		t.Error("without a window hosts may be disturbed at any time")
	}
	for _, text := range []string{"Sat,Sun 00:00-24:00", "daily 22:00-04:00"} {
		w, err := ParseWindow(text)
		if err != nil {
			t.Fatal(err)
		}
		g.Windows = append(g.Windows, w)
	}
	if open, next := g.Open(at); open || !next.Equal(at.Add(10*time.Hour)) {
		t.Errorf("open %v, next %s", open, next)
	}
	if open, _ := g.Open(at.Add(15 * time.Hour)); !open {
		t.Error("the night's window is open at three")
	}
}

// TestShare: a share is rounded down, and never nothing.
func TestShare(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		share   Share
		n, want int
	}{
		{Share{Percent: 20}, 9, 1}, {Share{Percent: 20}, 10, 2}, {Share{Percent: 20}, 14, 2},
		{Share{Percent: 100}, 9, 9}, {Share{Percent: 1}, 0, 1}, {Share{Percent: 33}, 500, 165},
		{Share{Count: 3}, 9, 3}, {Share{Count: 30}, 9, 30}, {Share{}, 9, 1},
	} {
		if got := c.share.Of(c.n); got != c.want {
			t.Errorf("%+v of %d = %d, not %d", c.share, c.n, got, c.want)
		}
	}
}
