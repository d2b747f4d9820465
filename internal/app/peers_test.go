package app

import (
	"strings"
	"testing"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/plan"
)

// TestAcceptList: only a list that the configuration has can be accepted.
func TestAcceptList(t *testing.T) {
	t.Parallel()
	both := &fleet.Config{Tailnet: &fleet.Tailnet{}, Fleets: []fleet.Fleet{{Groups: []fleet.Group{{Spec: fleet.Spec{
		GithubRunner: &fleet.GithubRunner{Host: new("github.com"), Organization: new("acme")}}}}}}}
	for _, tc := range []struct {
		config     *fleet.Config
		name, want string // of the error; empty: none
	}{
		{both, "tailnet", ""}, {both, "github.com/acme", ""}, {both, "tailnets", `did you mean "tailnet"? the lists are github.com/acme, tailnet`},
		{both, "https://github.com/acme", "the lists are github.com/acme, tailnet"}, {&fleet.Config{}, "tailnet", `there is no list "tailnet": the configuration has none`},
	} {
		_, err := Selection{Decisions: plan.Decisions{AcceptLists: []string{tc.name}}}.parsed(tc.config)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%q: %v", tc.name, err)
		}
	}
}
