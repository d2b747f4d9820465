package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/enginetest"
	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/plan"
)

// TestMayNotRename: without the right to rename, no host of the pool is touched, and one
// server is tried.
func TestMayNotRename(t *testing.T) {
	t.Parallel()
	inMemory(t, 3, everyoneAtOnce, func(t *testing.T, w *nodesInMemory) {
		p := planned(t, w.engine)
		asked, touched := 0, []string{}
		var over atomic.Bool
		w.OnCall = func(c enginetest.Call) enginetest.Fault {
			switch {
			case over.Load():
			case c.What == "check rename":
				asked++
				return enginetest.Fault{Err: fmt.Errorf("change server: %w", inventory.ErrDenied)}
			case c.Place == enginetest.OnHost:
				touched = append(touched, c.What+" "+c.Name)
			}
			return enginetest.Fault{}
		}
		w.engine.Emit = func(ev engine.Event) { // the run looks again
			if ev.Type == engine.Listed {
				over.Store(true)
			}
		}
		r := performed(t, w.engine, p)
		if asked != 1 || len(touched) != 0 || r.Done != 0 || len(r.Failures) != 3 {
			t.Errorf("%d servers tried, hosts heard %q, %d done, %d failed", asked, touched, r.Done, len(r.Failures))
		}
		for _, f := range r.Failures {
			var trouble *plan.Trouble
			if !errors.As(f.Err, &trouble) || trouble.Code != plan.CodeMayNotRename {
				t.Errorf("%s: %v", f.Action.Host, f.Err)
			}
		}
		for _, m := range w.Machines {
			if m.Root || m.Claimed() {
				t.Errorf("%s: root %t, claimed %t", m.Server.Name, m.Root, m.Claimed())
			}
		}
	})
}

// TestDeniedOrDeleted: a denial of a deleted server concerns that server only. If that is unknown,
// the key counts as one that may not rename, and no other server is tried.
func TestDeniedOrDeleted(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		lists   error // of the question whether the server was deleted
		deleted bool
		claimed int
	}{
		"deleted": {deleted: true, claimed: 2},
		"denied":  {},
		"unknown": {lists: errors.New("the list failed"), deleted: true},
	} {
		t.Run(name, func(t *testing.T) {
			inMemory(t, 3, everyoneAtOnce, func(t *testing.T, w *nodesInMemory) {
				p := planned(t, w.engine)
				denied := ""
				w.OnCall = func(c enginetest.Call) enginetest.Fault {
					switch {
					case c.What == "check rename" && (denied == "" || denied == c.Name):
						if denied = c.Name; tc.deleted {
							w.Deleted = []string{c.Name}
						}
						return enginetest.Fault{Err: fmt.Errorf("change server: %w", inventory.ErrDenied)}
					case c.What == "gone":
						return enginetest.Fault{Err: tc.lists}
					}
					return enginetest.Fault{}
				}
				performed(t, w.engine, p)
				claimed := 0
				for _, m := range w.Machines {
					if m.Claimed() {
						claimed++
					}
				}
				if claimed != tc.claimed || denied == "" {
					t.Errorf("%d servers claimed, want %d", claimed, tc.claimed)
				}
			})
		})
	}
}

// TestClaimThatFails leaves a host of the pool as it was, unless the server became a member or
// someone else's, or its name is unknown.
func TestClaimThatFails(t *testing.T) {
	t.Parallel()
	broken := errors.New("the connection broke")
	type happening = func(*nodesInMemory, enginetest.Call) enginetest.Fault
	on := func(what string, f enginetest.Fault) happening {
		return func(_ *nodesInMemory, c enginetest.Call) enginetest.Fault { return faultAt(what, f)(c) }
	}
	both := func(one, other happening) happening {
		return func(w *nodesInMemory, c enginetest.Call) enginetest.Fault {
			if f := one(w, c); f.Err != nil {
				return f
			}
			return other(w, c)
		}
	}
	before := func(what string, change func(*enginetest.Machine)) happening {
		return func(w *nodesInMemory, c enginetest.Call) enginetest.Fault {
			return faultAt(what, enginetest.Fault{Before: func() { w.Change(func() { change(w.Machines[0]) }) }})(c)
		}
	}
	behindSudo := func(change func(*inventory.Server)) happening {
		return func(w *nodesInMemory, c enginetest.Call) enginetest.Fault {
			return faultAt("RunChange", enginetest.Fault{After: func() { w.Change(func() { change(&w.Machines[0].Server) }) }})(c)
		}
	}
	denied := on("rename", enginetest.Fault{Err: fmt.Errorf("rename: %w", inventory.ErrDenied)})
	other := &plan.Claim{Configuration: "globex", Name: "globex-m2-00000", ServerID: "00000-0000", Nonce: "x"}
	claims := func(m *enginetest.Machine) { m.Claim(other) }
	const undone, byHand = "/etc/sudoers.d/macfleet was removed", "ssh m1@192.0.2.0 sudo rm -f /etc/macfleet/claim.json /etc/sudoers.d/macfleet"
	for name, tc := range map[string]struct {
		fault             happening
		once              bool // only the first call
		stop              bool // someone stops the run behind the step sudo
		had               bool // root, before the run
		root, claimed     bool
		ours, unclaimable bool // the server is not the pool's any more; it cannot be claimed any more
		says              string
	}{
		"the right is gone since":           {fault: denied, says: undone},
		"the answer is lost, and no more":   {fault: on("rename", enginetest.Fault{Err: broken, Applied: true}), root: true, claimed: true, ours: true},
		"the rename is lost":                {fault: on("rename", enginetest.Fault{Err: broken}), says: undone},
		"no one knows whether it is named":  {fault: both(denied, on("list", enginetest.Fault{Err: broken})), root: true, claimed: true, says: byHand},
		"the connection breaks at undoing":  {fault: both(denied, on("DropClaim", enginetest.Fault{Err: broken})), once: true, says: undone},
		"undoing fails":                     {fault: both(denied, on("DropClaim", enginetest.Fault{Err: broken})), root: true, claimed: true, says: byHand},
		"another run has the claim":         {fault: before("TakeClaim", claims), root: true, claimed: true, unclaimable: true, says: "another run claimed the host first"},
		"another run had it since the plan": {fault: before("connect", claims), claimed: true, unclaimable: true, says: "claimed-by-another"},
		"it left the pool since the plan":   {fault: before("get", func(m *enginetest.Machine) { m.Server.Name = "globex-mac" }), ours: true, unclaimable: true, says: "name globex-mac"},
		"the server is locked meanwhile":    {fault: behindSudo(func(s *inventory.Server) { s.Status = "locked" }), says: undone, unclaimable: true},
		"its deletion is scheduled meanwhile": {fault: behindSudo(func(s *inventory.Server) { s.DeletionScheduled = true }),
			says: "the deletion of server acme-pool-0 was scheduled", unclaimable: true},
		"it had root before":                 {fault: denied, had: true, root: true, says: "rename"},
		"the answer of sudo is lost":         {fault: on("RunChange", enginetest.Fault{Err: broken, Applied: true}), says: undone},
		"the file of sudo was never written": {fault: on("RunChange", enginetest.Fault{Err: broken}), says: "the connection broke"},
		"a person stops the run":             {fault: on("", enginetest.Fault{}), stop: true},
	} {
		row(t, name, 1, everyoneAtOnce, func(t *testing.T, w *nodesInMemory) {
			if tc.had {
				w.Machines[0].Root, w.Machines[0].State["sudo"] = true, "yes"
			}
			p := planned(t, w.engine)
			var over atomic.Bool
			counts := make(map[string]int)
			w.OnCall = func(c enginetest.Call) enginetest.Fault {
				counts[c.What]++
				if over.Load() || tc.once && counts[c.What] > 1 {
					return enginetest.Fault{}
				}
				return tc.fault(w, c)
			}
			stop, halt := context.WithCancelCause(context.Background())
			w.engine.Stop = stop
			w.engine.Emit = func(ev engine.Event) {
				if ev.Type == engine.HostEnded {
					over.Store(true)
				}
				if tc.stop && ev.Type == engine.Done && ev.Action.Step == "sudo" {
					halt(errors.New("stopped"))
				}
			}
			r := performed(t, w.engine, p)
			halt(nil)
			m := w.Machines[0]
			if m.Root != tc.root || m.Claimed() != tc.claimed || (m.Server.Name != "acme-pool-0") != tc.ours {
				t.Errorf("root %t, claimed %t, called %s", m.Root, m.Claimed(), m.Server.Name)
			}
			said := ""
			for _, f := range r.Failures {
				said += f.Err.Error()
			}
			if (tc.says == "") != (said == "") || !strings.Contains(said, tc.says) {
				t.Errorf("says %q, want %q", said, tc.says)
			}
			if tc.unclaimable {
				return
			}
			w.engine = w.Engine() // the rest of a failed claim does not block the next run
			w.engine.Run = named("s", 2)
			if again := performed(t, w.engine, planned(t, w.engine)); len(again.Failures) > 0 || m.Server.Name == "acme-pool-0" {
				t.Errorf("the next apply: %+v, called %s", again.Failures, m.Server.Name)
			}
		})
	}
}

// TestTriedOnce: a password whose check was interrupted is tried a second time on a host, and no third time.
func TestTriedOnce(t *testing.T) {
	t.Parallel()
	for tries, claimed := range map[int]bool{1: true, 2: false} {
		inMemory(t, 1, everyoneAtOnce, func(t *testing.T, w *nodesInMemory) {
			m := w.Machines[0]
			v, err := secret.New("password of " + m.Server.ID)
			must(t, err)
			seal, err := v.Seal()
			must(t, err)
			m.Refusals = []plan.Refusal{{Seal: string(seal), Tries: tries, At: time.Now()}}
			if r := apply(t, w.engine); r.Converged() != claimed || m.Claimed() != claimed {
				t.Errorf("after %d tries: claimed %t, failures %+v", tries, m.Claimed(), r.Failures)
			}
		})
	}
}

// TestNamedByHand: macfleet does not log in to a server that has a member's name and was never claimed.
func TestNamedByHand(t *testing.T) {
	t.Parallel()
	w, _ := world(t, 4)
	e := run(t, w, config("production", 1))
	h := planned(t, e).Hosts[0]
	must(t, e.Servers.Rename(t.Context(), h.Server.Zone, h.Server.ID, h.Server.Name, h.Name))
	p := planned(t, e)
	if h, _ := p.HostByServer(h.Server.ID); h.Unknown == nil || h.Unknown.Code != plan.CodeHostKeyUnknown || len(p.Actions) != 0 {
		t.Errorf("%+v, actions %+v", h.Unknown, p.Actions)
	}
}
