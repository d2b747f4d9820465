package view

import (
	"fmt"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/rollout"
	"github.com/macfleet/macfleet/plan"
)

// deferred counts the hosts that a limit leaves for a later run.
func deferred(s plan.Summary) string {
	return given(s.Deferred > 0, "%s deferred", count(s.Deferred, "host"))
}

// deferralRows say once in a host's block which limits leave its actions for a later run, and
// which actions where not all of them.
func deferralRows(actions []plan.Action) []row {
	late := slices.DeleteFunc(slices.Clone(actions), func(a plan.Action) bool { return a.Deferral == nil })
	some := slices.ContainsFunc(actions, plan.Action.Runs)
	return mapped(grouped(late, func(a plan.Action) plan.Trouble { return *a.Deferral }), func(same []plan.Action) row {
		why := same[0].Deferral
		return row{text: fmt.Sprintf("deferred to a later run: %s%s: %s", given(some, "%s: ", joined(same, label)), why.Code, why.Text)}
	})
}

// inThisRun says which hosts of a plan this run changes and which it leaves, and in which order it
// disturbs those of each fleet.
func inThisRun(p *plan.Plan) []string {
	var out []string
	for _, r := range p.Rollouts {
		if text := waves(r); text != "" {
			out = append(out, fmt.Sprintf("Rollout of %s: %s%s.", r.Fleet, text, given(r.Seconds > 0, "; done after %s", roughly(r.Seconds))))
		}
	}
	if f := p.Forecast; f != nil {
		out = append(out, fmt.Sprintf("Expected time: %s, %s.", expected(*f), basedOn(*f))+given(f.Late > 0, " %s.", tooLate(*f)))
	}
	if s := p.Summarise(); s.Deferred > 0 {
		hosts := 0
		for _, actions := range p.Runnable() {
			if !actions[0].OfCluster() {
				hosts++
			}
		}
		out = append(out, fmt.Sprintf("In this run: %s. %s", count(hosts, "host"), deferredTo(p)))
	}
	return out
}

// rolloutRows say in short in which order the disturbed hosts of each fleet start: a row per fleet, its
// name and its order, and one for how long the plan takes and what it costs at most.
func rolloutRows(p *plan.Plan) [][]string {
	n := p.Names()
	ordered := func(r plan.Rollout) bool { return len(slices.Concat(r.Waves...)) > 1 || len(r.Trials)+len(r.Left) > 0 }
	var out [][]string
	rollouts := p.Rollouts
	if !slices.ContainsFunc(rollouts, ordered) {
		rollouts = nil
	}
	for _, r := range rollouts {
		short := func(hosts []string) string {
			return firstOf(mapped(hosts, func(host string) string { return strings.TrimPrefix(n.Short(host), r.Fleet+"/") }))
		}
		steps, rest := nonempty(given(len(r.Trials) > 0, "repair %s", short(r.Trials))), r.Waves
		if r.Canary > 0 && len(rest) > 0 && ordered(r) {
			steps, rest = append(steps, "canary "+short(rest[0])+given(r.Soak != "", " (soak %s)", r.Soak)), rest[1:]
		}
		hosts := count(len(slices.Concat(rest...)), "host")
		if shown := rest[:min(len(rest), namedWaves)]; len(rest) > 1 {
			steps = append(steps, mapped(shown, short)...)
			steps = append(steps, nonempty(given(len(rest) > len(shown), "%s", count(len(rest)-len(shown), "more wave")))...)
			steps[len(steps)-1] += fmt.Sprintf("   (%s, %d at a time)", hosts, r.AtOnce)
		} else if len(rest) == 1 {
			steps = append(steps, short(rest[0]))
		}
		lines := nonempty(strings.Join(steps, " → "), given(len(r.Left) > 0, "not started: %s (%s): %s  [%s]", count(len(r.Left), "host"), short(r.Left), whyNotStarted(r, n), r.LeftReason))
		for i, line := range lines {
			out = append(out, []string{given(i == 0, "%s", r.Fleet), line})
		}
	}
	cost := costs(p)
	text := given(cost != "", "at most %s", cost)
	if f := p.Forecast; f != nil {
		text = listed(", ", expected(*f), text)
	}
	if text != "" {
		out = append(out, []string{"", text})
	}
	if f := p.Forecast; f != nil && f.Late > 0 {
		out = append(out, []string{"", tooLate(*f)})
	}
	return out
}

// whyNotStarted says which limit keeps hosts of a rollout from starting.
func whyNotStarted(r plan.Rollout, n plan.Names) string {
	return whyLeft(engine.Left{Why: rollout.Reason(r.LeftReason), Of: r.Trials}, n)
}

// namedWaves is how many waves behind the canary a row names by their hosts.
const namedWaves = 3

// waves says in which order the disturbed hosts of a fleet start; nothing of a single host.
func waves(r plan.Rollout) string {
	if len(slices.Concat(r.Waves...)) < 2 && len(r.Trials)+len(r.Left) == 0 {
		return ""
	}
	first := given(len(r.Trials) > 0, "repair of %s (not Ready)", firstOf(r.Trials))
	canary, rest := "", r.Waves
	if r.Canary > 0 && len(rest) > 0 {
		canary, rest = "canary "+firstOf(r.Waves[0]), r.Waves[1:]
	}
	hosts := len(slices.Concat(rest...))
	soaked := given(r.Soak != "" && canary != "", ", which must stay Ready for %s", r.Soak)
	then := given(hosts > 0, "%s", count(hosts, "host")) +
		given(len(rest) > 1, " in %d waves of at most %d", len(rest), r.AtOnce) + given(len(rest) == 1 && hosts > 1, " at once")
	left := given(len(r.Left) > 0, "%s not started (%s): %s", count(len(r.Left), "host"), r.LeftReason, whyNotStarted(r, plan.Names{}))
	return listed("; ", listed("; then ", first, canary+soaked, then), left)
}

// deferredTo says how many hosts are left for a later run, by which limits, and what to type.
func deferredTo(p *plan.Plan) string {
	of := make(map[plan.Code]map[string]bool) // names of hosts
	var codes []plan.Code
	remedy := ""
	for _, a := range p.Actions {
		if a.Deferral == nil {
			continue
		}
		if c := a.Deferral.Code; of[c] == nil {
			codes, of[c] = append(codes, c), make(map[string]bool)
		}
		of[a.Deferral.Code][a.Host] = true
		remedy = a.Deferral.Remedy
	}
	names := joined(codes, func(c plan.Code) string { return c.String() })
	if len(codes) != 1 {
		remedy = "apply again for the others"
		names = joined(codes, func(c plan.Code) string { return fmt.Sprintf("%s %d", c, len(of[c])) })
	}
	return fmt.Sprintf("%s deferred to a later run (%s). fix: %s", count(p.Summarise().Deferred, "host"), names, remedy)
}
