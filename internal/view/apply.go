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

// Question returns the prompt before an apply: what it touches, how many keys are pinned
// without a check, and what it disturbs. fleets are the configuration's.
func Question(p *plan.Plan, fleets []fleet.Fleet) string {
	have := by(p.Hosts, func(h plan.Host) string { return h.Fleet })
	touched, disturbed := make(map[string]int), make(map[string]int) // by fleet
	total, objects, empty := 0, 0, 0
	var drained, erased, forced []string
	names := p.Names()
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
			if n := actions[i].Evicts; n > 0 {
				drained = append(drained, fmt.Sprintf("%s (%s)", names.Short(h.Name), count(n, "Pod")))
			} else {
				empty++
			}
		}
		if slices.ContainsFunc(actions, func(a plan.Action) bool { return a.Kind == plan.ReinstallServer }) {
			erased = append(erased, names.Short(h.Name))
		}
		if i := slices.IndexFunc(actions, func(a plan.Action) bool { return a.Forced }); i >= 0 {
			busy := actions[i].Busy
			forced = append(forced, names.Short(h.Name)+given(len(busy) > 0, " (%s)", plan.TaskTexts(busy)))
		}
	}
	inFleets := listed(", ", mapped(p.Fleets, func(f string) string { return given(touched[f] > 0, "%s %d of %d", f, touched[f], len(have[f])) })...)
	keys := len(engine.Unpinned(p))
	what := listed(" and ", given(total > 0, "change %s", count(total, "host")+given(inFleets != "", " (%s)", inFleets)),
		given(objects > 0, "change %s of the cluster", count(objects, "object")), given(keys > 0, "pin the host keys of %s", count(keys, "member")))
	shares := listed("; ", mapped(fleets, func(f fleet.Fleet) string {
		n, ready := disturbed[f.Name], len(p.Healthy[f.Name])
		return given(n > 0, "%s %d of %d, %d at a time", f.Name, n, ready, rollout.LimitsOf(f.Rollout, ready).MaxUnavailable)
	})...)
	drains := listed(", ", strings.Join(drained, ", "), given(empty > 0, "%s without Pods", count(empty, "host")))
	uncompared, _ := lead(p.Coverage())
	return uncompared + listed(" ", fmt.Sprintf("Apply to %s%s: %s.", ownerTitle(p), clusterTitle(p), what), given(shares != "", "Ready hosts disturbed: %s.", shares),
		given(drains != "", "Drained: %s.", drains),
		given(len(erased) > 0, "Erased: %s.", strings.Join(erased, ", ")), given(len(forced) > 0, "By force, without waiting until idle: %s.", strings.Join(forced, ", ")))
}

// Applied shows what a run left behind: what failed, what was not started and why, and what else is not in sync. before is the
// plan that was performed, whose troubles are only named again. left are the hosts that the run did not finish. After a run that
// converged there is nothing to show.
func (t *Text) Applied(before *plan.Plan, r engine.Result, left []runlog.LeftHost) {
	before = cmp.Or(before, r.After, &plan.Plan{})
	names := before.Names()
	t.unfinished(r, left)
	t.failures(r.Failures, names)
	t.leftHosts(r.Left, names)
	t.leftOver(before, left, names)
	t.closed(r.LeftCordoned, names)
	t.fenced(r.LeftFenced, names)
	t.quarantined(r.Quarantined, names)
	if r.After != nil { // else the result could not be verified
		t.unread(before.Coverage(), r.After.Coverage())
		if n := objectsToChange(r.After); n > 0 && !r.Interrupted {
			t.line(2, markFailed, "cluster  "+count(n, "object")+" still to change; macfleet plan shows them")
		}
		if r.After.Summarise().Deferred > 0 {
			t.Say(deferredTo(r.After))
		}
		t.newShortages(before, r.After)
		t.notReady(r, names)
		t.newWarnings(before, r.After)
		t.keyRotation(r.After)
	}
	if r.Lost != nil {
		t.Say(r.Lost.Error() + ". Running actions were finished, no other was started.")
	}
}

// unfinished says what stopped the run, and counts the hosts that it did not finish.
func (t *Text) unfinished(r engine.Result, left []runlog.LeftHost) {
	cluster := slices.ContainsFunc(r.Failures, func(f engine.Failure) bool { return f.Action.Host == "" })
	of := countOf(left)
	hosts := unfinished(of)
	if of(runlog.StateDeferred) == len(left) { // deferredTo reports these
		hosts = ""
	}
	text := listed("; ", listed(", ", given(cluster, "work on the cluster failed"), hosts), given(len(r.LeftCordoned) > 0, "%s left cordoned", count(len(r.LeftCordoned), "host")),
		given(len(r.LeftFenced) > 0, "%s left fenced", count(len(r.LeftFenced), "host")))
	if why, _ := stoppedBy(r); why != "" {
		text = why + ": " + cmp.Or(text, "running actions were finished, no other was started")
	}
	if text != "" {
		t.blank()
		t.heading(text + ".")
	}
}

// unread shows parts of the cluster that only the last comparison could not read.
func (t *Text) unread(before, after plan.Coverage) {
	if len(after.ClusterUnread) > 0 && !slices.Equal(before.ClusterUnread, after.ClusterUnread) {
		t.uncovered(plan.Coverage{ClusterUnread: after.ClusterUnread})
	}
}

// objectsToChange counts the actions on the cluster that a plan would run.
func objectsToChange(p *plan.Plan) int {
	return len(slices.DeleteFunc(slices.Clone(p.Actions), func(a plan.Action) bool { return !a.OfCluster() || !a.Runs() || a.Host != "" }))
}

// newShortages shows what a run leaves its groups lacking and the plan before it did not say, such as servers that someone
// else took.
func (t *Text) newShortages(before, after *plan.Plan) {
	for _, s := range after.Shortages {
		if slices.ContainsFunc(before.Shortages, func(b plan.Shortage) bool {
			return b.Fleet == s.Fleet && b.Group == s.Group && b.Code == s.Code && b.Text == s.Text
		}) {
			continue
		}
		t.line(2, markWaiting, fmt.Sprintf("%s.%s  %s missing: %s  [%s]", s.Fleet, s.Group, count(s.Missing, "server"), s.Text, s.Code))
		t.below("fix", s.Remedy)
	}
}

// newWarnings shows the warnings that the plan before did not have.
func (t *Text) newWarnings(before, after *plan.Plan) {
	known := make(map[string]bool)
	key := func(name string, x plan.Trouble) string { return name + x.Code.String() + x.Text }
	for _, w := range before.Warnings {
		known[key("", w)] = true
	}
	for _, s := range before.Services {
		known[key(s.Scope, s.Trouble)] = true
	}
	for _, h := range before.Hosts {
		for _, w := range h.Warnings {
			known[key(h.Name, w.Trouble)] = true
		}
	}
	fresh := *after
	fresh.Warnings = slices.DeleteFunc(slices.Clone(after.Warnings), func(w plan.Trouble) bool { return known[key("", w)] })
	fresh.Services = slices.DeleteFunc(slices.Clone(after.Services), func(s plan.SilentService) bool { return known[key(s.Scope, s.Trouble)] })
	fresh.Hosts = slices.Clone(after.Hosts)
	for i := range fresh.Hosts {
		h := &fresh.Hosts[i]
		h.Warnings = slices.DeleteFunc(slices.Clone(h.Warnings), func(w plan.StepWarning) bool { return known[key(h.Name, w.Trouble)] })
	}
	t.warnings(&fresh, true)
}

// Remaining says what a run that was stopped did not start, and what to type.
func (t *Text) Remaining(left []plan.Action, names plan.Names, resume string) {
	hosts := grouped(left, func(a plan.Action) string { return a.Host })
	for _, same := range grouped(hosts, func(of []plan.Action) string { return joined(of, label) }) {
		t.line(2, markWaiting, joinedUpTo(mapped(same, func(of []plan.Action) string { return subject(names.Short(of[0].Host)) }), 20)+": not started: "+joined(same[0], label))
	}
	t.Say("To resume: " + resume)
}

// stoppedBy returns what stopped a run, for a person and for a program.
func stoppedBy(r engine.Result) (text, code string) {
	switch {
	case !r.Interrupted:
		return "", ""
	case errors.Is(r.Stopped, engine.ErrDeadline):
		return "Deadline passed", "deadline"
	case errors.Is(r.Stopped, engine.ErrUnrecorded):
		return "The record of the run could not be written", "record"
	}
	return "Interrupted", "interrupted"
}

// nodesOf returns how many hosts of a run should be Nodes, and those that are not Ready at its end. A host whose kubelet could
// not be changed counts as not Ready, whatever its Node says.
func nodesOf(r engine.Result) (joining int, late []engine.NotReady) {
	failed := make(map[string]plan.StepID) // by server id
	for _, f := range r.Failures {
		if f.OfNode {
			failed[f.Action.ServerID] = f.Action.Step
		}
	}
	for _, h := range r.After.Hosts {
		if !h.Member || !h.Spec.Spec.JoinsCluster() {
			continue
		}
		joining++
		state, why, _ := h.Ready()
		if step := failed[h.Server.ID]; state == inventory.Ready && step != "" {
			state, why = inventory.ReadyUnknown, "its step "+string(step)+" failed"
		}
		if state != inventory.Ready {
			late = append(late, engine.NotReady{Host: h, Why: why})
		}
	}
	return joining, late
}

// notReady names the hosts whose Nodes are not Ready, without those that failed, and counts Pods that fail.
func (t *Text) notReady(r engine.Result, names plan.Names) {
	_, late := nodesOf(r)
	late = slices.DeleteFunc(late, func(l engine.NotReady) bool {
		return slices.ContainsFunc(r.Failures, func(f engine.Failure) bool { return f.Action.ServerID == l.Host.Server.ID }) ||
			slices.ContainsFunc(r.After.Actions, func(a plan.Action) bool { return a.ServerID == l.Host.Server.ID && a.Step != "" && a.Refusal != nil })
	})
	if len(late) > 0 {
		t.Say("Not Ready:")
	}
	for _, same := range grouped(late, func(l engine.NotReady) string { return l.Why }) {
		t.line(2, signUnknown, joined(same, func(l engine.NotReady) string { return names.Short(l.Host.Name) })+": "+same[0].Why)
	}
	failing := 0
	for _, h := range r.After.Hosts {
		if h.Member && h.Spec.Spec.JoinsCluster() {
			failing += h.PodsFailing()
		}
	}
	if failing > 0 {
		t.sayf("%s failing.", count(failing, "Pod"))
	}
}
