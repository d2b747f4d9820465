package engine_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/overssh"
	"github.com/macfleet/macfleet/internal/sandbox"
	"github.com/macfleet/macfleet/internal/sandbox/github"
	"github.com/macfleet/macfleet/internal/scripttest"
	"github.com/macfleet/macfleet/internal/worldtest"
	"github.com/macfleet/macfleet/plan"
)

// converged returns a world of some servers in which a configuration was applied, and an engine for it. Its Nodes are older
// than what is judged only after a while. The world is a copy of one that is prepared once for the configuration: only tests of
// a first set-up apply to an empty world.
func converged(t *testing.T, servers int, c *fleet.Config) (*sandbox.World, *engine.Engine) {
	t.Helper()
	w := opened(t, prepared(t, servers, c))
	e := engineOf(t, w, c)
	if _, err := e.Cluster.Nodes(t.Context()); err != nil { // kubelets report now, not when the world was prepared
		t.Fatal(err)
	}
	return w, e
}

// prepared returns the folder of such a world.
func prepared(t *testing.T, servers int, c *fleet.Config) string {
	t.Helper()
	scripttest.Sampled(t)
	return worldtest.Prepared(t, fmt.Sprint(servers, " servers and the configuration ", c.Hash()), func(dir string) {
		w := create(t, dir, sandbox.Seed{Hosts: servers})
		for _, f := range c.Fleets {
			for _, g := range f.Groups {
				if g.Spec.GithubRunner != nil && g.Spec.GithubRunner.FenceGroup != nil {
					fenceGroup(t, w)
				}
			}
		}
		e := engineOf(t, w, c)
		if r, err := e.Apply(t.Context(), planned(t, e)); err != nil || !r.Converged() {
			t.Fatalf("the world is not prepared: %v, failures %q, left %+v", err, failed(r), r.After)
		}
		grow(t, w, e)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// grow lets Nodes be Nodes for a while, and finds them healthy.
func grow(t *testing.T, w *sandbox.World, e *engine.Engine) {
	t.Helper()
	for _, h := range planned(t, e).Hosts {
		if h.Spec.Spec.TartKubelet == nil {
			return
		}
		m, err := w.Mac(h.Name)
		if err == nil {
			err = m.Advance(10 * time.Minute)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	p := planned(t, e)
	for _, h := range p.Hosts {
		if said := codesOf(p, h.Name); len(said) > 0 {
			t.Fatalf("of the healthy host %s is reported %q", h.Name, said)
		}
	}
}

// engineOf returns an engine for a configuration, with the services that it needs.
func engineOf(t *testing.T, w *sandbox.World, c *fleet.Config) *engine.Engine {
	t.Helper()
	scopes, err := c.RunnerScopes()
	if err != nil {
		t.Fatal(err)
	}
	e := run
	switch {
	case len(scopes) > 0:
		e = func(t *testing.T, w *sandbox.World, c *fleet.Config) *engine.Engine { return runBuilders(t, w, c) }
	case c.Kubernetes.APIServer != "":
		e = runNodes
	}
	if c.Tailnet != nil {
		return runTailnet(t, w, c, e(t, w, c), nil)
	}
	return e(t, w, c)
}

// fenceGroup gives an organization a group that no repository may use.
func fenceGroup(t *testing.T, w *sandbox.World) {
	t.Helper()
	if err := w.GitHub().Set(func(s *github.Settings) {
		s.Groups = []github.Group{{ID: 1, Name: "Default", Visibility: "all"}, {ID: 5, Name: "fence", Visibility: "selected"}}
	}); err != nil {
		t.Fatal(err)
	}
}

// mostApplies is how many applies to simulated Macs a test may have that declares no more: each costs as much as a thousand
// applies in memory.
const mostApplies = 3

// bill is what a test may spend and has spent.
type bill struct {
	mu            sync.Mutex
	most, applies int
}

var bills sync.Map // of *bill by the name of the test

// billOf returns the bill of a test, and checks it at the test's end.
func billOf(t *testing.T) *bill {
	t.Helper()
	value, had := bills.LoadOrStore(t.Name(), &bill{most: mostApplies})
	b := value.(*bill)
	if !had {
		t.Cleanup(func() {
			bills.Delete(t.Name())
			if b.applies > b.most {
				t.Errorf("%d applies to simulated Macs, and %d are declared: see declares", b.applies, b.most)
			}
		})
	}
	return b
}

// applying applies, and counts an apply to simulated Macs.
func applying(t *testing.T, ctx context.Context, e *engine.Engine, p *plan.Plan) (engine.Result, error) {
	t.Helper()
	if _, simulated := e.Hosts.(overssh.Hosts); simulated {
		b := billOf(t)
		b.mu.Lock()
		b.applies++
		b.mu.Unlock()
	}
	return e.Apply(ctx, p)
}

// declares lets a test apply more often to simulated Macs than mostApplies, and says why.
func declares(t *testing.T, applies int, why string) {
	t.Helper()
	b := billOf(t)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.most = applies; applies <= mostApplies || why == "" {
		t.Errorf("%d applies need no reason, or have none: %q", applies, why)
	}
}
