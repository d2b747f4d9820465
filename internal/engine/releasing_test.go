package engine_test

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/enginetest"
	"github.com/macfleet/macfleet/plan"
)

// releasing scales two hosts down to one. During the erase of the one that leaves, onCall sees each call. The result counts the
// requests to erase it.
func (w *nodesInMemory) releasing(t *testing.T, onCall func(*enginetest.Machine, enginetest.Call) enginetest.Fault) (m *enginetest.Machine, requests int, r engine.Result) {
	t.Helper()
	w.Config.Fleets[0].Groups[0].Replicas = 1
	p := planned(t, w.engine)
	m = w.Member(p.Hosts[slices.IndexFunc(p.Hosts, func(h plan.Host) bool { return h.Leaves })].Server.ID)
	var erases atomic.Bool
	w.begins(plan.ReinstallServer, func() { erases.Store(true) })
	w.OnCall = func(c enginetest.Call) enginetest.Fault {
		if !erases.Load() {
			return enginetest.Fault{}
		}
		if c.What == "reinstall" {
			requests++
		}
		return onCall(m, c)
	}
	r, _ = applying(t, t.Context(), w.engine, p) // the run may die
	return m, requests, r
}

// around is what happens before or behind a call.
func around(behind bool, happens func()) enginetest.Fault {
	if behind {
		return enginetest.Fault{After: happens}
	}
	return enginetest.Fault{Before: happens}
}

// TestEraseLooksAgain: a host that changes between the plan and its erase is not erased, up to the last moment.
func TestEraseLooksAgain(t *testing.T) {
	t.Parallel()
	set := func(f func(*enginetest.Machine)) func(*nodesInMemory, *enginetest.Machine) {
		return func(w *nodesInMemory, m *enginetest.Machine) { w.Change(func() { f(m) }) }
	}
	for name, tc := range map[string]struct {
		at     string // the call at which it changes
		behind bool   // after it
		change func(w *nodesInMemory, m *enginetest.Machine)
	}{
		"of another type":              {"get", false, set(func(m *enginetest.Machine) { m.Server.Type = "M4-M" })},
		"it restarts":                  {"get", false, set(func(m *enginetest.Machine) { m.Server.Status = "rebooting" })},
		"its work cannot be read":      {"probe", false, nil},
		"renamed":                      {"probe", true, set(func(m *enginetest.Machine) { m.Server.Name = "kept" })},
		"another run pinned a new key": {"probe", true, func(w *nodesInMemory, m *enginetest.Machine) { w.Unpin(); w.Reinstall(m); w.Pin(m, m.Server.Name) }},
	} {
		parallel(t, name, func(t *testing.T) {
			twoOfThree(t, func(t *testing.T, w *nodesInMemory, _ []string) {
				done := false
				_, requests, r := w.releasing(t, func(m *enginetest.Machine, c enginetest.Call) enginetest.Fault {
					change := func() { tc.change(w, m) }
					switch {
					case done || c.What != tc.at:
						return enginetest.Fault{}
					case tc.change == nil:
						return enginetest.Fault{Garbled: true}
					}
					done = true
					return around(tc.behind, change)
				})
				if requests > 0 || len(r.Failures) != 1 {
					t.Errorf("%d requests to erase it, failures %+v", requests, r.Failures)
				}
			})
		})
	}
}

// TestNotErased: a server that the provider calls reinstalled is not returned to the pool with its old key, or with files of
// macfleet.
func TestNotErased(t *testing.T) {
	t.Parallel()
	for says, change := range map[string]func(*nodesInMemory, *enginetest.Machine){
		"the same key as before":      func(*nodesInMemory, *enginetest.Machine) {},
		"still has files of macfleet": func(w *nodesInMemory, m *enginetest.Machine) { w.Reinstall(m) },
	} {
		parallel(t, says, func(t *testing.T) {
			twoOfThree(t, func(t *testing.T, w *nodesInMemory, names []string) {
				asked := false
				m, _, r := w.releasing(t, func(m *enginetest.Machine, c enginetest.Call) enginetest.Fault {
					switch status := func(text string) func() { return func() { w.Change(func() { m.Server.Status = text }) } }; {
					case c.What == "reinstall": // its answer is lost
						asked = true
						change(w, m)
						return enginetest.Fault{Err: enginetest.ErrLost, Before: status("reinstalling")}
					case c.What == "get" && asked:
						return enginetest.Fault{After: status("ready")}
					}
					return enginetest.Fault{}
				})
				if len(r.Failures) != 1 || !strings.Contains(r.Failures[0].Err.Error(), says) || !slices.Contains(names, m.Server.Name) {
					t.Errorf("%s: failures %+v", m.Server.Name, r.Failures)
				}
			})
		})
	}
}

// TestErasedOnce: a run dies right after the request to erase a host. The next one does not ask again, whether the host is still
// reinstalled or is empty by then.
func TestErasedOnce(t *testing.T) {
	t.Parallel()
	for name, later := range map[string]time.Duration{"reinstalling": 0, "empty": 2 * enginetest.InstallTime} {
		parallel(t, name, func(t *testing.T) {
			twoOfThree(t, func(t *testing.T, w *nodesInMemory, _ []string) {
				asked := 0
				m, _, _ := w.releasing(t, func(_ *enginetest.Machine, c enginetest.Call) enginetest.Fault {
					if c.What == "reinstall" {
						if asked++; asked == 1 {
							return enginetest.Fault{After: func() { w.Die(errDied) }}
						}
					}
					return enginetest.Fault{}
				})
				w.Die(nil)
				time.Sleep(later)
				r := apply(t, w.next("next", 2))
				if asked != 1 || len(r.Failures) > 0 || !strings.HasPrefix(m.Server.Name, "acme-pool-") {
					t.Errorf("%s: %d requests to erase it, failures %+v", m.Server.Name, asked, r.Failures)
				}
			})
		})
	}
}
