package engine_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/hosts"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/maintest"
	"github.com/macfleet/macfleet/internal/overssh"
	"github.com/macfleet/macfleet/internal/sandbox"
	"github.com/macfleet/macfleet/internal/scripttest"
	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/plan/plantest"
	"github.com/macfleet/macfleet/providers/kubernetes"
	"github.com/macfleet/macfleet/providers/scaleway"
	"github.com/macfleet/macfleet/providers/transport"
	"github.com/macfleet/macfleet/steps"
)

func TestMain(m *testing.M) {
	secret.CheapSeals()
	maintest.Main(m)
}

const (
	project = "5d6e8f70-1b2c-4d3e-8f90-a1b2c3d4e5f6"
	uid     = "0b1f4c52-6a0e-4d0b-9a55-3f1f5d2c7e10"
	keyRef  = "k8s://macfleet/fleet-ssh/id_ed25519"
)

// config wants some Macs of one fleet.
func config(environment string, replicas int) *fleet.Config {
	ref, _ := secret.ParseRef(keyRef)
	return &fleet.Config{Owner: fleet.Owner{Name: "acme", Environment: environment}, ProjectID: project, ClusterUID: uid,
		Scaleway:   fleet.Scaleway{Zones: []string{"fr-par-1"}, PoolPrefix: "acme-pool-"},
		Kubernetes: &fleet.Kubernetes{Namespace: "macfleet"},
		SSH:        fleet.SSH{User: "m1", PrivateKey: ref},
		Fleets: []fleet.Fleet{{Name: "macos", OS: "Tahoe", Groups: []fleet.Group{{Name: "m2", Type: "M2-L", Replicas: replicas,
			Spec: fleet.Spec{Hostname: &fleet.Hostname{}, Power: &fleet.Power{}}.WithBuiltIn().WithDefaults()}}}}}
}

// world is a simulated world of some servers, two of them of other types, whose
// Macs ask for a sudo password as the provider delivers them.
func world(t *testing.T, servers int) (*sandbox.World, string) {
	t.Helper()
	return open(t, sandbox.Seed{Hosts: servers})
}

func open(t *testing.T, seed sandbox.Seed) (*sandbox.World, string) {
	t.Helper()
	scripttest.Sampled(t)
	dir := filepath.Join(t.TempDir(), "world")
	return create(t, dir, seed), dir
}

func create(t *testing.T, dir string, seed sandbox.Seed) *sandbox.World {
	t.Helper()
	seed.ProjectID, seed.ClusterUID, seed.Zones, seed.PoolPrefix = project, uid, []string{"fr-par-1"}, "acme-pool-"
	seed.SSHUser, seed.SSHKeyRef = "m1", keyRef
	return opening(t, dir, seed)
}

// opened is the world of a folder.
func opened(t *testing.T, dir string) *sandbox.World {
	t.Helper()
	return opening(t, dir, sandbox.Seed{})
}

func opening(t *testing.T, dir string, seed sandbox.Seed) *sandbox.World {
	t.Helper()
	w, err := sandbox.Open(dir, seed)
	must(t, err)
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// run returns an engine for a configuration in a world. The pins of an environment are in the
// world's folder.
func run(t *testing.T, w *sandbox.World, c *fleet.Config) *engine.Engine {
	t.Helper()
	var counter transport.Counter
	client := transport.New(&counter, scaleway.RequestsPerSecond)
	access, key := w.ScalewayKeys()
	servers, err := scaleway.New(scaleway.Options{ProjectID: project, Zones: c.Scaleway.Zones, HTTP: client,
		URL: w.ScalewayURL(), AccessKey: access, SecretKey: key})
	must(t, err)
	cluster, err := kubernetes.New(clusterOptions(w, c))
	must(t, err)
	t.Cleanup(func() { client.CloseIdleConnections(); cluster.Close() })
	return &engine.Engine{AsksRight: true, Config: c, Steps: steps.For, Servers: servers, Cluster: cluster,
		Hosts:     overssh.New(hostOptions(t, w, cluster)),
		Passwords: scalewayPasswords{servers}, Input: input,
		Pins: hosts.KnownHosts{Path: filepath.Join(folderOf(t, w), "known_hosts-"+c.Environment)}, Parallelism: 8,
		Stop: context.Background(), Now: time.Now, Emit: func(engine.Event) {}}
}

// hostOptions are the connections to a world's Macs, with the key that its cluster holds.
func hostOptions(t *testing.T, w *sandbox.World, cluster *kubernetes.Client) hosts.Options {
	t.Helper()
	pem, err := cluster.Secret(t.Context(), "macfleet", "fleet-ssh", "id_ed25519")
	must(t, err)
	signer, err := hosts.ParsePrivateKey(pem)
	must(t, err)
	return hosts.Options{User: "m1", Key: signer, Dial: w.DialContext}
}

// folderOf returns a world's folder.
func folderOf(t *testing.T, w *sandbox.World) string {
	t.Helper()
	all, err := w.Hosts()
	must(t, err)
	dir, err := w.Path(all[0].Name)
	for err == nil && filepath.Dir(dir) != dir {
		dir = filepath.Dir(dir)
		if _, serr := os.Stat(filepath.Join(dir, "scaleway")); serr == nil {
			return dir
		}
	}
	t.Fatal("the world has no folder: ", err)
	return ""
}

func clusterOptions(w *sandbox.World, c *fleet.Config) kubernetes.Options {
	o := kubernetes.Options{URL: w.KubernetesURL(), Token: w.KubernetesToken(), Namespace: c.Kubernetes.Namespace,
		LabelPrefix: c.Kubernetes.LabelPrefix, APIServer: c.Kubernetes.APIServer, Owner: c.Owner.String()}
	if capi := c.Kubernetes.CAPI; capi != nil {
		o.CAPI = &kubernetes.CAPI{Cluster: capi.Cluster, Namespace: capi.Namespace}
	}
	return o
}

func input(f engine.InputFor, v secret.Value) (secret.Value, error) {
	return steps.Input(steps.InputFor(f), v)
}

// scalewayPasswords finds only the passwords that the simulated Scaleway reports.
type scalewayPasswords struct{ scaleway *scaleway.Client }

func (p scalewayPasswords) Find(ctx context.Context, s inventory.Server, _ string) ([]engine.Password, error) {
	all, err := p.scaleway.Passwords(ctx, s.Zone, s.ID)
	switch {
	case errors.Is(err, scaleway.ErrSealed):
		return nil, plantest.Code("sealed-in-get").Trouble(err.Error())
	case err != nil:
		return nil, plantest.Code("password-not-disclosed").Trouble(err.Error())
	}
	var out []engine.Password
	for _, a := range all {
		out = append(out, engine.Password{Value: a.Value, Source: a.Source})
	}
	return out, nil
}

func planned(t *testing.T, e *engine.Engine) *plan.Plan {
	t.Helper()
	p, err := e.Plan(t.Context())
	must(t, err)
	return p
}

func performed(t *testing.T, e *engine.Engine, p *plan.Plan) engine.Result {
	t.Helper()
	r, err := applying(t, t.Context(), e, p)
	must(t, err)
	return r
}

func apply(t *testing.T, e *engine.Engine) engine.Result {
	t.Helper()
	return performed(t, e, planned(t, e))
}

func converges(t *testing.T, e *engine.Engine) {
	t.Helper()
	if r := apply(t, e); !r.Converged() {
		t.Fatalf("did not converge: %+v, failures %v, left %+v, of the first host %q", r.After.Summarise(), r.Failures, r.Left, codesOf(r.After, r.After.Hosts[0].Name))
	}
}

// root returns the folder that is a server's file system.
func root(t *testing.T, w *sandbox.World, host string) string {
	t.Helper()
	path, err := w.Path(host)
	must(t, err)
	return path
}

func names(t *testing.T, w *sandbox.World) []string {
	t.Helper()
	all, err := w.Hosts()
	must(t, err)
	var out []string
	for _, h := range all {
		out = append(out, h.Name)
	}
	return out
}
