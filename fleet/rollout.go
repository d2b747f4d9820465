package fleet

import "time"

// Rollout limits how many hosts of a fleet are disturbed at once, and in what
// order.
type Rollout struct {
	MaxUnavailable Share         // of healthy hosts: those whose Nodes are Ready when a run begins
	Canary         int           // hosts that go first; 0: none
	Soak           time.Duration // how long the canary must stay Ready before the others start
	FailureBudget  int           // failed hosts tolerated before no new one starts
	MinReady       int           // hosts that stay Ready whatever happens; 0: no such limit
	Order          Order
}

// DefaultRollout is what holds where a fleet says nothing: a fifth of it at once,
// one host first, and the first failure stops.
func DefaultRollout() Rollout {
	return Rollout{MaxUnavailable: Share{Percent: 20}, Canary: 1, Order: ByName}
}

// Order is in which order the hosts of a fleet start.
type Order string

// The orders.
const (
	ByName Order = "name" // by group and name
	ByIdle Order = "idle" // those with the fewest Pods first
)

// Orders lists all orders.
func Orders() []Order { return []Order{ByName, ByIdle} }

// Share is a number of hosts, or a part of them.
type Share struct {
	Count   int // used when Percent is 0
	Percent int // 1 to 100
}

// Guardrails bound what a single run may do, whatever its plan says. Repair of what
// is broken already is never held up by them.
type Guardrails struct {
	MaxHosts int      // hosts that one run changes; 0: any number
	Windows  []Window // when hosts may be drained, rebooted or wiped; none: always
}
