package engine_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/enginetest"
	"github.com/macfleet/macfleet/plan"
)

// asOrderer begins a run that may order servers.
func (m *memory) asOrderer() {
	m.asRun()
	m.engine.Guard, m.engine.Bounds = heldWhile(func() bool { return true }), &plan.Bounds{Orders: plan.AnyOrders}
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
		parallel(t, name, func(t *testing.T) {
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
	_, r, fell, err := m.hit(planned(t, m.engine), n, f)
	if err == nil && r.Converged() {
		t.Errorf("%s after %d: the run converged without the server that it ordered", name, n)
	}
	if f.repair != nil {
		f.repair(m)
	}
	for again := true; again; { // first the order, then the claim
		m.asOrderer()
		r := apply(t, m.engine)
		claims := slices.ContainsFunc(r.After.Actions, func(a plan.Action) bool { return a.Kind == plan.ClaimServer })
		again = len(r.Failures) == 0 && (len(r.After.Shortages) > 0 || claims && !r.Converged())
		if !again && !r.Converged() {
			t.Errorf("%s after %d: a later run leaves %+v, failures %q", name, n, r.After.Summarise(), whatFailed(r))
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
	for name, guard := range map[string]engine.Guard{"none": nil, "lost": heldWhile(func() bool { return false })} {
		parallel(t, name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newShop(t)
				m.asOrderer()
				p := planned(t, m.engine)
				m.engine.Guard = guard
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
		parallel(t, name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newShop(t)
				m.world.OnCall = faultAt("order", tc.fault)
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
