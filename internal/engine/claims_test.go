package engine_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/plan"
)

// TestRace lets two runs of different environments want the same pool at once.
// A run that wins a host wins it whole: no host's marker and name may name two
// owners, and applying again lets both converge.
func TestRace(t *testing.T) {
	t.Parallel()
	declares(t, 4, "two runs race, and both converge")
	w, _ := world(t, 8) // six of the wanted type
	runs := []*engine.Engine{run(t, w, config("production", 3)), run(t, w, config("staging", 3))}
	var wg sync.WaitGroup
	for _, e := range runs {
		wg.Go(func() {
			p, err := e.Plan(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := applying(t, t.Context(), e, p); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
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
			must(t, err)
			m, err := plan.ParseMarker(string(text))
			must(t, err)
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
	must(t, os.MkdirAll(filepath.Dir(claim), 0o755))
	text := `{"configuration":"acme","environment":"staging","name":"` + winner + `","server_id":"` + id + `","nonce":"x"}`
	must(t, os.WriteFile(claim, []byte(text), 0o644))
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
	must(t, e.Servers.Rename(t.Context(), s.Zone, s.ID, s.Name, p.Hosts[0].Name))
	p = planned(t, e)
	h, _ := p.HostByServer(s.ID)
	if h.Unknown == nil || h.Unknown.Code != plan.CodeHostKeyUnknown || len(p.Actions) != 0 {
		t.Fatalf("a claim pins before it renames, so no run of macfleet renamed it: %+v, actions %+v", h.Unknown, p.Actions)
	}
	pin := *e.PinOf(h)
	pin.Key, pin.Unfinished = key, true
	must(t, e.Pins.Update(func(all []plan.Pin) []plan.Pin { return append(all, pin) }))
	p = planned(t, e)
	if len(p.Hosts) != 1 || !slices.ContainsFunc(p.Actions, func(a plan.Action) bool { return a.Reason.Code.String() == "marker-missing" }) {
		t.Fatalf("hosts %d, actions %+v", len(p.Hosts), p.Actions)
	}
	converges(t, e)
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
	w, e := converged(t, 4, config("production", 1))
	host := planned(t, e).Hosts[0].Name
	inject(t, w, host, "sleep-enabled")
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
