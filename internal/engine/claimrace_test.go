package engine_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/enginetest"
	"github.com/macfleet/macfleet/internal/scripttest"
	"github.com/macfleet/macfleet/plan"
)

// seeds is how many races are run.
const seeds = 1000

// TestTwoConfigurationsClaimAtOnce: two configurations in two clusters claim from one pool at the same moment, at a speed
// that the seed draws for each call. No server is ever in both, and afterwards each has its servers as far as the pool had
// them.
func TestTwoConfigurationsClaimAtOnce(t *testing.T) {
	t.Parallel()
	lost := 0
	for seed := range uint64(seeds) {
		if !scripttest.Mine(int(seed)) {
			continue
		}
		synctest.Test(t, func(t *testing.T) {
			defer showSeed(t, seed)
			lost += race(t, seed)
		})
	}
	if lost == 0 {
		t.Error("no claim was ever lost: the two never met")
	}
}

// race lets two runs claim, and returns how many claims one lost to the other.
func race(t *testing.T, seed uint64) (lost int) {
	draw := rand.New(rand.NewPCG(seed, 0))
	servers := 3 + draw.IntN(3)
	one := enginetest.New(servers, 2, fleet.Rollout{MaxUnavailable: fleet.Share{Count: 1}})
	one.Things = func(fleet.Host) []enginetest.Thing {
		return []enginetest.Thing{{Key: "sudo", Value: "yes", Input: plan.LoginPassword, Grants: true}, {Key: "plain", Value: "a"},
			{Key: "agent", Value: "v1", Class: plan.Restart, Root: true, Node: true, Input: plan.Kubeconfig}}
	}
	worlds := []*enginetest.World{one, one.With("beta")}
	var all sync.WaitGroup
	missing := make([]int, len(worlds))
	for i, w := range worlds {
		hurry := rand.New(rand.NewPCG(seed, uint64(i+1)))
		w.OnCall = func(enginetest.Call) enginetest.Fault { // one call of a world at a time
			d := time.Duration(hurry.IntN(40)) * time.Millisecond
			return enginetest.Fault{Before: func() { time.Sleep(d) }}
		}
		e := w.Engine()
		e.Run = named(fmt.Sprint("run-", i), 1)
		p := planned(t, e)
		all.Go(func() {
			r, err := applying(t, t.Context(), e, p)
			if err != nil {
				t.Errorf("%s: %v", w.Config.Name, err)
			}
			missing[i] = len(r.Failures)
		})
	}
	all.Wait()
	oneOwner(t, one)
	for range 2 { // what one lost, it claims in the next run
		for i, w := range worlds {
			e := w.Engine()
			e.Run = named(fmt.Sprint("again-", i), 2)
			performed(t, e, planned(t, e))
			oneOwner(t, one)
		}
	}
	taken := 0
	for _, m := range one.Machines {
		taken += len(m.Owners())
	}
	if taken != min(servers, 4) {
		t.Errorf("%d of %d servers are taken for 4 replicas", taken, servers)
	}
	for _, w := range worlds {
		for _, what := range w.Wrong() {
			t.Error(what)
		}
	}
	return missing[0] + missing[1]
}

// oneOwner reports machines that two configurations hold.
func oneOwner(t *testing.T, w *enginetest.World) {
	t.Helper()
	w.Change(func() {
		for _, m := range w.Machines {
			if owners := m.Owners(); len(owners) > 1 {
				t.Errorf("%s belongs to %v", m.Server.Name, owners)
			}
		}
	})
}
