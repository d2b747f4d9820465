package engine_test

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/sandbox"
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
