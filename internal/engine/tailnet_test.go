package engine_test

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/devices"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/sandbox"
	"github.com/macfleet/macfleet/internal/sandbox/tailnet"
	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/internal/worldtest"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/providers/transport"
)

// inTailnet adds a tailnet to a configuration: its hosts join and serve metrics.
func inTailnet(c *fleet.Config) *fleet.Config {
	ref, _ := secret.ParseRef("env://TAILNET")
	c.Tailnet = &fleet.Tailnet{Enabled: true, Auth: ref, Tags: []string{"tag:macmini"}}
	for i := range c.Fleets {
		for j := range c.Fleets[i].Groups {
			spec := &c.Fleets[i].Groups[j].Spec
			spec.Tailscale = &fleet.Tailscale{Artifact: sample("tailscale", "1.102.5", "tailscale-1.102.5-darwin-arm64.tar.gz")}
			spec.NodeExporter = &fleet.NodeExporter{Artifact: sample("node_exporter", "1.12.1", "node_exporter-1.12.1.darwin-arm64.tar.gz")}
			*spec = spec.WithDefaults()
		}
	}
	return c
}

// outOfTailnet disables the tailnet of a configuration.
func outOfTailnet(c *fleet.Config) *fleet.Config {
	c.Tailnet.Enabled = false
	for i := range c.Fleets {
		for j := range c.Fleets[i].Groups {
			c.Fleets[i].Groups[j].Spec = c.Fleets[i].Groups[j].Spec.WithoutTailnet()
		}
	}
	return c
}

// runTailnet returns an engine for such a fleet; around is put around the way to the control server.
func runTailnet(t *testing.T, w *sandbox.World, c *fleet.Config, e *engine.Engine, around func(http.RoundTripper) http.RoundTripper) *engine.Engine {
	t.Helper()
	var counter transport.Counter
	client := transport.New(&counter, 1000)
	t.Cleanup(client.CloseIdleConnections)
	if around != nil {
		client.Transport = around(client.Transport)
	}
	if c.Tailnet != nil {
		service := devices.New(devices.Options{Tailnet: *c.Tailnet, HTTP: client, URL: w.TailnetURL(), Now: time.Now, Learn: func(string) {},
			Resolve: func(_ context.Context, attribute string, ref secret.Ref) (secret.Value, error) {
				text, err := w.TailnetSecret(attribute, ref.String(), false)
				if err != nil {
					return secret.Value{}, err
				}
				return secret.New(text)
			}})
		e.Peers = map[inventory.ServiceName]engine.Service{inventory.TailnetService: service}
	}
	e.Run = named("sam", 1)
	return e
}

// tidyTailnet finds what a world must have after any run that ended: n devices of hosts, each with its host's name, and no key that
// still works.
func tidyTailnet(t *testing.T, w *sandbox.World, n int) {
	t.Helper()
	all, err := w.Tailnet().Devices()
	must(t, err)
	all = slices.DeleteFunc(all, func(d tailnet.Device) bool { return d.Server == "" }) // no Mac of this world
	names := make(map[string]bool)
	for _, d := range all {
		if names[d.Name] = true; d.Name != d.HostName || !d.Connected || !slices.Equal(d.Tags, []string{"tag:macmini"}) {
			t.Errorf("device %+v", d)
		}
	}
	if len(all) != n || len(names) != n {
		t.Errorf("%d devices with %d names, want %d: %+v", len(all), len(names), n, all)
	}
	keys, err := w.Tailnet().Keys()
	if err != nil || len(keys) > 0 {
		t.Errorf("keys that still work: %+v, %v", keys, err)
	}
}

// TestTailnet: a Node joins and serves metrics in the tailnet; the next plan is empty; then it leaves, and nothing is left, neither on
// the host nor in the tailnet.
func TestTailnet(t *testing.T) {
	t.Parallel()
	c := nodes(1)
	w, _ := converged(t, 3, c)
	before := traces(t, w)
	inTailnet(c)
	e := runTailnet(t, w, c, runNodes(t, w, c), nil)
	converges(t, e)
	tidyTailnet(t, w, 1)
	p := planned(t, e)
	h := p.Hosts[0]
	s, err := macOf(t, w, h.Name).Tailscale()
	if err != nil || s.Exporter != s.Address+":9100" || s.KubeletIP != s.Address || s.Backend != "Running" || h.Peer(inventory.TailnetService).Entry == nil || h.Peer(inventory.TailnetService).Entry.ID != s.ID || len(p.Actions) > 0 {
		t.Errorf("%+v, %v, device %+v, the next plan has %+v", s, err, h.Peer(inventory.TailnetService), p.Actions)
	}
	outOfTailnet(c)
	converges(t, runTailnet(t, w, c, runNodes(t, w, c), nil))
	tidyTailnet(t, w, 0)
	if diff := cmp.Diff(before, traces(t, w)); diff != "" {
		t.Errorf("hosts had and have (-before +after):\n%s", diff)
	}
}

// traces lists everything on the members that Tailscale or the exporter could have left.
func traces(t *testing.T, w *sandbox.World) []string {
	t.Helper()
	var all []string
	for _, name := range names(t, w) {
		said := printed(t, macOf(t, w, name), "ls -a /Library/LaunchDaemons /Library /usr/local/bin /usr/local/lib/macfleet /usr/local/lib/macfleet/artifacts /etc/macfleet /etc/macfleet/pending /etc/resolver /var/log /var/run 2>&1 | grep -v '^runs$'")
		all = append(all, strings.Split(name+"\n"+said, "\n")...)
	}
	return all
}

// TestTailnetIncidents injects each incident of a host in the tailnet, and compares what is reported and done with docs/incidents.md.
func TestTailnetIncidents(t *testing.T) {
	t.Parallel()
	for _, row := range incidents(t) {
		if !row.ofTailnet {
			continue
		}
		parallel(t, row.name, func(t *testing.T) {
			w, e := converged(t, 4, inTailnet(nodes(2)))
			one, two := members(t, w)[0], members(t, w)[1]
			must(t, w.Inject(one, row.name))
			p := planned(t, e)
			shownAlike(t, p)
			if said := codesOf(p, two); len(said) > 0 {
				t.Errorf("of the other host is reported %q", said)
			}
			kind, _, _ := strings.Cut(row.says, ",")
			// A host that joins again gets another address, which the exporter and the kubelet must use.
			follows := []string{"drift exporter-down", "drift node-ip-not-tailnet"}
			said := codesOf(p, one)
			if want := kind + " " + row.code(); len(said) == 0 || said[0] != want || slices.ContainsFunc(said[1:], func(s string) bool { return !slices.Contains(follows, s) }) {
				t.Errorf("it says %q, want %q", said, want)
			}
			row.after(t, e, one)
			if !strings.HasPrefix(row.does, "repairs") {
				must(t, w.Heal(one, row.name))
				converges(t, e)
			}
			tidyTailnet(t, w, 2)
		})
	}
}

// TestWholeTailnetIncidents: what affects the whole tailnet stops what needs it, and nothing else.
func TestWholeTailnetIncidents(t *testing.T) {
	t.Parallel()
	rows := rowsOf(t, "The whole tailnet")
	if len(rows) != len(sandbox.TailnetAccountIncidents()) {
		t.Errorf("documented are %d incidents, simulated %d", len(rows), len(sandbox.TailnetAccountIncidents()))
	}
	for _, incident := range sandbox.TailnetAccountIncidents() {
		parallel(t, incident.Name, func(t *testing.T) {
			c := inTailnet(nodes(1))
			c.Tailnet.DeviceBudget = 50
			c.Fleets[0].Groups[0].Spec.Power = (&fleet.Spec{Power: &fleet.Power{}}).WithDefaults().Power
			w, _ := converged(t, 4, c)
			first := member(t, w)
			must(t, w.Inject(first, "sleep-enabled"))
			must(t, w.Inject(sandbox.Tailnet, incident.Name))
			c.Fleets[0].Groups[0].Replicas = 2
			e := runTailnet(t, w, c, runNodes(t, w, c), nil)
			r, err := applying(t, t.Context(), e, planned(t, e))
			must(t, err)
			p := planned(t, e)
			text := strings.Join(append(said(p, nil), failed(r)...), "\n")
			for _, h := range p.Hosts {
				text += strings.Join(codesOf(p, h.Name), "\n")
			}
			if !strings.Contains(text, incident.Name) {
				t.Errorf("it says %q", text)
			}
			if left := codesOf(r.After, first); slices.Contains(left, "drift sleep-enabled") {
				t.Errorf("the other step was not repaired: %q", left)
			}
			joined := incident.Name == "magicdns-off"
			if got := len(members(t, w)); joined != (got == 2) {
				t.Errorf("%d members", got)
			}
			must(t, w.Heal(sandbox.Tailnet, incident.Name))
			converges(t, runTailnet(t, w, c, runNodes(t, w, c), nil))
			tidyTailnet(t, w, 2)
		})
	}
}

// members are the names of servers that are in no pool.
func members(t *testing.T, w *sandbox.World) []string {
	t.Helper()
	return slices.DeleteFunc(names(t, w), func(name string) bool { return strings.Contains(name, "pool") })
}

// tailnetScenes are changes of a host in a tailnet: an incident before, and the configuration that is applied.
var tailnetScenes = map[string]struct {
	before, apply func(*fleet.Config) *fleet.Config
	incident      string
	devices       int
}{
	"joins":   {asItIs, inTailnet, "", 1},
	"rejoins": {inTailnet, asItIs, "device-deleted", 1},
	"leaves":  {inTailnet, outOfTailnet, "", 0},
}

func asItIs(c *fleet.Config) *fleet.Config { return c }

// TestTailnetInterrupted interrupts each change anywhere: at each command and tool on the host, and before and behind each request to
// the control server. The next run converges. Then there is no device twice, and no key that still works.
func TestTailnetInterrupted(t *testing.T) {
	t.Parallel()
	scenes, kinds := slices.Sorted(maps.Keys(tailnetScenes)), slices.Sorted(maps.Keys(bakerInterruptions()))
	for _, row := range pairs(t, len(scenes), len(kinds)) {
		name, s := kinds[row[1]], tailnetScenes[scenes[row[0]]]
		parallel(t, scenes[row[0]]+", "+name, func(t *testing.T) {
			c := s.before(hostCore("production", 1))
			before := prepared(t, 3, c)
			w := opened(t, before)
			must(t, w.Tailnet().Add("router")) // a list without any device shows no suffix
			if s.incident != "" {
				must(t, w.Inject(member(t, w), s.incident))
			}
			must(t, w.Close())
			s.apply(c)
			shares := 12 // a join runs hundreds of commands, most of them reads
			if strings.Contains(name, "request") {
				shares = 1
			}
			everywhere(t, 0, shares, func(t *testing.T, n int) bool {
				dir := worldtest.Copied(t, before)
				v := &baker{victim: &victim{dir: dir, world: opened(t, dir)}, line: &lineToGitHub{}, ctx: t.Context()}
				v.engine = runTailnet(t, v.world, c, run(t, v.world, c), func(next http.RoundTripper) http.RoundTripper {
					v.line.next = next
					return v.line
				})
				v.is(t, planned(t, v.engine).Hosts[0].Server.ID)
				fell := v.interrupted(t, n, bakerInterruptions()[name])
				tidyTailnet(t, v.world, s.devices)
				if p := planned(t, v.engine); len(p.Runnable()) > 0 {
					t.Errorf("after %d the next plan has %q", n, codesOf(p, p.Hosts[0].Name))
				}
				return fell
			})
		})
	}
}

// TestDevicesOfOthersStay: of disconnected devices with a name of the fleet and no server, only those with a tag that hosts get are deleted.
func TestDevicesOfOthersStay(t *testing.T) {
	t.Parallel()
	c := inTailnet(hostCore("production", 1))
	w, _ := converged(t, 3, c)
	const gone, others, coming = "acme-production-macos-m2-00000", "acme-production-macos-m2-11111", "acme-production-macos-m2-22222"
	for name, tag := range map[string]string{gone: "tag:macmini", others: "tag:other", coming: "tag:macmini"} {
		must(t, w.Tailnet().Add(name, tag))
		must(t, w.Tailnet().Edit(name, func(d tailnet.Device) *tailnet.Device { d.Connected = false; return &d }))
	}
	e := runTailnet(t, w, c, run(t, w, c), nil)
	must(t, e.Pins.Update(func(all []plan.Pin) []plan.Pin {
		for _, name := range []string{gone, others} { // released servers had these names
			all = append(all, plan.Pin{ServerID: name, Name: name, Key: all[0].Key, Stage: plan.Released})
		}
		return all
	}))
	converges(t, e)
	all, err := w.Tailnet().Devices()
	must(t, err)
	has := func(name string) bool {
		return slices.ContainsFunc(all, func(d tailnet.Device) bool { return d.Name == name })
	}
	if has(gone) || !has(others) || !has(coming) {
		t.Errorf("the tailnet has %+v", all)
	}
}
