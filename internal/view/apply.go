package view

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/rollout"
	"github.com/macfleet/macfleet/internal/runlog"
	"github.com/macfleet/macfleet/plan"
)

// Question returns what a person is asked before an apply: what it touches, how many keys
// are taken on trust, and what it disturbs. fleets are the configuration's.
func Question(p *plan.Plan, fleets []fleet.Fleet) string {
	have := by(p.Hosts, func(h plan.Host) string { return h.Fleet })
	touched, disturbed := make(map[string]int), make(map[string]int) // by fleet
	total, objects := 0, 0
	var drained, forced []string
	for _, actions := range p.Runnable() {
		if actions[0].OfCluster() {
			objects += len(actions)
			continue
		}
		touched[actions[0].Fleet]++
		total++
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
	parts := mapped(p.Fleets, func(f string) string { return given(touched[f] > 0, "%s %d of %d", f, touched[f], len(have[f])) })
	keys := len(engine.Unpinned(p))
	what := listed(" and ", given(total > 0, "change %s (%s)", count(total, "host"), listed(", ", parts...)),
		given(objects > 0, "change %s of the cluster", count(objects, "object")), given(keys > 0, "pin the host keys of %s", count(keys, "member")))
	shares := listed(", ", mapped(fleets, func(f fleet.Fleet) string {
		n, ready := disturbed[f.Name], len(p.Healthy[f.Name])
		return given(n > 0, "%d of %d %s, at most %d at once", n, ready, f.Name, rollout.LimitsOf(f.Rollout, ready).MaxUnavailable)
	})...)
	uncompared, _ := lead(p.Coverage())
	return uncompared + listed(" ", fmt.Sprintf("Apply to %s%s: %s.", ownerTitle(p), clusterTitle(p), what), given(shares != "", "It disturbs %s.", shares),
		given(len(drained) > 0, "It drains %s.", strings.Join(drained, ", ")),
		given(len(forced) > 0, "By force, whatever goes on there: %s.", strings.Join(forced, ", ")))
}

// Applied shows what a run came to: failures first, then what is left, then one line.
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
	if r.Converged() {
		t.uncovered(r.After.Coverage())
		t.sayf("Applied %s. %s", count(r.Done, "action"), convergedText(r.After))
		t.orphans(r.After, anyOrphan)
		t.held(r.After, false)
		t.nodes(r)
		t.notes(r.After)
		return
	}
	if r.Finished() {
		s := r.After.Summarise()
		t.uncovered(r.After.Coverage())
		t.sayf("Applied %s. %d of %s of %s converged.", count(r.Done, "action"), s.Converged, count(s.Hosts, "host"), ownerTitle(r.After))
		t.Say(deferredTo(r.After))
		t.closed(r.Closed)
		t.held(r.After, false)
		t.nodes(r)
		t.notes(r.After)
		return
	}
	t.leftHosts(r.Left)
	t.closed(r.Closed)
	if r.After != nil { // else nobody could look
		t.remainder(r)
	}
	if r.Lost != nil {
		t.Say(r.Lost.Error() + ". Running actions were finished, no other was started.")
	}
	if text, _ := stoppedBy(r); r.After != nil && text != "" {
		t.Say(text + ": running actions were finished, no other was started. macfleet apply goes on from here.")
	}
}

// convergedText says that everything that was compared is as it is wanted.
func convergedText(p *plan.Plan) string {
	s := p.Summarise()
	if p.Coverage().Limited() {
		return "Converged" + selected(p, s) + "."
	}
	return fmt.Sprintf("%s of %s converged.", all(s), ownerTitle(p))
}

// remainder shows what a run that did not converge left to do, and sums it up.
func (t *Text) remainder(r engine.Result) {
	if !r.Interrupted { // else it is the rest of the plan that was shown
		t.section("Did not converge")
		t.differences(r.After)
	}
	t.blank()
	s := r.After.Summarise()
	uncompared, _ := lead(r.After.Coverage())
	t.Say(uncompared + listed("; ", fmt.Sprintf("Applied %s", count(r.Done, "action")), fmt.Sprintf("%d of %s converged", s.Converged, count(s.Hosts, "host")),
		deferred(s), refusals(s), some(len(r.Failures), "failed"), some(r.NotStarted, "not started"),
		given(r.NotWaited > 0, "%s not waited for", count(r.NotWaited, "Node")), some(s.Changes(), "still to do")) + ".")
	t.nodes(r)
}

// failure says what went wrong, and what to do about this very error or about any.
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

// leftHosts shows the hosts that a limit of their fleet kept from starting.
func (t *Text) leftHosts(all []engine.Left) {
	if len(all) == 0 {
		return
	}
	t.section("Not started")
	for _, same := range grouped(all, func(l engine.Left) string { return fmt.Sprintln(l.Fleet, l.Why, l.Of) }) {
		of := same[0]
		t.line(0, signRefused, fmt.Sprintf("%s, %s: %s: %s", of.Fleet, count(len(same), "host"), of.Why, whyLeft(of)))
		t.line(4, "", firstOf(mapped(same, func(l engine.Left) string { return l.Host })))
	}
	if tried := slices.IndexFunc(all, func(l engine.Left) bool { return l.Why == rollout.TrialFailed }); tried >= 0 {
		name := all[tried].Of[0]
		t.line(4, "", fmt.Sprintf("to do: fix %s and apply again; or go on without it: macfleet hold %s, or --exclude name=%s", name, name, name))
		return
	}
	t.line(4, "", "to do: fix what failed and apply again; it resumes")
}

// whyLeft says why a host was not started, with the hosts because of which it was not.
func whyLeft(l engine.Left) string {
	text := cmp.Or(leftTexts[l.Why], "other hosts were worked on, to the end")
	if strings.Contains(text, "%s") {
		return fmt.Sprintf(text, cmp.Or(firstOf(l.Of), "a host"))
	}
	return text
}

// leftTexts say why a host was not started, where it is not that others were worked on. A %s
// stands for the hosts because of which it was not.
var leftTexts = map[rollout.Reason]string{
	rollout.Unavailable:    "as many hosts as max_unavailable allows were disturbed or not Ready, to the end",
	rollout.Cordoned:       "hosts that somebody closed to new Pods take the places that max_unavailable allows; macfleet hosts shows them",
	rollout.CanaryGoes:     "the run ended before the canary was through",
	rollout.Soaking:        "the run ended before the canary was through",
	rollout.CanaryFailed:   "the canary %s failed or did not stay Ready, so no other host was touched",
	rollout.TrialGoes:      "the run ended before %s was repaired, which has this change already",
	rollout.TrialFailed:    "%s has this change already, is not Ready and could not be repaired, so no other host gets it",
	rollout.BudgetSpent:    "more hosts failed than failure_budget allows: %s",
	rollout.TooFewReady:    "fewer hosts would be Ready than min_ready wants",
	rollout.RepairsFailing: "the repairs of %s failed, and no further one is tried",
}

func (t *Text) closed(all []engine.Closed) {
	if len(all) == 0 {
		return
	}
	names := slices.Sorted(slices.Values(mapped(all, func(c engine.Closed) string { return c.Host })))
	t.blank()
	t.sayf("Closed to new Pods, as what was begun there is not proven: %s.", firstOf(names))
	t.line(4, "", "to do: apply again: it goes on there, and opens them when they are Ready")
}

// Remaining says what a run that was stopped did not start, and what to type.
func (t *Text) Remaining(left []plan.Action, resume string) {
	if len(left) > 0 {
		t.section("Not started")
	}
	hosts := grouped(left, func(a plan.Action) string { return a.Host })
	slices.SortFunc(hosts, func(a, b []plan.Action) int { return strings.Compare(a[0].Host, b[0].Host) })
	const named = 20 // hosts, at most
	for _, of := range hosts[:min(len(hosts), named)] {
		t.line(2, "", subject(of[0].Host)+": "+joined(of, label))
	}
	if more := len(hosts) - named; more > 0 {
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

// nodes sums up how the Nodes of a run's hosts are at its end. A host whose kubelet could
// not be changed counts as not Ready, whatever its Node says.
func (t *Text) nodes(r engine.Result) {
	failed := make(map[string]plan.StepID) // by server id
	for _, f := range r.Failures {
		if f.OfNode {
			failed[f.Action.ServerID] = f.Action.Step
		}
	}
	joining, failing := 0, 0
	var late []engine.NotReady
	for _, h := range r.After.Hosts {
		if !h.Member || !h.Spec.Spec.JoinsCluster() {
			continue
		}
		joining++
		failing += h.PodsFailing()
		state, why, _ := h.Ready()
		if step := failed[h.Server.ID]; state == inventory.Ready && step != "" {
			state, why = inventory.ReadyUnknown, "its step "+string(step)+" failed"
		}
		if state != inventory.Ready {
			late = append(late, engine.NotReady{Host: h, Why: why})
		}
	}
	if joining == 0 {
		return
	}
	end := "."
	if len(late) > 0 {
		end = "; not Ready:"
	}
	t.sayf("%d of %s Ready%s%s", joining-len(late), count(joining, "Node"), given(failing > 0, ", %s failing", count(failing, "Pod")), end)
	t.late(late)
}
