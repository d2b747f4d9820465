package engine

import (
	"context"
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/plan"
)

// Agents are the CI services that give jobs to agents on hosts. A scope is the web address where agents register.
type Agents interface {
	// Observe reads the scopes of the configuration, each once: a scope that cannot be read has a Trouble.
	Observe(context.Context) map[string]plan.ServiceSeen
	// Agent reads one entry; absent: there is none with the id.
	Agent(ctx context.Context, scope, id string) (inventory.Seen[inventory.Agent], error)
	// Register returns what agents of a scope register with. One serves all agents of a run.
	Register(ctx context.Context, scope string) (Registration, error)
	// Fence keeps new jobs away from an agent. It does not end a job.
	Fence(context.Context, plan.AgentSpec, inventory.Agent) error
	// Unfence gives an agent the labels and the group of its specification.
	Unfence(context.Context, plan.AgentSpec, inventory.Agent) error
	// Deregister deletes an entry. Already deleted: nothing to do.
	Deregister(ctx context.Context, scope, id string) error
}

// Registration is what an agent registers with: a token, or a finished configuration for one job (GitHub's JIT).
type Registration struct {
	Token   secret.Value
	Encoded secret.Value // in base64; zero: the agent configures itself with Token
	Expires time.Time
}
