package engine_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/hosts"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/plan"
)

// waits waits for all members and returns who is late and who was not contacted.
func waits(t *testing.T, e *engine.Engine, within time.Duration) engine.Waited {
	t.Helper()
	m, err := e.Members(t.Context())
	must(t, err)
	e.Ready = engine.Ready{Within: within, Every: time.Millisecond}
	w, err := e.WaitReady(t.Context(), m, func([]engine.NotReady) {})
	must(t, err)
	return w
}

// TestCrashLoopIsNotReady: after a kubelet has died, the cluster continues for a minute
// about a Node that is Ready. The host is not, neither at the end of the apply that
// could not fix it nor for a command that waits for it.
func TestCrashLoopIsNotReady(t *testing.T) {
	t.Parallel()
	w, e, host := longNode(t, nodes(1))
	if got := waits(t, e, time.Minute); len(got.Late)+len(got.Alone) > 0 {
		t.Fatalf("healthy hosts: %+v", got)
	}
	must(t, w.Inject(host, "kubelet-crash-loop"))
	r := apply(t, e)
	if len(r.Failures) != 1 || !r.Failures[0].OfNode || !strings.Contains(r.Failures[0].Remedy, "no previous version") {
		t.Fatalf("failures %+v", r.Failures)
	}
	for _, h := range r.After.Hosts {
		n, _ := h.Node.Get()
		state, why, _ := h.Ready()
		if n.Ready != inventory.Ready {
			t.Errorf("the Node of %s has to say Ready still, and says %s", h.Name, n.Ready)
		}
		if (h.Name == host) != (state == inventory.NotReady && strings.HasPrefix(why, plan.CodeKubeletCrashLoop.String())) {
			t.Errorf("%s is %s: %s", h.Name, state, why)
		}
	}
	got := waits(t, e, 20*time.Millisecond)
	if len(got.Late) != 1 || got.Late[0].Host.Name != host || !strings.HasPrefix(got.Late[0].Why, plan.CodeKubeletCrashLoop.String()) {
		t.Errorf("late are %+v", got.Late)
	}
	must(t, w.Inject(host, "unreachable"))
	got = waits(t, e, time.Minute)
	if len(got.Late) > 0 || len(got.Alone) != 1 || got.Alone[0].Host.Name != host || !strings.HasPrefix(got.Alone[0].Why, "unreachable") {
		t.Errorf("for a host that cannot be contacted its Node counts: %+v", got)
	}
}

// files are artifacts on this machine that have all changed since they were locked.
type files struct{ engine.Artifacts }

func (files) Unchanged(_ context.Context, a fleet.Artifact) error {
	return changedError(a.Name)
}

// changedError says that an artifact has other bytes, as package artifact does.
type changedError string

func (e changedError) Error() string  { return string(e) + " has other bytes; " + e.Remedy() }
func (e changedError) Remedy() string { return "macfleet artifacts lock --update " + string(e) }

// TestChangedFileIsRefused: a plan says what an apply could not send. What else can be done on the host is done, a Node whose kubelet
// is not repaired is not waited for, and the refusal keeps the run from having converged.
func TestChangedFileIsRefused(t *testing.T) {
	t.Parallel()
	c := nodes(1)
	w, e, host := longNode(t, c)
	e.Artifacts = files{}
	if said := codesOf(planned(t, e), host); len(said) > 0 {
		t.Fatalf("the host has it, and the plan has %q for it", said)
	}
	newer := sample("kubelet", "0.5.0", "tart-kubelet-0.5.0")
	c.Fleets[0].Groups[0].Spec.TartKubelet.Artifact = newer
	newer.Fetch = fleet.FetchHost
	if said := codesOf(planned(t, e), host); slices.Contains(said, "refused artifact-changed") {
		t.Errorf("of what hosts download it says %q", said)
	}
	newer.Fetch = fleet.FetchPush
	inject(t, w, host, "kubelet-crash-loop", "sleep-enabled")
	e.Emit = func(ev engine.Event) {
		if ev.Type == engine.Waiting {
			t.Errorf("%s is waited for", ev.Host)
		}
	}
	r := apply(t, e)
	if said := codesOf(r.After, host); r.Done == 0 || len(r.Failures) > 0 || r.Converged() || !slices.Equal(said, []string{"refused artifact-changed"}) {
		t.Errorf("done %d, failures %+v, converged %t, afterwards %q", r.Done, r.Failures, r.Converged(), said)
	}
}

// TestReplacedUnderAYoungKubelet: a Node of another server is replaced in one run, also
// where its kubelet has just been started.
func TestReplacedUnderAYoungKubelet(t *testing.T) {
	t.Parallel()
	w, e := converged(t, 3, nodes(1))
	host := member(t, w)
	must(t, macOf(t, w, host).RestartJob("system/dev.macfleet.tart-kubelet"))
	inject(t, w, host, "different-provider-id")
	if r := apply(t, e); !r.Converged() || r.Done != 2 {
		t.Errorf("%d actions, %+v", r.Done, r.Failures)
	}
}

// young is a kubelet's step to which every process that was just started is too young to
// count, so that its host is read once more.
type young struct{ plan.Step }

func (young) MakesNode() bool { return true }
func (s young) Diff(v plan.View) plan.Finding {
	f := s.Step.Diff(v)
	if v.Node.IsUnread() {
		f.Kubelet = inventory.Present(plan.Kubelet{Fault: plan.Reason{Code: plan.CodeKubeletSettling, Text: "a moment ago"}})
	}
	return f
}

// TestSilentHostDelaysNoOther: a host that does not answer while its kubelet is checked
// delays neither the answers of another host nor the end of a stopped run.
func TestSilentHostDelaysNoOther(t *testing.T) {
	t.Parallel()
	c := nodes(2)
	w, e := converged(t, 4, c)
	c.Fleets[0].Rollout = fleet.Rollout{MaxUnavailable: fleet.Share{Count: 2}}
	e.Hosts = impatient(t, w, hosts.Deadlines{Handshake: 20 * time.Second})
	e.Ready.Within = time.Minute
	all := e.Steps
	e.Steps = func(h fleet.Host) []plan.Step {
		steps := slices.Clone(all(h))
		i := slices.IndexFunc(steps, func(s plan.Step) bool { return s.ID() == "tart_kubelet" })
		steps[i] = young{steps[i]}
		return steps
	}
	c.Fleets[0].Groups[0].Spec.TartKubelet.Artifact = sample("kubelet", "0.5.0", "tart-kubelet-0.5.0")
	p := planned(t, e)
	stop, cancel := context.WithCancel(t.Context())
	e.Stop = stop
	var silent string
	var ready []string
	e.Emit = func(ev engine.Event) {
		var err error
		switch {
		case ev.Type == engine.Done && silent == "":
			silent = ev.Host
			err = w.Inject(silent, "silent")
		case ev.Type == engine.NodeReady:
			ready = append(ready, ev.Host)
			err = w.Heal(silent, "silent")
			cancel()
		}
		if err != nil {
			t.Error(err)
		}
	}
	r, err := applying(t, t.Context(), e, p)
	if err != nil || r.NotWaited != 1 || len(ready) != 1 || ready[0] == silent {
		t.Errorf("silent is %s, Ready are %q, %d not waited for: %v", silent, ready, r.NotWaited, err)
	}
}
