package doctor_test

import (
	"strings"
	"testing"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/doctor"
	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/plan"
)

// wellService is what is read where all is well: an App, a group of two repositories and a fence group.
func wellService() doctor.ServiceSeen {
	r := fleet.GithubRunner{App: &fleet.GitHubApp{Name: "builders"}, Organization: new("acme"), RunnerGroup: new("bakers"), FenceGroup: new("fence")}
	return doctor.ServiceSeen{
		Scope: fleet.RunnerScope{URL: "https://github.com/acme", Runner: r, Users: []fleet.Specified{{Fleet: "builders", Group: "m2", Spec: fleet.Spec{GithubRunner: &r}},
			{Fleet: "builders", Group: "m4", Spec: fleet.Spec{GithubRunner: &r}}}},
		Access: inventory.AgentAccess{App: "4711", Key: 1, Installation: "7", Permission: "Self-hosted runners", Level: "write"},
		Service: plan.PeerSeen{Listing: inventory.Listing{Agents: &inventory.AgentService{Agents: []inventory.Agent{{ID: "1", Online: true}, {ID: "2"}},
			Groups: inventory.Present([]inventory.AgentGroup{{ID: "1", Name: "Default", All: true, Default: true}, {ID: "3", Name: "Bakers"}, {ID: "5", Name: "fence"}}),
			Newest: inventory.Present(inventory.AgentRelease{Version: "2.337.0"})}}},
		Repositories: map[string]inventory.Seen[[]string]{"3": inventory.Present([]string{"acme/app", "acme/web"}), "5": inventory.Present([]string{})},
	}
}

// TestExamineService: each fault is one check with one fix, and what only a change would test is none.
func TestExamineService(t *testing.T) {
	t.Parallel()
	regroup := func(s *doctor.ServiceSeen, change func(*inventory.AgentGroup)) {
		all, _ := s.Service.Agents.Groups.Get()
		for i := range all {
			change(&all[i])
		}
	}
	unread := inventory.Unread[[]string]("no answer")
	onlyApp := inventory.AgentAccess{App: "4711"}
	failed := func(class inventory.Class) func(*doctor.ServiceSeen) {
		return func(s *doctor.ServiceSeen) {
			s.AccessErr = &inventory.ProviderError{Class: class, Text: "it fails; fix: do this"}
			s.Trouble = plan.ServiceTrouble(s.AccessErr)
		}
	}
	for name, tc := range map[string]struct {
		disturb func(*doctor.ServiceSeen)
		want    string // the checks that are not ok, with their codes
	}{
		"all well":               {func(*doctor.ServiceSeen) {}, ""},
		"only the previous key":  {func(s *doctor.ServiceSeen) { s.Access.Key = 2 }, "credentials warning"},
		"reads only":             {func(s *doctor.ServiceSeen) { s.Access.Level = "read" }, "permission problem runner-right-missing"},
		"rejected":               {func(s *doctor.ServiceSeen) { s.Access = onlyApp; failed(inventory.Unauthenticated)(s) }, "credentials problem runner-credentials-rejected"},
		"not installed":          {func(s *doctor.ServiceSeen) { s.Access = onlyApp; failed(inventory.NotFound)(s) }, "installation problem runner-scope-missing"},
		"suspended":              {failed(inventory.Denied), "installation problem runner-right-missing"},
		"without the permission": {func(s *doctor.ServiceSeen) { s.Access.Level = ""; failed(inventory.Denied)(s) }, "permission problem runner-right-missing"},
		"a token without rights": {func(s *doctor.ServiceSeen) { s.Access = inventory.AgentAccess{}; failed(inventory.Denied)(s) }, "credentials problem runner-right-missing"},
		"no answer":              {failed(inventory.NetworkFault), "credentials problem provider-away"},
		"the list fails": {func(s *doctor.ServiceSeen) {
			s.Service.Trouble = plan.ServiceTrouble(&inventory.ProviderError{Class: inventory.ServerFault})
		}, "runners problem provider-away"},
		"no such group": {func(s *doctor.ServiceSeen) { regroup(s, func(g *inventory.AgentGroup) { g.Name = "x" + g.ID }) }, "runner group bakers problem, fence group fence problem"},
		"groups unread": {func(s *doctor.ServiceSeen) {
			s.Service.Agents.Groups = inventory.Unread[[]inventory.AgentGroup]("no answer")
		}, "runner group bakers unknown, fence group fence unknown"},
		"no groups":            {func(s *doctor.ServiceSeen) { s.Service.Agents.Groups = inventory.Absent[[]inventory.AgentGroup]() }, "runner group bakers problem, fence group fence problem"},
		"public":               {func(s *doctor.ServiceSeen) { regroup(s, func(g *inventory.AgentGroup) { g.Public = true }) }, "runner group Bakers problem"},
		"no repositories":      {func(s *doctor.ServiceSeen) { s.Repositories["3"] = inventory.Present([]string{}) }, "runner group Bakers warning"},
		"repositories unread":  {func(s *doctor.ServiceSeen) { s.Repositories["3"], s.Repositories["5"] = unread, unread }, "runner group Bakers unknown, fence group fence unknown"},
		"the fence is open":    {func(s *doctor.ServiceSeen) { s.Repositories["5"] = inventory.Present([]string{"acme/app"}) }, "fence group fence problem"},
		"the fence is for all": {func(s *doctor.ServiceSeen) { regroup(s, func(g *inventory.AgentGroup) { g.All = g.ID == "5" }) }, "fence group fence problem"},
		"newest unread": {func(s *doctor.ServiceSeen) {
			s.Service.Agents.Newest = inventory.Unread[inventory.AgentRelease]("no answer")
		}, "newest runner unknown"},
		"none offered": {func(s *doctor.ServiceSeen) { s.Service.Agents.Newest = inventory.Absent[inventory.AgentRelease]() }, ""},
		"a token that may change": {func(s *doctor.ServiceSeen) {
			s.Scope.Runner.App, s.Scope.Runner.Token = nil, &secret.Ref{Scheme: secret.Env, Path: "TOKEN"}
			s.Access.Level = ""
		}, ""},
		"public, and allowed": {func(s *doctor.ServiceSeen) {
			regroup(s, func(g *inventory.AgentGroup) { g.Public = true })
			s.Scope.Users[0].Spec.GithubRunner.AllowPublicRepositories = new(true)
		}, ""},
		"public, and allowed by one of two": {func(s *doctor.ServiceSeen) {
			regroup(s, func(g *inventory.AgentGroup) { g.Public = true })
			second := *s.Scope.Users[1].Spec.GithubRunner
			second.AllowPublicRepositories = new(true)
			s.Scope.Users[1].Spec.GithubRunner = &second
		}, "runner group Bakers problem"},
		"the default group, in a scope without groups": {func(s *doctor.ServiceSeen) {
			s.Service.Agents.Groups = inventory.Absent[[]inventory.AgentGroup]()
			s.Scope.Users[0].Spec.GithubRunner.RunnerGroup, s.Scope.Users[0].Spec.GithubRunner.FenceGroup = new(""), nil
		}, ""},
	} {
		seen := wellService()
		tc.disturb(&seen)
		got := doctor.ExamineService(seen)
		if text := faults(t, got.Checks, true); text != tc.want || got.Healthy != (tc.want == "") {
			t.Errorf("%s: healthy %t: %s; want %s", name, got.Healthy, text, tc.want)
		}
	}
}

// faults are the checks that are not ok, with their codes. Each has one fix, which is optional for an unknown one unless unknownToo.
func faults(t *testing.T, checks []doctor.Check, unknownToo bool) string {
	t.Helper()
	var all []string
	for _, c := range checks {
		if c.State == doctor.OK || c.State == doctor.Untested {
			continue
		}
		all = append(all, strings.TrimSpace(c.Name+" "+string(c.State)+" "+c.Code.String()))
		if c.Remedy == "" && (unknownToo || c.State != doctor.Unknown) || strings.Contains(c.Text, "fix: ") {
			t.Errorf("%+v", c)
		}
	}
	return strings.Join(all, ", ")
}

// TestRepositoriesOfGroups: only groups that fleets name, and that not all repositories may use, are read, each once.
func TestRepositoriesOfGroups(t *testing.T) {
	t.Parallel()
	seen := wellService()
	if got := doctor.GroupsOf(seen.Scope, seen.Service.CI()); strings.Join(got, " ") != "3 5" {
		t.Errorf("%q", got)
	}
	seen.Scope.Users[0].Spec.GithubRunner.RunnerGroup = nil // the default one, which all may use
	if got := doctor.GroupsOf(seen.Scope, seen.Service.CI()); strings.Join(got, " ") != "5" {
		t.Errorf("%q", got)
	}
}
