package engine_test

import (
	"slices"
	"testing"

	"github.com/macfleet/macfleet/internal/engine"
)

// TestUnverifiedTart: hosts without a note of what Tart's bundle must hold get it in one run that closes no Node,
// whether an older macfleet installed the bundle or someone removed the note. Where the bundle is torn as well,
// that is found out, and the next run repairs it.
func TestUnverifiedTart(t *testing.T) {
	t.Parallel()
	w, e := converged(t, 4, nodes(2))
	e.Run = named("sam", 1)
	p := planned(t, e)
	forget := func(host string) {
		m, err := w.Mac(host)
		if err == nil {
			err = m.Remove("/usr/local/lib/macfleet/tart.bundle")
		}
		must(t, err)
	}
	for _, h := range p.Hosts {
		forget(h.Name)
		if said := codesOf(planned(t, e), h.Name); !slices.Equal(said, []string{"drift tart-unverified"}) {
			t.Errorf("it says %q", said)
		}
	}
	closed := 0
	e.Emit = func(ev engine.Event) {
		if ev.Type == engine.Cordoning {
			closed++
		}
	}
	if r := apply(t, e); !r.Converged() || r.Done != 2 || closed > 0 {
		t.Errorf("%d done, %d closed, failures %v", r.Done, closed, r.Failures)
	}

	one := p.Hosts[0].Name
	forget(one)
	inject(t, w, one, "tart-bundle-torn")
	if r := apply(t, e); r.Converged() || !slices.Equal(codesOf(r.After, one), []string{"drift tart-edited"}) {
		t.Errorf("a torn bundle without a note: failures %v, it says %q", r.Failures, codesOf(r.After, one))
	}
	converges(t, e)
}
