package doctor

import (
	"cmp"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// ServiceSeen is what was read of GitHub for one organization or repository. Nothing was changed.
type ServiceSeen struct {
	Scope     fleet.RunnerScope
	Access    inventory.AgentAccess
	AccessErr error
	Trouble   *plan.Trouble // AccessErr with its code; nil: there is none
	Service   plan.PeerSeen // unless Trouble is set
	// Repositories are those that were selected for a group, by its id; a group for all of them is missing.
	Repositories map[string]inventory.Seen[[]string]
}

// Service is the check list of one organization or repository.
type Service struct {
	Scope   string  `json:"scope"`   // the web address where runners register
	Healthy bool    `json:"healthy"` // no check is a problem, a warning or unknown
	Checks  []Check `json:"checks"`
}

// ExamineService judges what was read of one organization or repository. It is pure.
func ExamineService(seen ServiceSeen) Service {
	e := serviceExam{examination{}, seen}
	if e.credentials() && e.listed() {
		e.groups()
		e.newest()
	}
	out := Service{Scope: seen.Scope.URL, Checks: e.checks}
	out.Healthy = !slices.ContainsFunc(out.Checks, func(c Check) bool { return c.State != OK && c.State != Untested })
	return out
}

type serviceExam struct {
	examination
	seen ServiceSeen
}

// The checks of credentials.
const (
	checkCredentials  = "credentials"
	checkInstallation = "installation"
	checkPermission   = "permission"
	checkRunners      = "runners"
)

// credentials reports whether GitHub accepts them.
func (e *serviceExam) credentials() bool {
	access, r := e.seen.Access, e.seen.Scope.Runner
	if t := e.seen.Trouble; t != nil {
		e.trouble(failing(access, e.seen.AccessErr), t)
		return false
	}
	switch {
	case r.App == nil:
		e.ok(checkCredentials, "token %s is accepted", r.Token)
	case access.Key == 1:
		e.ok(checkCredentials, "App %s, by private_key of %s", access.App, r.App)
	default:
		e.bad(checkCredentials, Warning, "generate a key on the App's page, and give it in private_key",
			"App %s: GitHub accepts only previous_private_key of %s, so private_key is not the App's, or was revoked", access.App, r.App)
	}
	if r.App != nil {
		e.ok(checkInstallation, "%s, active", access.Installation)
	}
	switch access.Level {
	case "write":
		e.ok(checkPermission, "%s: write", access.Permission)
	case "":
		e.checks = append(e.checks, Check{Name: checkPermission, State: Untested,
			Text: access.Permission + ": the token can list runners; whether it can change them is known only after a change"})
	default:
		e.trouble(checkPermission, plan.CodeRunnerRight.Trouble(access.Permission+": "+access.Level+" only, so apply cannot register or fence a runner",
			"grant write on the App's page, and let an owner accept the change"))
	}
	return true
}

// failing returns the check that an error of the credentials belongs to.
func failing(access inventory.AgentAccess, err error) string {
	class := inventory.ClassOf(err)
	switch {
	case access.App == "" || class != inventory.NotFound && class != inventory.Denied:
		return checkCredentials
	case class == inventory.Denied && access.Installation != "" && access.Level == "":
		return checkPermission
	}
	return checkInstallation
}

// listed reports whether the runners could be listed.
func (e *serviceExam) listed() bool {
	if t := e.seen.Service.Trouble; t != nil {
		e.trouble(checkRunners, t)
		return false
	}
	online := 0
	for _, a := range e.seen.Service.CI().Agents {
		if a.Online {
			online++
		}
	}
	e.ok(checkRunners, "%d, of which %d online", len(e.seen.Service.CI().Agents), online)
	return true
}

// groups checks the groups that fleets name, each once.
func (e *serviceExam) groups() {
	var own, fences []string
	public := make(map[string]bool) // groups whose fleets all allow public repositories
	for _, of := range e.seen.Scope.Users {
		r := of.Spec.GithubRunner
		name := textOf(r.RunnerGroup)
		allowed := r.AllowPublicRepositories != nil && *r.AllowPublicRepositories
		if !slices.Contains(own, name) {
			own = append(own, name)
			public[name] = true
		}
		public[name] = public[name] && allowed
		if f := textOf(r.FenceGroup); f != "" && !slices.Contains(fences, f) {
			fences = append(fences, f)
		}
	}
	for _, name := range own {
		if g, ok := e.group("runner group "+cmp.Or(name, "default"), name, "runner_group"); ok {
			e.ownGroup(g, public[name])
		}
	}
	for _, name := range fences {
		if g, ok := e.group("fence group "+name, name, "fence_group"); ok {
			e.fenceGroup(g)
		}
	}
}

// group returns the group that an attribute names. Where a scope has no groups, an attribute that names none is right.
func (e *serviceExam) group(check, name, attribute string) (inventory.AgentGroup, bool) {
	all := e.seen.Service.CI().Groups
	g, ok := e.seen.Service.CI().GroupNamed(name)
	switch {
	case ok:
		return g, true
	case all.IsUnread():
		e.bad(check, Unknown, "run the command again", "%s", all.Why())
	case all.IsAbsent() && name == "":
	case all.IsAbsent():
		e.bad(check, Problem, "remove "+attribute, "GitHub shows no runner groups here: its plan has none, or the credentials may not see them")
	default:
		e.bad(check, Problem, "create it on GitHub's page of runner groups, or correct "+attribute, "it does not exist")
	}
	return inventory.AgentGroup{}, false
}

func (e *serviceExam) ownGroup(g inventory.AgentGroup, allowed bool) {
	check, seen := "runner group "+g.Name, e.seen.Repositories[g.ID]
	names, ok := seen.Get()
	public := ""
	if g.Public {
		public = ", public ones included"
	}
	switch {
	case g.Public && !allowed:
		e.bad(check, Problem, "turn off \"Allow public repositories\" on the group's page; if the risk is accepted, set allow_public_repositories",
			"workflows of public repositories may run on the hosts, and with them code of strangers")
	case g.All:
		e.ok(check, "all repositories%s", public)
	case !ok:
		e.bad(check, Unknown, "run the command again", "its repositories are unknown: %s", seen.Why())
	case len(names) == 0:
		e.bad(check, Warning, "select repositories on the group's page", "no repository may use it, so its runners get no jobs")
	default:
		e.ok(check, "%s%s", strings.Join(names, ", "), public)
	}
}

func (e *serviceExam) fenceGroup(g inventory.AgentGroup) {
	const fix = "limit the group to selected repositories on its page, and select none"
	check, seen := "fence group "+g.Name, e.seen.Repositories[g.ID]
	names, ok := seen.Get()
	switch {
	case g.All:
		e.bad(check, Problem, fix, "all repositories may use it, so its runners still get jobs")
	case !ok:
		e.bad(check, Unknown, "run the command again", "its repositories are unknown: %s", seen.Why())
	case len(names) > 0:
		e.bad(check, Problem, fix, "its runners still get jobs of %s", strings.Join(names, ", "))
	default:
		e.ok(check, "no repository may use it")
	}
}

func (e *serviceExam) newest() {
	const check = "newest runner"
	seen := e.seen.Service.CI().Newest
	switch newest, ok := seen.Get(); {
	case ok:
		e.ok(check, "%s", newest.Version)
	case seen.IsUnread():
		e.bad(check, Unknown, "run the command again", "%s", seen.Why())
	default:
		e.checks = append(e.checks, Check{Name: check, State: Untested, Text: "GitHub offers none for these Macs: set version and sha256"})
	}
}

func textOf(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// GroupsOf returns the ids of the groups whose selected repositories a check needs.
func GroupsOf(scope fleet.RunnerScope, service inventory.AgentService) (out []string) {
	for _, of := range scope.Users {
		r := of.Spec.GithubRunner
		for _, name := range []*string{cmp.Or(r.RunnerGroup, new("")), r.FenceGroup} {
			if name == nil {
				continue
			}
			if g, ok := service.GroupNamed(*name); ok && !g.All && !slices.Contains(out, g.ID) {
				out = append(out, g.ID)
			}
		}
	}
	return out
}
