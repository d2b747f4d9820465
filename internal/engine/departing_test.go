package engine_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/enginetest"
	"github.com/macfleet/macfleet/plan"
)

// twoOfThree has two members and one free server.
func twoOfThree(t *testing.T, f func(t *testing.T, w *nodesInMemory, names []string)) {
	t.Helper()
	inMemory(t, 3, oneByOne, func(t *testing.T, w *nodesInMemory) {
		w.Config.Fleets[0].Groups[0].Replicas = 2
		if r := apply(t, w.engine); !r.Converged() {
			t.Fatalf("failures %+v", r.Failures)
		}
		var names []string
		for _, m := range w.Machines {
			if !strings.HasPrefix(m.Server.Name, "acme-pool-") {
				names = append(names, m.Server.Name)
			}
		}
		w.events = nil
		f(t, w, names)
	})
}

// next is a new process in the world, without a person's request.
func (w *nodesInMemory) next(id string, epoch int64) *engine.Engine {
	e := w.Engine()
	e.Run = named(id, epoch)
	return e
}

// returned finds a host's server in the pool, its group whole, and nothing stored of it.
func (w *nodesInMemory) returned(t *testing.T, host string, replicas int) {
	t.Helper()
	members := 0
	for _, m := range w.Machines {
		switch {
		case m.Server.Name == host:
			t.Errorf("%s was not released", host)
		case !strings.HasPrefix(m.Server.Name, "acme-pool-"):
			members++
		}
	}
	if members != replicas {
		t.Errorf("%d members, want %d", members, replicas)
	}
	all, err := w.Engine().Pins.All()
	must(t, err)
	pins, _ := plan.WithoutReleased(all)
	for _, p := range pins {
		if p.Name == host || p.Stage != plan.Stays {
			t.Errorf("pin %+v", p)
		}
	}
}

// TestReplaceJoinsFirst: the old host is disturbed only when the new one is Ready.
func TestReplaceJoinsFirst(t *testing.T) {
	t.Parallel()
	twoOfThree(t, func(t *testing.T, w *nodesInMemory, names []string) {
		w.engine.Selection.Departs = &plan.Departure{Name: names[0], Replace: true}
		r := apply(t, w.engine)
		if !r.Converged() || len(r.Failures) > 0 {
			t.Fatalf("failures %+v, left %+v, after %+v", r.Failures, r.Left, r.After.Actions)
		}
		joined := slices.IndexFunc(w.events, func(ev engine.Event) bool { return ev.Type == engine.NodeReady })
		left := slices.IndexFunc(w.events, func(ev engine.Event) bool { return ev.Type == engine.HostStarted && ev.Host == names[0] })
		if joined < 0 || left < joined {
			t.Errorf("the new host was Ready at event %d, the old one started at %d", joined, left)
		}
		w.returned(t, names[0], 2)
	})
}

// TestKeysThatAReleaseEnds: the note of a release, and the pin of the next claim, say which keys the server had before, so that copies on other
// machines agree. That a person accepted the first one says nothing of the others.
func TestKeysThatAReleaseEnds(t *testing.T) {
	t.Parallel()
	twoOfThree(t, func(t *testing.T, w *nodesInMemory, names []string) {
		pinOf := func() (out plan.Pin) {
			all, err := w.Engine().Pins.All()
			must(t, err)
			for _, p := range all {
				if p.ServerID == w.Machines[0].Server.ID {
					out = p
				}
			}
			return out
		}
		must(t, w.Engine().Pins.Update(func(all []plan.Pin) []plan.Pin {
			for i := range all {
				all[i].Accepted = "ops@build 2026-01-01"
			}
			return all
		}))
		member := pinOf()
		w.engine.Selection.Departs = &plan.Departure{Name: member.Name, Replace: true}
		_ = apply(t, w.engine)
		note := pinOf()
		e := w.next("claims", 9)
		e.Config.Fleets[0].Groups[0].Replicas = 3
		converges(t, e)
		again := pinOf()
		if note.Stage != plan.Released || note.Accepted != "" || !again.Ends(member) || !again.Ends(note) || again.Stage != plan.Stays || again.Key == member.Key {
			t.Errorf("member %+v, note %+v, claimed %+v", member, note, again)
		}
	})
}

// TestReleasedMeanwhile: a run that lost its lock finds the note of a release that another one finished. It stops, and the note stays.
func TestReleasedMeanwhile(t *testing.T) {
	t.Parallel()
	twoOfThree(t, func(t *testing.T, w *nodesInMemory, names []string) {
		w.engine.Selection.Departs = &plan.Departure{Name: names[0], Replace: true}
		_ = apply(t, w.engine)
		e := w.next("late", 9)
		e.Config.Fleets[0].Groups[0].Replicas = 1
		p := planned(t, e)
		var leaves plan.Host
		for _, h := range p.Hosts {
			if h.Leaves {
				leaves = h
			}
		}
		must(t, e.Pins.Update(func(all []plan.Pin) []plan.Pin {
			for i := range all {
				if all[i].ServerID == leaves.Server.ID {
					all[i].Stage = plan.Released
				}
			}
			return all
		}))
		r, err := applying(t, t.Context(), e, p)
		pins, perr := e.Pins.All()
		kept := slices.ContainsFunc(pins, func(p plan.Pin) bool { return p.ServerID == leaves.Server.ID && p.Stage == plan.Released })
		if perr != nil || !kept || err == nil && len(r.Failures) == 0 {
			t.Errorf("%v, %v: failures %+v, stored %+v", err, perr, r.Failures, pins)
		}
	})
}

// TestReplaceIsContinued: a run that is killed at any event of the replacement is continued by plain runs.
func TestReplaceIsContinued(t *testing.T) {
	t.Parallel()
	for _, at := range []engine.EventType{engine.Started, engine.Done, engine.NodeReady, engine.Cordoning, engine.HostEnded} {
		parallel(t, string(at), func(t *testing.T) {
			twoOfThree(t, func(t *testing.T, w *nodesInMemory, names []string) {
				w.engine.Selection.Departs = &plan.Departure{Name: names[0], Replace: true}
				killed, emit := errors.New("killed"), w.engine.Emit
				w.engine.Emit = func(ev engine.Event) {
					emit(ev)
					if ev.Type == at {
						w.Die(killed)
					}
				}
				_, _ = applying(t, t.Context(), w.engine, planned(t, w.engine))
				w.Die(nil)
				for n := range 3 {
					e := w.next("next", int64(n+2))
					if r, err := applying(t, t.Context(), e, planned(t, e)); err == nil && r.Converged() {
						break
					}
				}
				w.returned(t, names[0], 2)
			})
		})
	}
}

// staged stores how far a host is on its way out.
func (w *nodesInMemory) staged(t *testing.T, host string, stage plan.Stage) {
	t.Helper()
	must(t, w.engine.Pins.Update(func(all []plan.Pin) []plan.Pin {
		i := slices.IndexFunc(all, func(p plan.Pin) bool { return p.Name == host })
		all[i].Stage = stage
		return all
	}))
}

// TestCancelledTooLate: a release that another run continues since its stage was read, up to the erase, is not taken back.
func TestCancelledTooLate(t *testing.T) {
	t.Parallel()
	twoOfThree(t, func(t *testing.T, w *nodesInMemory, names []string) {
		w.staged(t, names[0], plan.Leaving)
		e := w.next("cancel", 2)
		e.Guard = heldWhile(func() bool { w.staged(t, names[0], plan.Wiping); return true })
		_, err := e.CancelDeparture(t.Context(), names[0])
		pins, perr := e.Pins.All()
		kept := slices.ContainsFunc(pins, func(p plan.Pin) bool { return p.Name == names[0] && p.Stage == plan.Wiping })
		if perr != nil || !kept || err == nil || !strings.Contains(err.Error(), `at stage "wiping"`) {
			t.Errorf("%v, %v: stored %+v", err, perr, pins)
		}
	})
}

// TestErasedIsNotCancelled: a release whose server is erased is finished, and so is one whose reinstallation was requested, unless the host
// shows that its disk is the old one.
func TestErasedIsNotCancelled(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		stage plan.Stage
		since func(*testing.T, *nodesInMemory, *enginetest.Machine)
		kept  bool
	}{
		"replaced":        {plan.Replaced, nil, true},
		"leaving":         {plan.Leaving, nil, true},
		"wiped":           {plan.Wiped, nil, false},
		"wiping":          {plan.Wiping, nil, true},
		"being erased":    {plan.Wiping, func(_ *testing.T, _ *nodesInMemory, m *enginetest.Machine) { m.Server.Status = "reinstalling" }, false},
		"does not answer": {plan.Wiping, func(_ *testing.T, _ *nodesInMemory, m *enginetest.Machine) { m.Away = true }, false},
		"another disk": {plan.Wiping, func(t *testing.T, w *nodesInMemory, m *enginetest.Machine) {
			must(t, w.engine.Servers.Reinstall(t.Context(), m.Server.Zone, m.Server.ID, "os-1"))
			time.Sleep(enginetest.InstallTime + time.Minute) // on the virtual clock
		}, false},
	} {
		twoOfThree(t, func(t *testing.T, w *nodesInMemory, names []string) {
			w.staged(t, names[0], tc.stage)
			if i := slices.IndexFunc(w.Machines, func(m *enginetest.Machine) bool { return m.Server.Name == names[0] }); tc.since != nil {
				tc.since(t, w, w.Machines[i])
			}
			k, err := w.next("cancel", 2).CancelDeparture(t.Context(), names[0])
			pins, perr := w.engine.Pins.All()
			must(t, perr)
			stays := !slices.ContainsFunc(pins, func(p plan.Pin) bool { return p.Stage == tc.stage })
			if k.Stage != tc.stage || stays != tc.kept || (err == nil) != tc.kept {
				t.Errorf("%s: %+v, %v; stored %+v", name, k, err, pins)
			}
		})
	}
}

// TestRevokeLooksAgain: without its identity a kubelet cannot end Pods, so a Node that takes Pods again since the drain keeps it.
func TestRevokeLooksAgain(t *testing.T) {
	t.Parallel()
	for name, since := range map[string]func(w *nodesInMemory, host string){
		"uncordoned": func(w *nodesInMemory, host string) { w.Uncordon(host) },
		"made again": func(w *nodesInMemory, host string) { w.RemakeNode(host); w.Cordon(host, "sam@desk", "") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			twoOfThree(t, func(t *testing.T, w *nodesInMemory, _ []string) {
				emit := w.engine.Emit
				w.engine.Emit = func(ev engine.Event) {
					emit(ev)
					if ev.Type == engine.Started && ev.Action.Kind == plan.RevokeHost {
						since(w, ev.Host)
					}
				}
				w.Config.Fleets[0].Groups[0].Replicas = 1
				if r := apply(t, w.engine); len(r.Failures) != 1 || r.Failures[0].Action.Kind != plan.RevokeHost {
					t.Errorf("failures %+v", r.Failures)
				}
			})
		})
	}
}

// TestReleaseLooksTwice: an unmanaged server that someone claims between the plan and the run is not erased.
func TestReleaseLooksTwice(t *testing.T) {
	t.Parallel()
	for name, changes := range map[string]func(w *nodesInMemory, m *enginetest.Machine){
		"released":      nil,
		"renamed":       func(_ *nodesInMemory, m *enginetest.Machine) { m.Server.Name = "other" },
		"of other type": func(_ *nodesInMemory, m *enginetest.Machine) { m.Server.Type = "M4-M" },
		"reinstalled":   func(w *nodesInMemory, m *enginetest.Machine) { m.Server.OSFamily = "Sequoia" },
		"claimed": func(w *nodesInMemory, m *enginetest.Machine) {
			c := plan.ClaimOf(w.Config.Owner, "ci-scratch", m.Server.ID)
			m.Claim(&c)
		},
		"a Node": func(w *nodesInMemory, m *enginetest.Machine) {
			w.AddNode(inventory.Node{Name: "by-hand", ProviderID: m.Server.ProviderID()})
		},
	} {
		parallel(t, name, func(t *testing.T) {
			twoOfThree(t, func(t *testing.T, w *nodesInMemory, _ []string) {
				i := slices.IndexFunc(w.Machines, func(m *enginetest.Machine) bool { return strings.HasPrefix(m.Server.Name, "acme-pool-") })
				m := w.Machines[i]
				w.Change(func() { m.Server.Name = "ci-scratch" })
				w.engine.Selection.Departs = &plan.Departure{Name: "ci-scratch"}
				p := planned(t, w.engine)
				if changes != nil {
					changes(w, m)
				}
				r, err := applying(t, context.Background(), w.engine, p)
				must(t, err)
				if got, want := strings.HasPrefix(m.Server.Name, "acme-pool-"), changes == nil; got != want || len(r.Failures) > 0 == want {
					t.Errorf("released %t, want %t; failures %+v", got, want, r.Failures)
				}
			})
		})
	}
}
