package view_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/lipgloss"
	"pgregory.net/rapid"

	"github.com/macfleet/macfleet/hosts"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/view"
)

// cost is what a plan of seven hosts cost; one of them was unreachable, and two took
// the same time.
func cost() view.Stats {
	s := view.Stats{
		Hosts:         hosts.Stats{Connections: 6, Execs: 6, Turns: 61, Sent: 40_210, Received: 43_870},
		Requests:      []view.Requests{{Provider: "scaleway", Count: 3}, {Provider: "kubernetes", Count: 2}},
		Configuration: 4 * time.Millisecond, Credentials: 12 * time.Millisecond, Total: 10_345 * time.Millisecond,
		Phases: view.Phases{Lists: 60 * time.Millisecond, Hosts: 10_250 * time.Millisecond, Compute: time.Millisecond}}
	for i := range 7 {
		s.Spent = append(s.Spent, hosts.Spent{Host: fmt.Sprintf("acme-production-runners-m2-0000%d", i+1), Dial: 20 * time.Millisecond,
			Handshake: 30 * time.Millisecond, Exec: time.Duration(i/2*100) * time.Millisecond})
	}
	s.Spent[3] = hosts.Spent{Host: s.Spent[3].Host, Dial: 10 * time.Second}
	return s
}

// TestPhases counts what passed on the wall, not what hosts took side by side.
func TestPhases(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	var p view.Phases
	for _, e := range []struct {
		at      int
		kind    engine.EventType
		elapsed int
	}{
		{2, engine.Listed, 2}, {2, engine.Observing, 0}, {5, engine.Observed, 3}, {6, engine.Observed, 4}, {7, engine.Computed, 1},
		{20, engine.Started, 0}, {20, engine.Started, 0}, {24, engine.Done, 4}, {25, engine.Started, 0}, {28, engine.Done, 8}, {29, engine.Failed, 4},
		{33, engine.Listed, 3}, {33, engine.Observing, 0}, {34, engine.Observed, 1}, {34, engine.Observing, 0}, {36, engine.Observed, 2}, {38, engine.Computed, 2},
		{50, engine.Started, 0}, {51, engine.Done, 1},
	} {
		p.Event(engine.Event{Type: e.kind, Time: start.Add(time.Duration(e.at) * time.Second), Seconds: float64(e.elapsed)})
	}
	got := []time.Duration{p.Lists, p.Hosts, p.Compute, p.Actions}
	want := []time.Duration{5 * time.Second, 7 * time.Second, 3 * time.Second, 10 * time.Second}
	for i, name := range []string{"lists", "hosts", "compute", "actions"} {
		equal(t, got[i], want[i], name, "took")
	}
}

// TestStatsFit holds for any numbers and names: nothing but one word is wider than the
// terminal, and the slowest host is named.
func TestStatsFit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.IntRange(40, 200).Draw(t, "width")
		seconds := rapid.Map(rapid.IntRange(0, 1_000_000), func(n int) time.Duration { return time.Duration(n) * time.Millisecond })
		counts := rapid.Int64Range(0, 1e12)
		s := view.Stats{Hosts: hosts.Stats{Connections: counts.Draw(t, "connections"), Execs: counts.Draw(t, "execs"), Turns: counts.Draw(t, "turns"),
			Sent: counts.Draw(t, "sent"), Received: counts.Draw(t, "received")},
			Requests: []view.Requests{{Provider: "scaleway", Count: counts.Draw(t, "requests")}},
			Phases:   view.Phases{Lists: seconds.Draw(t, "lists"), Actions: seconds.Draw(t, "actions")}, Total: seconds.Draw(t, "total")}
		slowest := hosts.Spent{}
		for i := range rapid.IntRange(0, 12).Draw(t, "hosts") {
			name := fmt.Sprintf("%s-%d", rapid.StringMatching(`[a-z]{1,12}(-[a-z0-9]{1,12}){0,4}`).Draw(t, "host"), i)
			h := hosts.Spent{Host: name, Dial: seconds.Draw(t, "dial"), Handshake: seconds.Draw(t, "handshake"), Exec: seconds.Draw(t, "exec")}
			s.Spent = append(s.Spent, h)
			if slowest.Host == "" || h.Total() > slowest.Total() {
				slowest = h
			}
		}
		var b bytes.Buffer
		view.NewText(&b, width, false).Stats(s)
		for line := range strings.Lines(b.String()) {
			if w := lipgloss.Width(strings.TrimSuffix(line, "\n")); w > width && len(view.Pieces(line)) > 1 {
				t.Fatalf("%d columns of %d in %q", w, width, line)
			}
		}
		joined := strings.Join(strings.Fields(b.String()), "")
		if !strings.Contains(joined, fmt.Sprintf("%.2fs", slowest.Total().Seconds())) || !strings.Contains(joined, slowest.Host) {
			t.Fatalf("the slowest host %+v is missing:\n%s", slowest, b.String())
		}
	})
}
