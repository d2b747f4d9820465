package engine_test

import (
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/enginetest"
	"github.com/macfleet/macfleet/internal/sandbox"
	"github.com/macfleet/macfleet/internal/sandbox/mac"
	"github.com/macfleet/macfleet/plan"
)

// must ends a test whose preparation fails.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// parallel runs a row of a table, together with the others.
func parallel(t *testing.T, name string, row func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		row(t)
	})
}

// row runs a row of a table as inMemory does, and toyRow as toyInMemory does.
func row(t *testing.T, name string, servers int, r fleet.Rollout, f func(t *testing.T, w *nodesInMemory)) {
	t.Helper()
	parallel(t, name, func(t *testing.T) { inMemory(t, servers, r, f) })
}

func toyRow(t *testing.T, name string, f func(t *testing.T, w *nodesInMemory, m *enginetest.Machine)) {
	t.Helper()
	parallel(t, name, func(t *testing.T) { toyInMemory(t, f) })
}

// macOf returns the simulated Mac of a server or host.
func macOf(t *testing.T, w *sandbox.World, name string) *mac.Machine {
	t.Helper()
	m, err := w.Mac(name)
	must(t, err)
	return m
}

// inject lets incidents happen to a host.
func inject(t *testing.T, w *sandbox.World, host string, incidents ...string) {
	t.Helper()
	for _, incident := range incidents {
		must(t, w.Inject(host, incident))
	}
}

// faultAt lets a fault happen whenever a call of a name is made.
func faultAt(what string, f enginetest.Fault) func(enginetest.Call) enginetest.Fault {
	return func(c enginetest.Call) enginetest.Fault {
		if c.What == what {
			return f
		}
		return enginetest.Fault{}
	}
}

// troubleOf returns the trouble that an error wraps; the zero one if it wraps none.
func troubleOf(err error) (out plan.Trouble) {
	var t *plan.Trouble
	if errors.As(err, &t) {
		out = *t
	}
	return out
}

// thisRun is whose cordons the tests make.
func thisRun() plan.Run { return plan.Run{ID: "r1", Who: "ci@acme"} }

// isOpen finds a host's Node open, with its Pod still there or not.
func isOpen(t *testing.T, e *engine.Engine, host string, pods int) {
	t.Helper()
	all, err := e.Cluster.Nodes(t.Context())
	i := slices.IndexFunc(all, func(n inventory.Node) bool { return n.Name == host })
	if err != nil || i < 0 {
		t.Fatalf("the Node %s: %d, %v", host, i, err)
	}
	if n := all[i]; n.Cordoned || n.CordonRun != "" || n.CordonedBy != "" {
		t.Errorf("%s is closed: %+v", host, n)
	}
	on, err := e.Cluster.PodsOn(t.Context(), all[i])
	if err != nil || len(on) != pods {
		t.Errorf("%s has the Pods %+v, %v", host, on, err)
	}
}

// log collects events.
type log struct {
	mu     sync.Mutex
	events []engine.Event
}

func (l *log) emit(ev engine.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, ev)
}

// longNode is a host that has been a Node for a while, in its own world.
func longNode(t *testing.T, c *fleet.Config) (*sandbox.World, *engine.Engine, string) {
	t.Helper()
	w, e := converged(t, 3, c)
	return w, e, member(t, w)
}
