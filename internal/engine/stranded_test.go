package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/plan"
)

// latest answers as another provider does from the second list on.
type latest struct {
	engine.Servers
	servers []inventory.Server
	err     error
}

func (l latest) List(context.Context) ([]inventory.Server, error) { return l.servers, l.err }

// TestStrandedPodsAreLookedAtTwice: what a plan says of a host that is gone is read again
// shortly before its Pods are let go.
func TestStrandedPodsAreLookedAtTwice(t *testing.T) {
	t.Parallel()
	declares(t, 4, "three answers keep the Pods, and the fourth lets them go")
	w, e := converged(t, 4, nodes(2))
	one := planned(t, e).Hosts[0].Name
	if err := w.Inject(one, "stranded-pods"); err != nil {
		t.Fatal(err)
	}
	gone := one[:len(one)-5] + "fade0"
	p := planned(t, e)
	if said := ofTheCluster(p); len(said) != 1 || p.Actions[0].Host != gone || len(p.Actions[0].Pods) != 2 {
		t.Fatalf("said %q: %+v", said, p.Actions)
	}
	provider := e.Servers
	all, err := provider.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, l := range map[string]latest{
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
	if r, err := applying(t, t.Context(), e, p); err != nil || !r.Converged() || r.Done != 1 {
		t.Errorf("%d done, %+v, %v", r.Done, r.Failures, err)
	}
	for _, a := range planned(t, e).Actions {
		if a.Kind == plan.ReleasePods {
			t.Errorf("left: %+v", a)
		}
	}
}
