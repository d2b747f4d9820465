package engine_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/rollout"
	"github.com/macfleet/macfleet/internal/sandbox"
	"github.com/macfleet/macfleet/plan"
)

// TestCanaryStopsRoll rolls a kubelet to nine runners that dies on each: the first
// host stops the run, and eight keep the old one. Their Pods run on.
func TestCanaryStopsRoll(t *testing.T) {
	t.Parallel()
	const runners = 9
	w, _ := world(t, runners+2)
	c := nodes(runners)
	c.Fleets[0].Rollout = fleet.DefaultRollout()
	e := runNodes(t, w, c)
	converges(t, e)
	names := hostNames(planned(t, e))
	for _, name := range names {
		if err := w.RunPod(name, "acme-runners", "job-of-"+name); err != nil {
			t.Fatal(err)
		}
		m, err := w.Mac(name)
		if err == nil {
			err = m.RefuseKubelet("0.5.0")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	kubelet := c.Fleets[0].Groups[0].Spec.TartKubelet
	kubelet.Artifact = sample("kubelet", "0.5.0", "tart-kubelet-0.5.0")
	r := apply(t, e)
	if len(r.Failures) != 1 || r.Failures[0].Action.Host != names[0] || r.Converged() {
		t.Fatalf("failures %+v", r.Failures)
	}
	if len(r.Left) != runners-1 || r.Left[0].Why != rollout.CanaryFailed || r.NotStarted != runners-1 {
		t.Errorf("left %+v, %d actions", r.Left, r.NotStarted)
	}
	runAll(t, w, names, "0.4.0", names[0])

	// Nor does the next apply lose another one.
	r = apply(t, e)
	if len(r.Failures) != 1 || r.Failures[0].Action.Host != names[0] || len(r.Left) != runners-1 || r.Left[0].Why != rollout.CanaryFailed {
		t.Errorf("failures %+v, left %+v", r.Failures, r.Left)
	}
	runAll(t, w, names, "0.4.0", names[0])

	kubelet.Artifact = sample("kubelet", "0.4.0", "tart-kubelet-0.4.0")
	converges(t, e)
	runAll(t, w, names, "0.4.0", "")
}

// TestRolloutOrder rolls to five Nodes and looks at every beginning and end.
func TestRolloutOrder(t *testing.T) {
	t.Parallel()
	w, _ := world(t, 8)
	c := nodes(5)
	c.Fleets[0].Rollout = fleet.Rollout{MaxUnavailable: fleet.Share{Count: 2}, Canary: 1, Soak: 50 * time.Millisecond}
	e := runNodes(t, w, c)
	converges(t, e)
	names := hostNames(planned(t, e))
	c.Fleets[0].Groups[0].Spec.TartKubelet.Artifact = sample("kubelet", "0.5.0", "tart-kubelet-0.5.0")
	var events []engine.Event
	e.Emit = func(ev engine.Event) { events = append(events, ev) }
	if r := apply(t, e); !r.Converged() || len(r.Left) > 0 {
		t.Fatalf("failures %+v, left %+v", r.Failures, r.Left)
	}
	running, canary := 0, time.Time{}
	var soak engine.Event
	for _, ev := range events {
		switch ev.Type {
		case engine.HostBegun:
			running++
			if ev.Lane != "disrupt" || ev.Worst != plan.Restart.String() || ev.Fleet != c.Fleets[0].Name {
				t.Errorf("%+v", ev)
			}
			if canary.IsZero() && ev.Host != names[0] {
				t.Errorf("%s is the first", ev.Host)
			} else if !canary.IsZero() && ev.Time.Sub(canary) < 50*time.Millisecond {
				t.Errorf("%s begins %s after the canary", ev.Host, ev.Time.Sub(canary))
			}
			if running > 2 || canary.IsZero() && running > 1 {
				t.Errorf("%d hosts at once", running)
			}
		case engine.HostEnded:
			running--
			if canary.IsZero() {
				canary = ev.Time
			}
		case engine.Soaking:
			soak = ev
		}
	}
	if running != 0 || soak.Fleet != c.Fleets[0].Name || soak.Until.Before(canary) {
		t.Errorf("%d are at it, and the soak was %+v", running, soak)
	}
}

// TestRolloutWithoutList starts nothing while nobody knows how many Nodes are Ready,
// and goes on when the cluster answers again.
func TestRolloutWithoutList(t *testing.T) {
	t.Parallel()
	w, _ := world(t, 5)
	c := nodes(2)
	e := runNodes(t, w, c)
	converges(t, e)
	c.Fleets[0].Groups[0].Spec.TartKubelet.Artifact = sample("kubelet", "0.5.0", "tart-kubelet-0.5.0")
	p := planned(t, e)
	flaky := &unlistable{Cluster: e.Cluster, left: 3}
	e.Cluster = flaky
	e.Emit = func(ev engine.Event) {
		flaky.mu.Lock()
		defer flaky.mu.Unlock()
		if ev.Type == engine.HostBegun && flaky.left > 0 {
			t.Errorf("%s begins", ev.Host)
		}
	}
	if r := performed(t, e, p); !r.Converged() {
		t.Fatalf("failures %+v, left %+v", r.Failures, r.Left)
	}
}

// unlistable is a cluster whose Nodes cannot be listed some times.
type unlistable struct {
	engine.Cluster
	mu   sync.Mutex
	left int
}

// Nodes fails as often as is left.
func (u *unlistable) Nodes(ctx context.Context) ([]inventory.Node, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.left > 0 {
		u.left--
		return nil, errors.New("the api server is away")
	}
	return u.Cluster.Nodes(ctx)
}

// TestRepairNeedsNoSlot heals four dead Nodes of five while the fifth may not be
// disturbed.
func TestRepairNeedsNoSlot(t *testing.T) {
	t.Parallel()
	w, _ := world(t, 8)
	c := nodes(5)
	c.Fleets[0].Rollout = fleet.Rollout{MaxUnavailable: fleet.Share{Count: 1}, MinReady: 5}
	e := runNodes(t, w, c)
	converges(t, e)
	names := hostNames(planned(t, e))
	dies(t, w, names[1:])
	c.Fleets[0].Groups[0].Spec.TartKubelet.Artifact = sample("kubelet", "0.5.0", "tart-kubelet-0.5.0")
	lanes := make(map[string]string)
	e.Emit = func(ev engine.Event) {
		if ev.Type == engine.HostBegun {
			lanes[ev.Host] = ev.Lane
		}
	}
	r := apply(t, e)
	if len(r.Left) != 1 || r.Left[0].Host != names[0] || r.Left[0].Why != rollout.TooFewReady {
		t.Errorf("left %+v, failures %+v", r.Left, r.Failures)
	}
	for _, name := range names[1:] {
		if lanes[name] != "repair" {
			t.Errorf("%s went through %q", name, lanes[name])
		}
	}
	for _, h := range r.After.Hosts {
		if n, _ := h.Node.Get(); n.Ready != inventory.Ready {
			t.Errorf("%s: %s", h.Name, n.Why)
		}
	}
	if slices.ContainsFunc(r.After.Hosts, func(h plan.Host) bool { return (h.Name == names[0]) == (h.Converged == plan.Converged) }) {
		t.Errorf("after: %+v", r.After.Summarise())
	}
}

// dies lets the Nodes of hosts be not Ready, for long enough that the cluster says so.
func dies(t *testing.T, w *sandbox.World, names []string) {
	t.Helper()
	for _, name := range names {
		m, err := w.Mac(name)
		if err == nil {
			err = w.Inject(name, "node-not-ready")
		}
		if err == nil {
			err = m.Advance(10 * time.Minute)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestFiveOfNine heals four of five dead runners while the fleet gets another kubelet: the
// four healthy ones go one at a time, and the fifth, which is held, stays as it is.
func TestFiveOfNine(t *testing.T) {
	t.Parallel()
	const runners, dead = 9, 5
	w, _ := world(t, runners+2)
	c := nodes(runners)
	c.Fleets[0].Rollout = fleet.DefaultRollout()
	e := runNodes(t, w, c)
	converges(t, e)
	p := planned(t, e)
	names := hostNames(p)
	for _, name := range names {
		if err := w.RunPod(name, "acme-runners", "job-of-"+name); err != nil {
			t.Fatal(err)
		}
	}
	dies(t, w, names[:dead])
	held := p.Hosts[:1]
	now := time.Now().UTC().Truncate(time.Second)
	hold := &inventory.Hold{Who: "sam@desk", Reason: "its fan", Since: now, Until: now.Add(time.Hour)}
	for _, x := range e.Hold(t.Context(), held, hold, nil) {
		if !x.Done(hold) {
			t.Fatalf("%+v", x)
		}
	}
	c.Fleets[0].Groups[0].Spec.TartKubelet.Artifact = sample("kubelet", "0.5.0", "tart-kubelet-0.5.0")
	lanes, disturbed := make(map[string]int), 0
	e.Emit = func(ev engine.Event) {
		switch ev.Type {
		case engine.HostBegun:
			if lanes[ev.Lane]++; ev.Host == held[0].Name {
				t.Errorf("the held host is touched")
			}
			if ev.Lane == "disrupt" {
				if disturbed++; disturbed > 1 {
					t.Errorf("%s is disturbed beside another", ev.Host)
				}
			}
		case engine.HostEnded:
			if ev.Lane == "disrupt" {
				disturbed--
			}
		}
	}
	r := apply(t, e)
	if len(r.Failures)+len(r.Left) > 0 || r.Converged() {
		t.Errorf("converged: %t, failures %+v, left %+v", r.Converged(), r.Failures, r.Left)
	}
	if lanes["repair"] != dead-1 || lanes["disrupt"] != runners-dead {
		t.Errorf("lanes %v", lanes)
	}
	for _, h := range r.After.Hosts {
		if n, _ := h.Node.Get(); (n.Ready == inventory.Ready) == (h.Name == held[0].Name) {
			t.Errorf("%s is %s: %s", h.Name, n.Ready, n.Why)
		}
	}
	runAll(t, w, names[1:], "0.5.0", "")
}
