package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
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
		"its key was forgotten":        {"probe", true, func(w *nodesInMemory, _ *enginetest.Machine) { w.Unpin() }},
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

// TestReleaseIsStoredFirst: before anything is done to a host that leaves, its pin has the stage, so that the next run continues with the same host.
func TestReleaseIsStoredFirst(t *testing.T) {
	t.Parallel()
	twoOfThree(t, func(t *testing.T, w *nodesInMemory, _ []string) {
		stages := make(map[string]plan.Stage)
		w.OnCall = func(c enginetest.Call) enginetest.Fault {
			if c.What != "close" {
				return enginetest.Fault{}
			}
			return enginetest.Fault{Before: func() {
				pins, _ := w.Engine().Pins.All()
				for _, p := range pins {
					stages[p.Name] = p.Stage
				}
				if stages[c.Name] != plan.Leaving {
					t.Errorf("%s is drained with the stage %q", c.Name, stages[c.Name])
				}
			}}
		}
		w.Config.Fleets[0].Groups[0].Replicas = 1
		if r := apply(t, w.engine); len(stages) == 0 || len(r.Failures) > 0 {
			t.Errorf("stages %v, failures %+v", stages, r.Failures)
		}
	})
}

// TestEraseOfASilentHost: one that does not answer is erased only if no Pod came to its Node since the plan.
func TestEraseOfASilentHost(t *testing.T) {
	t.Parallel()
	for _, comes := range []bool{false, true} {
		twoOfThree(t, func(t *testing.T, w *nodesInMemory, names []string) {
			w.Change(func() { w.Member(names[0]).Away = true })
			w.dies(names[:1])
			came := false
			m, requests, r := w.releasing(t, func(m *enginetest.Machine, c enginetest.Call) enginetest.Fault {
				if !comes || came || c.What != "get" {
					return enginetest.Fault{}
				}
				came = true
				return enginetest.Fault{Before: func() { w.RunPod(names[0], "late") }}
			})
			if m.Server.ID != w.Member(m.Server.ID).Server.ID || requests > 0 == comes || comes && len(r.Failures) != 1 {
				t.Errorf("a Pod comes %t: %d requests to erase it, failures %+v", comes, requests, r.Failures)
			}
			w.EndPods(names[0])
		})
	}
}

// TestReleaseForgetsItsNode: before a server is returned to the pool, the Node that its kubelet registered again is deleted, and
// one of the same name that is another server's is kept.
func TestReleaseForgetsItsNode(t *testing.T) {
	t.Parallel()
	for _, others := range []bool{false, true} {
		twoOfThree(t, func(t *testing.T, w *nodesInMemory, _ []string) {
			var host string
			emit := w.engine.Emit
			w.engine.Emit = func(ev engine.Event) {
				emit(ev)
				if ev.Type != engine.Started || ev.Action.Kind != plan.ReleaseServer {
					return
				}
				host = ev.Host
				n := inventory.Node{Name: host, UID: "again", ProviderID: w.Member(host).Server.ProviderID()}
				if others {
					n.ProviderID = "scw-applesilicon://fr-par-1/another"
				}
				w.AddNode(n)
			}
			_, _, r := w.releasing(t, func(*enginetest.Machine, enginetest.Call) enginetest.Fault { return enginetest.Fault{} })
			if _, there := w.Node(host); there != others || len(r.Failures) > 0 {
				t.Errorf("another server's %t: it exists %t, failures %+v", others, there, r.Failures)
			}
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

// TestNotErasedWithFiles: a server that was reinstalled is not returned to the pool if a claim is on its host, or if it is unknown
// whether a marker is.
func TestNotErasedWithFiles(t *testing.T) {
	t.Parallel()
	for name, isClaim := range map[string]bool{"a claim": true, "an unread marker": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			twoOfThree(t, func(t *testing.T, w *nodesInMemory, names []string) {
				asked := false
				m, _, r := w.releasing(t, func(m *enginetest.Machine, c enginetest.Call) enginetest.Fault {
					switch status := func(text string) func() { return func() { w.Change(func() { m.Server.Status = text }) } }; {
					case c.What == "reinstall" && isClaim:
						return enginetest.Fault{After: func() { w.Change(func() { m.Claim(&plan.Claim{Name: "x"}) }) }}
					case c.What == "reinstall":
						asked = true
						w.Reinstall(m)
						w.Change(func() { m.Claim(nil) })
						return enginetest.Fault{Err: enginetest.ErrLost, Before: status("reinstalling")}
					case c.What == "get" && asked:
						return enginetest.Fault{After: status("ready")}
					}
					return enginetest.Fault{Garbled: asked && c.What == "observe"}
				})
				if len(r.Failures) != 1 || !strings.Contains(r.Failures[0].Err.Error(), "still has files of macfleet") || !slices.Contains(names, m.Server.Name) {
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
	for name, tc := range map[string]struct{ later, silent time.Duration }{
		"reinstalling":             {},
		"reinstalling, and silent": {silent: 2 * enginetest.InstallTime},
		"empty":                    {later: 2 * enginetest.InstallTime},
	} {
		parallel(t, name, func(t *testing.T) {
			twoOfThree(t, func(t *testing.T, w *nodesInMemory, _ []string) {
				asked := 0
				stop, halt := context.WithCancel(t.Context())
				w.engine.Stop = stop
				m, _, _ := w.releasing(t, func(_ *enginetest.Machine, c enginetest.Call) enginetest.Fault {
					if c.What == "reinstall" {
						if asked++; asked == 1 {
							return enginetest.Fault{After: func() { w.Die(errDied); halt() }} // a dead process does not poll
						}
					}
					return enginetest.Fault{}
				})
				w.Die(nil)
				time.Sleep(tc.later)
				if tc.silent > 0 {
					w.Change(func() { m.Away = true })
					time.AfterFunc(tc.silent, func() { w.Change(func() { m.Away = false }) })
				}
				r := apply(t, w.next("next", 2))
				if asked != 1 || len(r.Failures) > 0 || !strings.HasPrefix(m.Server.Name, "acme-pool-") {
					t.Errorf("%s: %d requests to erase it, failures %+v", m.Server.Name, asked, r.Failures)
				}
			})
		})
	}
}

// TestInstallationFails: a failed installation is requested once more in the same run, and once more in the next. A server that works
// although its status says otherwise is not erased again before that.
func TestInstallationFails(t *testing.T) {
	t.Parallel()
	for failures, want := range map[int]struct {
		requests int
		code     string
	}{1: {2, ""}, 2: {2, "install-failed"}, 3: {2, "install-failed"}} {
		parallel(t, fmt.Sprint(failures, " fail"), func(t *testing.T) {
			twoOfThree(t, func(t *testing.T, w *nodesInMemory, _ []string) {
				left := failures
				m, requests, r := w.releasing(t, func(m *enginetest.Machine, c enginetest.Call) enginetest.Fault {
					if c.What != "reinstall" {
						return enginetest.Fault{}
					}
					status := "ready"
					if left--; left >= 0 {
						status = "error"
					}
					return enginetest.Fault{After: func() { w.Change(func() { m.Server.Status = status }) }}
				})
				code := ""
				if len(r.Failures) > 0 {
					var trouble *plan.Trouble
					if errors.As(r.Failures[0].Err, &trouble) {
						code = trouble.Code.String()
					}
				}
				if requests != want.requests || code != want.code || (code == "") != strings.HasPrefix(m.Server.Name, "acme-pool-") {
					t.Fatalf("%s: %d requests, failures %+v", m.Server.Name, requests, r.Failures)
				}
				if failures == 2 {
					if r := apply(t, w.next("next", 2)); len(r.Failures) > 0 || left != -1 || !strings.HasPrefix(m.Server.Name, "acme-pool-") {
						t.Errorf("the next run: %s, %d left, failures %+v", m.Server.Name, left, r.Failures)
					}
				}
			})
		})
	}
}
