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

// sheet is a record that is written by hand, a second a line.
type sheet struct {
	runlog.Record
	at time.Time
}

// fresh is the record of a run over hosts of the fleet f, of which those are healthy
// whose names begin with d. Each has two actions.
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

// lane is told by the name: d0 is disturbed, r0 is mended, j0 joins.
func lane(host string) string {
	return map[byte]string{'d': "disrupt", 'r': "repair", 'j': "join"}[host[0]]
}

func (s *sheet) add(e runlog.Entry) {
	s.at = s.at.Add(time.Second)
	e.Version, e.Time = runlog.Version, s.at
	s.Entries = append(s.Entries, e)
}

// tell adds lines: "begun d0", "started d0 one", "stop", "wait 60" for a minute without any.
func (s *sheet) tell(lines ...string) *sheet {
	for _, line := range lines {
		words := strings.Fields(line)
		e := runlog.Entry{Event: engine.Event{Type: runlog.Type(words[0])}}
		switch {
		case words[0] == "wait":
			var seconds int
			_, _ = fmt.Sscan(words[1], &seconds) // of a test's own text
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

// whole is all of a host's work, without a fault.
func whole(host string) []string {
	return []string{"begun " + host, "started " + host + " one", "done " + host + " one", "started " + host + " two", "done " + host + " two",
		"waiting " + host, "ready " + host, "ended " + host}
}

// broken is that work with a failure.
func broken(host string) []string {
	return []string{"begun " + host, "started " + host + " one", "failed " + host + " one", "ended " + host}
}

func begins(hosts ...string) []string {
	var out []string
	for _, h := range hosts {
		out = append(out, "begun "+h)
	}
	return out
}

// TestBroken breaks each limit once, and finds no other broken.
func TestBroken(t *testing.T) {
	t.Parallel()
	wide := runlog.FleetLimits{MaxUnavailable: "100%", FailureBudget: 9}
	for name, c := range map[string]struct {
		limits runlog.FleetLimits
		hosts  int
		names  []string
		lines  []string
		want   string // empty: nothing is broken
	}{
		"all is well":                 {wide, 1, []string{"d0", "d1"}, append(append(whole("d0"), whole("d1")...), "end"), ""},
		"a run that broke off":        {wide, 1, []string{"d0"}, whole("d0")[:2], ""},
		"too many hosts":              {wide, 1, []string{"j0", "j1"}, begins("j0", "j1"), "2 hosts are worked on, of at most 1"},
		"one waits for its Node":      {wide, 1, []string{"j0", "j1"}, append(whole("j0")[:5], "begun j1"), ""},
		"too many uploads":            {wide, 9, []string{"j0"}, []string{"upload-begins j0", "upload-begins j1", "upload-begins j2"}, "3 uploads at once, of at most 2"},
		"an upload out of nowhere":    {wide, 9, nil, []string{"upload-ends j0"}, "never began"},
		"an upload without an end":    {wide, 9, nil, []string{"upload-begins j0", "end"}, "upload j0  has no end"},
		"too many are away":           {runlog.FleetLimits{MaxUnavailable: "40%"}, 9, []string{"d0", "d1", "d2", "d3"}, begins("d0", "d1"), "2 healthy hosts of f are disturbed, of at most 1"},
		"as many as may be":           {runlog.FleetLimits{MaxUnavailable: "50%"}, 9, []string{"d0", "d1", "d2", "d3"}, begins("d0", "d1"), ""},
		"too few stay":                {runlog.FleetLimits{MaxUnavailable: "9", MinReady: 3}, 9, []string{"d0", "d1", "d2", "d3"}, begins("d0", "d1"), "of which 3 must stay"},
		"beside the canary":           {runlog.FleetLimits{MaxUnavailable: "9", Canary: 1}, 9, []string{"d0", "d1"}, begins("d0", "d1"), "beside the canary"},
		"two canaries":                {runlog.FleetLimits{MaxUnavailable: "9", Canary: 2}, 9, []string{"d0", "d1"}, begins("d0", "d1"), ""},
		"after a failed canary":       {runlog.FleetLimits{MaxUnavailable: "9", Canary: 1, FailureBudget: 5}, 9, []string{"d0", "d1"}, append(broken("d0"), "begun d1"), "after the canary of f failed"},
		"within the soak":             {runlog.FleetLimits{MaxUnavailable: "9", Canary: 1, Soak: "1m0s"}, 9, []string{"d0", "d1"}, append(whole("d0"), "wait 58", "begun d1"), "59s after the canary"},
		"after the soak":              {runlog.FleetLimits{MaxUnavailable: "9", Canary: 1, Soak: "1m0s"}, 9, []string{"d0", "d1"}, append(whole("d0"), "wait 59", "begun d1"), ""},
		"beyond the budget":           {runlog.FleetLimits{MaxUnavailable: "9"}, 9, []string{"d0", "d1"}, append(broken("d0"), "begun d1"), "after 1 failures in f, of at most 0"},
		"within the budget":           {runlog.FleetLimits{MaxUnavailable: "9", FailureBudget: 1}, 9, []string{"d0", "d1"}, append(broken("d0"), "begun d1"), ""},
		"a Node that does not come":   {runlog.FleetLimits{MaxUnavailable: "9"}, 9, []string{"d0", "d1"}, append(whole("d0")[:6], "failed d0", "ended d0", "begun d1"), "after 1 failures"},
		"four repairs":                {wide, 9, []string{"r0", "r1", "r2", "r3"}, begins("r0", "r1", "r2", "r3"), "3 hosts are being mended already"},
		"a repair after three failed": {wide, 9, []string{"r0", "r1", "r2", "r3"}, slices.Concat(broken("r0"), broken("r1"), broken("r2"), begins("r3")), "after 3 failed repairs"},
		"a host twice":                {wide, 9, []string{"j0"}, append(whole("j0"), "begun j0"), "begins twice"},
		"an end of nothing":           {wide, 9, nil, []string{"ended j0"}, "never began"},
		"an end twice":                {wide, 9, []string{"j0"}, append(whole("j0"), "ended j0"), "ends twice"},
		"an end over open work":       {wide, 9, []string{"j0"}, []string{"begun j0", "started j0 one", "ended j0"}, "with 1 open actions"},
		"an action without an end":    {wide, 9, []string{"j0"}, []string{"begun j0", "started j0 one", "end"}, "was started and has no end|the work on j0 has no end"},
		"an action twice":             {wide, 9, []string{"j0"}, []string{"begun j0", "started j0 one", "done j0 one", "started j0 one"}, "one of j0 starts twice"},
		"two actions at once":         {wide, 9, []string{"j0"}, []string{"begun j0", "started j0 one", "started j0 two"}, "2 actions at once"},
		"an action after a failure":   {wide, 9, []string{"j0"}, []string{"begun j0", "started j0 one", "failed j0 one", "started j0 two"}, "after a failure there"},
		"an action outside the work":  {wide, 9, []string{"j0"}, []string{"started j0 one"}, "outside the work on that host"},
		"done out of nowhere":         {wide, 9, []string{"j0"}, []string{"begun j0", "done j0 one"}, "was not under way"},
		"a host after the stop":       {wide, 9, []string{"j0"}, []string{"stop", "begun j0"}, "j0 begins after the stop"},
		"an action after the stop":    {wide, 9, []string{"j0"}, []string{"begun j0", "stop", "started j0 one"}, "one of j0 starts after the stop"},
		"a line after the end":        {wide, 9, nil, []string{"end", "listed"}, "comes after the end"},
		"a fleet without limits":      {wide, 9, []string{"d0"}, nil, "has no limits"},
		"a share of nothing":          {runlog.FleetLimits{MaxUnavailable: "many"}, 9, nil, nil, "is no number"},
		"a soak of nothing":           {runlog.FleetLimits{MaxUnavailable: "1", Soak: "long"}, 9, nil, nil, "soak of f"},
		"an end that miscounts":       {wide, 9, []string{"j0"}, append(whole("j0"), "end"), "2 actions were done, and the end says 7"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := fresh(c.limits, c.hosts, c.names...).tell(c.lines...)
			switch name {
			case "a fleet without limits":
				s.add(runlog.Entry{Event: engine.Event{Type: "begun", Host: "d0", Fleet: "other", Lane: "disrupt"}})
			case "an end that miscounts":
				s.End.Done = 7
			}
			found := runcheck.Violations(s.Record)
			for _, f := range found {
				if c.want == "" || !slices.ContainsFunc(strings.Split(c.want, "|"), func(w string) bool { return strings.Contains(f, w) }) {
					t.Errorf("it says %q", f)
				}
			}
			if c.want != "" && len(found) == 0 {
				t.Error("it says nothing")
			}
		})
	}
}

// TestAnyBreach draws runs that keep their limits, of which nothing is said, and makes
// each limit tighter than what the run did: then something is.
func TestAnyBreach(t *testing.T) {
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
				s.tell(lines[0])
				left, next = append(left, lines[1:]), next+1
				peak = max(peak, len(left))
				continue
			}
			i := rapid.IntRange(0, len(left)-1).Draw(t, "who")
			s.tell(left[i][0])
			if left[i] = left[i][1:]; len(left[i]) == 0 {
				left = slices.Delete(left, i, i+1)
			}
			if next < n {
				failed = failures(s)
			}
		}
		s.tell("end")
		if found := runcheck.Violations(s.Record); len(found) > 0 {
			t.Fatalf("of a run within its limits it says %q", found)
		}
		breach := func(what string, change func(*runlog.FleetLimits)) {
			tight := s.Record
			tight.Head.Limits.Fleets = slices.Clone(s.Head.Limits.Fleets)
			change(&tight.Head.Limits.Fleets[0])
			if len(runcheck.Violations(tight)) == 0 {
				t.Fatalf("%s: it says nothing", what)
			}
		}
		if peak > 1 {
			breach("away", func(l *runlog.FleetLimits) { l.MaxUnavailable = fmt.Sprint(peak - 1) })
			breach("ready", func(l *runlog.FleetLimits) { l.MinReady = n - peak + 1 })
		}
		if failed > 0 {
			breach("budget", func(l *runlog.FleetLimits) { l.FailureBudget = failed - 1 })
		}
		breach("soak", func(l *runlog.FleetLimits) { l.Canary, l.Soak = 1, "24h" })
		i := rapid.IntRange(0, len(s.Entries)-2).Draw(t, "line that is told twice")
		if e := s.Entries[i]; !slices.Contains([]runlog.Type{"waiting", "ready"}, e.Type) {
			twice := s.Record
			twice.Entries = slices.Insert(slices.Clone(s.Entries), i, e)
			if len(runcheck.Violations(twice)) == 0 {
				t.Fatalf("%+v twice: it says nothing", e)
			}
		}
	})
}

// failures counts the hosts that ended with a failure before the last line began one.
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
