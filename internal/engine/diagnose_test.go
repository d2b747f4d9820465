package engine_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/engine"
)

// diagnosing is a provider with diagnostics, which counts them.
type diagnosing struct {
	engine.Servers
	mu    *sync.Mutex
	asked map[string]int
	hang  bool
}

func (d diagnosing) Diagnose(ctx context.Context, _, id string) (inventory.Diagnosis, error) {
	d.mu.Lock()
	d.asked[id]++
	d.mu.Unlock()
	if d.hang {
		<-ctx.Done()
		return inventory.Diagnosis{}, context.Cause(ctx)
	}
	return inventory.Diagnosis{Detailed: true, Text: "server down"}, nil
}

// unanswering are hosts that cannot be dialled.
type unanswering struct{}

func (unanswering) Connect(context.Context, engine.Target) (engine.Host, error) {
	return nil, errors.New("dial: i/o timeout")
}

// TestDiagnostics: hosts that do not answer carry the provider's diagnostic. Few are requested at once, none for hosts
// that answer, none twice within a minute, and none holds a plan up for long.
func TestDiagnostics(t *testing.T) {
	t.Parallel()
	inMemory(t, 12, fleet.Rollout{}, func(t *testing.T, w *nodesInMemory) {
		e := w.engine
		d := diagnosing{e.Servers, &sync.Mutex{}, make(map[string]int), false}
		e.Servers = d
		performed(t, e, planned(t, e))
		if planned(t, e); len(d.asked) > 0 {
			t.Fatalf("hosts that answer were diagnosed: %v", d.asked)
		}
		e.Hosts = unanswering{}
		for _, m := range w.Machines {
			w.StopKubelet(m.Server.Name)
		}
		time.Sleep(5 * time.Minute) // their Nodes are not Ready any more
		for round, want := range []int{8, 8, 16} {
			p := planned(t, e)
			codes := make(map[string]int)
			for i := range p.Hosts {
				codes[p.Hosts[i].Unknown.Code.String()]++
			}
			total := 0
			for _, n := range d.asked {
				total += n
			}
			if codes["host-down"] != 8 || codes["unreachable"] != 4 || total != want {
				t.Errorf("round %d: %v after %d diagnostics, want %d", round, codes, total, want)
			}
			if round == 1 {
				time.Sleep(2 * time.Minute)
			}
		}
		time.Sleep(2 * time.Minute)
		d.hang = true
		e.Servers = d
		began := time.Now()
		if p := planned(t, e); p.Hosts[0].Unknown.Code.String() != "unreachable" || time.Since(began) > time.Minute {
			t.Errorf("a diagnostic without an answer: %v after %s", p.Hosts[0].Unknown, time.Since(began))
		}
	})
}
