package view

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/macfleet/macfleet/internal/runlog"
	"github.com/macfleet/macfleet/plan"
)

// stateText is the word for a state of an action or a host.
func stateText(s runlog.State) string {
	return cmp.Or(map[runlog.State]string{runlog.StateRefused: "blocked", runlog.StateUncertain: "possibly half done"}[s], string(s))
}

// unfinished counts the hosts that a run did not finish, by state.
func unfinished(of func(runlog.State) int) string {
	var parts []string
	for _, state := range runlog.LeftStates {
		switch n := of(state); {
		case n > 0 && len(parts) == 0:
			parts = append(parts, count(n, "host")+" "+stateText(state))
		case n > 0:
			parts = append(parts, fmt.Sprintf("%d %s", n, stateText(state)))
		}
	}
	return strings.Join(parts, ", ")
}

// countOf counts the hosts in a state.
func countOf(left []runlog.LeftHost) func(runlog.State) int {
	n := make(map[runlog.State]int)
	for _, l := range left {
		n[l.State]++
	}
	return func(s runlog.State) int { return n[s] }
}

// leftOver shows the hosts that a run did not finish and that are neither among its failures nor among those not started. The
// cause and the fix are printed only for what the plan before the run did not show yet.
func (t *Text) leftOver(before *plan.Plan, left []runlog.LeftHost, names plan.Names) {
	type cause struct {
		state runlog.State
		code  plan.Code
		text  string // empty: the plan has shown it
	}
	shown := make(map[string]cause)
	for _, l := range runlog.LeftIn(before) {
		shown[l.Host] = cause{l.State, l.Code, ""}
	}
	causeOf := func(l runlog.LeftHost) cause {
		if c := (cause{l.State, l.Code, ""}); shown[l.Host] == c && l.State != runlog.StateNotConverged {
			return c
		}
		return cause{l.State, l.Code, strings.ReplaceAll(l.Text, l.Host, ownName)}
	}
	var rest []runlog.LeftHost
	for _, l := range left {
		switch l.State {
		case runlog.StateFailed, runlog.StateNotFinished, runlog.StateNotStarted, runlog.StateDeferred:
		default:
			rest = append(rest, l)
		}
	}
	for _, same := range grouped(rest, causeOf) {
		l, c := same[0], causeOf(same[0])
		hosts := joinedUpTo(mapped(same, func(l runlog.LeftHost) string { return names.Short(l.Host) }), 12)
		state, code := stateText(l.State), l.Code.String()
		if c.text == "" {
			t.line(2, markWaiting, listed("  ", state+": "+hosts, given(code != "" && code != state, "[%s]", code)))
			continue
		}
		t.line(2, markFailed, listed("  ", hosts, listed(": ", state, l.Text), given(code != "", "[%s]", code)))
		t.below("fix", fixForAll(strings.ReplaceAll(l.Remedy, l.Host, anyName), names, mapped(same, func(l runlog.LeftHost) string { return l.Host }), ""))
	}
}
