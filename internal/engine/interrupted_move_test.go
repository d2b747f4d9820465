package engine_test

import (
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/engine"
)

// mover is a Mac whose fleet gets another name to and fro, each time below a Pod running.
type mover struct {
	*victim
	fleets [2]string
}

func newMover(t *testing.T) *mover {
	t.Helper()
	declares(t, 1000, "one Mac is moved to and fro")
	m := &mover{victim: victimIn(t, prepared(t, 3, nodes(1)))}
	run := thisRun()
	run.Epoch = 1
	m.engine.Run, m.engine.Drain = run, engine.Drain{Within: time.Minute, Every: 5 * time.Millisecond}
	m.fleets = [2]string{m.engine.Config.Fleets[0].Name, "jobs"}
	return m
}

// next gives the fleet its other name, and has a Pod run.
func (m *mover) next(t *testing.T) {
	t.Helper()
	must(t, m.world.RunPod(member(t, m.world), "default", "job"))
	c := m.engine.Config
	c.Fleets[0].Name = m.fleets[1]
	c.Moves = []fleet.Move{{From: fleet.Place{Fleet: m.fleets[0]}, To: fleet.Place{Fleet: m.fleets[1]}}}
	m.fleets[0], m.fleets[1] = m.fleets[1], m.fleets[0]
	if p := planned(t, m.engine); !p.Actions[0].Drains || p.Actions[0].Evicts != 1 {
		t.Fatalf("%q, evicts %d", codesOf(p, p.Hosts[0].Name), p.Actions[0].Evicts)
	}
}

// TestMoveInterrupted interrupts a move on a Mac below a Pod running. The next run converges: one
// kubelet, one Node, of the new name and open. TestFaultMatrix kills macfleet meanwhile.
func TestMoveInterrupted(t *testing.T) {
	t.Parallel()
	for name, interruption := range interruptions() {
		parallel(t, name, func(t *testing.T) {
			m := newMover(t)
			for n, step := shard(); ; n += step {
				m.next(t)
				fell := m.interruptedAt(t, n, interruption, nil)
				isOpen(t, m.engine, member(t, m.world), 0)
				nodes, err := m.engine.Cluster.Nodes(t.Context())
				if err != nil || len(nodes) != 1 || nodes[0].Name != member(t, m.world) {
					t.Errorf("interrupted after %d: %v, Nodes %+v", n, err, nodes)
				}
				if !fell {
					return
				}
			}
		})
	}
}
