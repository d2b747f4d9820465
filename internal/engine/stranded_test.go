package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/engine"
)

// failing is a provider that lists other servers, or none and why.
type failing struct {
	engine.Servers
	all  []inventory.Server
	list error
}

func (f failing) List(context.Context) ([]inventory.Server, error) { return f.all, f.list }

// TestStrandedPodsAreLookedAtTwice: what a plan says of a host that is gone is read again
// shortly before its Pods are let go.
func TestStrandedPodsAreLookedAtTwice(t *testing.T) {
	t.Parallel()
	inMemory(t, 2, everyoneAtOnce, func(t *testing.T, w *nodesInMemory) {
		e := w.engine
		converges(t, e)
		gone := "acme-production-f0-m2-fade0"
		w.AddPod(inventory.Pod{Namespace: "ci", Name: "a", UID: "u", Node: gone, Phase: "Running",
			Finalizers: []string{inventory.VMFinalizer}, Due: time.Now(), Overdue: true})
		p := planned(t, e)
		if said := ofTheCluster(p); len(said) != 1 || p.Actions[0].Host != gone || len(p.Actions[0].Pods) != 1 {
			t.Fatalf("said %q: %+v", said, p.Actions)
		}
		provider := e.Servers
		all, err := provider.List(t.Context())
		must(t, err)
		for name, l := range map[string]failing{
			"the inventory has server someones-mac": {provider, append([]inventory.Server{{ID: "fade0bad-x", Name: "someones-mac"}}, all...), nil},
			"the inventory is empty":                {provider, nil, nil},
			"no answer":                             {provider, nil, errors.New("no answer")},
		} {
			e.Servers = l
			r, err := applying(t, t.Context(), e, p)
			e.Servers = provider
			if err == nil && (len(r.Failures) == 0 || !strings.Contains(r.Failures[0].Err.Error(), name)) {
				t.Errorf("%s: %+v", name, r.Failures)
			}
			if left := ofTheCluster(planned(t, e)); len(left) != 1 {
				t.Errorf("%s: Pods were let go", name)
			}
		}
		if r := performed(t, e, p); !r.Converged() || r.Done != 1 || len(ofTheCluster(planned(t, e))) > 0 {
			t.Errorf("%d done, %+v, left %+v", r.Done, r.Failures, r.After.Actions)
		}
	})
}
