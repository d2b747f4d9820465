package engine_test

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/hosts"
	"github.com/macfleet/macfleet/internal/doctor"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/overssh"
	"github.com/macfleet/macfleet/internal/sandbox"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/stepstest"
)

// incident is a row of docs/incidents.md.
type incident struct {
	name, symptom, says, does string
	ofNode                    bool // it hits hosts that are Nodes
	ofRunner                  bool // it hits hosts that are builders
	ofTailnet                 bool // it hits hosts in a tailnet: TestTailnetIncidents
}

// code returns the code that macfleet says at first, or "".
func (i incident) code() string {
	says, _, _ := strings.Cut(i.says, ";")
	if m := regexp.MustCompile("`([a-z0-9-]+)`").FindStringSubmatch(says); m != nil {
		return m[1]
	}
	return ""
}

// blocks returns the names after "with" in what macfleet says at first: without them it says nothing.
func (i incident) blocks() []string {
	says, _, _ := strings.Cut(i.says, ";")
	_, with, _ := strings.Cut(says, ", with ")
	var names []string
	for _, m := range regexp.MustCompile("`([a-z0-9_]+)`").FindAllStringSubmatch(with, -1) {
		names = append(names, m[1])
	}
	return names
}

// incidents reads the tables of docs/incidents.md.
func incidents(t *testing.T) []incident {
	t.Helper()
	text, err := os.ReadFile("../../docs/incidents.md")
	if err != nil {
		t.Fatal(err)
	}
	var all []incident
	ofNode, ofRunner, ofTailnet := false, false, false
	for line := range strings.Lines(string(text)) {
		if heading, ok := strings.CutPrefix(line, "## "); ok {
			ofNode = slices.ContainsFunc([]string{"Kubelet", "Node", "Cluster API", "Other controllers"}, func(of string) bool { return strings.Contains(heading, of) })
			ofRunner = slices.Contains([]string{"GitHub's runner", "The tools of builders"}, strings.TrimSpace(heading))
			ofTailnet = strings.TrimSpace(heading) == "The tailnet on a host"
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 4 || !strings.HasPrefix(strings.TrimSpace(cells[0]), "`") {
			continue
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		all = append(all, incident{strings.Trim(cells[0], "`"), cells[1], cells[2], cells[3], ofNode, ofRunner, ofTailnet})
	}
	return all
}

// TestIncidentsAreDocumented keeps docs/incidents.md and the simulator equal.
func TestIncidentsAreDocumented(t *testing.T) {
	t.Parallel()
	var documented, simulated []string
	for _, i := range incidents(t) {
		documented = append(documented, i.name)
		if i.symptom == "" || i.says == "" || i.does == "" {
			t.Errorf("%s: a cell is empty", i.name)
		}
	}
	for _, i := range slices.Concat(sandbox.Incidents(), sandbox.RunnerIncidents(), sandbox.TailnetIncidents()) {
		simulated = append(simulated, i.Name)
	}
	slices.Sort(documented)
	slices.Sort(simulated)
	if !slices.Equal(documented, simulated) {
		t.Errorf("documented %q\nsimulated  %q", documented, simulated)
	}
}

// TestIncidents injects each incident into a converged fleet of two, and
// compares what is reported and done with docs/incidents.md. The other host is
// never spoken of.
func TestIncidents(t *testing.T) {
	t.Parallel()
	all := incidents(t)
	for _, row := range all {
		if row.ofTailnet {
			continue
		}
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			w, e := row.fleet(t, all)
			one, two := members(t, w)[0], members(t, w)[1]
			if row.name == "silent" { // a shorter deadline than in real runs
				e.Hosts = impatient(t, w, hosts.Deadlines{Handshake: 5 * time.Second})
			}
			if err := w.Inject(one, row.name); err != nil {
				t.Fatal(err)
			}
			p := planned(t, e)
			shownAlike(t, p)
			if said := codesOf(p, two); len(said) > 0 {
				t.Errorf("of the other host is reported %q", said)
			}
			said := slices.Compact(append(codesOf(p, one), ofTheCluster(p)...)) // the host and its Node may both have it
			kind, _, _ := strings.Cut(strings.Replace(row.says, " of the cluster", "", 1), ",")
			if want := strings.TrimSpace(kind + " " + row.code()); want != "nothing" && want != "unread" && !slices.Equal(said, []string{want}) {
				t.Errorf("it says %q, want %q", said, want)
			}
			if row.says == "nothing" && len(said) > 0 {
				t.Errorf("it says %q, want nothing", said)
			}
			diagnosedAlike(t, e, one, slices.Compact(codesOf(p, one)))
			row.after(t, e, one)
		})
	}
}

// fleet is a converged fleet of two that the incident may hit. Builders are those of which its name speaks.
func (i incident) fleet(t *testing.T, all []incident) (*sandbox.World, *engine.Engine) {
	t.Helper()
	if i.ofRunner {
		return converged(t, 4, fenced(i.withBlocks(t, all, builders(2))))
	}
	if !i.ofNode {
		return converged(t, 4, i.withBlocks(t, all, hostCore("production", 2)))
	}
	c := i.withBlocks(t, all, nodes(2))
	if i.name == "machine-not-bound" { // which is another owner to who does not connect the Cluster API
		c.Kubernetes.CAPI = &fleet.CAPI{Cluster: "macs", Namespace: "default"}
	}
	if strings.HasSuffix(i.name, "-on-builder") {
		c.Fleets[0].Groups[0].Spec.GithubRunner = &fleet.GithubRunner{}
	}
	w, e := converged(t, 4, c)
	e.Run = named("sam", 1) // whose cordons are opened again
	return w, e
}

// withBlocks adds the blocks that the incidents of such fleets name, with the samples of stepstest. The incidents share them, because to set
// a fleet up costs more than a step in each of their plans.
func (i incident) withBlocks(t *testing.T, all []incident, c *fleet.Config) *fleet.Config {
	t.Helper()
	samples := stepstest.Everything()
	samples.BuildTools = &fleet.BuildTools{Packer: sample("packer", "1.15.4", "packer_1.15.4_darwin_arm64.zip"), Cache: new("/opt/build-cache"), Environment: []string{"ACME_BUILD_ROOT=/opt/build-cache"},
		Homebrew: sample("homebrew", "6.0.18", "homebrew-6.0.18.sh"), Formulae: []string{"git-lfs", "hashicorp/tap/packer"}}
	spec := &c.Fleets[0].Groups[0].Spec
	for _, other := range all {
		if other.ofNode != i.ofNode || other.ofRunner != i.ofRunner || other.ofTailnet {
			continue
		}
		for _, name := range other.blocks() {
			if !copyBlock(spec, samples, name) {
				t.Fatalf("the row of %s names %q, which no fleet has", other.name, name)
			}
		}
	}
	*spec = spec.WithDefaults()
	return c
}

// copyBlock copies a block by its name, and reports whether there is one.
func copyBlock(to *fleet.Spec, from fleet.Spec, name string) bool {
	for f := range reflect.TypeFor[fleet.Spec]().NumField() {
		if is, _, _ := strings.Cut(reflect.TypeFor[fleet.Spec]().Field(f).Tag.Get("hcl"), ","); is == name {
			reflect.ValueOf(to).Elem().Field(f).Set(reflect.ValueOf(from).Field(f))
			return true
		}
	}
	return false
}

// after applies and checks what is left.
func (i incident) after(t *testing.T, e *engine.Engine, host string) {
	t.Helper()
	r := apply(t, e)
	left := append(codesOf(r.After, host), ofTheCluster(r.After)...)
	switch {
	case strings.HasPrefix(i.does, "repairs"):
		if !r.Converged() || len(left) > 0 {
			t.Errorf("not repaired: failures %v, left %q", r.Failures, left)
		}
	case i.says == "nothing" || strings.HasPrefix(i.says, "warning"):
		if !r.Converged() || r.Done > 0 {
			t.Errorf("%d actions were done, failures %v, left %q", r.Done, r.Failures, left)
		}
	default:
		if r.Converged() || len(left) == 0 {
			t.Errorf("a run converged that could not: %q", left)
		}
	}
}

// impatient connects to a world's hosts with its own deadlines.
func impatient(t *testing.T, w *sandbox.World, d hosts.Deadlines) overssh.Hosts {
	t.Helper()
	c := overssh.New(hosts.Options{User: "m1", Key: fleetKey(t, w), Dial: w.DialContext, Deadlines: d})
	t.Cleanup(c.Close)
	return c
}

// diagnosedAlike checks that doctor names what plan names, by the same codes, with something to do, and calls
// a host well of which plan says nothing.
func diagnosedAlike(t *testing.T, e *engine.Engine, host string, said []string) {
	t.Helper()
	c, _, err := examined(t, e, host)
	if err != nil {
		t.Fatal(err)
	}
	sick := slices.ContainsFunc(c.Checks, func(c doctor.Check) bool { return c.State != doctor.OK && c.Name != "clock" }) // some were sent into the future
	if sick != (len(said) > 0) {
		t.Errorf("plan says %q, and doctor says healthy %t: %+v", said, c.Healthy, c.Checks)
	}
	for _, text := range said {
		kind, name, _ := strings.Cut(text, " ")
		if kind == "unread" {
			name = "unread"
		}
		i := slices.IndexFunc(c.Checks, func(c doctor.Check) bool { return c.Code.String() == name || c.Refused.String() == name })
		if i < 0 {
			t.Errorf("plan says %q, and doctor does not: %+v", text, c.Checks)
			continue
		}
		if check := c.Checks[i]; check.State == doctor.OK || check.Remedy == "" || (kind == "warning") != (check.State == doctor.Warning) {
			t.Errorf("plan says %q, and doctor says %+v", text, check)
		}
	}
}

// ofTheCluster lists what a plan says of Pods that are no host's.
func ofTheCluster(p *plan.Plan) []string {
	var out []string
	for _, a := range p.Actions {
		if a.OfCluster() && a.Kind == plan.ReleasePods {
			out = append(out, "drift "+a.Reason.Code.String())
		}
	}
	return out
}

// codesOf lists what a plan reports about a host: the kind and the code.
func codesOf(p *plan.Plan, host string) []string {
	var out []string
	h := p.Hosts[slices.IndexFunc(p.Hosts, func(h plan.Host) bool { return h.Name == host })]
	if h.Unknown != nil {
		out = append(out, "unknown "+h.Unknown.Code.String())
	}
	if h.Refused != nil {
		out = append(out, "refused "+h.Refused.Code.String())
	}
	for _, a := range p.Actions {
		switch {
		case a.Host != host || h.Refused != nil || h.Unknown != nil || a.AfterRoot:
		case a.Refusal != nil:
			out = append(out, "refused "+a.Refusal.Code.String())
		case a.Origin.Drift:
			out = append(out, "drift "+a.Reason.Code.String())
		default:
			out = append(out, "pending "+a.Reason.Code.String())
		}
	}
	for _, u := range h.Unread {
		out = append(out, "unread "+string(u.Step))
	}
	for _, w := range h.Warnings {
		out = append(out, "warning "+w.Code.String())
	}
	return out
}

// hostCore wants every step of the host core.
func hostCore(environment string, replicas int) *fleet.Config {
	c := config(environment, replicas)
	c.Fleets[0].Groups[0].Spec = fleet.Spec{Hostname: &fleet.Hostname{}, Power: &fleet.Power{}, AutoLogin: &fleet.AutoLogin{},
		VMFirewall: &fleet.VMFirewall{}}.WithBuiltIn().WithDefaults()
	return c
}
