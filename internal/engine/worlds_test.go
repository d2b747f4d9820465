package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/sandbox"
	"github.com/macfleet/macfleet/internal/sandbox/github"
	"github.com/macfleet/macfleet/internal/scripttest"
	"github.com/macfleet/macfleet/internal/worldtest"
)

// converged returns a world of some servers in which a configuration was applied, and an engine for it. Its Nodes are older
// than what is judged only after a while. The world is a copy of one that is prepared once for the configuration: only tests of
// a first set-up apply to an empty world.
func converged(t *testing.T, servers int, c *fleet.Config) (*sandbox.World, *engine.Engine) {
	t.Helper()
	w := opened(t, prepared(t, servers, c))
	return w, engineOf(t, w, c)
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
		converges(t, e)
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
