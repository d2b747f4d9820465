package engine_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/enginetest"
	"github.com/macfleet/macfleet/internal/scripttest"
	"github.com/macfleet/macfleet/plan"
)

// TestScaleDownAndUpAtOnce: two configurations in two clusters share a pool. One releases servers while the other claims
// some, at a speed that the seed draws for each call; half of the runs that release are killed at a drawn call and started
// again. At no call does a server have two owners, and none is erased that another configuration has.
func TestScaleDownAndUpAtOnce(t *testing.T) {
	t.Parallel()
	sum := new(exchange)
	for seed := range uint64(seeds) {
		if !scripttest.Mine(int(seed)) {
			continue
		}
		synctest.Test(t, func(t *testing.T) { exchangeServers(t, seed, sum) })
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	t.Logf("%+v", *sum)
	if sum.Moved == 0 || sum.Killed == 0 || sum.Met == 0 {
		t.Errorf("the two never met: %+v", *sum)
	}
}

// exchange counts what races did.
type exchange struct {
	Moved  int // servers that one configuration released and the other claimed
	Met    int // those that were claimed while the run that released them still worked
	Killed int // runs
}

// pair is two configurations over one pool.
type pair struct {
	t      *testing.T
	seed   uint64
	worlds []*enginetest.World
	runs   [2]int
}

// exchangeServers lets one configuration shrink while the other grows, and then the other way round.
func exchangeServers(t *testing.T, seed uint64, sum *exchange) {
	draw := rand.New(rand.NewPCG(seed, 7))
	servers := 3 + draw.IntN(2)
	one := enginetest.New(servers, servers-1, fleet.Rollout{MaxUnavailable: fleet.Share{Percent: 100}})
	one.Config.Guardrails.MaxWipes = servers
	one.Things = func(fleet.Host) []enginetest.Thing {
		return []enginetest.Thing{{Key: "sudo", Value: "yes", Input: plan.LoginPassword, Grants: true},
			{Key: "agent", Value: "v1", Class: plan.Restart, Root: true, Node: true, Input: plan.Kubeconfig}}
	}
	p := pair{t: t, seed: seed, worlds: []*enginetest.World{one, one.With("beta")}}
	p.scale(1, 0)
	p.settle(0)
	p.settle(1)
	for shrinks := range 2 {
		grows := 1 - shrinks
		p.scale(shrinks, draw.IntN(2))
		p.scale(grows, 1+draw.IntN(servers))
		before, killedAt := len(p.held(grows)), draw.IntN(200)-100
		var all sync.WaitGroup
		over := make(chan struct{})
		all.Go(func() {
			defer close(over)
			if p.run(shrinks, killedAt) {
				sum.Killed++
				p.run(shrinks, -1)
			}
		})
		all.Go(func() {
			for n := range 12 { // each finds what is in the pool by then
				select {
				case <-over:
					return
				case <-time.After(time.Duration(n) * time.Minute):
					p.run(grows, -1)
				}
			}
		})
		all.Wait()
		sum.Met += len(p.held(grows)) - before
		p.settle(shrinks)
		p.settle(grows)
		sum.Moved += len(p.held(grows)) - before
		p.check()
	}
}

// scale sets the replicas of a configuration, which the other does not share.
func (p *pair) scale(i, replicas int) {
	c := *p.worlds[i].Config
	c.Fleets = append([]fleet.Fleet{}, c.Fleets...)
	c.Fleets[0].Groups = append([]fleet.Group{}, c.Fleets[0].Groups...)
	c.Fleets[0].Groups[0].Replicas = replicas
	p.worlds[i].Config = &c
}

// run plans and applies at a drawn speed. It reports whether it was killed, at the call of that number; below 0: never.
func (p *pair) run(i, killedAt int) (killed bool) {
	p.runs[i]++
	w, run := p.worlds[i], p.runs[i]
	hurry := rand.New(rand.NewPCG(p.seed, uint64(2*run+i)))
	calls := 0
	w.OnCall = func(enginetest.Call) enginetest.Fault { // one call of a world at a time
		d := time.Duration(hurry.IntN(40)) * time.Millisecond
		calls++
		now := calls == killedAt
		return enginetest.Fault{Before: func() {
			oneOwner(p.t, w)
			if time.Sleep(d); now {
				killed = true
				w.Die(errDied)
			}
		}}
	}
	e := w.Engine()
	e.Run, e.Install.Every = named(fmt.Sprint("run-", run), int64(run)), 3*time.Minute
	next, err := e.Plan(p.t.Context())
	if err == nil {
		_, err = e.Apply(p.t.Context(), next)
	}
	w.Die(nil)
	if err != nil && !killed {
		p.t.Errorf("%s: %v", w.Config.Name, err)
	}
	return killed
}

// settle applies again what was lost to the other.
func (p *pair) settle(i int) {
	for range 2 {
		p.run(i, -1)
	}
}

// held are the machines of a configuration.
func (p *pair) held(i int) []*enginetest.Machine {
	var out []*enginetest.Machine
	w := p.worlds[i]
	w.Change(func() {
		for _, m := range w.Machines {
			if m.Owners()[w.Config.Owner.String()] {
				out = append(out, m)
			}
		}
	})
	return out
}

// check: each configuration has what it wants as far as there are servers, and nothing is left of what it released.
func (p *pair) check() {
	p.t.Helper()
	taken, wanted := 0, 0
	for i, w := range p.worlds {
		replicas, has := w.Config.Fleets[0].Groups[0].Replicas, p.held(i)
		taken, wanted = taken+len(has), wanted+replicas
		if len(has) > replicas {
			p.t.Errorf("%s has %d servers for %d replicas", w.Config.Name, len(has), replicas)
		}
		for _, what := range w.Wrong() {
			p.t.Error(what)
		}
		left := 0
		for _, line := range w.Lasting() {
			if strings.HasPrefix(line, "node ") || strings.HasPrefix(line, "identity ") || strings.HasPrefix(line, "pin ") {
				left++
			}
		}
		if left != 3*len(has) {
			p.t.Errorf("%s has %d servers, and\n%s", w.Config.Name, len(has), strings.Join(w.Lasting(), "\n"))
		}
	}
	if servers := len(p.worlds[0].Machines); taken != min(servers, wanted) {
		p.t.Errorf("%d of %d servers are taken for %d replicas", taken, servers, wanted)
	}
}
