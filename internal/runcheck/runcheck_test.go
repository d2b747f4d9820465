package runcheck_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/runcheck"
	"github.com/macfleet/macfleet/internal/runlog"
)

// sheet is a handwritten record with one second between its lines.
type sheet struct {
	runlog.Record
	at time.Time
}

// fresh returns the record of a run over hosts of the fleet f. Each host has two actions, and hosts whose names start
// with d are healthy.
func fresh(limits runlog.FleetLimits, hosts int, names ...string) *sheet {
	limits.Fleet = "f"
	s := &sheet{at: time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)}
	s.Head.Limits = runlog.Limits{Hosts: hosts, Uploads: 2, Fleets: []runlog.FleetLimits{limits}}
	s.Plan.Healthy = make(map[string][]string)
	for _, name := range names {
		s.Plan.Actions = append(s.Plan.Actions, action(name, "one"), action(name, "two"))
		if strings.HasPrefix(name, "d") {
			s.Plan.Healthy["f"] = append(s.Plan.Healthy["f"], name)
		}
	}
	return s
}

func action(host, step string) runlog.Action {
	return runlog.Action{Kind: "step", Host: host, ServerID: "id-" + host, Step: step}
}

// lane returns the lane that the name stands for: d0 is disrupted, r0 repaired, j0 joins.
func lane(host string) string {
	return map[byte]string{'d': "disrupt", 'r': "repair", 'j': "join"}[host[0]]
}

func (s *sheet) add(e runlog.Entry) {
	s.at = s.at.Add(time.Second)
	e.Version, e.Time = runlog.Version, s.at
	s.Entries = append(s.Entries, e)
}

// write adds lines: "begin d0", "started d0 one", "stop", and "wait 60" for a minute without lines.
func (s *sheet) write(lines ...string) *sheet {
	for _, line := range lines {
		words := strings.Fields(line)
		e := runlog.Entry{Event: engine.Event{Type: runlog.Type(words[0])}}
		if words[0] == "begin" {
			e.Type = "begun"
		}
		switch {
		case words[0] == "wait":
			var seconds int
			_, _ = fmt.Sscan(words[1], &seconds) // always a number
			s.at = s.at.Add(time.Duration(seconds) * time.Second)
			continue
		case words[0] == "end":
			s.End = &runlog.End{Outcome: runlog.Converged}
			for _, e := range s.Entries {
				if e.Type == "done" {
					s.End.Done++
				}
			}
			e.End = s.End
		case len(words) > 1:
			e.Host, e.Fleet, e.Lane = words[1], "f", lane(words[1])
		}
		if len(words) == 3 {
			a := action(words[1], words[2])
			e.Action = &a
		}
		s.add(e)
	}
	return s
}

// whole returns the lines of a host without a failure.
func whole(host string) []string {
	return []string{"begin " + host, "started " + host + " one", "done " + host + " one", "started " + host + " two", "done " + host + " two",
		"waiting " + host, "ready " + host, "ended " + host}
}

// broken returns the lines of a host whose first action fails.
func broken(host string) []string {
	return []string{"begin " + host, "started " + host + " one", "failed " + host + " one", "ended " + host}
}

func begins(hosts ...string) []string {
	var out []string
	for _, h := range hosts {
		out = append(out, "begin "+h)
	}
	return out
}

// TestBroken violates each limit once and expects no other violation.
func TestBroken(t *testing.T) {
	t.Parallel()
	wide := runlog.FleetLimits{MaxUnavailable: "100%", FailureBudget: 9}
	for name, c := range map[string]struct {
		limits runlog.FleetLimits
		hosts  int
		names  []string
		lines  []string
		want   string // parts of the violations, separated by |; empty: there are none
	}{
		"no violation":                {wide, 1, []string{"d0", "d1"}, append(append(whole("d0"), whole("d1")...), "end"), ""},
		"an interrupted run":          {wide, 1, []string{"d0"}, whole("d0")[:2], ""},
		"too many hosts":              {wide, 1, []string{"j0", "j1"}, begins("j0", "j1"), "while 2 hosts are in progress, limit 1"},
		"one waits for its Node":      {wide, 1, []string{"j0", "j1"}, append(whole("j0")[:5], "begin j1"), ""},
		"too many uploads":            {wide, 9, []string{"j0"}, []string{"upload-begins j0", "upload-begins j1", "upload-begins j2"}, "3 uploads at once, of at most 2"},
		"an upload never started":     {wide, 9, nil, []string{"upload-ends j0"}, "never started"},
		"an upload without an end":    {wide, 9, nil, []string{"upload-begins j0", "end"}, "upload j0  never ends"},
		"too many are away":           {runlog.FleetLimits{MaxUnavailable: "40%"}, 9, []string{"d0", "d1", "d2", "d3"}, begins("d0", "d1"), "2 healthy hosts of f are disrupted, limit 1"},
		"as many as allowed":          {runlog.FleetLimits{MaxUnavailable: "50%"}, 9, []string{"d0", "d1", "d2", "d3"}, begins("d0", "d1"), ""},
		"too few stay":                {runlog.FleetLimits{MaxUnavailable: "9", MinReady: 3}, 9, []string{"d0", "d1", "d2", "d3"}, begins("d0", "d1"), "3 must stay ready"},
		"during the canary":           {runlog.FleetLimits{MaxUnavailable: "9", Canary: 1}, 9, []string{"d0", "d1"}, begins("d0", "d1"), "while the canary of f is in progress"},
		"two canaries":                {runlog.FleetLimits{MaxUnavailable: "9", Canary: 2}, 9, []string{"d0", "d1"}, begins("d0", "d1"), ""},
		"after a failed canary":       {runlog.FleetLimits{MaxUnavailable: "9", Canary: 1, FailureBudget: 5}, 9, []string{"d0", "d1"}, append(broken("d0"), "begin d1"), "after the canary of f failed"},
		"within the soak":             {runlog.FleetLimits{MaxUnavailable: "9", Canary: 1, Soak: "1m0s"}, 9, []string{"d0", "d1"}, append(whole("d0"), "wait 58", "begin d1"), "59s after the canary"},
		"after the soak":              {runlog.FleetLimits{MaxUnavailable: "9", Canary: 1, Soak: "1m0s"}, 9, []string{"d0", "d1"}, append(whole("d0"), "wait 59", "begin d1"), ""},
		"beyond the budget":           {runlog.FleetLimits{MaxUnavailable: "9"}, 9, []string{"d0", "d1"}, append(broken("d0"), "begin d1"), "after 1 failures in f, limit 0"},
		"within the budget":           {runlog.FleetLimits{MaxUnavailable: "9", FailureBudget: 1}, 9, []string{"d0", "d1"}, append(broken("d0"), "begin d1"), ""},
		"a Node that does not come":   {runlog.FleetLimits{MaxUnavailable: "9"}, 9, []string{"d0", "d1"}, append(whole("d0")[:6], "failed d0", "ended d0", "begin d1"), "after 1 failures"},
		"four repairs":                {wide, 9, []string{"r0", "r1", "r2", "r3"}, begins("r0", "r1", "r2", "r3"), "3 hosts are being repaired"},
		"a repair after three failed": {wide, 9, []string{"r0", "r1", "r2", "r3"}, slices.Concat(broken("r0"), broken("r1"), broken("r2"), begins("r3")), "after 3 failed repairs"},
		"a host twice":                {wide, 9, []string{"j0"}, append(whole("j0"), "begin j0"), "starts twice"},
		"an end of nothing":           {wide, 9, nil, []string{"ended j0"}, "never started"},
		"an end twice":                {wide, 9, []string{"j0"}, append(whole("j0"), "ended j0"), "ends twice"},
		"an end over open work":       {wide, 9, []string{"j0"}, []string{"begin j0", "started j0 one", "ended j0"}, "with 1 open actions"},
		"an action without an end":    {wide, 9, []string{"j0"}, []string{"begin j0", "started j0 one", "end"}, "was started but never ends|j0 started but never ends"},
		"an action twice":             {wide, 9, []string{"j0"}, []string{"begin j0", "started j0 one", "done j0 one", "started j0 one"}, "one of j0 starts twice"},
		"two actions at once":         {wide, 9, []string{"j0"}, []string{"begin j0", "started j0 one", "started j0 two"}, "2 actions at once"},
		"a drain that is stopped":     {wide, 9, []string{"j0"}, []string{"begin j0", "started j0 one", "stop", "skipped j0 one", "skipped j0 two", "ended j0", "end"}, ""},
		"a drain that just ends":      {wide, 9, []string{"j0"}, []string{"begin j0", "started j0 one", "skipped j0 one", "ended j0", "end"}, "but the run was not stopped"},
		"an action after a failure":   {wide, 9, []string{"j0"}, []string{"begin j0", "started j0 one", "failed j0 one", "started j0 two"}, "after a failure there"},
		"an action outside the work":  {wide, 9, []string{"j0"}, []string{"started j0 one"}, "while its host is not in progress"},
		"done but never started":      {wide, 9, []string{"j0"}, []string{"begin j0", "done j0 one"}, "was not started"},
		"a host after the stop":       {wide, 9, []string{"j0"}, []string{"stop", "begin j0"}, "j0 starts after the stop"},
		"an action after the stop":    {wide, 9, []string{"j0"}, []string{"begin j0", "stop", "started j0 one"}, "one of j0 starts after the stop"},
		"a line after the end":        {wide, 9, nil, []string{"end", "listed"}, "comes after the end"},
		"a fleet without limits":      {wide, 9, []string{"d0"}, nil, "has no limits"},
		"a share of nothing":          {runlog.FleetLimits{MaxUnavailable: "many"}, 9, nil, nil, "is neither a number"},
		"a soak of nothing":           {runlog.FleetLimits{MaxUnavailable: "1", Soak: "long"}, 9, nil, nil, "soak of f"},
		"an end that miscounts":       {wide, 9, []string{"j0"}, append(whole("j0"), "end"), "2 actions were done, but the end reports 7"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := fresh(c.limits, c.hosts, c.names...).write(c.lines...)
			switch name {
			case "a fleet without limits":
				s.add(runlog.Entry{Event: engine.Event{Type: "begun", Host: "d0", Fleet: "other", Lane: "disrupt"}})
			case "an end that miscounts":
				s.End.Done = 7
			}
			found := runcheck.Violations(s.Record)
			for _, f := range found {
				if c.want == "" || !slices.ContainsFunc(strings.Split(c.want, "|"), func(w string) bool { return strings.Contains(f, w) }) {
					t.Errorf("unexpected violation %q", f)
				}
			}
			if c.want != "" && len(found) == 0 {
				t.Error("no violation")
			}
		})
	}
}

// TestAnyViolation draws runs that keep their limits: there is no violation. Then it makes each limit tighter than what
// the run did: there is one.
func TestAnyViolation(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 12).Draw(t, "hosts")
		most := rapid.IntRange(1, n).Draw(t, "at once")
		var names []string
		for i := range n {
			names = append(names, fmt.Sprintf("d%d", i))
		}
		s := fresh(runlog.FleetLimits{MaxUnavailable: fmt.Sprint(most), FailureBudget: n}, most, names...)
		var left [][]string
		peak, next, failed := 0, 0, 0
		for next < n || len(left) > 0 {
			if next < n && len(left) < most && (len(left) == 0 || rapid.Bool().Draw(t, "another")) {
				lines := whole(names[next])
				if next < n-1 && rapid.IntRange(0, 4).Draw(t, "fails") == 0 {
					lines = broken(names[next])
				}
				s.write(lines[0])
				left, next = append(left, lines[1:]), next+1
				peak = max(peak, len(left))
				continue
			}
			i := rapid.IntRange(0, len(left)-1).Draw(t, "who")
			s.write(left[i][0])
			if left[i] = left[i][1:]; len(left[i]) == 0 {
				left = slices.Delete(left, i, i+1)
			}
			if next < n {
				failed = failures(s)
			}
		}
		s.write("end")
		if found := runcheck.Violations(s.Record); len(found) > 0 {
			t.Fatalf("violations of a run within its limits: %q", found)
		}
		violate := func(what string, change func(*runlog.FleetLimits)) {
			tight := s.Record
			tight.Head.Limits.Fleets = slices.Clone(s.Head.Limits.Fleets)
			change(&tight.Head.Limits.Fleets[0])
			if len(runcheck.Violations(tight)) == 0 {
				t.Fatalf("%s: no violation", what)
			}
		}
		if peak > 1 {
			violate("away", func(l *runlog.FleetLimits) { l.MaxUnavailable = fmt.Sprint(peak - 1) })
			violate("ready", func(l *runlog.FleetLimits) { l.MinReady = n - peak + 1 })
		}
		if failed > 0 {
			violate("budget", func(l *runlog.FleetLimits) { l.FailureBudget = failed - 1 })
		}
		violate("soak", func(l *runlog.FleetLimits) { l.Canary, l.Soak = 1, "24h" })
		i := rapid.IntRange(0, len(s.Entries)-2).Draw(t, "repeated line")
		if e := s.Entries[i]; !slices.Contains([]runlog.Type{"waiting", "ready"}, e.Type) {
			twice := s.Record
			twice.Entries = slices.Insert(slices.Clone(s.Entries), i, e)
			if len(runcheck.Violations(twice)) == 0 {
				t.Fatalf("%+v twice: no violation", e)
			}
		}
	})
}

// failures counts the failed hosts that have ended.
func failures(s *sheet) int {
	bad, out := make(map[string]bool), 0
	var ended []string
	for _, e := range s.Entries {
		switch e.Type {
		case "failed":
			bad[e.Host] = true
		case "ended":
			ended = append(ended, e.Host)
		}
	}
	for _, name := range ended {
		if bad[name] {
			out++
		}
	}
	return out
}
