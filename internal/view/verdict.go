package view

import (
	"fmt"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/plan"
)

// tally is the count of a plan's hosts by their verdicts. Every screen takes its counts from here.
type tally struct{ plan.Tally }

func tallyOf(p *plan.Plan) tally { return tally{p.Tally()} }

// String is the verdict of a plan: how many hosts there are, and how they are.
func (t tally) String() string {
	states := listed(", ", some(t.ToAdd, "to add"), some(t.ToAdopt, "to adopt"), some(t.ToFix, "to fix"), some(t.ToUpdate, "to update"), some(t.ToRemove, "to remove"), t.rest(), t.inSync())
	return listed("; ", count(t.Hosts, "host")+given(t.Hosts > 0, ": %s", states), t.others())
}

// rest counts the hosts on which nothing is done, although they may differ.
func (t tally) rest() string {
	return listed(", ", some(t.Blocked, "blocked"), some(t.Unreachable, "unreachable"), some(t.Lost, "lost"), some(t.Uncompared, "not compared"),
		some(t.HeldBack, "held"), some(t.LeftForLater, "deferred"), given(t.NeedsAttention == 1, "1 needs attention"), given(t.NeedsAttention > 1, "%d need attention", t.NeedsAttention))
}

// inSync counts the hosts that are in sync, and those among them that a person holds.
func (t tally) inSync() string {
	return fmt.Sprintf("%d in sync", t.InSync) + given(t.HeldInSync > 0, " (%d held)", t.HeldInSync)
}

// others counts what has no host in the plan.
func (t tally) others() string {
	return listed(", ", given(t.Missing > 0, "%s missing", count(t.Missing, "server")), given(t.Orphans > 0, "%s", count(t.Orphans, "orphaned member")))
}

// result is what a run came to: how many hosts are in sync at its end, and how the others are. kind says which
// hosts are counted, and in what they were compared, where that is not all.
func (t tally) result(kind, in string) string {
	return listed(", ", fmt.Sprintf("%d/%d %shosts converged%s", t.InSync, t.Hosts, kind, in), some(t.ToChange(), "to change"), t.rest(), t.others())
}

// planLine is what a plan comes to, in one line.
func planLine(p *plan.Plan) string {
	t := tallyOf(p)
	actions := listed(", ", count(t.Actions, "action"), some(t.BlockedActions, "blocked"), some(t.DeferredActions, "deferred"))
	return "Plan: " + listed(", ", count(t.ToChange(), "host")+" to change"+given(t.Actions > 0, " (%s)", actions), t.rest(),
		given(t.ClusterActions > 0, "%s in the cluster to change", count(t.ClusterActions, "object")), t.others()) + "."
}

// names are the short names of a plan's hosts.
type names struct {
	plan.Names
	hosts   int
	fleets  map[string]int // hosts by fleet
	limited bool           // the plan has not all hosts of its fleets
}

func namesOf(p *plan.Plan) names {
	n := names{Names: p.Names(), hosts: len(p.Hosts), fleets: make(map[string]int), limited: p.Coverage().Limited()}
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
	case g.noun() != "host":
		return count(k, g.noun())
	case k == n.hosts:
		return fmt.Sprintf("all %d hosts", k)
	case n.wholeFleet(g):
		return fmt.Sprintf("%s/* (%d)", g.hosts[0].Fleet, k)
	default:
		return count(k, "host")
	}
}

// noun is what a row counts: hosts of the plan, or what is none of it.
func (c category) noun() string {
	switch c {
	case catOrphaned:
		return "member"
	case catLost, catSkipped, catUnmanaged:
		return "server"
	}
	return "host"
}

// wholeFleet reports whether a row is about all hosts of one fleet.
func (n names) wholeFleet(g group) bool {
	of := g.hosts[0].Fleet
	return g.noun() == "host" && len(g.hosts) == n.fleets[of] && !slices.ContainsFunc(g.hosts, func(h *plan.Host) bool { return h.Fleet != of })
}

// list names the hosts of a row that its label only counts, by fleet.
func (n names) list(g group) string {
	if len(g.hosts) < 2 || g.noun() == "host" && len(g.hosts) == n.hosts || n.wholeFleet(g) {
		return ""
	}
	return n.listed(mapped(g.hosts, func(h *plan.Host) string { return n.Short(h.Name) }), mostNames)
}

// listed lists short names by their fleets: at most that many in all, at least one of each fleet, and the others of each fleet
// counted behind them.
func (n names) listed(all []string, most int) string {
	fleetOf := func(short string) string {
		fleet, _, ok := strings.Cut(short, "/")
		return given(ok, "%s", fleet)
	}
	fleets := grouped(all, fleetOf)
	if len(all) > most {
		most = max(most-1, len(fleets))
	}
	return strings.Join(mapped(fleets, func(of []string) string {
		fleets = fleets[1:]
		shown := min(len(of), most-len(fleets))
		if len(of)-shown == 1 {
			shown++ // counting it takes as much room
		}
		most -= shown
		fleet := fleetOf(of[0])
		names := joined(of[:shown], func(short string) string { return strings.TrimPrefix(short, fleet+"/") })
		return given(fleet != "", "%s: ", fleet) + names + given(len(of) > shown, " and %d more", len(of)-shown)
	}), "; ")
}
