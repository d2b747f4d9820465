package engine_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/sandbox"
	"github.com/macfleet/macfleet/internal/sandbox/mac"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/providers/kubernetes"
)

// sample is an artifact that the simulated Macs download.
func sample(name, version, file string) *fleet.Artifact {
	source := "https://artifacts.acme.dev/" + file
	bytes := sandbox.Sample(source)
	sum := sha256.Sum256(bytes)
	return &fleet.Artifact{Name: name, Version: version, Source: source, SHA256: hex.EncodeToString(sum[:]), Size: int64(len(bytes)), Fetch: fleet.FetchHost}
}

// nodes wants Macs that are Nodes, with every step of a host.
func nodes(replicas int) *fleet.Config {
	c := hostCore("production", replicas)
	c.Kubernetes = &fleet.Kubernetes{Namespace: "macfleet", LabelPrefix: "acme.dev", APIServer: "https://api.acme.dev:6443"}
	spec := &c.Fleets[0].Groups[0].Spec
	spec.Tart = &fleet.Tart{Artifact: sample("tart", "2.32.1", "tart-2.32.1.tar.gz")}
	spec.TartKubelet = &fleet.TartKubelet{Artifact: sample("kubelet", "0.4.0", "tart-kubelet-0.4.0")}
	*spec = spec.WithDefaults()
	return c
}

// runNodes returns an engine for such a fleet, in a cluster that is prepared.
func runNodes(t *testing.T, w *sandbox.World, c *fleet.Config) *engine.Engine {
	t.Helper()
	e := run(t, w, c)
	e.Ready = engine.Ready{Within: 5 * time.Second, Every: 5 * time.Millisecond}
	if _, err := e.Cluster.(*kubernetes.Client).Prepare(t.Context(), kubernetes.PrepareOptions{}); err != nil {
		t.Fatal(err)
	}
	return e
}

// TestJoin: Macs from the pool become Nodes that are Ready, and the next plan is
// empty.
func TestJoin(t *testing.T) {
	t.Parallel()
	w, _ := world(t, 4)
	e := runNodes(t, w, nodes(2))
	converges(t, e)
	if p := planned(t, e); len(p.Actions) > 0 || !p.Summarise().Complete() {
		t.Errorf("left %+v", p.Summarise())
		for _, h := range p.Hosts {
			t.Errorf("%s: %q", h.Name, whatIsSaid(p, h.Name))
		}
	}
}

// TestRollAndBack rolls a new kubelet to three hosts. On one of them it dies at
// every start: that host is reported and stops, and a roll back mends it, and
// moves the others too. Repeated, it changes nothing.
func TestRollAndBack(t *testing.T) {
	t.Parallel()
	w, _ := world(t, 5)
	c := nodes(3)
	e := runNodes(t, w, c)
	converges(t, e)
	names := hostNames(planned(t, e))
	bad, err := w.Mac(names[1])
	if err != nil {
		t.Fatal(err)
	}
	if err := bad.SetSwitch("kubelet-refuses", "0.5.0"); err != nil {
		t.Fatal(err)
	}
	kubelet := c.Fleets[0].Groups[0].Spec.TartKubelet
	kubelet.Artifact = sample("kubelet", "0.5.0", "tart-kubelet-0.5.0")
	r := apply(t, e)
	if len(r.Failures) != 1 || r.Failures[0].Action.Host != names[1] || r.Converged() {
		t.Fatalf("failures %+v", r.Failures)
	}
	if s := r.After.Summarise(); s.Converged != 2 {
		t.Errorf("after the roll %+v", s)
	}
	e.Selection.Rollback = true
	if r := apply(t, e); !r.Converged() {
		t.Fatalf("the way back: failures %+v, %+v", r.Failures, r.After.Summarise())
	}
	for _, h := range planned(t, e).Hosts {
		if n, _ := h.Node.Get(); n.Ready != inventory.Ready {
			t.Errorf("%s: %+v", h.Name, n)
		}
	}
	if p := planned(t, e); len(p.Actions) > 0 {
		t.Errorf("going back twice would do %+v", p.Actions)
	}
	e.Selection.Rollback = false
	p := planned(t, e)
	for _, name := range names {
		if said := whatIsSaid(p, name); !slices.Contains(said, "warning version-rolled-back") {
			t.Errorf("%s: %q", name, said)
		}
	}
}

func hostNames(p *plan.Plan) []string {
	var out []string
	for _, h := range p.Hosts {
		out = append(out, h.Name)
	}
	return out
}

// TestNothingToRollBack: a host that has no version from before is refused.
func TestNothingToRollBack(t *testing.T) {
	t.Parallel()
	w, _ := world(t, 3)
	e := runNodes(t, w, nodes(1))
	converges(t, e)
	e.Selection.Rollback = true
	p := planned(t, e)
	if said := whatIsSaid(p, p.Hosts[0].Name); !slices.Contains(said, "refused nothing-to-roll-back") {
		t.Errorf("%q", said)
	}
}

// brittle is a line to the cluster that breaks at the n-th call: before it, or
// behind it, where the cluster has heard it and nobody hears the answer.
type brittle struct {
	next   http.RoundTripper
	left   atomic.Int64
	behind bool
}

var errBroken = errors.New("the line to the cluster broke")

// RoundTrip passes a call on, unless it is the one.
func (b *brittle) RoundTrip(r *http.Request) (*http.Response, error) {
	last := b.left.Add(-1) == 0
	if last && !b.behind {
		return nil, errBroken
	}
	answer, err := b.next.RoundTrip(r)
	if last && err == nil {
		_ = answer.Body.Close()
		return nil, errBroken
	}
	return answer, err
}

// TestJoinStruckInCluster breaks the line to the cluster at each call of a first
// join, in turn before and behind it. The next apply ends it, and nothing is there twice.
func TestJoinStruckInCluster(t *testing.T) {
	t.Parallel()
	for first, name := range []string{"behind", "before"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for n := int64(1 + first); joinStruck(t, n, name == "behind"); n += 2 * everyStrike {
				if n > 500 {
					t.Fatal("a join has no end")
				}
			}
		})
	}
}

// joinStruck joins one Mac with a line that breaks at the n-th call of the apply,
// and reports whether it broke.
func joinStruck(t *testing.T, n int64, behind bool) bool {
	t.Helper()
	w, _ := world(t, 3)
	e := runNodes(t, w, nodes(1))
	p := planned(t, e)
	whole := e.Cluster
	b := &brittle{behind: behind}
	b.left.Store(n)
	broken, err := kubernetes.New(kubernetes.Options{URL: w.KubernetesURL(), Token: w.KubernetesToken(), Namespace: "macfleet", LabelPrefix: "acme.dev",
		APIServer: "https://api.acme.dev:6443", Owner: e.Config.Owner.String(), Wrap: func(next http.RoundTripper) http.RoundTripper { b.next = next; return b }})
	if err != nil {
		t.Fatal(err)
	}
	defer broken.Close()
	e.Cluster = broken
	_, _ = e.Apply(t.Context(), p) // it may fail in any way
	e.Cluster = whole
	if b.left.Load() > 0 {
		return false
	}
	for range 2 {
		if apply(t, e).Converged() {
			break
		}
	}
	after, err := e.Observe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cluster, _ := after.Cluster.Get()
	known, _ := cluster.Identities.Get()
	nodes, _ := after.Nodes.Get()
	if p := e.Compute(after); len(p.Actions) > 0 || !p.Summarise().Complete() || len(known) != 1 || len(nodes) != 1 {
		t.Errorf("struck at %d: %q left, %d identities, %d Nodes", n, whatIsSaid(p, p.Hosts[0].Name), len(known), len(nodes))
	}
	return true
}

// TestJoinStruckOnTheHost lets the line break, or everything on the host die, at the
// tools of a host that becomes a Node. The next runs converge, with one kubelet
// that runs the wanted program, and one identity.
func TestJoinStruckOnTheHost(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]mac.Strike{"the line breaks": mac.LineBreaks, "killed": mac.Killed} {
		const shares = 2
		for first := range shares {
			t.Run(fmt.Sprintf("%s, share %d", name, first), func(t *testing.T) {
				t.Parallel()
				n, fallen := first*joinStride/shares, 0
				for ; joinStruckOnTheHost(t, n, kind); fallen++ {
					if n += joinStride * everyStrike; n > 3000 {
						t.Fatal("the join has no end")
					}
				}
				if fallen == 0 {
					t.Error("no strike fell")
				}
			})
		}
	}
}

// joinStride is how many tools lie between two strikes of a share: each one costs
// a whole host.
const joinStride = 26

// joinStruckOnTheHost sets a host up, lets it join with a strike after n tools, and
// reports whether the strike fell.
func joinStruckOnTheHost(t *testing.T, n int, kind mac.Strike) bool {
	t.Helper()
	w, _ := world(t, 3)
	converges(t, run(t, w, hostCore("production", 1)))
	e := runNodes(t, w, nodes(1))
	p := planned(t, e)
	machine, err := w.Mac(p.Hosts[0].Server.ID)
	if err != nil {
		t.Fatal(err)
	}
	patient := e.Hosts
	e.Hosts = overtaken(t, w, machine)
	machine.StrikeAfter(n, kind)
	performed(t, e, p)
	e.Hosts = patient
	if !machine.Struck() {
		return false
	}
	for range 3 {
		if apply(t, e).Converged() {
			break
		}
		if err := machine.Advance(2 * time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	snap, err := e.Observe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cluster, _ := snap.Cluster.Get()
	known, _ := cluster.Identities.Get()
	seen, _ := snap.Nodes.Get()
	if p := e.Compute(snap); len(p.Actions) > 0 || !p.Summarise().Complete() || len(known) != 1 || len(seen) != 1 {
		t.Errorf("struck after %d: %q left, %d identities, %d Nodes", n, whatIsSaid(p, p.Hosts[0].Name), len(known), len(seen))
	}
	return true
}
