package agents

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/providers/github"
)

// Observe reads every scope of the run, each once. A scope whose list cannot be read has a Trouble; what else cannot be read
// of it is unread.
func (a *Agents) Observe(ctx context.Context) map[string]plan.PeerSeen {
	seen := make([]plan.PeerSeen, len(a.scopes))
	together(len(a.scopes), func(i int) { seen[i] = a.Read(ctx, a.scopes[i].URL) })
	out := make(map[string]plan.PeerSeen, len(seen))
	for i, s := range a.scopes {
		out[s.URL] = seen[i]
	}
	return out
}

// Read is Observe for one scope.
func (a *Agents) Read(ctx context.Context, scope string) plan.PeerSeen {
	_, c, err := a.in(ctx, scope)
	if err != nil {
		return plan.PeerSeen{Trouble: Trouble(err)}
	}
	var out inventory.AgentService
	// First, because credentials that are rejected here would be rejected for the rest, too.
	if out.Agents, out.Churned, err = c.Runners(ctx); err != nil {
		return plan.PeerSeen{Trouble: Trouble(err)}
	}
	out.ReadOnly = c.ReadOnly()
	versions := versionsOf(a.Config, out.Agents)
	sunsets := make([]inventory.Seen[inventory.Sunset], len(versions))
	together(3+len(versions), func(i int) {
		switch i {
		case 0:
			out.Groups = orUnread(c.Groups(ctx))
		case 1:
			out.Newest = orUnread(c.Newest(ctx))
		case 2:
			out.Public = orUnread(c.Public(ctx))
		default:
			sunsets[i-3] = orUnread(c.Sunset(ctx, versions[i-3]))
		}
	})
	for i, version := range versions {
		when, ok := sunsets[i].Get()
		if ok && when != (inventory.Sunset{}) {
			if out.Sunsets == nil {
				out.Sunsets = make(map[string]inventory.Sunset)
			}
			out.Sunsets[version] = when
		}
		out.SunsetsUnread = cmp.Or(out.SunsetsUnread, sunsets[i].Why())
	}
	return plan.PeerSeen{Listing: inventory.Listing{Agents: &out}}
}

// Trouble returns why a scope could not be read.
func Trouble(err error) *plan.Trouble {
	if isCredentials(err) {
		text, fix := plan.SplitFix(err)
		return plan.CodeRunnerCredentials.Trouble(text, cmp.Or(fix, plan.CodeRunnerCredentials.Remedy()))
	}
	return plan.ServiceTrouble(err)
}

func orUnread[T any](v inventory.Seen[T], err error) inventory.Seen[T] {
	if err != nil {
		return inventory.Unread[T](err.Error())
	}
	return v
}

// versionsOf returns the versions of the configuration's own agents, sorted.
func versionsOf(cfg *fleet.Config, all []inventory.Agent) (out []string) {
	for _, agent := range all {
		_, owned := cfg.Parse(strings.ToLower(agent.Name))
		listed := func(l fleet.Listed) bool { return strings.EqualFold(l.Name, agent.Name) }
		if agent.Version != "" && (owned || slices.ContainsFunc(cfg.Hosts, listed)) {
			out = append(out, agent.Version)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// together does n things at once, and waits for all of them.
func together(n int, do func(int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { do(i) })
	}
	all.Wait()
}

// listed returns the groups of a scope. A run reads them once.
func (in *scope) listed(ctx context.Context, c *github.Client) (inventory.AgentService, error) {
	return in.groups.get(ctx, func(inventory.AgentService) bool { return true }, func() (inventory.AgentService, error) {
		seen, err := c.Groups(ctx)
		return inventory.AgentService{Groups: seen}, err
	})
}
