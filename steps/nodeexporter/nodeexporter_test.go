package nodeexporter_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/boundary"
	"github.com/macfleet/macfleet/steps/kit"
	"github.com/macfleet/macfleet/steps/nodeexporter"
	"github.com/macfleet/macfleet/steps/stepstest"
)

const (
	step    plan.StepID = "node_exporter"
	probe               = "node_exporter.state"
	label               = "dev.macfleet.node-exporter"
	list                = "/Library/LaunchDaemons/" + label + ".plist"
	wrapper             = "/usr/local/lib/macfleet/node_exporter-run"
	logFile             = "/var/log/node_exporter.log"
	stamp               = "4711 18000000 1763000000"
	address             = "100.64.0.7"
)

func artifact() *fleet.Artifact {
	return &fleet.Artifact{Name: "node_exporter", Version: "1.12.1", Source: "https://artifacts.acme.dev/node_exporter-1.12.1.darwin-arm64.tar.gz",
		SHA256: strings.Repeat("9e", 32), Size: 9_000_000, Fetch: fleet.FetchHost}
}

// scene is a host that serves its metrics, and what is changed of it.
type scene struct {
	spec                               fleet.Spec
	view                               plan.View
	receipt, stamp, sha                string // of the program; an empty stamp: there is none
	wrapper, plist                     string // an empty one does not exist
	wrapperMode, plistMode             string
	arguments, state, lastExit, reason string // of the job
	pid, job                           int
	sockets, address                   string
	free                               int64
	kept                               string
}

// newScene is in sync. The wrapper and the list are those that a first setup would write.
func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{spec: fleet.Spec{Tailscale: &fleet.Tailscale{Artifact: artifact()}, NodeExporter: &fleet.NodeExporter{Artifact: artifact()}}, free: 400_000_000, job: 113}
	first := s.find(t).Changes
	if len(first) != 2 {
		t.Fatalf("a first setup has %d changes", len(first))
	}
	args := first[1].Command.Args
	s.plist, s.wrapper, s.plistMode, s.wrapperMode = args[1], args[2], kit.FileMode, kit.ProgramMode
	s.receipt = fmt.Sprintf("current %s 1.12.1\nprevious -\nfile %s %s\ninstalled 1763000001\n", artifact().SHA256, stamp, strings.Repeat("ab", 32))
	s.stamp, s.job, s.pid, s.state, s.lastExit, s.arguments = stamp, 0, 812, "running", "(never exited)", wrapper
	s.sockets, s.address = listens(address), address
	return s
}

func listens(at string) string {
	return "tcp4       0      0  " + at + ".9100     *.*                    LISTEN\n"
}

// answer is what the state's script prints.
func (s *scene) answer() plan.Answer {
	var b strings.Builder
	part := func(body, head string) { b.WriteString(body + "\n== " + head + "\n") }
	if s.receipt != "" {
		part(s.receipt, "file 0 0:0:644 /usr/local/lib/macfleet/node_exporter.receipt")
	}
	if s.stamp != "" {
		part("stamp "+s.stamp+"\n"+kit.Choose(s.sha != "", "sha "+s.sha+"\n", ""), "program 0")
	}
	if s.wrapper != "" {
		part(s.wrapper, "file 0 "+s.wrapperMode+" "+wrapper)
	}
	if s.plist != "" {
		part(s.plist, "file 0 "+s.plistMode+" "+list)
	}
	page := ""
	if s.job == 0 {
		page = "system/" + label + " = {\n\tactive count = 1\n\tpath = " + list + "\n\ttype = LaunchDaemon\n\tstate = " + s.state + "\n\n\tprogram = " + s.arguments +
			"\n\targuments = {\n\t\t" + s.arguments + "\n\t}\n\n\tstdout path = " + logFile + "\n\tstderr path = " + logFile + "\n\tusername = m1\n\tminimum runtime = 10\n\truns = 1\n" +
			kit.Choose(s.pid != 0, fmt.Sprintf("\tpid = %d\n", s.pid), "") + "\tlast exit code = " + s.lastExit + "\n" +
			kit.Choose(s.reason != "", "\tlast exit reason = "+s.reason+"\n", "") + "\n\tproperties = keepalive | runatload | inferred program\n}\n"
	}
	part(page, fmt.Sprintf("job %d", s.job))
	part(s.kept, "kept 0")
	part(fmt.Sprintf("/dev/disk3s1s1 482797652 14845348 %d 4%% 404475 4294562804 0%% /\n", s.free), "space 0")
	part("", "end")
	return plan.Answer{Stdout: b.String()}
}

func (s *scene) find(t *testing.T) plan.Finding {
	t.Helper()
	s.view.Host, s.view.Root = stepstest.Host(s.spec), true
	id := probe
	if s.spec.NodeExporter == nil {
		id = "node_exporter.traces"
	}
	s.view.Facts = plan.Facts{id: inventory.Present(s.answer()),
		boundary.Probe().ID: inventory.Present(plan.Answer{Stdout: s.sockets + "\n== listeners 0\n" + s.address + "\n== address 0\n\n== end\n"})}
	f := stepstest.StepOf(t, step, s.view.Host).Diff(s.view)
	stepstest.Sound(t, step, s.view, f)
	return f
}

// brief shows changes as code and script, with how a job is restarted; then what refuses them.
func brief(f plan.Finding) string {
	var out []string
	for _, c := range f.Changes {
		what := strings.TrimPrefix(c.Command.Name, "node_exporter-")
		if what == "run" {
			what += " " + c.Command.Args[3]
		}
		out = append(out, c.Reason.Code.String()+": "+what)
	}
	if f.Refused != nil {
		out = append(out, "refused "+f.Refused.Code.String())
	}
	for _, u := range f.Unread {
		out = append(out, "unread "+u.Probe)
	}
	return strings.Join(out, "\n")
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
		"touched, the same bytes":          {func(s *scene) { s.stamp, s.sha = "9 9 9", strings.Repeat("ab", 32) }, ""},
		"nothing":                          {func(s *scene) { *s = scene{spec: s.spec, free: s.free, job: 113} }, "exporter-missing: install\nexporter-missing: run load"},
		"other bytes":                      {func(s *scene) { s.stamp, s.sha = "9 9 9", strings.Repeat("cd", 32) }, "exporter-edited: install\nexporter-edited: run load"},
		"the program is missing":           {func(s *scene) { s.stamp = "" }, "exporter-missing: install\nexporter-missing: run load"},
		"an older version":                 {func(s *scene) { s.receipt = strings.Replace(s.receipt, "9e9e", "0101", 1) }, "exporter-outdated: install\nexporter-outdated: run load"},
		"an edited wrapper":                {func(s *scene) { s.wrapper += "# edited\n" }, "exporter-edited: run ask"},
		"a wrapper that cannot be started": {func(s *scene) { s.wrapperMode = "0:0:644" }, "exporter-edited: run ask"},
		"a wrapper that others may edit":   {func(s *scene) { s.wrapperMode = "501:20:755" }, "exporter-edited: run ask"},
		"an edited list":                   {func(s *scene) { s.plist = strings.Replace(s.plist, ">10<", ">1<", 1) }, "exporter-edited: run ask"},
		"another job":                      {func(s *scene) { s.arguments = "/usr/local/bin/node_exporter" }, "exporter-edited: run load"},
		"not loaded":                       {func(s *scene) { s.job, s.sockets = 113, "" }, "exporter-down: run load"},
		"no process":                       {func(s *scene) { s.pid, s.state, s.lastExit, s.sockets = 0, "spawn scheduled", "1", "" }, "exporter-down: run ask"},
		"killed for its signature": {func(s *scene) {
			s.pid, s.state, s.lastExit, s.reason, s.sockets = 0, "spawn scheduled", "Killed: 9", "OS_REASON_CODESIGNING", ""
		}, "exporter-down: run load"},
		"a process that waits for the tailnet": {func(s *scene) { s.sockets = "" }, "exporter-down: run ask"},
		"on every address":                     {func(s *scene) { s.sockets = listens("*") }, "metrics-on-public: run ask"},
		"on the public address, too":           {func(s *scene) { s.sockets += listens("192.0.2.10") }, "metrics-on-public: run ask"},
		"at a former address":                  {func(s *scene) { s.address = "100.64.0.8" }, "exporter-down: run ask"},
		"public, and the program is edited": {func(s *scene) { s.sockets, s.stamp, s.sha = listens("*"), "9 9 9", strings.Repeat("cd", 32) },
			"metrics-on-public: install\nmetrics-on-public: run load"},
		"an address whose key has expired": {func(s *scene) {
			s.view.Taken = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
			s.view.Tailnet = &plan.TailnetSeen{Tailnet: inventory.Tailnet{Devices: []inventory.Device{{ID: "n1", Addresses: []string{address}, KeyExpires: s.view.Taken.Add(-time.Hour)}}}}
		}, "exporter-down: run ask"},
		"an earlier run":     {func(s *scene) { s.view.Pending = true }, plan.CodeUnfinished.String() + ": run ask"},
		"other collectors":   {func(s *scene) { s.spec.NodeExporter.Collectors = []string{"cpu"} }, "exporter-edited: run ask"},
		"no digest":          {func(s *scene) { s.spec.NodeExporter.Artifact = nil }, "exporter-outdated: install\nexporter-outdated: run load\nrefused artifact-missing"},
		"a full disk":        {func(s *scene) { s.stamp, s.free = "", 1000 }, "exporter-missing: install\nexporter-missing: run load\nrefused disk-full"},
		"a full disk, as is": {func(s *scene) { s.free = 1000 }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			tc.seen(s)
			stepstest.Expect(t, name, tc.want, brief(s.find(t)))
		})
	}
}

// TestPublicMetricsNamePortAndAddress: the reason says where the metrics are open.
func TestPublicMetricsNamePortAndAddress(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.sockets = listens("192.0.2.10")
	if text := s.find(t).Changes[0].Reason.Text; !strings.Contains(text, "9100") || !strings.Contains(text, "192.0.2.10") {
		t.Errorf("the reason is %q", text)
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
		"only the receipt":      {func(s *scene) { *s = scene{spec: s.spec, receipt: s.receipt, job: 113} }, "exporter-not-wanted: remove"},
		"a person's own":        {func(s *scene) { s.receipt = "" }, ""},
		"nothing":               {func(s *scene) { *s = scene{spec: s.spec, job: 113} }, ""},
		"an earlier run":        {func(s *scene) { *s = scene{spec: s.spec, job: 113}; s.view.Pending = true }, "exporter-not-wanted: remove"},
	} {
		s := newScene(t)
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
	s := newScene(t)
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
