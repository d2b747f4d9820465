package sandbox_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	applesilicon "github.com/scaleway/scaleway-sdk-go/api/applesilicon/v1alpha1"
	"github.com/scaleway/scaleway-sdk-go/scw"

	"github.com/macfleet/macfleet/internal/sandbox"
	"github.com/macfleet/macfleet/internal/sandbox/mac"
)

// patient is a host of a new world, with its Mac opened as a repair would.
type patient struct {
	*testing.T
	world   *sandbox.World
	dir     string
	host    sandbox.Host
	machine *mac.Machine
}

func newPatient(t *testing.T) *patient {
	t.Helper()
	w, dir := newWorld(t, 2)
	h := hosts(t, w)[0]
	machine, err := mac.Open(filepath.Join(dir, "macs", h.ID))
	must(t, err)
	return &patient{t, w, dir, h, machine}
}

func (p *patient) inject(incident string) {
	p.Helper()
	for range 2 { // the second time changes nothing
		must(p, p.world.Inject(p.host.Name, incident))
	}
	if got := host(p, p.world, p.host.ID).Incidents; !slices.Equal(got, []string{incident}) {
		p.Errorf("incidents %q, want %q", got, incident)
	}
}

func (p *patient) heal(incident string) {
	p.Helper()
	for range 2 { // healing a healthy host is not an error
		must(p, p.world.Heal(p.host.ID, incident))
	}
	if got := host(p, p.world, p.host.ID).Incidents; len(got) != 0 {
		p.Errorf("incidents after healing: %q", got)
	}
	if _, err := os.Stat(filepath.Join(p.dir, "incidents", p.host.ID+".json")); !os.IsNotExist(err) {
		p.Errorf("the incident's record was not removed: %v", err)
	}
}

// run runs a script on the Mac as a person or a repair would.
func (p *patient) run(script string) string {
	p.Helper()
	result, err := p.machine.Run(p.Context(), "root", script)
	if err != nil || result.Exit != 0 {
		p.Fatalf("%s: status %d, %s, %v", script, result.Exit, result.Stderr, err)
	}
	return strings.TrimSpace(string(result.Stdout))
}

func (p *patient) want(what, got, want string) {
	p.Helper()
	equal(p, got, want, what)
}

func (p *patient) writeMarker(text string) {
	p.Helper()
	must(p, p.machine.WriteFile("/etc/macfleet/host.json", []byte(text), 0, 0, 0o644))
}

// marker returns the marker's text, or "".
func (p *patient) marker() string {
	data, _ := p.machine.ReadFile("/etc/macfleet/host.json")
	return string(data)
}

// TestIncidentsAreListed: each has a unique name and a summary. A test of the engine compares the names with the page.
func TestIncidentsAreListed(t *testing.T) {
	t.Parallel()
	seen := make(map[string]bool)
	for _, incident := range sandbox.Incidents() {
		if incident.Name == "" || incident.Summary == "" || seen[incident.Name] {
			t.Errorf("%+v has no unique name or no summary", incident)
		}
		seen[incident.Name] = true
	}
}

func TestEveryIncidentAtOnce(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	p.installKubelet(p.identity("tart-kubelet-mini-1"))
	p.installTart()
	password, vnc := p.reported()
	for _, incident := range sandbox.Incidents() {
		if incident.Name == "reinstalled-by-hand" { // ends others
			continue
		}
		if err := p.world.Inject(p.host.ID, incident.Name); err != nil {
			t.Error(err)
		}
	}
	other := hosts(t, p.world)[0]
	if err := p.world.Inject(other.ID, "unreachable"); err != nil {
		t.Error(err)
	}
	if got := host(t, p.world, p.host.ID).Incidents; len(got) != len(sandbox.Incidents())-1 {
		t.Errorf("incidents: %q", got)
	}
	if err := p.world.Heal("", ""); err != nil {
		t.Error(err)
	}
	for _, h := range hosts(t, p.world) {
		equal(t, len(h.Incidents), 0, h.Name, h.Incidents)
	}
	sudo, address := p.reported()
	p.want("reported password", sudo, password)
	p.want("reported VNC address", address, vnc)
	p.is("sudo", p.sudo(""), true)
	p.screen("after all", mac.Screen{Loginwindow: true})
	p.want("name", host(t, p.world, p.host.ID).Name, p.host.Name)
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	key := signer(t, p.world)
	p.inject("unreachable")
	second := open(t, p.dir, seed(2))
	for _, w := range []*sandbox.World{p.world, second} {
		if _, _, err := exec(t.Context(), w, key, p.host.Address, "true"); !errors.Is(err, syscall.EHOSTUNREACH) {
			t.Errorf("got %v, want EHOSTUNREACH", err)
		}
	}
	p.heal("unreachable")
	if _, _, err := exec(t.Context(), second, key, p.host.Address, "true"); err != nil {
		t.Errorf("after healing: %v", err)
	}
}

func TestWrongHostKey(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	shown := func() string {
		_, shown, err := exec(t.Context(), p.world, signer(t, p.world), p.host.Address, "true")
		must(t, err)
		return shown
	}
	before := shown()
	p.inject("wrong-host-key")
	if shown() == before {
		t.Error("the host key is the same")
	}
	p.heal("wrong-host-key")
	p.want("host key", shown(), before)
}

func TestForeignMarker(t *testing.T) {
	t.Parallel()
	const own = `{"configuration":"acme","environment":"production","name":"acme-production-runners-m2-00000","epoch":12345678901234567890,"steps":{"power":"x"}}`
	p := newPatient(t)
	p.writeMarker(own)
	p.inject("foreign-marker")
	var planted map[string]any
	must(t, json.Unmarshal([]byte(p.marker()), &planted))
	if planted["configuration"] != "globex" || planted["environment"] != "staging" || planted["name"] == "acme-production-runners-m2-00000" || planted["steps"] == nil {
		t.Errorf("marker: %s", p.marker())
	}
	has(t, p.marker(), "12345678901234567890", "a big number was changed")
	p.heal("foreign-marker")
	p.want("marker", p.marker(), own)

	p.inject("foreign-marker")
	p.writeMarker("repaired")
	p.heal("")
	p.want("marker after a repair", p.marker(), "repaired")

	p.inject("foreign-marker")
	p.writeMarker("repaired again")
	p.inject("foreign-marker") // comes back: now the repaired state is the one to restore
	p.heal("foreign-marker")
	p.want("marker after a second injection", p.marker(), "repaired again")

	p.run("rm -rf /etc/macfleet")
	p.inject("foreign-marker")
	for _, key := range []string{"configuration", "environment", "name", "fleet", "group", "server_id", "serial", "cluster_uid", "version", "steps"} {
		has(t, p.marker(), `"`+key+`"`)
	}
	p.heal("foreign-marker")
	p.want("folder", p.run("if [ -e /etc/macfleet ]; then echo there; fi"), "")
}

func TestMarkerMissing(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	p.writeMarker("own")
	p.inject("marker-missing")
	p.want("folder", p.run("if [ -e /etc/macfleet ]; then echo there; fi"), "")
	p.heal("marker-missing")
	p.want("marker", p.marker(), "own")

	p.inject("marker-missing")
	p.writeMarker("repaired")
	p.heal("marker-missing")
	p.want("marker after a repair", p.marker(), "repaired")

	must(t, errors.Join(p.world.Inject(p.host.ID, "foreign-marker"), p.world.Inject(p.host.ID, "marker-missing")))
	p.heal("")
	p.want("marker after two incidents", p.marker(), "repaired")
}

func TestRenamedByHand(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	renamed := "renamed-by-hand-" + p.host.ID[:5]
	p.inject("renamed-by-hand")
	p.want("name", host(t, p.world, p.host.ID).Name, renamed)
	for _, name := range []string{p.host.Name, renamed, p.host.ID} {
		if root, err := p.world.Path(name); err != nil || root != p.host.Root {
			t.Errorf("path of %s: %s %v", name, root, err)
		}
	}
	p.heal("renamed-by-hand")
	p.want("name", host(t, p.world, p.host.ID).Name, p.host.Name)

	p.inject("renamed-to-pool")
	p.want("name in the pool", host(t, p.world, p.host.ID).Name, "acme-pool-"+p.host.ID[:5])
	p.heal("renamed-to-pool")
	p.want("name", host(t, p.world, p.host.ID).Name, p.host.Name)

	p.inject("renamed-by-hand")
	_, err := scaleway(t, p.world).UpdateServer(&applesilicon.UpdateServerRequest{
		Zone: scw.Zone(p.host.Zone), ServerID: p.host.ID, Name: scw.StringPtr("acme-repaired"),
	})
	must(t, err)
	p.heal("renamed-by-hand")
	p.want("name after a repair", host(t, p.world, p.host.ID).Name, "acme-repaired")
}

func TestSleepEnabled(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	value := func(name string) string {
		for line := range strings.Lines(p.run("pmset -g")) {
			if fields := strings.Fields(line); len(fields) == 2 && fields[0] == name {
				return fields[1]
			}
		}
		return ""
	}
	p.run("pmset -a sleep 3 displaysleep 0")
	p.inject("sleep-enabled")
	p.want("sleep", value("sleep"), "10")
	p.want("displaysleep", value("displaysleep"), "10")
	p.heal("sleep-enabled")
	p.want("sleep", value("sleep"), "3")
	p.want("displaysleep", value("displaysleep"), "0")

	p.inject("sleep-enabled")
	p.run("pmset -a sleep 0") // half a repair
	p.heal("sleep-enabled")
	p.want("sleep after a repair", value("sleep"), "0")
	p.want("displaysleep after healing", value("displaysleep"), "0")
}

func TestHostnameEdited(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	value := func(name string) string { return p.run("scutil --get " + name + " 2>/dev/null || true") }
	p.run("scutil --set ComputerName \"acme's mac\"")
	p.run("scutil --set HostName acme-01")
	p.inject("hostname-edited")
	p.want("ComputerName", value("ComputerName"), "old-name")
	p.want("HostName", value("HostName"), "old-name.local")
	p.heal("hostname-edited")
	p.want("ComputerName", value("ComputerName"), "acme's mac")
	p.want("HostName", value("HostName"), "acme-01")

	p.run("scutil --set HostName ''")
	p.inject("hostname-edited")
	p.heal("hostname-edited")
	p.want("HostName that was not set", value("HostName"), "")

	p.inject("hostname-edited")
	p.run("scutil --set ComputerName repaired")
	p.run("scutil --set HostName repaired.local")
	p.heal("hostname-edited")
	p.want("ComputerName after a repair", value("ComputerName"), "repaired")
	p.want("HostName after a repair", value("HostName"), "repaired.local")
}

func TestUnknownNamesAreSuggested(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	for _, test := range []struct {
		err      error
		contains string
	}{
		{p.world.Inject("acme-pol-01", "unreachable"), `did you mean "acme-pool-01"?`},
		{p.world.Inject("acme-pool-01", "unreachble"), `did you mean "unreachable"?`},
		{p.world.Inject("acme-pool-01", "nonsense"), `no incident "nonsense"; macfleet sandbox inject --help`}, // nothing is near
		{p.world.Heal("acme-pool-1", ""), `"acme-pool-1"`},
		{p.world.Heal("", "sleep-enable"), `did you mean "sleep-enabled"?`},
	} {
		if test.err == nil || !strings.Contains(test.err.Error(), test.contains) {
			t.Errorf("%v, want an error with %s", test.err, test.contains)
		}
	}
	if _, err := p.world.Path("nobody"); err == nil {
		t.Error("an unknown host has a path")
	}
}

func TestBrokenIncidentFile(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	path := filepath.Join(p.dir, "incidents", p.host.ID+".json")
	must(t, os.WriteFile(path, []byte("[{"), 0o600))
	_, err := p.world.Hosts()
	for _, err := range []error{err, p.world.Heal("", ""), p.world.Inject(p.host.Name, "unreachable")} {
		if err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%v, want an error that names %s", err, path)
		}
	}
}
