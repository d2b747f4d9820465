package nodeexporter_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/maintest"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/boundary"
	"github.com/macfleet/macfleet/steps/kit"
	"github.com/macfleet/macfleet/steps/nodeexporter"
	"github.com/macfleet/macfleet/steps/stepstest"
)

func TestMain(m *testing.M) { maintest.Main(m) }

const step plan.StepID = "node_exporter"

const (
	probe   = "node_exporter.state"
	list    = "/Library/LaunchDaemons/dev.macfleet.node-exporter.plist"
	wrapper = "/usr/local/lib/macfleet/node_exporter-run"
	logFile = "/var/log/node_exporter.log"
	address = "100.64.0.7"
)

// scene is a host that serves its metrics, and what is changed of it.
type scene struct {
	stepstest.ExporterMac
	spec             fleet.Spec
	view             plan.View
	sockets, address string
}

// newScene is in sync.
func newScene() *scene {
	return &scene{ExporterMac: stepstest.ServingExporter(), spec: fleet.Spec{Tailscale: stepstest.Tailscale(), NodeExporter: stepstest.NodeExporter()}, sockets: listens(address), address: address}
}

func listens(at string) string {
	return "tcp4       0      0  " + at + ".9100     *.*                    LISTEN\n"
}

func (s *scene) find(t *testing.T) plan.Finding {
	t.Helper()
	s.view.Host, s.view.Root = stepstest.Host(s.spec), true
	id := probe
	if s.spec.NodeExporter == nil {
		id = "node_exporter.traces"
	}
	s.view.Facts = plan.Facts{id: inventory.Present(s.Answer()),
		boundary.Probe().ID: inventory.Present(plan.Answer{Stdout: s.sockets + "\n== listeners 0\n" + s.address + "\n== address 0\n\n== end\n"})}
	return stepstest.Find(t, step, s.view)
}

// brief shows changes as code and script, with how a job is restarted; then what refuses them.
func brief(f plan.Finding) string {
	return strings.Join(stepstest.Lines(f, func(c plan.Change) string {
		what := strings.TrimPrefix(c.Command.Name, "node_exporter-")
		if what == "run" {
			what += " " + c.Command.Args[3]
		}
		if _, at, public := strings.Cut(c.Reason.Text, "serves port "); public {
			what += " (" + at + ")"
		}
		return c.Reason.Code.String() + ": " + what
	}), "\n")
}

// TestFindings: what was seen of a host's exporter, and what follows.
func TestFindings(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		seen func(*scene)
		want string
	}{
		"in sync":                          {func(*scene) {}, ""},
		"in sync, and open on loopback":    {func(s *scene) { s.sockets += listens("127.0.0.1") }, ""},
		"touched, the same bytes":          {func(s *scene) { s.Stamp, s.SHA = "9 9 9", strings.Repeat("d3", 32) }, ""},
		"nothing":                          {func(s *scene) { s.ExporterMac, s.sockets = stepstest.ExporterMac{FreeKB: s.FreeKB}, "" }, "exporter-missing: install\nexporter-missing: run load"},
		"other bytes":                      {func(s *scene) { s.Stamp, s.SHA = "9 9 9", strings.Repeat("cd", 32) }, "exporter-edited: install\nexporter-edited: run load"},
		"the program is missing":           {func(s *scene) { s.Stamp = "" }, "exporter-missing: install\nexporter-missing: run load"},
		"an older version":                 {func(s *scene) { s.Receipt = strings.Replace(s.Receipt, "9e9e", "0101", 1) }, "exporter-outdated: install\nexporter-outdated: run load"},
		"an edited wrapper":                {func(s *scene) { s.Wrapper += "# edited\n" }, "exporter-edited: run ask"},
		"a wrapper that cannot be started": {func(s *scene) { s.WrapperMode = "0:0:644" }, "exporter-edited: run ask"},
		"a wrapper that others may edit":   {func(s *scene) { s.WrapperMode = "501:20:755" }, "exporter-edited: run ask"},
		"an edited list":                   {func(s *scene) { s.Plist = strings.Replace(s.Plist, ">10<", ">1<", 1) }, "exporter-edited: run ask"},
		"another job":                      {func(s *scene) { s.Program = "/usr/local/bin/node_exporter" }, "exporter-edited: run load"},
		"not loaded":                       {func(s *scene) { s.Process, s.sockets = "", "" }, "exporter-down: run load"},
		"no process":                       {func(s *scene) { s.Process, s.sockets = stepstest.DaemonWaits, "" }, "exporter-down: run ask"},
		"killed for its signature": {func(s *scene) {
			s.Process, s.sockets = "\tstate = spawn scheduled\n\tlast exit code = Killed: 9\n\tlast exit reason = OS_REASON_CODESIGNING\n", ""
		}, "exporter-down: run load"},
		"a process that waits for the tailnet": {func(s *scene) { s.sockets = "" }, "exporter-down: run ask"},
		"on every address":                     {func(s *scene) { s.sockets = listens("*") }, "metrics-on-public: run ask (9100 on every address)"},
		"on the public address, too":           {func(s *scene) { s.sockets += listens("192.0.2.10") }, "metrics-on-public: run ask (9100 on 192.0.2.10)"},
		"at a former address":                  {func(s *scene) { s.address = "100.64.0.8" }, "exporter-down: run ask"},
		"public, and the program is edited": {func(s *scene) { s.sockets, s.Stamp, s.SHA = listens("*"), "9 9 9", strings.Repeat("cd", 32) },
			"metrics-on-public: install (9100 on every address)\nmetrics-on-public: run load (9100 on every address)"},
		"an address whose key has expired": {func(s *scene) {
			s.view.Taken = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
			s.view.Peers = []plan.HostPeer{{Peer: inventory.TailnetService, Seen: &plan.PeerSeen{Listing: inventory.Listing{Tailnet: &inventory.Tailnet{Devices: []inventory.Device{{ID: "n1", Addresses: []string{address}, KeyExpires: s.view.Taken.Add(-time.Hour)}}}}}}}
		}, "exporter-down: run ask"},
		"an earlier run":     {func(s *scene) { s.view.Pending = true }, plan.CodeUnfinished.String() + ": run ask"},
		"other collectors":   {func(s *scene) { s.spec.NodeExporter.Collectors = []string{"cpu"} }, "exporter-edited: run ask"},
		"no digest":          {func(s *scene) { s.spec.NodeExporter.Artifact = nil }, "exporter-outdated: install\nexporter-outdated: run load\nrefused artifact-missing"},
		"a full disk":        {func(s *scene) { s.Stamp, s.FreeKB = "", 1000 }, "exporter-missing: install\nexporter-missing: run load\nrefused disk-full"},
		"a full disk, as is": {func(s *scene) { s.FreeKB = 1000 }, ""},
	} {
		s := newScene()
		tc.seen(s)
		stepstest.Expect(t, name, tc.want, brief(s.find(t)))
	}
}

// TestRemoval: only what macfleet installed is removed, and a run that was cut off is finished.
func TestRemoval(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		seen func(*scene)
		want string
	}{
		"installed by macfleet": {func(*scene) {}, "exporter-not-wanted: remove"},
		"only the receipt":      {func(s *scene) { s.ExporterMac = stepstest.ExporterMac{Receipt: s.Receipt} }, "exporter-not-wanted: remove"},
		"a person's own":        {func(s *scene) { s.Receipt = "" }, ""},
		"nothing":               {func(s *scene) { s.ExporterMac = stepstest.ExporterMac{} }, ""},
		"an earlier run":        {func(s *scene) { s.ExporterMac = stepstest.ExporterMac{}; s.view.Pending = true }, "exporter-not-wanted: remove"},
	} {
		s := newScene()
		s.spec = s.spec.WithoutTailnet()
		tc.seen(s)
		f := s.find(t)
		stepstest.Expect(t, name, tc.want, brief(f))
		for _, c := range f.Changes {
			if !c.Removes {
				t.Errorf("%s: the change does not say that it removes", name)
			}
		}
	}
}

// TestWithoutATailnetNothingIsAsked: a host without one answers no probe but the one for traces.
func TestWithoutATailnetNothingIsAsked(t *testing.T) {
	t.Parallel()
	for _, s := range []struct {
		spec fleet.Spec
		want []string
	}{
		{fleet.Spec{}, []string{"node_exporter.traces"}},
		{fleet.Spec{Tailscale: &fleet.Tailscale{}, NodeExporter: &fleet.NodeExporter{}}, []string{probe, boundary.Probe().ID}},
	} {
		var got []string
		for _, p := range stepstest.Step(t, step, s.spec).Probes() {
			got = append(got, p.ID)
		}
		stepstest.Expect(t, "probes", s.want, got)
	}
}

// TestCollectors: nothing is collected that the configuration does not name, and a name is a separate flag.
func TestCollectors(t *testing.T) {
	t.Parallel()
	s := newScene()
	for _, named := range [][]string{nil, {"cpu", "textfile"}} {
		s.spec.NodeExporter.Collectors = named
		want := "--collector.disable-defaults"
		for _, c := range kit.Choose(named == nil, nodeexporter.DefaultCollectors, named) {
			want += " --collector." + c
		}
		if wanted := stepstest.WantedBy(t, step, s.spec); !strings.Contains(wanted, want) {
			t.Errorf("%v: wanted is\n%s", named, wanted)
		}
	}
	if !slices.IsSorted(nodeexporter.DefaultCollectors) {
		t.Error("the usual collectors are not sorted")
	}
}
