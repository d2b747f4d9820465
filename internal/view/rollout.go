package view

import (
	"fmt"
	"slices"

	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/rollout"
)

// rolloutEvent returns the line of an event about the order of hosts, or "".
func rolloutEvent(e engine.Event) string {
	switch e.Type {
	case engine.HostBegun:
		return fmt.Sprintf("%s: begins (%s, %s)", e.Host, e.Lane, e.Worst)
	case engine.HostEnded:
		return e.Host + ": ended"
	case engine.Soaking:
		return fmt.Sprintf("%s: the canary is Ready and watched until %s; then the others start", e.Fleet, e.Until.UTC().Format("15:04:05 UTC"))
	}
	return ""
}

// leftText says why a host was not started.
func leftText(why rollout.Reason) string {
	switch why {
	case rollout.Unavailable:
		return "as many hosts as max_unavailable allows were disturbed or not Ready, to the end"
	case rollout.Cordoned:
		return "hosts that somebody closed to new Pods take the places that max_unavailable allows; macfleet hosts shows them"
	case rollout.CanaryGoes, rollout.Soaking:
		return "the run ended before the canary was through"
	case rollout.CanaryFailed:
		return "the canary failed or did not stay Ready, so no other host was touched"
	case rollout.BudgetSpent:
		return "more hosts failed than failure_budget allows"
	case rollout.TooFewReady:
		return "fewer hosts would be Ready than min_ready wants"
	case rollout.RepairsFailing:
		return "too many repairs failed"
	}
	return "other hosts were worked on, to the end"
}

// leftHosts shows the hosts that a limit of their fleet kept from starting: a line
// for each fleet and reason.
func (t *Text) leftHosts(all []engine.Left) {
	if len(all) == 0 {
		return
	}
	t.blank()
	fmt.Fprintln(t.out, t.styles.strong.Render("Not started"))
	type kind struct {
		fleet string
		why   rollout.Reason
	}
	var kinds []kind
	names := make(map[kind][]string)
	for _, l := range all {
		k := kind{l.Fleet, l.Why}
		if !slices.Contains(kinds, k) {
			kinds = append(kinds, k)
		}
		names[k] = append(names[k], l.Host)
	}
	for _, k := range kinds {
		t.line(0, signRefused, fmt.Sprintf("%s, %s: %s: %s", k.fleet, count(len(names[k]), "host"), k.why, leftText(k.why)))
		t.line(4, "", some(names[k]))
	}
	t.line(4, "", "to do: mend what failed, and apply again: it goes on from there")
}
