package view

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/rollout"
	"github.com/macfleet/macfleet/internal/runlog"
	"github.com/macfleet/macfleet/plan"
)

// Question returns what a person is asked before an apply: where, how many of each
// fleet's hosts, how many keys are taken on trust, and what it disturbs. fleets are the
// configuration's.
func Question(p *plan.Plan, fleets []fleet.Fleet) string {
	touched, have := make(map[string]int), byFleet(p)
	total, objects := 0, 0
	for _, actions := range p.Runnable() {
		if actions[0].OfCluster() {
			objects += len(actions)
			continue
		}
		touched[actions[0].Fleet]++
		total++
	}
	parts := mapped(p.Fleets, func(f string) string { return given(touched[f] > 0, "%s %d of %d", f, touched[f], len(have[f])) })
	keys := len(engine.Unpinned(p))
	what := listed(" and ", given(total > 0, "change %s (%s)", count(total, "host"), listed(", ", parts...)),
		given(objects > 0, "change %s of the cluster", count(objects, "object")), given(keys > 0, "trust the host keys of %s", count(keys, "member")))
	return fmt.Sprintf("Apply to %s: %s.", ownerTitle(p), what) + disturbs(p, fleets)
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
			busy := actions[i].Busy
			forced = append(forced, h.Name+given(len(busy) > 0, " (%s)", plan.TaskTexts(busy)))
		}
	}
	var shares []string
	for _, f := range fleets {
		if n, ready := disturbed[f.Name], len(p.Healthy[f.Name]); n > 0 {
			shares = append(shares, fmt.Sprintf("%d of %d %s, at most %d at once", n, ready, f.Name, rollout.LimitsOf(f.Rollout, ready).MaxUnavailable))
		}
	}
	sentence := func(what string, all []string) string {
		return given(len(all) > 0, " %s %s.", what, strings.Join(all, ", "))
	}
	return sentence("It disturbs", shares) + sentence("It drains", drained) + sentence("By force, whatever goes on there:", forced)
}

// Applied shows what a run came to: failures first, then what is left, then one
// line.
func (t *Text) Applied(r engine.Result) {
	if len(r.Failures) > 0 {
		t.section("Failed")
		for _, f := range r.Failures {
			t.line(0, signRefused, subject(f.Action.Host))
			text, remedy := failure(f)
			t.line(4, "", label(f.Action)+": "+text)
			t.line(6, "", "to do: "+remedy)
		}
	}
	if r.After == nil { // nobody could look
		t.leftHosts(r.Left)
		t.closed(r.Closed)
		t.lost(r.Lost)
		return
	}
	s := r.After.Summarise()
	if r.Converged() {
		t.sayf("Applied %s. %s of %s converged.", count(r.Done, "action"), all(r.After, s), ownerTitle(r.After))
		t.held(r.After, nowhere)
		t.nodes(r)
		t.notes(r.After)
		return
	}
	t.leftHosts(r.Left)
	t.closed(r.Closed)
	if !r.Interrupted { // else it is the rest of the plan that was shown
		t.section("Did not converge")
		t.differences(r.After)
	}
	t.blank()
	t.Say(listed("; ", fmt.Sprintf("Applied %s", count(r.Done, "action")), fmt.Sprintf("%d of %s converged", s.Converged, count(s.Hosts, "host")),
		incomplete(s), given(len(r.Failures) > 0, "%d failed", len(r.Failures)), given(r.NotStarted > 0, "%d not started", r.NotStarted),
		given(r.NotWaited > 0, "%s not waited for", count(r.NotWaited, "Node")), given(s.Changes() > 0, "%d still to do", s.Changes())) + ".")
	t.nodes(r)
	t.lost(r.Lost)
	if r.Interrupted {
		text, _ := stoppedBy(r)
		t.Say(text + ": running actions were finished, no other was started. macfleet apply goes on from here.")
	}
}

// lost says why a run stopped that no longer had the lock.
func (t *Text) lost(why error) {
	if why != nil {
		t.Say(why.Error() + ". Running actions were finished, no other was started.")
	}
}

// failure says what went wrong and what to do: what is known of this very error,
// or what helps with any.
func failure(f engine.Failure) (text, remedy string) {
	if f.Remedy != "" {
		return f.Err.Error(), f.Remedy
	}
	if x := runlog.TroubleOf(f.Err); x != nil {
		return x.Code.String() + ": " + x.Text, x.Remedy
	}
	on := given(f.Action.Host != "", " --on name=%s", f.Action.Host)
	return f.Err.Error(), "macfleet plan" + on + " shows what is left; apply again goes on from there"
}

// leftHosts shows the hosts that a limit of their fleet kept from starting: a line
// for each fleet and reason.
func (t *Text) leftHosts(all []engine.Left) {
	if len(all) == 0 {
		return
	}
	t.section("Not started")
	for _, same := range grouped(all, func(l engine.Left) engine.Left { return engine.Left{Fleet: l.Fleet, Why: l.Why} }) {
		of := same[0]
		t.line(0, signRefused, fmt.Sprintf("%s, %s: %s: %s", of.Fleet, count(len(same), "host"), of.Why, cmp.Or(leftTexts[of.Why], "other hosts were worked on, to the end")))
		t.line(4, "", some(mapped(same, func(l engine.Left) string { return l.Host })))
	}
	t.line(4, "", "to do: mend what failed, and apply again: it goes on from there")
}

// leftTexts say why a host was not started, where it is not that others were worked on.
var leftTexts = map[rollout.Reason]string{
	rollout.Unavailable:    "as many hosts as max_unavailable allows were disturbed or not Ready, to the end",
	rollout.Cordoned:       "hosts that somebody closed to new Pods take the places that max_unavailable allows; macfleet hosts shows them",
	rollout.CanaryGoes:     "the run ended before the canary was through",
	rollout.Soaking:        "the run ended before the canary was through",
	rollout.CanaryFailed:   "the canary failed or did not stay Ready, so no other host was touched",
	rollout.BudgetSpent:    "more hosts failed than failure_budget allows",
	rollout.TooFewReady:    "fewer hosts would be Ready than min_ready wants",
	rollout.RepairsFailing: "too many repairs failed",
}

// closed names the hosts that a run leaves closed to new Pods.
func (t *Text) closed(all []engine.Closed) {
	if len(all) == 0 {
		return
	}
	names := mapped(all, func(c engine.Closed) string { return c.Host })
	slices.Sort(names)
	t.blank()
	t.sayf("Closed to new Pods, as what was begun there is not proven: %s.", some(names))
	t.line(4, "", "to do: apply again: it goes on there, and opens them when they are Ready")
}

// hostsNamed is how many hosts a list of what is left names.
const hostsNamed = 20

// Remaining says what a run that was stopped did not start, and what to type.
func (t *Text) Remaining(left []plan.Action, resume string) {
	if len(left) > 0 {
		t.section("Not started")
	}
	hosts := grouped(left, func(a plan.Action) string { return a.Host })
	slices.SortFunc(hosts, func(a, b []plan.Action) int { return strings.Compare(a[0].Host, b[0].Host) })
	for _, of := range hosts[:min(len(hosts), hostsNamed)] {
		t.line(2, "", subject(of[0].Host)+": "+joined(of, label))
	}
	if more := len(hosts) - hostsNamed; more > 0 {
		t.line(2, "", fmt.Sprintf("and %s more", count(more, "host")))
	}
	t.Say("To go on: " + resume)
}

// stoppedBy returns what stopped a run, for a person and for a program.
func stoppedBy(r engine.Result) (text, code string) {
	switch {
	case !r.Interrupted:
		return "", ""
	case errors.Is(r.Stopped, engine.ErrDeadline):
		return "The deadline passed", "deadline"
	case errors.Is(r.Stopped, engine.ErrUnrecorded):
		return "The record of the run could not be written", "record"
	}
	return "Interrupted", "interrupted"
}
