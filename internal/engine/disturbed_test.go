package engine_test

import (
	"context"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/hosts"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/overssh"
	"github.com/macfleet/macfleet/internal/sandbox"
	"github.com/macfleet/macfleet/internal/sandbox/agent"
	"github.com/macfleet/macfleet/internal/sandbox/mac"
	"github.com/macfleet/macfleet/providers/kubernetes"
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
	sick    atomic.Int64 // answers of the cluster that are still to be 503
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
	o := clusterOptions(d.world, c)
	o.Wrap = func(next http.RoundTripper) http.RoundTripper { return sickly{next, &d.sick} }
	cluster, err := kubernetes.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	d.engine.Cluster = cluster
	first := planned(t, d.engine).Hosts[0]
	d.names = hostNames(planned(t, d.engine))
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

// sickly is a line to a cluster that has no answer for a while.
type sickly struct {
	next http.RoundTripper
	left *atomic.Int64
}

// RoundTrip answers with 503 as often as it should.
func (s sickly) RoundTrip(r *http.Request) (*http.Response, error) {
	if s.left.Add(-1) < 0 {
		return s.next.RoundTrip(r)
	}
	return &http.Response{StatusCode: http.StatusServiceUnavailable, Status: "503 Service Unavailable", Request: r, Proto: "HTTP/1.1", ProtoMajor: 1,
		ProtoMinor: 1, Header: http.Header{"Content-Type": {"text/plain"}}, Body: io.NopCloser(strings.NewReader("etcd is away"))}, nil
}

// disturbances are what may hit a roll.
func disturbances() map[string]func(t *testing.T, d *disturbed) error {
	all := map[string]func(t *testing.T, d *disturbed) error{
		"reboot":          func(t *testing.T, d *disturbed) error { return d.machine.Reboot(t.Context()) },
		"burst of errors": func(_ *testing.T, d *disturbed) error { d.sick.Store(40); return nil },
		"cluster away":    func(_ *testing.T, d *disturbed) error { d.sick.Store(1 << 40); return nil },
	}
	for _, incident := range []string{"swapped-host", "token-revoked", "node-deleted", "disk-full"} {
		all[incident] = func(_ *testing.T, d *disturbed) error { return d.world.Inject(d.names[0], incident) }
	}
	return all
}

// TestRollDisturbed rolls a kubelet to some runners while something hits one of
// them. It is reported, no other suffers, and the next run converges: after a
// person has done what only a person can.
func TestRollDisturbed(t *testing.T) {
	t.Parallel()
	const replicas = 3
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
			t.Run(name, func(t *testing.T) {
				t.Parallel()
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
	r, err := d.engine.Apply(t.Context(), planned(t, d.engine))
	if d.sick.Store(0); !happened {
		t.Fatalf("nothing happened before word %d", at)
	}
	bad := d.names[0]
	if name == "cluster away" {
		if err == nil {
			t.Errorf("at word %d: nothing was reported of the cluster: %+v", at, r.Failures)
		}
	} else {
		d.othersFine(t, r, err)
	}
	if said := codesOf(planned(t, d.engine), bad); err == nil && r.Converged() && len(said) > 0 {
		t.Errorf("at word %d: called converged, and it says %q", at, said)
	}
	if name == "swapped-host" || name == "disk-full" {
		if said := codesOf(planned(t, d.engine), bad); r.Converged() || !slices.Contains(said, "refused "+name) {
			t.Errorf("at word %d: converged %t, it says %q", at, r.Converged(), said)
		}
		if err := d.world.Heal(bad, name); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.machine.Advance(10 * time.Minute); err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
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
