package engine_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
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
	seed.ProjectID, seed.ClusterUID, seed.Zones, seed.PoolPrefix = project, uid, []string{"fr-par-1"}, "acme-pool-"
	seed.SSHUser, seed.SSHKeyRef = "m1", keyRef
	w, err := sandbox.Open(dir, seed)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w, dir
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
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := kubernetes.New(clusterOptions(w, c))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.CloseIdleConnections(); cluster.Close() })
	pem, err := cluster.Secret(t.Context(), "macfleet", "fleet-ssh", "id_ed25519")
	if err != nil {
		t.Fatal(err)
	}
	signer, err := hosts.ParsePrivateKey(pem)
	if err != nil {
		t.Fatal(err)
	}
	return &engine.Engine{Config: c, Steps: steps.For, Servers: servers, Cluster: cluster,
		Hosts:     overssh.New(hosts.Options{User: "m1", Key: signer, Dial: w.DialContext}),
		Passwords: scalewayPasswords{servers}, Input: input,
		Pins: hosts.KnownHosts{Path: filepath.Join(folderOf(t, w), "known_hosts-"+c.Environment)}, Parallelism: 8,
		Stop: context.Background(), Now: time.Now, Emit: func(engine.Event) {}}
}

// folderOf returns a world's folder.
func folderOf(t *testing.T, w *sandbox.World) string {
	t.Helper()
	all, err := w.Hosts()
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func performed(t *testing.T, e *engine.Engine, p *plan.Plan) engine.Result {
	t.Helper()
	r, err := e.Apply(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func apply(t *testing.T, e *engine.Engine) engine.Result {
	t.Helper()
	return performed(t, e, planned(t, e))
}

func converges(t *testing.T, e *engine.Engine) {
	t.Helper()
	if r := apply(t, e); !r.Converged() {
		t.Fatalf("did not converge: %+v, failures %v, left %+v, of the first host %q", r.After.Summarise(), r.Failures, r.Left, whatIsSaid(r.After, r.After.Hosts[0].Name))
	}
}

// root returns the folder that is a server's file system.
func root(t *testing.T, w *sandbox.World, host string) string {
	t.Helper()
	path, err := w.Path(host)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func names(t *testing.T, w *sandbox.World) []string {
	t.Helper()
	all, err := w.Hosts()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, h := range all {
		out = append(out, h.Name)
	}
	return out
}

func TestApplyTwice(t *testing.T) {
	t.Parallel()
	w, _ := world(t, 5)
	e := run(t, w, config("production", 3))
	converges(t, e)
	p := planned(t, e)
	if len(p.Actions) != 0 {
		t.Errorf("the second plan has actions: %+v", p.Actions)
	}
}

// TestRace lets two runs of different environments want the same pool at once.
// A run that wins a host wins it whole: no host's marker and name may name two
// owners, and applying again lets both converge.
func TestRace(t *testing.T) {
	t.Parallel()
	w, _ := world(t, 8) // six of the wanted type
	runs := []*engine.Engine{run(t, w, config("production", 3)), run(t, w, config("staging", 3))}
	for range 4 {
		var wg sync.WaitGroup
		for _, e := range runs {
			wg.Go(func() {
				p, err := e.Plan(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := e.Apply(t.Context(), p); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
	for _, e := range runs {
		converges(t, e)
	}
	counts := map[string]int{}
	for _, name := range names(t, w) {
		for _, env := range []string{"production", "staging"} {
			if !strings.HasPrefix(name, "acme-"+env+"-") {
				continue
			}
			counts[env]++
			text, err := os.ReadFile(filepath.Join(root(t, w, name), "etc/macfleet/host.json"))
			if err != nil {
				t.Fatal(err)
			}
			m, err := plan.ParseMarker(string(text))
			if err != nil {
				t.Fatal(err)
			}
			if m.Name != name || m.Environment != env {
				t.Errorf("server %s has the marker of %s in %s", name, m.Name, m.Environment)
			}
		}
	}
	if counts["production"] != 3 || counts["staging"] != 3 {
		t.Errorf("members: %v", counts)
	}
}

// TestClaimLost lets another run claim the host between the plan and the apply:
// the server keeps its name, and the next apply takes another one.
func TestClaimLost(t *testing.T) {
	t.Parallel()
	w, _ := world(t, 4)
	e := run(t, w, config("production", 1))
	p := planned(t, e)
	id := p.Hosts[0].Server.ID
	winner := fleet.Owner{Name: "acme", Environment: "staging"}.HostName("macos", "m2", id)
	claim := filepath.Join(root(t, w, id), "etc/macfleet/claim.json")
	if err := os.MkdirAll(filepath.Dir(claim), 0o755); err != nil {
		t.Fatal(err)
	}
	text := `{"configuration":"acme","environment":"staging","name":"` + winner + `","server_id":"` + id + `","nonce":"x"}`
	if err := os.WriteFile(claim, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	r := performed(t, e, p)
	if len(r.Failures) != 1 || !strings.Contains(r.Failures[0].Err.Error(), "claimed-by-another") {
		t.Fatalf("failures: %v", r.Failures)
	}
	if got := names(t, w); !slices.Contains(got, p.Hosts[0].Server.Name) {
		t.Errorf("the server was renamed: %v", got)
	}
	converges(t, e)
}

// TestBrokenClaim finds a server that has our name and was never marked: a
// run died between the two.
func TestBrokenClaim(t *testing.T) {
	t.Parallel()
	w, _ := world(t, 4)
	e := run(t, w, config("production", 1))
	p := planned(t, e)
	s, key := p.Hosts[0].Server, p.Hosts[0].Seen.Key
	if err := e.Servers.Rename(t.Context(), s.Zone, s.ID, s.Name, p.Hosts[0].Name); err != nil {
		t.Fatal(err)
	}
	p = planned(t, e)
	h, _ := p.HostByServer(s.ID)
	if h.Unknown == nil || h.Unknown.Code != plan.CodeHostKeyUnknown || len(p.Actions) != 0 {
		t.Fatalf("a claim pins before it renames, so no run of macfleet renamed it: %+v, actions %+v", h.Unknown, p.Actions)
	}
	pin := *e.PinOf(h)
	pin.Key, pin.Unfinished = key, true
	if err := e.Pins.Update(func(all []plan.Pin) []plan.Pin { return append(all, pin) }); err != nil {
		t.Fatal(err)
	}
	p = planned(t, e)
	if len(p.Hosts) != 1 || !slices.ContainsFunc(p.Actions, func(a plan.Action) bool { return a.Reason.Code.String() == "marker-missing" }) {
		t.Fatalf("hosts %d, actions %+v", len(p.Hosts), p.Actions)
	}
	converges(t, e)
}

// TestStop asks to stop after the first action: what runs is finished, nothing
// new is started, and the next apply continues.
func TestStop(t *testing.T) {
	t.Parallel()
	w, _ := world(t, 4)
	e := run(t, w, config("production", 2))
	e.Parallelism = 1
	stop, cancel := context.WithCancel(t.Context())
	e.Stop = stop
	e.Emit = func(ev engine.Event) {
		if ev.Type == engine.Done {
			cancel()
		}
	}
	r := apply(t, e)
	if r.Done != 1 || !r.Interrupted || r.NotStarted == 0 || r.Converged() {
		t.Fatalf("result %+v", r)
	}
	e.Stop = context.Background()
	converges(t, e)
}

// TestLeftAtOnce: what a run left in the middle is not a fault of the host, whose
// connection only broke with it.
func TestLeftAtOnce(t *testing.T) {
	t.Parallel()
	w, _ := world(t, 2)
	e := run(t, w, config("production", 1))
	p, err := e.Plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	left := errors.New("left")
	ctx, leave := context.WithCancelCause(t.Context())
	defer leave(nil)
	e.Emit = func(ev engine.Event) {
		if ev.Type == engine.Started && ev.Action.Kind == plan.RunStep {
			leave(left)
		}
	}
	r, err := e.Apply(ctx, p)
	if !errors.Is(err, left) || len(r.Failures) != 1 {
		t.Fatalf("result %+v, error %v", r, err)
	}
	var lost *hosts.Error
	if f := r.Failures[0].Err; !errors.Is(f, left) || errors.As(f, &lost) {
		t.Errorf("failure %v", f)
	}
}

// TestFailureHarmsNobodyElse breaks one host between the plan and the apply.
func TestFailureHarmsNobodyElse(t *testing.T) {
	t.Parallel()
	w, _ := world(t, 5)
	e := run(t, w, config("production", 3))
	p := planned(t, e)
	broken := p.Hosts[1]
	names := filepath.Join(root(t, w, broken.Server.ID), "Library/Preferences/SystemConfiguration/preferences.plist")
	good, err := os.ReadFile(names)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(names, []byte("rubbish"), 0o644); err != nil {
		t.Fatal(err)
	}
	r := performed(t, e, p)
	if len(r.Failures) != 1 || r.Failures[0].Action.Host != broken.Name || r.Failures[0].Action.Step != "hostname" {
		t.Fatalf("failures: %+v", r.Failures)
	}
	if s := r.After.Summarise(); s.Converged != 2 {
		t.Errorf("summary %+v", s)
	}
	if err := os.WriteFile(names, good, 0o644); err != nil {
		t.Fatal(err)
	}
	converges(t, e)
}

// TestLostProofHarmsNobodyElse cannot reach the host whose verification is lost: another
// host is repaired anyway.
func TestLostProofHarmsNobodyElse(t *testing.T) {
	t.Parallel()
	w, _ := world(t, 4)
	e := run(t, w, config("production", 2))
	converges(t, e)
	p := planned(t, e)
	lost, drifted := p.Hosts[0].Name, p.Hosts[1].Name
	edit(t, filepath.Join(root(t, w, lost), "etc/macfleet/host.json"), `"power": {`, `"of another version": {`)
	if err := w.Inject(drifted, "sleep-enabled"); err != nil {
		t.Fatal(err)
	}
	p = planned(t, e)
	if err := w.Inject(lost, "unreachable"); err != nil {
		t.Fatal(err)
	}
	r := performed(t, e, p)
	if len(r.Failures) != 1 || r.Failures[0].Action.Host != lost || r.Done != 1 {
		t.Errorf("done %d, failures %+v", r.Done, r.Failures)
	}
}

// TestPinsCannotBeKept finds out before the first change.
func TestPinsCannotBeKept(t *testing.T) {
	t.Parallel()
	w, _ := world(t, 4)
	e := run(t, w, config("production", 1))
	p := planned(t, e)
	before := names(t, w)
	blocked := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(blocked, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	e.Pins = hosts.KnownHosts{Path: filepath.Join(blocked, "known_hosts")}
	if _, err := e.Apply(t.Context(), p); err == nil || !strings.Contains(err.Error(), "pinned host keys") {
		t.Errorf("error %v", err)
	}
	if after := names(t, w); !slices.Equal(before, after) {
		t.Errorf("servers were renamed: %v", after)
	}
}

func TestOtherCluster(t *testing.T) {
	t.Parallel()
	w, _ := world(t, 3)
	c := config("production", 1)
	c.ClusterUID = "0b1f4c52-6a0e-4d0b-9a55-3f1f5d2c7e11"
	_, err := run(t, w, c).Plan(t.Context())
	if err == nil || !strings.Contains(err.Error(), plan.CodeOtherCluster.String()) {
		t.Errorf("error %v", err)
	}
}

// edit changes a JSON file of a world as a person would.
func edit(t *testing.T, path, from, to string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), from) {
		t.Fatalf("%s lacks %q:\n%s", path, from, text)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(text), from, to, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestServerLeftThePool renames a pool server by hand while a person reads the
// plan: it is someone else's now and must not be touched.
func TestServerLeftThePool(t *testing.T) {
	t.Parallel()
	w, dir := world(t, 4)
	e := run(t, w, config("production", 1))
	p := planned(t, e)
	s := p.Hosts[0].Server
	edit(t, filepath.Join(dir, "scaleway/servers", s.ID+".json"), `"`+s.Name+`"`, `"globex-mac"`)
	r := performed(t, e, p)
	if len(r.Failures) != 1 || !slices.Contains(names(t, w), "globex-mac") {
		t.Errorf("failures %v, servers %v", r.Failures, names(t, w))
	}
	if _, err := os.Stat(filepath.Join(root(t, w, s.ID), "etc/macfleet")); err == nil {
		t.Error("the host was touched")
	}
	converges(t, e)
}

// TestOwnerChangedMeanwhile gives a host another owner's marker while a person
// reads the plan.
func TestOwnerChangedMeanwhile(t *testing.T) {
	t.Parallel()
	w, _ := world(t, 4)
	e := run(t, w, config("production", 1))
	converges(t, e)
	host := planned(t, e).Hosts[0].Name
	if err := w.Inject(host, "sleep-enabled"); err != nil {
		t.Fatal(err)
	}
	p := planned(t, e)
	marker := filepath.Join(root(t, w, host), "etc/macfleet/host.json")
	edit(t, marker, `"configuration": "acme"`, `"configuration": "globex"`)
	r := performed(t, e, p)
	if len(r.Failures) != 1 || !strings.Contains(r.Failures[0].Err.Error(), "foreign-marker") {
		t.Errorf("failures %v", r.Failures)
	}
	text, err := os.ReadFile(marker)
	if err != nil || !strings.Contains(string(text), "globex") {
		t.Errorf("the marker was overwritten: %s, %v", text, err)
	}
}

// TestLostProof takes a step's verification out of the marker, as a run that is killed
// between a change and its verification leaves it. An apply without changes enters it
// again, and a later edit is drift and not pending configuration.
func TestLostProof(t *testing.T) {
	t.Parallel()
	w, _ := world(t, 4)
	e := run(t, w, config("production", 1))
	converges(t, e)
	host := planned(t, e).Hosts[0].Name
	edit(t, filepath.Join(root(t, w, host), "etc/macfleet/host.json"), `"power": {`, `"of another version": {`)
	converges(t, e)
	if err := w.Inject(host, "sleep-enabled"); err != nil {
		t.Fatal(err)
	}
	p := planned(t, e)
	if s := p.Summarise(); s.Drift != 1 || s.Pending != 0 {
		t.Errorf("summary %+v", s)
	}
}
