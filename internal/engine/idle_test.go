package engine_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/sandbox"
	"github.com/macfleet/macfleet/plan"
)

// thisRun is whose cordons the tests make.
func thisRun() plan.Run { return plan.Run{ID: "r1", Who: "ci@acme"} }

// busyNodes are Nodes running, each with a Pod, that are to get another Tart.
func busyNodes(t *testing.T, replicas int) (*sandbox.World, *engine.Engine, []string, *fleet.Config) {
	t.Helper()
	c := nodes(replicas)
	w, e := converged(t, replicas+2, c)
	e.Run, e.Drain = thisRun(), engine.Drain{Within: time.Minute, Every: 5 * time.Millisecond}
	names := hostNames(planned(t, e))
	for _, name := range names {
		must(t, w.RunPod(name, "default", "job-of-"+name))
	}
	c.Fleets[0].Groups[0].Spec.Tart.Artifact = sample("tart", "2.33.0", "tart-2.33.0.tar.gz")
	return w, e, names, c
}

// nodeOf is a host's Node as the cluster has it.
func nodeOf(t *testing.T, e *engine.Engine, host string) inventory.Node {
	t.Helper()
	all, err := e.Cluster.Nodes(t.Context())
	i := slices.IndexFunc(all, func(n inventory.Node) bool { return n.Name == host })
	if err != nil || i < 0 {
		t.Fatalf("the Node %s: %d, %v", host, i, err)
	}
	return all[i]
}

// open finds a host's Node open, with its Pod still there or not.
func isOpen(t *testing.T, e *engine.Engine, host string, pods int) {
	t.Helper()
	n := nodeOf(t, e, host)
	if n.Cordoned || n.CordonRun != "" || n.CordonedBy != "" {
		t.Errorf("%s is closed: %+v", host, n)
	}
	on, err := e.Cluster.PodsOn(t.Context(), n)
	if err != nil || len(on) != pods {
		t.Errorf("%s has the Pods %+v, %v", host, on, err)
	}
}

// log collects events.
type log struct {
	mu     sync.Mutex
	events []engine.Event
}

func (l *log) emit(ev engine.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, ev)
}

// TestNotDrained: what holds a Pod is named, nothing is changed, and the Node is open
// again.
func TestNotDrained(t *testing.T) {
	t.Parallel()
	for incident, says := range map[string]string{"budget-blocks": "disruption budget", "pod-never-ends": "kubectl describe pod"} {
		parallel(t, incident, func(t *testing.T) {
			w, e, names, _ := busyNodes(t, 1)
			e.Drain.Within = 1500 * time.Millisecond
			inject(t, w, names[0], incident)
			r := apply(t, e)
			var trouble *plan.Trouble
			if len(r.Failures) != 1 || !errors.As(r.Failures[0].Err, &trouble) || trouble.Code != engine.CodeNotDrained {
				t.Fatalf("failures %+v", r.Failures)
			}
			if !strings.Contains(trouble.Text, says) || !strings.Contains(trouble.Text, "default/macfleet-sandbox-") || len(r.LeftCordoned) > 0 {
				t.Errorf("it says %q; closed %+v", trouble.Text, r.LeftCordoned)
			}
			if n := nodeOf(t, e, names[0]); n.Cordoned {
				t.Errorf("closed: %+v", n)
			}
			must(t, w.Heal(names[0], incident))
			e.Drain.Within = 0
			converges(t, e)
			isOpen(t, e, names[0], 0)
		})
	}
}

// TestIdleWithoutNode: a host whose Node is not Ready cannot be drained. It is changed once
// no machine runs on it, and its Node is not touched.
func TestIdleWithoutNode(t *testing.T) {
	t.Parallel()
	w, e, names, _ := busyNodes(t, 1)
	m, err := w.Mac(names[0])
	if err == nil {
		err = w.Inject(names[0], "node-not-ready")
	}
	if err == nil {
		err = m.Advance(10 * time.Minute)
	}
	must(t, err)
	if said := codesOf(planned(t, e), names[0]); !slices.Contains(said, "refused waits-for-idle") {
		t.Errorf("it says %q", said)
	}
	must(t, m.RemoveVM("default-job-of-"+names[0]))
	var l log
	e.Emit = l.emit
	r := apply(t, e)
	if i := slices.IndexFunc(l.events, func(ev engine.Event) bool { return ev.Type == engine.Cordoning }); i >= 0 || !r.Converged() {
		t.Errorf("closed at %d, failures %+v", i, r.Failures)
	}
}

// TestIdleBuilder: a builder whose runner macfleet does not register is changed when nothing runs there.
func TestIdleBuilder(t *testing.T) {
	t.Parallel()
	c := nodes(1)
	c.Fleets[0].Groups[0].Spec.GithubRunner = &fleet.GithubRunner{}
	w, e, host := longNode(t, c)
	// A busy machine needs a while for one check, and only what was seen is given.
	e.Run, e.Drain = thisRun(), engine.Drain{Within: time.Minute, Every: 5 * time.Millisecond}
	c.Fleets[0].Groups[0].Spec.Tart.Artifact = sample("tart", "2.33.0", "tart-2.33.0.tar.gz")
	for _, work := range []string{"push-in-progress", "job-running"} {
		inject(t, w, host, work)
		if said := codesOf(planned(t, e), host); !slices.Equal(said, []string{"refused waits-for-idle"}) {
			t.Errorf("under %s it says %q", work, said)
		}
		must(t, w.Heal(host, work))
	}
	converges(t, e)
	isOpen(t, e, host, 0)
}
