package engine_test

import (
	"errors"
	"testing"

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

// faultAt lets a fault happen at all calls of a name, and at no others.
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
