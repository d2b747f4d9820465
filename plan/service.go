package plan

import (
	"cmp"
	"slices"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
)

// The codes of what keeps macfleet from using a CI service.
var (
	// CodeRunnerCredentials is raised before any request is sent.
	CodeRunnerCredentials = NewCode("runner-credentials-unread", NotDrift, "the credentials for the CI service could not be read, or are not valid",
		"correct the references in the configuration, or what they refer to")
	codeRunnerRejected = NewCode("runner-credentials-rejected", NotDrift, "the CI service rejects the credentials: they are unknown, revoked or expired",
		"create a key of the App or a token, and give it in the configuration")
	// CodeRunnerRight is also raised for credentials that can only list agents.
	CodeRunnerRight = NewCode("runner-right-missing", NotDrift, "the credentials lack a right at the CI service that macfleet needs",
		"grant the permission that the message names, then run the command again")
	codeRunnerScope = NewCode("runner-scope-missing", NotDrift, "the CI service has no such organization, repository or installation, or does not show it to these credentials",
		"correct the organization or repository in the configuration, or install the App there")
)

// ServiceTrouble returns an error of a CI service as a trouble. The text and the fix of the error count.
func ServiceTrouble(err error) *Trouble {
	code := codeProviderAway
	switch inventory.ClassOf(err) {
	case inventory.Unauthenticated:
		code = codeRunnerRejected
	case inventory.Denied:
		code = CodeRunnerRight
	case inventory.NotFound:
		code = codeRunnerScope
	case inventory.RateLimited:
		code = CodeRateLimited
	}
	text, fix := SplitFix(err)
	return code.Trouble(text, cmp.Or(fix, code.Remedy()))
}

// MayInclude reports whether a host of a specification may be among those that a run is limited to. It decides before
// anything was observed: names of places that the configuration no longer has may be those of any host.
func (s Selection) MayInclude(cfg *fleet.Config, of fleet.Specified) bool {
	return len(s.On) == 0 || slices.ContainsFunc(s.On, func(sel Selector) bool { return sel.mayMatch(cfg, of) })
}

func (s Selector) mayMatch(cfg *fleet.Config, of fleet.Specified) bool {
	return !slices.ContainsFunc(s.terms, func(t fleet.SelectorTerm) bool {
		means := func(f fleet.Specified) bool {
			switch t.Key {
			case "fleet":
				return matchesAny(t.Pattern, []string{f.Fleet})
			case "group":
				return matchesAny(t.Pattern, []string{f.Group})
			case "name":
				at, owned := cfg.Parse(t.Pattern)
				return owned && at.Fleet == f.Fleet && at.Group == f.Group
			}
			return false
		}
		return !means(of) && slices.ContainsFunc(cfg.Specs(), means)
	})
}
