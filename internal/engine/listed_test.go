package engine_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/sandbox"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps"
)

const legacy = "acme-legacy-01"

// legacyServer takes the world's first server out of the pool, under a name that
// no grammar made, and returns its id.
func legacyServer(t *testing.T, w *sandbox.World, dir string) string {
	t.Helper()
	all, err := w.Hosts()
	must(t, err)
	edit(t, filepath.Join(dir, "scaleway/servers", all[0].ID+".json"), `"`+all[0].Name+`"`, `"`+legacy+`"`)
	return all[0].ID
}

// asleep is the test's specification with another idle time.
func asleep(minutes int) fleet.Spec {
	return fleet.Spec{Hostname: &fleet.Hostname{}, Power: &fleet.Power{Sleep: &minutes}}.WithBuiltIn().WithDefaults()
}

// TestAdopt takes over a server under its present name, with its own value,
// while another one is claimed.
func TestAdopt(t *testing.T) {
	t.Parallel()
	w, dir := world(t, 5)
	id := legacyServer(t, w, dir)
	c := config("production", 2)
	c.Hosts = []fleet.Listed{{Name: legacy, ServerID: id, Fleet: "macos", Group: "m2", Spec: asleep(5)}}
	e := run(t, w, c)
	p := planned(t, e)
	var kinds []string
	for _, a := range p.Actions {
		if a.Host == legacy {
			kinds = append(kinds, string(a.Kind)+" "+a.Reason.Code.String())
		}
		if a.Origin.Drift {
			t.Errorf("drift: %+v", a)
		}
	}
	if want := []string{"step first-setup", "marker adopted", "step first-setup", "step first-setup"}; !slices.Equal(kinds, want) {
		t.Fatalf("actions %v", kinds)
	}
	converges(t, e)
	text, err := os.ReadFile(filepath.Join(root(t, w, legacy), "etc/macfleet/host.json"))
	must(t, err)
	m, err := plan.ParseMarker(string(text))
	if err != nil || m.Name != legacy || m.ServerID != id || len(m.Steps) != 3 {
		t.Errorf("marker %+v, %v", m, err)
	}
	if p = planned(t, e); len(p.Actions) != 0 || len(p.Hosts) != 2 {
		t.Errorf("the second plan has %d hosts and actions %+v", len(p.Hosts), p.Actions)
	}

	// Renamed by hand it gets its name back; without its block it is not touched.
	edit(t, filepath.Join(dir, "scaleway/servers", id+".json"), `"`+legacy+`"`, `"acme-pool-99"`)
	converges(t, e)
	if got := names(t, w); !slices.Contains(got, legacy) {
		t.Errorf("servers %v", got)
	}
	c.Hosts = nil
	p = planned(t, e)
	if len(p.Actions) != 0 || len(p.Orphans) != 1 || len(p.Shortages) != 1 || p.Shortages[0].Trouble.Code.String() != "host-block-removed" {
		t.Errorf("without its block: actions %+v, orphans %v, shortages %+v", p.Actions, p.Orphans, p.Shortages)
	}
}

// TestAdoptionBreaksOff stops after the first action of an adoption, and another
// run that fails before the marker: the next plan still calls it an adoption.
func TestAdoptionBreaksOff(t *testing.T) {
	t.Parallel()
	w, dir := world(t, 4)
	c := config("production", 1)
	c.Hosts = []fleet.Listed{{Name: legacy, ServerID: legacyServer(t, w, dir), Fleet: "macos", Group: "m2", Spec: asleep(0)}}
	e := run(t, w, c)
	p := planned(t, e)
	inject(t, w, legacy, "unreachable")
	if r := performed(t, e, p); len(r.Failures) != 1 {
		t.Fatalf("failures %v", r.Failures)
	}
	must(t, w.Heal(legacy, ""))
	p = planned(t, e)
	if len(p.Actions) < 2 || p.Actions[1].Reason.Code.String() != "adopted" || p.Actions[1].Origin.Drift { // behind sudo
		t.Errorf("actions %+v", p.Actions)
	}
	converges(t, e)
}

// TestOneHostsStep gives one host a step that no group has: its probes are read,
// and no other host is changed.
func TestOneHostsStep(t *testing.T) {
	t.Parallel()
	c := config("production", 2)
	c.Fleets[0].Groups[0].Spec.Power = nil
	_, e := converged(t, 5, c)
	host := planned(t, e).Hosts[1].Name
	c.Hosts = []fleet.Listed{{Name: host, Fleet: "macos", Group: "m2", Spec: asleep(5)}}
	p := planned(t, e)
	if s := p.Summarise(); s.Change != 1 || s.Unread != 0 || s.Converged != 1 || p.Actions[0].Host != host || p.Actions[0].Step != "power" {
		t.Fatalf("summary %+v, actions %+v", s, p.Actions)
	}
	converges(t, e)
}

// TestLimitedToSteps compares and changes one step of members, and claims no server.
func TestLimitedToSteps(t *testing.T) {
	t.Parallel()
	c := config("production", 1)
	w, e := converged(t, 5, c)
	host := planned(t, e).Hosts[0].Name
	for _, incident := range []string{"sleep-enabled", "hostname-edited"} {
		inject(t, w, host, incident)
	}
	c.Fleets[0].Groups[0].Replicas = 2
	e.Selection.Steps = []plan.StepID{"power"}
	var events []string
	e.Emit = func(ev engine.Event) {
		if ev.Type == engine.Done {
			events = append(events, string(ev.Action.Kind)+" "+string(ev.Action.Step))
		}
	}
	converges(t, e)
	if got := strings.Join(events, ", "); got != "step power" {
		t.Errorf("done: %s", got)
	}
	e.Selection.Steps = nil
	if s := planned(t, e).Summarise(); s.Drift != 1 || s.Add != 2 {
		t.Errorf("what was left: %+v", s)
	}
}

// TestAdoptOnlyWaitsForNoNode: the first apply of an adopted host writes its marker and pins its key. The host is
// not a Node yet, and no other host is contacted.
func TestAdoptOnlyWaitsForNoNode(t *testing.T) {
	t.Parallel()
	w, dir := world(t, 4)
	id := legacyServer(t, w, dir)
	c := nodes(2)
	e := runNodes(t, w, c)
	c.Hosts = []fleet.Listed{{Name: legacy, ServerID: id, Fleet: c.Fleets[0].Name, Group: c.Fleets[0].Groups[0].Name, Spec: c.Fleets[0].Groups[0].Spec}}
	e.Selection = plan.Selection{AdoptOnly: true, Steps: []plan.StepID{steps.RootStep}}
	e.Ready = engine.Ready{Within: 50 * time.Millisecond, Every: time.Millisecond}
	p := planned(t, e)
	var kinds []string
	for _, a := range p.Actions {
		kinds = append(kinds, a.Host+" "+string(a.Kind)+" "+string(a.Step))
	}
	if want := []string{legacy + " step sudo", legacy + " marker "}; !slices.Equal(kinds, want) {
		t.Fatalf("actions %q", kinds)
	}
	if r := apply(t, e); len(r.Failures) > 0 || r.After == nil || len(r.After.Actions) > 0 {
		t.Fatalf("failures %+v, left %+v", r.Failures, r.After)
	}
	pins, err := e.Pins.All()
	if err != nil || len(pins) != 1 || pins[0].Name != legacy || pins[0].Unfinished {
		t.Errorf("pins %+v, %v", pins, err)
	}
}
