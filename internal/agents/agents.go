// Package agents is the engine's way to the CI services whose agents run on hosts. Each scope, the web address where agents
// register, has one client.
package agents

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/providers/github"
	"github.com/macfleet/macfleet/providers/transport"
)

// Options say for which hosts services are needed, and how they are reached.
type Options struct {
	Config *fleet.Config
	// Touches reports whether a run may concern hosts of a specification; nil: it may concern all. Credentials of other
	// scopes are never read.
	Touches func(fleet.Specified) bool
	// Resolve returns the value of an attribute that refers to a secret.
	Resolve func(ctx context.Context, attribute string, ref secret.Ref) (secret.Value, error)
	Learn   func(value string) // called with each token for agents before it is used
	HTTP    *http.Client
	Waiting func(transport.Waiting) // called before a request is sent again, from many goroutines; nil: no call
	URL     string                  // of the API of every scope; empty: that of its host
	Now     func() time.Time
}

// Agents are the CI services of a configuration. It is safe for concurrent use.
type Agents struct {
	Options
	scopes []*scope
}

var _ engine.Fencer = (*Agents)(nil)

// scope is where agents register.
type scope struct {
	fleet.RunnerScope
	client       kept[*github.Client]
	registration kept[engine.Admission]
	groups       kept[inventory.AgentService] // with only the groups
}

// New returns the CI services of a configuration; nil: no agents register. It sends no request and reads no secret.
func New(o Options) (*Agents, error) {
	all, err := o.Config.RunnerScopes()
	if err != nil || len(all) == 0 {
		return nil, err
	}
	a := &Agents{Options: o}
	for _, s := range all {
		if o.Touches == nil || slices.ContainsFunc(s.Users, o.Touches) {
			a.scopes = append(a.scopes, &scope{RunnerScope: s, client: newKept[*github.Client](), registration: newKept[engine.Admission](),
				groups: newKept[inventory.AgentService]()})
		}
	}
	return a, nil
}

// Scopes returns the scopes whose credentials may be read.
func (a *Agents) Scopes() []fleet.RunnerScope {
	out := make([]fleet.RunnerScope, len(a.scopes))
	for i, s := range a.scopes {
		out[i] = s.RunnerScope
	}
	return out
}

// kept is a value that is made when it is needed first. A channel guards it, not a mutex: others wait for as long as a
// person or a service takes.
type kept[T any] struct {
	turn  chan struct{}
	value T
	made  bool
}

func newKept[T any]() kept[T] { return kept[T]{turn: make(chan struct{}, 1)} }

// get returns the value, and makes it again unless it is fresh. An error is not kept.
func (k *kept[T]) get(ctx context.Context, fresh func(T) bool, produce func() (T, error)) (T, error) {
	var none T
	select {
	case k.turn <- struct{}{}:
		defer func() { <-k.turn }()
	case <-ctx.Done():
		return none, context.Cause(ctx)
	}
	if k.made && fresh(k.value) {
		return k.value, nil
	}
	v, err := produce()
	if err != nil {
		return none, err
	}
	k.value, k.made = v, true
	return v, nil
}

// in returns a scope and its client.
func (a *Agents) in(ctx context.Context, url string) (*scope, *github.Client, error) {
	i := slices.IndexFunc(a.scopes, func(s *scope) bool { return s.URL == url })
	if i < 0 {
		return nil, nil, fmt.Errorf("there are no credentials for %s: no fleet of this run registers there; fix: delete the runner on GitHub's page, or run for all hosts", url)
	}
	c, err := a.client(ctx, a.scopes[i])
	return a.scopes[i], c, err
}

// Entry reads one entry; absent: there is none with the id.
func (a *Agents) Entry(ctx context.Context, scope, id string) (inventory.Seen[inventory.Listing], error) {
	_, c, err := a.in(ctx, scope)
	if err != nil {
		return inventory.Seen[inventory.Listing]{}, err
	}
	seen, err := c.Runner(ctx, id)
	return inventory.Map(seen, func(r inventory.Agent) inventory.Listing {
		return inventory.Listing{Agents: &inventory.AgentService{Agents: []inventory.Agent{r}}}
	}), err
}

// spare is how long before its end a registration is made again: a host needs a while to use it.
const spare = 5 * time.Minute

// MayJoin fails unless there is a token for agents of a scope.
func (a *Agents) MayJoin(ctx context.Context, scope string) error {
	_, err := a.Admit(ctx, scope, "")
	return err
}

// Admit returns the token that agents of a scope register with. All agents of a run share one, while it is valid.
func (a *Agents) Admit(ctx context.Context, scope, _ string) (engine.Admission, error) {
	s, c, err := a.in(ctx, scope)
	if err != nil {
		return engine.Admission{}, err
	}
	fresh := func(r engine.Admission) bool { return a.Now().Before(r.Expires.Add(-spare)) }
	return s.registration.get(ctx, fresh, func() (engine.Admission, error) {
		r, err := c.Register(ctx)
		if err != nil {
			return engine.Admission{}, err
		}
		a.Learn(r.Token.Reveal())
		return engine.Admission{Secret: r.Token, Expires: r.Expires}, nil
	})
}

// Revoke does nothing: a token ends by itself within an hour, and others of the run use it.
func (a *Agents) Revoke(context.Context, string) error { return nil }

// Change deletes an entry. Already deleted: nothing to do.
func (a *Agents) Change(ctx context.Context, to plan.PeerChange) error {
	_, c, err := a.in(ctx, to.Realm)
	if err != nil {
		return err
	}
	if to.Verb != inventory.DeleteEntry {
		return fmt.Errorf("unknown change of an agent: %s", to.Verb)
	}
	return c.Remove(ctx, to.Entry.ID)
}

// Access returns what the credentials of a scope may do.
func (a *Agents) Access(ctx context.Context, scope string) (inventory.AgentAccess, error) {
	_, c, err := a.in(ctx, scope)
	if err != nil {
		return inventory.AgentAccess{}, err
	}
	return c.Access(ctx)
}

// Repositories returns the repositories that were selected for a group.
func (a *Agents) Repositories(ctx context.Context, scope, group string) ([]string, error) {
	_, c, err := a.in(ctx, scope)
	if err != nil {
		return nil, err
	}
	return c.Repositories(ctx, group)
}

// place returns a scope as the client takes it.
func (s *scope) place() github.Scope {
	out := github.Scope{Host: value(s.Runner.Host), Organization: value(s.Runner.Organization)}
	if both := value(s.Runner.Repository); both != "" {
		out.Organization, out.Repository, _ = strings.Cut(both, "/")
	}
	return out
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
