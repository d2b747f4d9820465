package fleet

import "fmt"

// RunnerScope is where runners of fleets register.
type RunnerScope struct {
	URL string // as GithubRunner.Scope returns it
	// Runner is that of its first fleet, for the host and the credentials.
	Runner GithubRunner
	Users  []Specified // everything that registers there
}

// RunnerScopes returns the scopes of all fleets, in the order of the fleets. The error names two users of a scope that have
// different credentials: requests are sent once for all of them.
func (c *Config) RunnerScopes() ([]RunnerScope, error) {
	var out []RunnerScope
	at := make(map[string]int)
	for _, of := range c.Specs() {
		r := of.Spec.GithubRunner
		if r == nil || !r.Registers() {
			continue
		}
		i, known := at[r.Scope()]
		if !known {
			i = len(out)
			at[r.Scope()] = i
			out = append(out, RunnerScope{URL: r.Scope(), Runner: *r})
		}
		s := &out[i]
		s.Users = append(s.Users, of)
		if !s.Runner.sameCredentials(*r) {
			return nil, fmt.Errorf("%s and %s register runners at %s with different credentials; fix: give both the same app or token", s.Users[0], of, s.URL)
		}
	}
	return out, nil
}

// String names the hosts of the specification.
func (s Specified) String() string {
	if s.Host != "" {
		return "host " + s.Host
	}
	return "fleet " + s.Fleet + ", group " + s.Group
}

func (g GithubRunner) sameCredentials(other GithubRunner) bool {
	return same(g.App, other.App) && same(g.Token, other.Token)
}

func same[T comparable](a, b *T) bool { return a == b || a != nil && b != nil && *a == *b }
