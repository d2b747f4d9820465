package fleet

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Window is a span of the day, on some days of the week.
type Window struct {
	Text string        // as in the configuration
	Days [7]bool       // by time.Weekday: the days on which it opens
	From time.Duration // since midnight by the clock of the zone
	To   time.Duration // likewise; not above From: it closes on the next day
	Zone string        // of the IANA database, for example Europe/Paris
}

// days are the names of weekdays, by time.Weekday.
var days = [7]string{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"}

// ParseWindow reads a window such as "Mon-Fri 22:00-06:00 Europe/Paris" or "Sat,Sun 00:00-24:00"; "daily"
// means all days, and without a zone it is UTC. The error says which part is invalid.
func ParseWindow(text string) (Window, error) {
	w := Window{Text: text, Zone: "UTC"}
	parts := strings.Fields(text)
	if len(parts) < 2 || len(parts) > 3 {
		return w, fmt.Errorf("%q must be days, times and optionally a time zone, such as %q", text, "Mon-Fri 22:00-06:00 Europe/Paris")
	}
	for _, part := range strings.Split(parts[0], ",") {
		if err := w.addDays(part); err != nil {
			return w, err
		}
	}
	from, to, _ := strings.Cut(parts[1], "-")
	w.From, w.To = parseTime(from), parseTime(to)
	if w.From < 0 || w.To < 0 || w.From == 24*time.Hour || w.From == w.To {
		return w, fmt.Errorf("%q must be two different times of the day, such as %q", parts[1], "22:00-06:00")
	}
	if len(parts) == 3 {
		w.Zone = parts[2]
	}
	// "Local" would mean something else on each machine.
	if _, err := time.LoadLocation(w.Zone); err != nil || w.Zone == "Local" {
		return w, fmt.Errorf("unknown time zone in %q: use a name such as %q", w.Zone, "Europe/Paris")
	}
	return w, nil
}

// addDays adds "Mon", "Fri-Mon" or "daily".
func (w *Window) addDays(text string) error {
	if text == "daily" {
		text = "Sun-Sat"
	}
	first, last, span := strings.Cut(text, "-")
	if !span {
		last = first
	}
	a, b := slices.Index(days[:], first), slices.Index(days[:], last)
	if a < 0 || b < 0 {
		return fmt.Errorf("%q must be days such as %q, %q or %q", text, "Mon-Fri", "Sat,Sun", "daily")
	}
	for d := a; ; d = (d + 1) % 7 {
		w.Days[d] = true
		if d == b {
			return nil
		}
	}
}

// parseTime reads "22:00"; it is negative for an invalid time. "24:00" is the end of a day.
func parseTime(text string) time.Duration {
	if text == "24:00" {
		return 24 * time.Hour
	}
	t, err := time.Parse("15:04", text)
	if err != nil || len(text) != len("15:04") {
		return -1
	}
	return time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute
}

// Contains reports whether the window is open at t.
func (w Window) Contains(t time.Time) bool {
	zone, err := time.LoadLocation(w.Zone)
	if err != nil {
		return false // it was checked when it was read; without the zone it cannot be known
	}
	t = t.In(zone)
	clock := time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute + time.Duration(t.Second())*time.Second
	today, yesterday := w.Days[t.Weekday()], w.Days[(t.Weekday()+6)%7]
	if w.To > w.From {
		return today && clock >= w.From && clock < w.To
	}
	return today && clock >= w.From || yesterday && clock < w.To
}

// Opens returns when the window opens next after t.
func (w Window) Opens(t time.Time) time.Time {
	zone, err := time.LoadLocation(w.Zone)
	if err != nil {
		return time.Time{}
	}
	t = t.In(zone)
	for i := range 9 {
		at := time.Date(t.Year(), t.Month(), t.Day()+i, 0, int(w.From/time.Minute), 0, 0, zone)
		if w.Days[at.Weekday()] && at.After(t) {
			return at
		}
	}
	return time.Time{}
}

// Open reports whether hosts may be disturbed at t, and if not, when next.
func (g Guardrails) Open(t time.Time) (open bool, next time.Time) {
	if len(g.Windows) == 0 {
		return true, time.Time{}
	}
	for _, w := range g.Windows {
		if w.Contains(t) {
			return true, time.Time{}
		}
		if at := w.Opens(t); next.IsZero() || at.Before(next) {
			next = at
		}
	}
	return false, next
}

// Rollout limits how many hosts of a fleet are disturbed at the same time, and in what order.
type Rollout struct {
	MaxUnavailable Share         `hcl:"max_unavailable,optional"`           // of healthy hosts: those whose Nodes are Ready when a run starts
	Canary         int           `hcl:"canary,optional" max:"1000"`         // hosts that go first; 0: none
	Soak           time.Duration `hcl:"soak,optional" longest:"24h"`        // how long the canary must stay Ready before the others start: the run waits and keeps the lock
	FailureBudget  int           `hcl:"failure_budget,optional" max:"1000"` // failed hosts tolerated before no further one starts
	MinReady       int           `hcl:"min_ready,optional" max:"1000"`      // hosts that must stay Ready; 0: no such limit
	Order          Order         `hcl:"order,optional" is:"order"`
	// QuarantineAfter is how many failed repairs in a row quarantine a host; 0: none do.
	QuarantineAfter int `hcl:"quarantine_after,optional" max:"1000"`
}

// DefaultRollout applies if a fleet has no rollout block: a fifth of it at the same time, one host first, and
// the first failure stops.
func DefaultRollout() Rollout {
	return Rollout{MaxUnavailable: Share{Percent: 20}, Canary: 1, Order: ByName, QuarantineAfter: 3}
}

// Order is in which order the hosts of a fleet start.
type Order string

// The orders.
const (
	ByName Order = "name" // by group and name
	ByIdle Order = "idle" // those with the fewest Pods first
)

// Share is a number of hosts, or a part of them.
type Share struct {
	Count   int // used when Percent is 0
	Percent int // 1 to 100
}

// Of returns how many of n hosts a share is. A percentage is rounded down, but never below 1, or nothing
// would ever change.
func (s Share) Of(n int) int {
	if s.Percent > 0 {
		return max(1, n*s.Percent/100)
	}
	return max(1, s.Count)
}

// Guardrails limit what a single run may do; the rest is deferred. Repairs of hosts that are not Ready are
// never deferred.
type Guardrails struct {
	MaxHosts     int   `hcl:"max_hosts,optional" least:"1" max:"100000"` // hosts that one run changes; 0: any number
	MaxDisrupted Share `hcl:"max_disrupted,optional"`                    // of a fleet's Ready hosts: how many one run drains, reboots or wipes; zero: any number
	MaxWipes     int   `hcl:"max_wipes,optional" least:"1" max:"100000"` // hosts that one run wipes; 0: one
	// IgnoreJobs are labels of launchd jobs that may control hosts next to macfleet, as patterns of path.Match.
	IgnoreJobs []string `hcl:"ignore_jobs,optional" is:"job_pattern"`
	Windows    []Window // when hosts may be drained, rebooted or wiped; none: always
}
