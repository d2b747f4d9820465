package view

import (
	"fmt"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/rollout"
	"github.com/macfleet/macfleet/plan"
)

// idleText says what is done about the work on a host before an action that would hurt it,
// or "".
func idleText(a plan.Action) string {
	switch {
	case a.Refusal != nil || a.Disruption < plan.Drain:
		return ""
	case a.Forced && len(a.Busy) > 0:
		return "by force, while there is " + plan.TaskTexts(a.Busy)
	case a.Forced:
		return "by force: it is not looked whether anything is at work there"
	case a.Drains && a.Evicts > 0:
		return "drains the host first: " + count(a.Evicts, "Pod")
	case a.Drains:
		return "drains the host first: no Pod at present"
	}
	return "only while nothing uses the host's virtual machines"
}

// disturbs says of a plan how much of each fleet it disturbs, which hosts it drains, and
// which it does not wait for; each is a sentence.
func disturbs(p *plan.Plan, fleets []fleet.Fleet) string {
	disturbed := make(map[string]int)
	var drained, forced []string
	for _, actions := range p.Runnable() {
		h, known := p.HostByServer(actions[0].ServerID)
		if !known {
			continue
		}
		if p.IsHealthy(h) && plan.Worst(actions) >= plan.Restart {
			disturbed[h.Fleet]++
		}
		if i := slices.IndexFunc(actions, func(a plan.Action) bool { return a.Drains }); i >= 0 {
			drained = append(drained, fmt.Sprintf("%s (%s)", h.Name, count(actions[i].Evicts, "Pod")))
		}
		if i := slices.IndexFunc(actions, func(a plan.Action) bool { return a.Forced }); i >= 0 {
			text := h.Name
			if len(actions[i].Busy) > 0 {
				text += " (" + plan.TaskTexts(actions[i].Busy) + ")"
			}
			forced = append(forced, text)
		}
	}
	var shares []string
	for _, f := range fleets {
		if n, ready := disturbed[f.Name], len(p.Healthy[f.Name]); n > 0 {
			shares = append(shares, fmt.Sprintf("%d of %d %s, at most %d at once", n, ready, f.Name, rollout.LimitsOf(f.Rollout, ready).MaxUnavailable))
		}
	}
	out := ""
	for _, s := range []struct {
		what string
		all  []string
	}{{"It disturbs ", shares}, {"It drains ", drained}, {"By force, whatever goes on there: ", forced}} {
		if len(s.all) > 0 {
			out += " " + s.what + strings.Join(s.all, ", ") + "."
		}
	}
	return out
}

// idleEvent returns the line of an event about making a host idle, or "".
func idleEvent(e engine.Event) string {
	switch e.Type {
	case engine.Closing:
		return e.Host + ": its Node takes no new Pods"
	case engine.Opened:
		return e.Host + ": its Node takes Pods again"
	case engine.Evicting:
		text := fmt.Sprintf("%s: Pod %s %s", e.Host, e.Pod, e.What)
		if e.Why != "" {
			text += ": " + e.Why
		}
		return text
	}
	return ""
}

// closed names the hosts that a run leaves closed to new Pods.
func (t *Text) closed(all []engine.Closed) {
	if len(all) == 0 {
		return
	}
	var names []string
	for _, c := range all {
		names = append(names, c.Host)
	}
	slices.Sort(names)
	t.blank()
	t.line(0, "", "Closed to new Pods, as what was begun there is not proven: "+some(names)+".")
	t.line(4, "", "to do: apply again: it goes on there, and opens them when they are Ready")
}
