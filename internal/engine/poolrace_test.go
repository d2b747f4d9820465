package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
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
// some, and then each replaces a host, at a speed that the seed draws for each call; half of the runs that release or replace
// are killed at a drawn call and started again. At no call does a server have two owners, and each configuration erases exactly
// what it released or replaced.
func TestScaleDownAndUpAtOnce(t *testing.T) {
	t.Parallel()
	sum := new(exchange)
	for seed := range uint64(seeds) {
		if !scripttest.Mine(int(seed)) {
			continue
		}
		synctest.Test(t, func(t *testing.T) {
			defer showSeed(t, seed)
			exchangeServers(t, seed, sum)
		})
	}
	t.Logf("%+v", *sum)
	if sum.Moved == 0 || sum.Killed == 0 || sum.Met == 0 || sum.Replaced == 0 {
		t.Errorf("the two never met: %+v", *sum)
	}
}

// showSeed prints the seed of a race that failed: a test ends with its bubble.
func showSeed(t *testing.T, seed uint64) {
	if t.Failed() {
		t.Logf("seed %d", seed)
	}
}

// exchange counts what races did.
type exchange struct {
	Moved  int // servers that one configuration released and the other claimed
	Met    int // those that were claimed while the run that released them still worked
	Killed int // runs
	// Replaced are hosts in whose place another server joined.
	Replaced int
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
		var erase [2]int
		for i, w := range p.worlds {
			erase[i] = len(w.Erased) + max(0, len(p.held(i))-w.Config.Fleets[0].Groups[0].Replicas)
		}
		var all sync.WaitGroup
		over := make(chan struct{})
		all.Go(func() {
			defer close(over)
			if p.run(shrinks, killedAt, nil) {
				sum.Killed++
				p.run(shrinks, -1, nil)
			}
		})
		all.Go(func() {
			for n := range 12 { // each finds what is in the pool by then
				select {
				case <-over:
					return
				case <-time.After(time.Duration(n) * time.Minute):
					p.run(grows, -1, nil)
				}
			}
		})
		all.Wait()
		sum.Met += len(p.held(grows)) - before
		p.settle(shrinks)
		p.settle(grows)
		sum.Moved += len(p.held(grows)) - before
		p.check(erase)
		sum.Replaced += p.replace(draw, sum)
	}
}

// replace lets each configuration replace a host at once, and returns how many were.
func (p *pair) replace(draw *rand.Rand, sum *exchange) (replaced int) {
	var all sync.WaitGroup
	var killed [2]bool
	var erase [2]int
	for i, w := range p.worlds {
		erase[i] = len(w.Erased)
		if has, killedAt := p.held(i), draw.IntN(200)-100; len(has) > 0 {
			name := has[0].Server.Name
			all.Go(func() { killed[i] = p.run(i, killedAt, &plan.Departure{Name: name, Replace: true}) })
		}
	}
	all.Wait()
	for range 2 {
		p.settle(0)
		p.settle(1)
	}
	for i, w := range p.worlds {
		if killed[i] {
			sum.Killed++
		}
		if n := len(w.Erased) - erase[i]; n <= 1 {
			replaced, erase[i] = replaced+n, len(w.Erased)
		}
		pins, err := w.Engine().Pins.All()
		must(p.t, err)
		for _, pin := range pins {
			if pin.Stage == plan.Replaced { // no server was free
				k, err := w.Engine().CancelDeparture(p.t.Context(), pin.Name)
				if err != nil || k.Surplus > 0 {
					p.t.Errorf("%s is not replaced: %+v, %v", pin.Name, k, err)
				}
			}
		}
	}
	p.check(erase)
	return replaced
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
func (p *pair) run(i, killedAt int, departs *plan.Departure) (killed bool) {
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
	e.Selection.Departs = departs
	e.Raise = func(_ context.Context, above int64) (plan.Run, error) { return named(e.Run.ID, above+1), nil }
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

// settle applies again what was lost to the other. A server whose claim was lost has another key once the other released it: a person accepts
// it, as the plan advises.
func (p *pair) settle(i int) {
	for range 2 {
		time.Sleep(time.Minute) // on the virtual clock: kubelets that were just started report
		w := p.worlds[i]
		must(p.t, w.Engine().Pins.Update(func(all []plan.Pin) []plan.Pin {
			for j := range all {
				if m := w.Member(all[j].ServerID); all[j].Unfinished {
					all[j].Key = m.Key()
				}
			}
			return all
		}))
		p.run(i, -1, nil)
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

// check: each configuration has what it wants as far as there are servers, nothing is left of what it released, and it erased as many servers
// as it should have.
func (p *pair) check(erase [2]int) {
	p.t.Helper()
	taken, wanted := 0, 0
	for i, w := range p.worlds {
		replicas, has := w.Config.Fleets[0].Groups[0].Replicas, p.held(i)
		taken, wanted = taken+len(has), wanted+replicas
		if len(w.Erased) != erase[i] {
			p.t.Errorf("%s erased %d servers, and should have erased %d", w.Config.Name, len(w.Erased), erase[i])
		}
		if len(has) > replicas {
			p.t.Errorf("%s has %d servers for %d replicas", w.Config.Name, len(has), replicas)
		}
		for _, what := range w.Wrong() {
			p.t.Error(what)
		}
		pins, err := w.Engine().Pins.All()
		must(p.t, err)
		left := len(slices.DeleteFunc(pins, func(p plan.Pin) bool { return p.Unfinished || p.Stage == plan.Released }))
		for _, line := range w.Lasting() {
			if strings.HasPrefix(line, "node ") || strings.HasPrefix(line, "identity ") {
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
