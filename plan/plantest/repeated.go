package plantest

import (
	"fmt"
	"strings"
	"sync"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps"
)

// Steps is how many steps each host has: more than exist, so that a budget for
// the steps to come can be kept today.
const Steps = 14

// repetition is a real step under another name, with its own facts.
type repetition struct {
	plan.Step
	names *names
}

// names are what a repetition calls itself and its probes.
type names struct {
	id     plan.StepID
	probes map[string]string // by the real step's name; nil: they are its own
	facts  sync.Pool         // of plan.Facts with the real step's names
}

// repeated returns the real steps of a host that want something, each once, and then
// those that ask more than two questions over and over, until there are Steps: the steps
// to come are taken to be like these. No host has two firewalls. All hosts of a fleet
// want the same steps.
func repeated(of fleet.Host) (existing []plan.Step, stepsFor plan.StepsFor) {
	var at []int // in steps.For
	for i, s := range steps.For(of) {
		if s.Wanted() != "" {
			existing, at = append(existing, s), append(at, i)
		}
	}
	all, order := make([]names, Steps), make([]int, Steps)
	for i := range all {
		which, n := place(i, existing)
		order[i] = at[which]
		all[i].id = plan.StepID(copyOf(string(existing[which].ID()), n))
		if n == 0 {
			continue
		}
		all[i].probes = make(map[string]string)
		for _, p := range existing[which].Probes() {
			all[i].probes[p.ID] = copyOf(p.ID, n)
		}
	}
	return existing, func(h fleet.Host) []plan.Step {
		real := steps.For(h)
		out := make([]plan.Step, Steps)
		for i := range out {
			if out[i] = real[order[i]]; all[i].probes != nil {
				out[i] = repetition{out[i], &all[i]}
			}
		}
		return out
	}
}

// place returns which real step is the i-th, and in its how manieth repetition.
func place(i int, existing []plan.Step) (which, n int) {
	if i < len(existing) {
		return i, 0
	}
	var again []int
	for which, step := range existing {
		if len(step.Probes()) > 2 {
			again = append(again, which)
		}
	}
	i -= len(existing)
	return again[i%len(again)], 1 + i/len(again)
}

// copyOf returns the name of a step or a probe in its n-th repetition:
// "power.settings" is "power-2.settings". The step itself keeps its own.
func copyOf(name string, n int) string {
	if n == 0 {
		return name
	}
	step, rest, _ := strings.Cut(name, ".")
	if rest != "" {
		rest = "." + rest
	}
	return fmt.Sprintf("%s-%d%s", step, n, rest)
}

// copies returns the answers to all repetitions of the probes.
func copies(facts plan.Facts, existing []plan.Step) plan.Facts {
	out := make(plan.Facts, len(facts)*2)
	for i := range Steps {
		which, n := place(i, existing)
		for _, p := range existing[which].Probes() {
			out[copyOf(p.ID, n)] = facts[p.ID]
		}
	}
	return out
}

// ID is the repetition's own.
func (r repetition) ID() plan.StepID { return r.names.id }

// Probes are the real step's under different names.
func (r repetition) Probes() []plan.Probe {
	out := r.Step.Probes()
	for i := range out {
		out[i].ID = r.names.probes[out[i].ID]
	}
	return out
}

// Diff lets the real step read the repetition's own facts.
func (r repetition) Diff(v plan.View) plan.Finding {
	// What a repetition itself costs must not enter a measurement.
	facts, ok := r.names.facts.Get().(plan.Facts)
	if !ok {
		facts = make(plan.Facts, len(r.names.probes))
	}
	defer r.names.facts.Put(facts)
	for id, own := range r.names.probes {
		facts[id] = v.Facts.Get(own)
	}
	v.Facts = facts
	return r.Step.Diff(v)
}
