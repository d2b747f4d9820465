package view

import (
	"fmt"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/plan"
)

// tally counts the hosts of a plan, each once: by what is most urgent about it.
type tally struct {
	hosts, toAdd, toFix, toUpdate, blocked, down, notCompared, held, deferred, attention, inSync int
}

func tallyOf(p *plan.Plan) tally {
	t := tally{hosts: len(p.Hosts) + len(p.Lost), blocked: len(p.Lost)}
	for _, u := range p.Unasked {
		t.hosts, t.notCompared = t.hosts+u.Replicas, t.notCompared+u.Replicas
	}
	actions := byHost(p)
	for i := range p.Hosts {
		*t.of(&p.Hosts[i], actions[p.Hosts[i].Server.ID])++
	}
	return t
}

// of returns the count that a host belongs to.
func (t *tally) of(h *plan.Host, actions []plan.Action) *int {
	has := slices.ContainsFunc[[]plan.Action]
	switch {
	case h.Unknown != nil && h.Unknown.Code == plan.CodeUnreachable:
		return &t.down
	case h.Unknown != nil:
		return &t.notCompared
	case has(actions, byHold):
		return &t.held
	case h.Refused != nil:
		return &t.blocked
	case has(actions, func(a plan.Action) bool { return a.Runs() && a.Kind == plan.ClaimServer }):
		return &t.toAdd
	case has(actions, func(a plan.Action) bool { return a.Runs() && a.Drift }):
		return &t.toFix
	case has(actions, plan.Action.Runs):
		return &t.toUpdate
	case has(actions, func(a plan.Action) bool { return a.Refusal != nil }):
		return &t.blocked
	case has(actions, func(a plan.Action) bool { return a.Deferral != nil }):
		return &t.deferred
	case slices.ContainsFunc(h.Warnings, func(w plan.StepWarning) bool { return w.Drift }):
		return &t.attention
	case h.Extent() != plan.Whole || h.Converged != plan.Converged:
		return &t.notCompared
	}
	return &t.inSync
}

// String is the verdict: how many hosts there are, and how they are.
func (t tally) String() string {
	return count(t.hosts, "host") + ": " + listed(", ", some(t.toAdd, "to add"), some(t.toFix, "to fix"), some(t.toUpdate, "to update"), t.rest(),
		fmt.Sprintf("%d in sync", t.inSync))
}

// rest counts the hosts on which nothing is done, although something may be wanted.
func (t tally) rest() string {
	return listed(", ", some(t.blocked, "blocked"), some(t.down, "unreachable"), some(t.notCompared, "not compared"), some(t.held, "held"), some(t.deferred, "deferred"), given(t.attention == 1, "1 needs attention"), given(t.attention > 1, "%d need attention", t.attention))
}

// planLine is what a plan comes to, in one line.
func planLine(p *plan.Plan) string {
	t := tallyOf(p)
	hosts, actions, objects := 0, 0, 0
	for _, of := range p.Runnable() {
		if of[0].OfCluster() {
			objects += len(of)
			continue
		}
		hosts, actions = hosts+1, actions+len(of)
	}
	blocked := blockedActions(p)
	done := given(actions > 0, "%s", listed(", ", count(actions, "action"), some(blocked, "blocked")))
	missing := 0
	for _, s := range p.Shortages {
		missing += s.Missing
	}
	return "Plan: " + listed(", ", count(hosts, "host")+" to change"+given(done != "", " (%s)", done), t.rest(),
		given(missing > 0, "%s missing", count(missing, "server")), given(objects > 0, "%s of the cluster to change", count(objects, "object")),
		given(len(p.Orphans) > 0, "%s", count(len(p.Orphans), "orphaned member"))) + "."
}

// blockedActions counts the actions that are refused on hosts where others run: a host where none
// runs is counted itself.
func blockedActions(p *plan.Plan) int {
	n := 0
	for _, of := range byHost(p) {
		if slices.ContainsFunc(of, plan.Action.Runs) && !of[0].OfCluster() {
			n += len(slices.DeleteFunc(slices.Clone(of), func(a plan.Action) bool { return a.Refusal == nil }))
		}
	}
	return n
}

// names are the short names of a plan's hosts.
type names struct {
	plan.Names
	hosts  int
	fleets map[string]int // hosts by fleet
}

func namesOf(p *plan.Plan) names {
	n := names{Names: p.Names(), hosts: len(p.Hosts), fleets: make(map[string]int)}
	for i := range p.Hosts {
		n.fleets[p.Hosts[i].Fleet]++
	}
	return n
}

// label names whom a row is about.
func (n names) label(g group) string {
	switch k := len(g.hosts); {
	case k == 0:
		return n.Short(g.subject)
	case k == 1:
		return n.Short(g.hosts[0].Name)
	case k == n.hosts:
		return fmt.Sprintf("all %d hosts", k)
	case n.wholeFleet(g):
		return fmt.Sprintf("%s/* (%d)", g.hosts[0].Fleet, k)
	default:
		return count(k, "host")
	}
}

// wholeFleet reports whether a row is about all hosts of one fleet.
func (n names) wholeFleet(g group) bool {
	of := g.hosts[0].Fleet
	return len(g.hosts) == n.fleets[of] && !slices.ContainsFunc(g.hosts, func(h *plan.Host) bool { return h.Fleet != of })
}

// list names the hosts of a row that its label only counts, by fleet.
func (n names) list(g group) string {
	if len(g.hosts) < 2 || len(g.hosts) == n.hosts || n.wholeFleet(g) {
		return ""
	}
	return n.listed(mapped(g.hosts, func(h *plan.Host) string { return n.Short(h.Name) }), mostNames)
}

// listed lists short names by their fleets, and counts those that are too many.
func (n names) listed(all []string, most int) string {
	if len(all) > most {
		most--
	}
	fleetOf := func(short string) string {
		fleet, _, ok := strings.Cut(short, "/")
		return given(ok, "%s", fleet)
	}
	parts := mapped(grouped(all[:min(len(all), most)], fleetOf), func(of []string) string {
		fleet := fleetOf(of[0])
		return given(fleet != "", "%s: ", fleet) + joined(of, func(short string) string { return strings.TrimPrefix(short, fleet+"/") })
	})
	return strings.Join(parts, "; ") + given(len(all) > most, " and %d more", len(all)-most)
}
