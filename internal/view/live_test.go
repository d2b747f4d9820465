package view_test

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/view"
	"github.com/macfleet/macfleet/plan"
)

// screen is a terminal of a few rows that breaks wide lines, breaks them again when it is resized, and knows what macfleet writes:
// text, a carriage return, the cursor up, and to clear the row from the cursor on.
type screen struct {
	t             *testing.T
	columns, rows int
	lines         []string // as they were written; the cursor is behind the last one
}

var control = regexp.MustCompile(`^(?:\r\x1b\[(\d+)A)?((?:\x1b\[K[^\x1b]*\n)*)(?:\x1b\[(\d+)A)?$`)

func (s *screen) Write(p []byte) (int, error) {
	at := control.FindStringSubmatch(string(p))
	if at == nil {
		s.t.Errorf("an escape code that is not for the cursor, or a row that is not cleared: %q", p)
		return len(p), nil
	}
	up, _ := strconv.Atoi(at[1])
	if up >= s.rows {
		s.t.Errorf("the cursor goes %d lines up on a screen of %d", up, s.rows)
	}
	s.back(up)
	first := len(s.lines)
	for line := range strings.Lines(at[2]) {
		s.lines = append(s.lines, strings.TrimPrefix(strings.TrimSuffix(line, "\n"), "\x1b[K"))
	}
	if written := s.height(s.lines[first:]); written < up {
		s.t.Errorf("%d rows are cleared of %d", written, up)
	}
	if at[3] != "" {
		up, _ = strconv.Atoi(at[3])
		equal(s.t, strings.Join(s.lines[len(s.lines)-up:], ""), "", "the cursor ends above")
		s.back(up)
	}
	return len(p), nil
}

// back moves the cursor up, to the first column of a line.
func (s *screen) back(up int) {
	for ; up > 0; s.lines = s.lines[:len(s.lines)-1] {
		up -= s.height(s.lines[len(s.lines)-1:])
	}
	if up < 0 {
		s.t.Errorf("the cursor is within a line")
	}
}

// height returns how many rows lines fill.
func (s *screen) height(lines []string) int {
	n := 0
	for _, line := range lines {
		n += 1 + max(len([]rune(line))-1, 0)/s.columns
	}
	return n
}

// applied is a plan for a number of hosts of one fleet, an action each, with the first host as canary.
func applied(hosts int) *plan.Plan {
	p := &plan.Plan{Owner: fleet.Owner{Name: "acme", Environment: "production"}, Fleets: []string{"runners"}}
	r := plan.Rollout{Fleet: "runners", AtOnce: 4, Canary: 1, Soak: "1m0s"}
	for i := range hosts {
		h := member(i%10, "runners")
		h.Name = fmt.Sprintf("acme-production-runners-m2-%05x", i)
		h.Server.ID, h.Server.Name = fmt.Sprintf("%05x-x", i), h.Name
		p.Hosts, p.Actions = append(p.Hosts, h), append(p.Actions, power(h))
		r.Waves = append(r.Waves, []string{h.Name})
	}
	p.Rollouts = []plan.Rollout{r}
	return p
}

var begun = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

// TestLive shows a run on a small terminal that becomes narrower: each host that ended is in the scrollback once, and
// nothing else is left.
func TestLive(t *testing.T) {
	t.Parallel()
	s := &screen{t: t, columns: 80, rows: 8}
	now := begun
	p := applied(30)
	l := view.NewLive(view.NewText(s, 0, false), p, func() (int, int) { return s.columns, s.rows }, func() time.Time { return now }, false)
	event := func(i int, typ engine.EventType, err error) {
		a := p.Actions[i]
		l.Event(engine.Event{Type: typ, Time: now, Host: a.Host, Action: &a, Err: err})
	}
	event(0, engine.Started, nil)
	now = now.Add(20 * time.Second)
	l.Say("Interrupted: finishing what runs, starting nothing new. Press Ctrl-C again to abort.")
	want := []string{
		"Interrupted: finishing what runs, starting nothing new. Press Ctrl-C again to",
		"abort.",
		"Applying acme/production  [...................] 0/30 actions · 0/30 hosts · 20s",
		"  ● runners/00000  0/1  power                                      20s  (canary)",
		"  · 29 waiting for the canary",
	}
	if diff := cmp.Diff(want, s.lines); diff != "" {
		t.Error(diff)
	}
	for i := range 30 {
		event(i, engine.Started, nil)
	}
	if len(s.lines) > 2+s.rows-1 || !strings.HasPrefix(s.lines[len(s.lines)-1], "  and 29 hosts more running") {
		t.Errorf("30 hosts in progress on %d rows:\n%s", s.rows, strings.Join(s.lines, "\n"))
	}
	for i := range 30 {
		var err error
		typ := engine.Done
		if i == 7 {
			typ, err = engine.Failed, errors.New("a \x1b[31mvery "+strings.Repeat("long ", 30)+"reason")
		}
		if i == 15 {
			s.columns = 45
		}
		event(i, typ, err)
		event(i, engine.HostEnded, nil)
	}
	l.Close()
	l.Close()
	for i := range 30 {
		mark := "✓"
		if i == 7 {
			mark = "✗"
		}
		equal(t, strings.Count(strings.Join(s.lines, "\n"), fmt.Sprintf("  %s runners/%05x", mark, i)), 1, "host", i, "is printed")
	}
	equal(t, len(s.lines), 32, "more is left than the hosts", strings.Join(s.lines, "\n"))
}

// TestLiveWaits shows how long a host has waited for its reinstallation, and for its CI agent.
func TestLiveWaits(t *testing.T) {
	t.Parallel()
	s := &screen{t: t, columns: 80, rows: 8}
	now := begun
	p := leavingHost()
	l := view.NewLive(view.NewText(s, 0, false), p, func() (int, int) { return s.columns, s.rows }, func() time.Time { return now }, false)
	event := func(typ engine.EventType, text string) {
		l.Event(engine.Event{Type: typ, Time: now, Host: p.Actions[0].Host, Action: &p.Actions[0], Text: text})
	}
	event(engine.Started, "")
	now = now.Add(time.Minute)
	event(engine.Installing, "waiting for the reinstallation")
	now = now.Add(12 * time.Minute)
	l.Say("")
	at := func() string { return s.lines[len(s.lines)-1] }
	if !strings.Contains(at(), "waiting for the reinstallation, 12m00s") || !strings.HasSuffix(at(), "13m00s") {
		t.Error(at())
	}
	event(engine.Started, "")
	l.Say("")
	if strings.Contains(at(), "12m00s") {
		t.Errorf("still waits: %s", at())
	}
	event(engine.Idling, "waiting until the host is idle: bake")
	now = now.Add(2 * time.Minute)
	l.Say("")
	if !strings.Contains(at(), "bake, 2m00s") {
		t.Error(at())
	}
	l.Close()
}

// TestLiveAsks shows how many hosts have answered while nothing is applied.
func TestLiveAsks(t *testing.T) {
	t.Parallel()
	s := &screen{t: t, columns: 80, rows: 8}
	text := view.NewText(s, 0, false)
	text.ASCII()
	l := view.NewLive(text, nil, func() (int, int) { return s.columns, s.rows }, func() time.Time { return begun }, false)
	l.Event(engine.Event{Type: engine.Observing, Time: begun, Count: 2})
	l.Event(engine.Event{Type: engine.Observed, Time: begun, Host: "one"})
	if diff := cmp.Diff([]string{"Reading 2 hosts: 1 answered, 0s"}, s.lines); diff != "" {
		t.Error(diff)
	}
	l.Close()
	if len(s.lines) > 0 {
		t.Errorf("left: %q", s.lines)
	}
}

// TestLines prints a line for each host that ended, and sums up every ten seconds.
func TestLines(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	p := applied(3)
	l := view.NewLines(view.NewText(&b, 0, false), p, 10*time.Second, false)
	event := func(after time.Duration, i int, typ engine.EventType, err error) {
		a := p.Actions[i]
		l.Event(engine.Event{Type: typ, Time: begun.Add(after), Host: a.Host, Action: &a, Err: err})
	}
	l.Tick(begun) // nothing has started
	event(0, 0, engine.Started, nil)
	l.Event(engine.Event{Type: engine.Sending, Time: begun, Host: p.Actions[0].Host, Artifact: "tart", Bytes: 41e6, Size: 60e6})
	l.Tick(begun.Add(9 * time.Second))
	l.Tick(begun.Add(10 * time.Second))
	event(12*time.Second, 0, engine.Done, nil)
	event(12*time.Second, 0, engine.HostEnded, nil)
	l.Event(engine.Event{Type: engine.Soaking, Fleet: "runners", Until: begun.Add(72 * time.Second)})
	l.Tick(begun.Add(20 * time.Second))
	event(72*time.Second, 1, engine.Started, nil)
	event(73*time.Second, 1, engine.Failed, errors.New("exit 1"))
	event(73*time.Second, 1, engine.HostEnded, nil)
	l.Tick(begun.Add(74 * time.Second))
	want := `0/3 actions · 0/3 hosts · 10s · running: runners/00000 · slowest runners/00000: tart  sending 41 MB of 60 MB, 10s · 2 waiting for the canary
  ✓ runners/00000  1/1 actions     12s  (canary)
1/3 actions · 1/3 hosts · 20s · 2 waiting until the canary has been Ready for 1m0s (10:01:12 UTC)
  ✗ runners/00001  0/1 actions      1s  power: exit 1
1/3 actions · 1/3 hosts · 1 failed · 1m14s · 1 waiting for a turn in runners (max_unavailable 4)
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
}
