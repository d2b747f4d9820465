package view

import (
	"fmt"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/internal/drift"
	"github.com/macfleet/macfleet/plan"
)

// uncovered says what a plan does not cover, a sentence each: what it was limited to, and
// what of the rest could not be compared. It comes before anything else.
func uncovered(c plan.Coverage) []string {
	return nonempty(limit(c), gap(c, c.NotCompared, "could not be compared"), gap(c, c.Partly, "could be compared only in part"),
		given(len(c.ClusterUnread) > 0, "The cluster could not be compared%s.", clusterParts(c)),
		given(c.NotContacted > 0, "%s not compared: with --no-secrets no host is contacted.", count(c.NotContacted, "wanted host")))
}

// limit says what a plan was limited to, and what that leaves out.
func limit(c plan.Coverage) string {
	if !c.Limited() {
		return ""
	}
	out := listed(", ", given(c.LeftOut > 0, "%d of %s", c.LeftOut, count(c.LeftOut+c.Hosts, "host")),
		given(len(c.Steps) > 0 && !c.AdoptOnly, "other steps, server names, replicas"), given(c.AdoptOnly, "steps, server names, replicas"), given(c.ObjectsLeftOut, "objects of the cluster"))
	return "Limited by" + flags(shortened(c.On), shortened(c.Exclude), words(c.Steps), plan.Decisions{AdoptOnly: c.AdoptOnly}) + given(out != "", ": %s not compared", out) + "."
}

// shortened keeps the first few values of a flag.
func shortened(all []string) []string {
	const most = 3
	if len(all) <= most {
		return all
	}
	return append(slices.Clone(all[:most]), fmt.Sprintf("(and %d more)", len(all)-most))
}

// gap says of how many hosts something holds, and why.
func gap(c plan.Coverage, of []plan.Gap, what string) string {
	n := plan.HostsOf(of)
	if n == 0 {
		return ""
	}
	why := joined(of, func(g plan.Gap) string { return given(len(of) > 1, "%d ", len(g.Hosts)) + g.Code.String() })
	return fmt.Sprintf("%d of %s %s: %s.", n, count(c.Hosts, given(c.LeftOut > 0, "selected ")+"host"), what, why)
}

// clusterParts names the parts of the cluster that could not be read, where it was not all.
func clusterParts(c plan.Coverage) string {
	parts := strings.Join(c.ClusterUnread, ", ")
	return given(parts != clusterName, " (%s)", parts)
}

// lead says in short what a plan does not cover, to stand before its result. rest makes
// clear that the result is of the others.
func lead(c plan.Coverage, more ...string) (text, rest string) {
	of := count(c.Hosts, "host")
	none, part := plan.HostsOf(c.NotCompared), plan.HostsOf(c.Partly)
	gaps := append([]string{given(none > 0, "%d of %s not compared", none, of), given(part > 0, "%d of %s compared only in part", part, of),
		given(len(c.ClusterUnread) > 0, "cluster not compared%s", clusterParts(c)),
		given(c.NotContacted > 0, "%s not compared", count(c.NotContacted, "wanted host"))}, more...)
	missing := listed("; ", gaps...)
	text = listed("; ", given(c.LeftOut > 0, "limited to %d of %s", c.Hosts, count(c.LeftOut+c.Hosts, "host")),
		given(len(c.Steps) > 0, "limited to %s", stepsText(c.Steps, c.AdoptOnly)), missing)
	if text != "" {
		text = strings.ToUpper(text[:1]) + text[1:] + ". "
	}
	return text, given(missing != "", " for the rest")
}

// uncovered prints what a plan does not cover.
func (t *Text) uncovered(c plan.Coverage) {
	for _, text := range uncovered(c) {
		t.line(0, signUnknown, text)
	}
}

// stepsText names the steps that a limited plan compared.
func stepsText(steps []plan.StepID, adoptOnly bool) string {
	if adoptOnly {
		return "markers and host keys"
	}
	return strings.Join(words(steps), ", ")
}

// selected names the hosts, and the steps, that a limited plan compared.
func selected(p *plan.Plan, s plan.Summary) string {
	return given(len(p.Steps) > 0, " in %s", stepsText(p.Steps, p.AdoptOnly)) +
		fmt.Sprintf(" on the %s of %s", count(s.Hosts, given(p.LeftOut > 0, "selected ")+"host"), ownerTitle(p))
}

// unseenSteps says how many steps of hosts a drift could not compare, and why.
func unseenSteps(r drift.Report) string {
	of := slices.DeleteFunc(slices.Clone(r.Unseen), func(u drift.Unseen) bool { return u.Host == "" || u.Host == clusterName || u.Step == "" })
	steps := grouped(of, func(u drift.Unseen) [2]string { return [2]string{u.Host, u.Step} })
	hosts := grouped(of, func(u drift.Unseen) string { return u.Host })
	codes := grouped(of, func(u drift.Unseen) plan.Code { return u.Code })
	return given(len(of) > 0, "%s on %s not compared: %s", count(len(steps), "step"), count(len(hosts), "host"),
		joined(codes, func(same []drift.Unseen) string { return same[0].Code.String() }))
}
