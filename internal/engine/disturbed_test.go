package engine_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/hosts"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/enginetest"
	"github.com/macfleet/macfleet/internal/overssh"
	"github.com/macfleet/macfleet/internal/sandbox"
	"github.com/macfleet/macfleet/internal/sandbox/agent"
	"github.com/macfleet/macfleet/internal/sandbox/mac"
)

// disturbed is a fleet whose kubelets are rolled while something hits one host.
type disturbed struct {
	world   *sandbox.World
	engine  *engine.Engine
	names   []string // of its hosts; it hits the first
	machine *mac.Machine
	words   atomic.Int64 // that were sent to that host
	at      int64        // the word before which it happens
	happens func()       // what
}

// newDisturbed opens a world whose hosts run an old kubelet, and wants a new one.
func newDisturbed(t *testing.T, replicas int) *disturbed {
	t.Helper()
	c := nodes(replicas)
	d := &disturbed{}
	d.world, d.engine = converged(t, replicas+2, c)
	// One of them is disturbed, and the others continue.
	c.Fleets[0].Rollout = fleet.Rollout{MaxUnavailable: fleet.Share{Percent: 100}, FailureBudget: 9}
	d.engine.Ready = engine.Ready{Within: 2 * time.Second, Every: 5 * time.Millisecond}
	first := planned(t, d.engine).Hosts[0]
	d.names = hostNames(planned(t, d.engine))
	var err error
	if d.machine, err = d.world.Mac(first.Name); err != nil {
		t.Fatal(err)
	}
	line := overssh.New(hosts.Options{User: "m1", Key: fleetKey(t, d.world), Poll: time.Millisecond,
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := d.world.DialContext(ctx, network, address)
			if err != nil || !strings.HasPrefix(address, first.Server.Address+":") {
				return conn, err
			}
			return counted{conn, d}, nil
		}})
	d.engine.Hosts = line
	t.Cleanup(line.Close)
	c.Fleets[0].Groups[0].Spec.TartKubelet.Artifact = sample("kubelet", "0.5.0", "tart-kubelet-0.5.0")
	return d
}

// counted is a connection to the host that something hits.
type counted struct {
	net.Conn
	d *disturbed
}

// Write passes a word on, before one of which it happens.
func (c counted) Write(p []byte) (int, error) {
	if c.d.words.Add(1) == c.d.at {
		c.d.happens()
	}
	return c.Conn.Write(p)
}

// disturbances are what may hit a roll on a Mac. TestRollDisturbedAnywhere has what hits its cluster.
func disturbances() map[string]func(t *testing.T, d *disturbed) error {
	all := map[string]func(t *testing.T, d *disturbed) error{
		"reboot": func(t *testing.T, d *disturbed) error { return d.machine.Reboot(t.Context()) },
	}
	for _, incident := range []string{"swapped-host", "disk-full"} {
		all[incident] = func(_ *testing.T, d *disturbed) error { return d.world.Inject(d.names[0], incident) }
	}
	return all
}

// TestRollDisturbed rolls a kubelet to two runners while something hits one of
// them. It is reported, the other does not suffer, and the next run converges: after a
// person has done what only a person can.
func TestRollDisturbed(t *testing.T) {
	t.Parallel()
	const replicas = 2
	clean := newDisturbed(t, replicas)
	started := clean.words.Load()
	p := planned(t, clean.engine)
	looked := clean.words.Load() - started
	var atWork int64
	clean.engine.Emit = func(ev engine.Event) {
		if ev.Type == engine.Done && ev.Host == clean.names[0] {
			atWork = clean.words.Load() - started
		}
	}
	if r := performed(t, clean.engine, p); !r.Converged() || atWork <= looked {
		t.Fatalf("undisturbed: %+v, %d words", r.Failures, atWork)
	}
	for name, happens := range disturbances() {
		seeds := uint64(1)
		if *all {
			seeds = 3
		}
		for seed := range seeds {
			at := looked + 1 + rand.New(rand.NewPCG(seed, uint64(len(name)))).Int64N(atWork-looked)
			parallel(t, name, func(t *testing.T) {
				d := newDisturbed(t, replicas)
				d.disturb(t, name, at, happens)
			})
		}
	}
}

// disturb injects a disturbance in the middle of a roll.
func (d *disturbed) disturb(t *testing.T, name string, at int64, happens func(*testing.T, *disturbed) error) {
	t.Helper()
	happened := false
	d.happens = func() {
		happened = true
		if err := happens(t, d); err != nil {
			t.Error(err)
		}
	}
	d.at = d.words.Load() + at
	r, err := applying(t, t.Context(), d.engine, planned(t, d.engine))
	if !happened {
		t.Fatalf("nothing happened before word %d", at)
	}
	bad := d.names[0]
	d.othersFine(t, r, err)
	if said := codesOf(planned(t, d.engine), bad); err == nil && r.Converged() && len(said) > 0 {
		t.Errorf("at word %d: called converged, and it says %q", at, said)
	}
	if name == "swapped-host" || name == "disk-full" {
		if said := codesOf(planned(t, d.engine), bad); r.Converged() || !slices.Contains(said, "refused "+name) {
			t.Errorf("at word %d: converged %t, it says %q", at, r.Converged(), said)
		}
		must(t, d.world.Heal(bad, name))
	}
	must(t, d.machine.Advance(10*time.Minute))
	if r := apply(t, d.engine); !r.Converged() {
		t.Errorf("at word %d: then %q is left, failures %+v", at, codesOf(r.After, bad), r.Failures)
	}
	all, err := d.machine.Kubelets()
	all = slices.DeleteFunc(all, func(k agent.Kubelet) bool { return !k.Runs() })
	if err != nil || len(all) != 1 || all[0].Version != "0.5.0" {
		t.Errorf("at word %d: %v, of kubelets there are %+v", at, err, all)
	}
}

// othersFine finds all other hosts done.
func (d *disturbed) othersFine(t *testing.T, r engine.Result, err error) {
	t.Helper()
	must(t, err)
	for _, f := range r.Failures {
		if f.Action.Host != d.names[0] {
			t.Errorf("another host failed: %+v", f)
		}
	}
	for _, name := range d.names[1:] {
		if said := codesOf(r.After, name); len(said) > 0 {
			t.Errorf("of %s is reported %q", name, said)
		}
	}
}

// TestRollDisturbedAnywhere rolls a kubelet to three hosts while something hits one of them, or the cluster, before each call
// to that host in turn. No other host suffers or is spoken of, and the next run converges.
func TestRollDisturbedAnywhere(t *testing.T) {
	t.Parallel()
	errAway := errors.New("503 etcd is away")
	for name, tc := range map[string]struct {
		happens func(w *nodesInMemory, host string)
		away    bool                                // the cluster then refuses all requests
		repair  func(w *nodesInMemory, host string) // what a person does
	}{
		"reboot":        {happens: func(w *nodesInMemory, host string) { w.Change(w.Member(host).Reboot) }},
		"token revoked": {happens: func(w *nodesInMemory, host string) { w.RevokeToken(host) }},
		"Node deleted":  {happens: func(w *nodesInMemory, host string) { w.DeleteNode(host) }},
		"full disk": {happens: func(w *nodesInMemory, host string) { w.Change(func() { w.Member(host).FullDisk = true }) },
			repair: func(w *nodesInMemory, host string) { w.Member(host).FullDisk = false }},
		"cluster away": {away: true},
	} {
		parallel(t, name, func(t *testing.T) {
			for n, fell := 0, true; fell && !t.Failed(); n++ {
				inMemory(t, 3, fleet.Rollout{MaxUnavailable: fleet.Share{Percent: 100}, FailureBudget: 9}, func(t *testing.T, w *nodesInMemory) {
					converges(t, w.engine)
					w.want["agent"] = "v2"
					p := planned(t, w.engine)
					bad, left, away := p.Hosts[0].Name, n, false
					w.OnCall = func(c enginetest.Call) (f enginetest.Fault) {
						if c.Place == enginetest.OnHost && c.Name == bad {
							left--
							if left == -1 {
								away = tc.away
								if tc.happens != nil {
									f.Before = func() { tc.happens(w, bad) }
								}
							}
						}
						if c.Place == enginetest.InCluster && away {
							f.Err = errAway
						}
						return f
					}
					r, err := applying(t, t.Context(), w.engine, p)
					fell = left < 0
					w.OnCall = nil
					if tc.away && fell && err == nil && len(r.Failures) == 0 && !r.Converged() {
						t.Errorf("at call %d: nothing was reported of the cluster", n)
					} else if !tc.away {
						w.othersFine(t, n, bad, r, err)
					}
					if tc.repair != nil {
						tc.repair(w, bad)
					}
					time.Sleep(3 * time.Minute) // on the virtual clock
					if r := apply(t, w.engine); !r.Converged() {
						t.Errorf("at call %d: then %q is left, failures %+v", n, codesOf(r.After, bad), r.Failures)
					}
					for _, m := range w.Machines {
						if m.State["agent"] != "v2" {
							t.Errorf("at call %d: %s has %s", n, m.Server.Name, m.State["agent"])
						}
					}
				})
			}
		})
	}
}

// othersFine finds all hosts but one done.
func (w *nodesInMemory) othersFine(t *testing.T, n int, bad string, r engine.Result, err error) {
	t.Helper()
	if err != nil {
		t.Errorf("at call %d: %v", n, err)
		return
	}
	for _, f := range r.Failures {
		if f.Action.Host != bad {
			t.Errorf("at call %d: another host failed: %+v", n, f)
		}
	}
	for _, h := range r.After.Hosts {
		if said := codesOf(r.After, h.Name); h.Name != bad && len(said) > 0 {
			t.Errorf("at call %d: of %s is reported %q", n, h.Name, said)
		}
	}
	if said := codesOf(r.After, bad); r.Converged() && len(said) > 0 {
		t.Errorf("at call %d: called converged, and it says %q", n, said)
	}
}
