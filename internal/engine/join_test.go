package engine_test

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/sandbox"
	"github.com/macfleet/macfleet/internal/sandbox/agent"
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
	e.Ready = engine.Ready{Within: time.Minute, Every: 5 * time.Millisecond}
	if _, err := e.Cluster.(*kubernetes.Client).Prepare(t.Context(), kubernetes.PrepareOptions{}); err != nil {
		t.Fatal(err)
	}
	return e
}

// TestRollAndBack rolls a new kubelet to two runners. On one of them it dies at
// every start: that host is reported and stops, and a roll back fixes it, and
// moves the others too. Repeated, it changes nothing. No virtual machine ends of it.
func TestRollAndBack(t *testing.T) {
	t.Parallel()
	const runners = 2
	c := nodes(runners)
	w, e := converged(t, runners+2, c)
	c.Fleets[0].Rollout = fleet.Rollout{MaxUnavailable: fleet.Share{Percent: 50}, FailureBudget: 1}
	names := hostNames(planned(t, e))
	bad := names[runners/2]
	for _, name := range names {
		must(t, w.RunPod(name, "default", "job-of-"+name))
	}
	machine := macOf(t, w, bad)
	must(t, machine.RefuseKubelet("0.5.0"))
	kubelet := c.Fleets[0].Groups[0].Spec.TartKubelet
	kubelet.Artifact = sample("kubelet", "0.5.0", "tart-kubelet-0.5.0")
	r := apply(t, e)
	if len(r.Failures) != 1 || r.Failures[0].Action.Host != bad || r.Converged() || !strings.Contains(r.Failures[0].Err.Error(), "does not stay up") {
		t.Fatalf("failures %+v", r.Failures)
	}
	if s := r.After.Summarise(); s.Converged != runners-1 {
		t.Errorf("after the roll %+v", s)
	}
	runAll(t, w, names, "0.5.0", bad)

	e.Selection.Rollback = true
	if r := apply(t, e); !r.Converged() {
		t.Fatalf("the way back: failures %+v, %+v", r.Failures, r.After.Summarise())
	}
	runAll(t, w, names, "0.4.0", "")
	if p := planned(t, e); len(p.Actions) > 0 {
		t.Errorf("going back twice would do %+v", p.Actions)
	}
	e.Selection.Rollback = false
	p := planned(t, e)
	for _, name := range names {
		if said := codesOf(p, name); !slices.Contains(said, "warning version-rolled-back") {
			t.Errorf("%s: %q", name, said)
		}
	}
}

// runAll finds the virtual machine of each host's Pod running, and a kubelet of
// that version, but for the host that has none.
func runAll(t *testing.T, w *sandbox.World, names []string, version, none string) {
	t.Helper()
	for _, name := range names {
		m := macOf(t, w, name)
		vms, err := m.VMs()
		must(t, err)
		if want := []mac.VM{{Name: agent.Pod{Namespace: "default", Name: "job-of-" + name}.VM(), Running: true}}; !slices.Equal(vms, want) {
			t.Errorf("%s has the machines %+v, want %+v", name, vms, want)
		}
		kubelets, err := m.Kubelets()
		must(t, err)
		kubelets = slices.DeleteFunc(kubelets, func(k agent.Kubelet) bool { return !k.Runs() })
		if name == none && len(kubelets) > 0 || name != none && (len(kubelets) != 1 || kubelets[0].Version != version) {
			t.Errorf("%s has the kubelets %+v", name, kubelets)
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
