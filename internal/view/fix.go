package view

import (
	"regexp"
	"strings"

	"github.com/macfleet/macfleet/plan"
)

// mostSelected is how many hosts a command names before it selects them in another way.
const mostSelected = 3

// The places of a host's name in the commands of a fix.
var (
	applyOn    = regexp.MustCompile(`macfleet apply --on name=` + anyName + `( -)?`)
	selectOn   = regexp.MustCompile(`--on name=` + anyName)
	hostFlag   = regexp.MustCompile(`(--ask-password|--force-busy) ` + anyName)
	ofKubectl  = regexp.MustCompile(`kubectl [^;:,]*\b` + anyName + `\b`)
	bySelector = regexp.MustCompile(`(macfleet (?:hold|unhold|quarantine|unquarantine|cordon(?: --undo)?)) ` + anyName)
	manyHosts  = regexp.MustCompile(`(macfleet hosts forget-key) ` + anyName)
	oneHost    = regexp.MustCompile(`macfleet (?:doctor|explain|restart|reboot|replace(?: --cancel)?) ` + anyName + `(?: --force-busy ` + anyName + `)?`)
	wholeName  = regexp.MustCompile(`macfleet release ` + anyName)
)

// fixForAll is a fix as it works for several hosts: anyName in it is replaced by their names. fleetName is the fleet whose hosts
// they all are; empty: there is none. A command that takes one host names the first, and the fix says for which others it is.
func fixForAll(fix string, names plan.Names, hosts []string, fleetName string) string {
	if len(hosts) == 0 || !strings.Contains(fix, anyName) {
		return fix
	}
	short := mapped(hosts, func(name string) string { return shortestName(names, name) })
	few := len(hosts) <= mostSelected
	repeated := func(lead string) string {
		return strings.Join(mapped(short, func(name string) string { return lead + name }), " ")
	}
	on := repeated("--on name=")
	if !few && fleetName != "" {
		on = "--on fleet=" + fleetName
	}
	others := false // the fix names the first host only
	oneByOne := func(all []string) string {
		if few {
			return strings.Join(all, " ")
		}
		others = true
		return all[0]
	}
	first := func(all []string) func(string) string {
		return func(found string) string {
			others = others || len(hosts) > 1
			return strings.ReplaceAll(found, anyName, all[0])
		}
	}
	fix = oneHost.ReplaceAllStringFunc(fix, first(short))
	fix = wholeName.ReplaceAllStringFunc(fix, first(hosts))
	fix = applyOn.ReplaceAllStringFunc(fix, func(found string) string {
		if few || fleetName != "" || strings.HasSuffix(found, " -") { // another flag may ask for a selection
			return selectOn.ReplaceAllLiteralString(found, on)
		}
		return "macfleet apply" // finds them
	})
	fix = selectOn.ReplaceAllLiteralString(fix, on)
	fix = hostFlag.ReplaceAllStringFunc(fix, func(found string) string { return repeated(strings.TrimSuffix(found, anyName)) })
	fix = ofKubectl.ReplaceAllStringFunc(fix, func(found string) string { return strings.ReplaceAll(found, anyName, oneByOne(hosts)) })
	fix = bySelector.ReplaceAllStringFunc(fix, func(found string) string {
		if !few && fleetName != "" {
			return strings.ReplaceAll(found, anyName, "fleet="+fleetName)
		}
		return strings.ReplaceAll(found, anyName, oneByOne(short))
	})
	fix = manyHosts.ReplaceAllStringFunc(fix, func(found string) string { return strings.ReplaceAll(found, anyName, oneByOne(short)) })
	fix = strings.ReplaceAll(fix, anyName, joinedUpTo(short, mostSelected))
	return fix + given(others, "; the same for the other %s", count(len(hosts)-1, "host"))
}

// fix is the fix of a row as it works for all its hosts.
func (n names) fix(g group) string {
	fleetName := ""
	if len(g.hosts) > 0 && !n.limited && n.wholeFleet(g) {
		fleetName = g.hosts[0].Fleet
	}
	return fixForAll(g.finding.fix, n.Names, mapped(g.hosts, func(h *plan.Host) string { return h.Name }), fleetName)
}
