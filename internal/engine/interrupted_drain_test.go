package engine_test

import (
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/engine"
)

// tartOf wants one version of Tart, or the other.
func tartOf(c *fleet.Config, second bool) {
	version := map[bool]string{false: "2.32.1", true: "2.33.0"}[second]
	c.Fleets[0].Groups[0].Spec.Tart.Artifact = sample("tart", version, "tart-"+version+".tar.gz")
}

// nameOf wants one name of the fleet, or the other.
func nameOf(c *fleet.Config, second bool) {
	names := map[bool]string{false: "macos", true: "jobs"}
	c.Fleets[0].Name = names[second]
	c.Moves = []fleet.Move{{From: fleet.Place{Fleet: names[!second]}, To: fleet.Place{Fleet: names[second]}}}
}

// toAndFro changes a Mac to and fro, each time below a Pod running, with an interruption at one place after the other. The next run
// converges: one kubelet, one Node, and no one's cordon is left.
func toAndFro(t *testing.T, configure func(c *fleet.Config, second bool)) {
	for name, interruption := range interruptions() {
		parallel(t, name, func(t *testing.T) {
			declares(t, 1000, "one Mac is changed to and fro")
			v := victimIn(t, prepared(t, 3, nodes(1)))
			v.engine.Run, v.engine.Drain = thisRun(), engine.Drain{Within: time.Minute, Every: 5 * time.Millisecond}
			v.engine.Run.Epoch = 1 // the cluster keeps its lock, so what it entered says nothing of its life
			second, fell := false, true
			for n, step := shard(); fell; n += step {
				second = !second
				must(t, v.world.RunPod(member(t, v.world), "default", "job"))
				configure(v.engine.Config, second)
				if p := planned(t, v.engine); !p.Actions[0].Drains || p.Actions[0].Evicts != 1 {
					t.Fatalf("%q, evicts %d", codesOf(p, p.Hosts[0].Name), p.Actions[0].Evicts)
				}
				fell = v.interruptedAt(t, n, interruption, nil)
				isOpen(t, v.engine, member(t, v.world), 0)
				nodes, err := v.engine.Cluster.Nodes(t.Context())
				if err != nil || len(nodes) != 1 || nodes[0].Name != member(t, v.world) {
					t.Errorf("interrupted after %d: %v, Nodes %+v", n, err, nodes)
				}
			}
		})
	}
}

// TestDrainInterrupted interrupts an exchange of Tart below a Pod running on its host. TestRollInterrupted has each interruption
// without a Pod, and TestFaultMatrix what hits the cluster and macfleet meanwhile.
func TestDrainInterrupted(t *testing.T) {
	t.Parallel()
	toAndFro(t, tartOf)
}

// TestMoveInterrupted interrupts a move on a Mac below a Pod running. TestFaultMatrix kills macfleet meanwhile.
func TestMoveInterrupted(t *testing.T) {
	t.Parallel()
	toAndFro(t, nameOf)
}
