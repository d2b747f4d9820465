package engine_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/enginetest"
	"github.com/macfleet/macfleet/plan"
)

// taken is a lock that is never lost.
type taken struct{}

// Check returns nil.
func (taken) Check() error { return nil }

// asOrderer begins a run that may order servers.
func (m *memory) asOrderer() {
	m.asRun()
	m.engine.Guard, m.engine.Bounds = taken{}, &plan.Bounds{Orders: plan.AnyOrders}
}

// newShop returns a world whose pool has one of the two servers that are configured.
func newShop(t *testing.T) *memory {
	t.Helper()
	m := newMemory(t)
	m.world.Machines = m.world.Machines[:1]
	m.world.Catalogue.Offers = []inventory.Offer{{Type: "M2-L", Zone: "fr-par-1", Stock: inventory.LowStock, MinLease: 24 * time.Hour}}
	m.world.Config.Scaleway.AllowOrder = true
	return m
}

// TestFaultMatrixOfOrders lets each fault hit a run that orders a server, at each call of the provider and of the cluster
// and at each event. Later runs converge, exactly one server was bought, and it joins.
func TestFaultMatrixOfOrders(t *testing.T) {
	t.Parallel()
	for _, name := range slices.Sorted(maps.Keys(memFaults())) {
		f := memFaults()[name]
		if f.at == enginetest.OnHost {
			continue // orders contact no host
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				for n := 0; orderWith(newShop(t), name, n, f) && !f.once && !t.Failed(); n++ {
				}
			})
		})
	}
}

// orderWith orders with a fault at the nth place, then lets later runs finish. It reports whether the fault fell.
func orderWith(m *memory, name string, n int, f memFault) bool {
	t := m.t
	m.asOrderer()
	p := planned(t, m.engine)
	ctx, die := context.WithCancelCause(t.Context())
	defer die(nil)
	stop, halt := context.WithCancelCause(t.Context())
	defer halt(nil)
	m.engine.Stop = stop
	recordOf(t, m.engine, p, func(before bool) bool {
		return m.onEvent(map[bool]enginetest.Place{true: beforeEvent, false: behindEvent}[before])
	})
	m.mu.Lock()
	m.f, m.left, m.die, m.halt = f, n, die, halt
	m.mu.Unlock()
	if f.before != nil {
		f.before(m)
	}
	if r, err := applying(t, ctx, m.engine, p); err == nil && r.Converged() {
		t.Errorf("%s after %d: the run converged without the server that it ordered", name, n)
	}
	m.mu.Lock()
	fell := m.left < 0
	m.left, m.f, m.dead = -1, memFault{}, false
	m.mu.Unlock()
	m.world.Die(nil)
	if f.repair != nil {
		f.repair(m)
	}
	for again := true; again; { // first the order, then the claim
		m.asOrderer()
		r := apply(t, m.engine)
		again = len(r.After.Shortages) > 0 && len(r.Failures) == 0
		if !again && !r.Converged() {
			again = len(r.Failures) == 0 && slices.ContainsFunc(r.After.Actions, func(a plan.Action) bool { return a.Kind == plan.ClaimServer })
			if !again {
				t.Errorf("%s after %d: a later run leaves %+v, failures %q", name, n, r.After.Summarise(), whatFailed(r))
			}
		}
		time.Sleep(enginetest.DeliveryTime)
	}
	if got := len(m.world.Machines); got != 2 {
		t.Errorf("%s after %d: there are %d servers, not 2", name, n, got)
	}
	for _, machine := range m.world.Machines {
		if strings.HasPrefix(machine.Server.Name, m.world.Config.Scaleway.PoolPrefix) {
			t.Errorf("%s after %d: %s is left in the pool", name, n, machine.Server.Name)
		}
	}
	for _, what := range m.world.Wrong() {
		t.Errorf("%s after %d: %s", name, n, what)
	}
	return fell
}

// TestOrderNeedsItsLock: without a lock another run could order the same, and with a lost one another run may have done so.
func TestOrderNeedsItsLock(t *testing.T) {
	t.Parallel()
	for name, guard := range map[string]func(*memory){
		"none": func(m *memory) { m.engine.Guard = nil },
		"lost": func(m *memory) { m.engine.Guard = fallen{m} }, // it has fallen before the run
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := newShop(t)
				m.asOrderer()
				p := planned(t, m.engine)
				guard(m)
				_, _ = applying(t, t.Context(), m.engine, p)
				if len(m.world.Machines) != 1 {
					t.Error("a server was ordered")
				}
			})
		})
	}
}

// TestOrderLooksForItsName: a server of the name that came since the plan was made is the ordered one.
func TestOrderLooksForItsName(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newShop(t)
		m.asOrderer()
		p, again := planned(t, m.engine), planned(t, m.engine)
		performed(t, m.engine, p)
		performed(t, m.engine, again)
		if got := len(m.world.Machines); got != 2 || len(m.world.Wrong()) > 0 {
			t.Errorf("there are %d servers, not 2: %q", got, m.world.Wrong())
		}
	})
}

// TestOrderAnswers: after an answer that is lost, the list of servers decides. What the provider refuses was not bought.
func TestOrderAnswers(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fault   enginetest.Fault
		code    string // of the failure; empty: none
		servers int
	}{
		"bought":            {enginetest.Fault{}, "", 2},
		"bought, cut":       {enginetest.Fault{Err: enginetest.ErrLost, Applied: true}, "", 2},
		"not bought, cut":   {enginetest.Fault{Err: enginetest.ErrLost}, "order-unknown", 1},
		"the quota is used": {enginetest.Fault{Err: &inventory.ProviderError{Class: inventory.QuotaExceeded, Text: "quota", RequestID: "r-1"}}, "order-refused", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := newShop(t)
				m.world.OnCall = func(c enginetest.Call) enginetest.Fault {
					if c.What == "order" {
						return tc.fault
					}
					return enginetest.Fault{}
				}
				m.asOrderer()
				r := apply(t, m.engine)
				code := ""
				for _, f := range r.Failures {
					var why *plan.Trouble
					if errors.As(f.Err, &why) {
						code += why.Code.String()
					}
				}
				if code != tc.code || len(m.world.Machines) != tc.servers {
					t.Errorf("failures %q, not %q; %d servers, not %d", code, tc.code, len(m.world.Machines), tc.servers)
				}
			})
		})
	}
}
