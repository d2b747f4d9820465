package view_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/lipgloss"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/schematest"
	"github.com/macfleet/macfleet/internal/view"
	"github.com/macfleet/macfleet/internal/wire"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/plan/plantest"
	"github.com/macfleet/macfleet/steps"
)

var update = flag.Bool("update", false, "write the golden files")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func numbered(n int, name string) inventory.Server {
	return inventory.Server{ID: fmt.Sprintf("0000%d-x", n), Name: name, Type: "M2-L", Zone: "fr-par-1", Address: fmt.Sprintf("198.51.100.%d", n)}
}

func member(n int, of string) plan.Host {
	name := fmt.Sprintf("acme-production-%s-m2-0000%d", of, n)
	return plan.Host{Name: name, Fleet: of, Group: "m2", Server: numbered(n, name), Member: true, Converged: plan.Converged,
		Seen: plan.HostSeen{Path: "public", Pinned: true, Root: true, OSVersion: inventory.Present("26.3")}}
}

func power(h plan.Host) plan.Action {
	return plan.Action{Kind: plan.RunStep, Host: h.Name, Fleet: h.Fleet, Group: h.Group, ServerID: h.Server.ID, Step: "power",
		Reason: plan.Reason{Code: plantest.Code("sleep-enabled"), Text: "sleep: 10 min"}, Origin: plan.Origin{Drift: true},
		Fields: []plan.Field{{Name: "sleep", Before: "10 min", After: "never"}},
		Changes: []plan.Change{{Reason: plan.Reason{Code: plantest.Code("sleep-enabled")}, Command: plan.Command{Name: "power-set-sleep", As: plan.Root,
			Script: "pmset -a sleep \"$1\"\n", Args: []string{"0"}}}}}
}

// everything is a plan with one of each thing that can be shown.
func everything() *plan.Plan {
	claimed := plan.Host{Name: "acme-production-macos-m2-00001", Fleet: "macos", Group: "m2", Server: numbered(1, "acme-pool-01"),
		Seen: plan.HostSeen{Fingerprint: "SHA256:abc", Root: true}, Converged: plan.Differs}
	two, three, four, five := member(2, "runners"), member(3, "runners"), member(4, "runners"), member(5, "runners")
	six, seven := member(6, "runners"), member(7, "runners")
	three.Seen.Path = "public (tailscale: no address)"
	two.Converged, three.Converged, six.Converged = plan.Differs, plan.Differs, plan.Differs
	four.Unknown = &plan.Trouble{Code: plantest.Code("unreachable"), Text: "dial tcp 198.51.100.4:22: connect: no route to host", Remedy: "see whether the machine runs"}
	five.Refused = &plan.Trouble{Code: plantest.Code("foreign-marker"), Text: "its marker says that it is x of globex-staging", Remedy: "find out whose host it is"}
	seven.Unread = []plan.StepUnread{{Step: "power", Unread: plan.Unread{Probe: "power.settings", Why: "pmset said something new", Bytes: "Sleep: no\x1b[31m\n"}}}
	seven.Converged, four.Converged, five.Converged = plan.NotCompared, plan.NotCompared, plan.Differs
	release := plan.Action{Kind: plan.ReleaseServer, Host: six.Name, Fleet: "runners", Group: "m2", ServerID: six.Server.ID, Disruption: plan.Wipe,
		Reason: plan.Reason{Code: plantest.Code("too-many-replicas"), Text: "runners.m2 wants 5"}, Origin: plan.Origin{Pending: true},
		Refusal: &plan.Trouble{Code: plantest.Code("release-unsafe"), Text: "it is unknown what runs on its host", Remedy: "bring the host back"}}
	claim := plan.Action{Kind: plan.ClaimServer, Host: claimed.Name, Fleet: "macos", Group: "m2", ServerID: claimed.Server.ID,
		Reason: plan.Reason{Code: plantest.Code("too-few-replicas"), Text: "macos.m2 wants 2"}, Origin: plan.Origin{Pending: true},
		Fields: []plan.Field{{Name: "name", Before: "acme-pool-01", After: claimed.Name}}}
	return &plan.Plan{Owner: fleet.Owner{Name: "acme", Environment: "production"}, Fleets: []string{"macos", "runners", "builders"},
		Hosts:     []plan.Host{claimed, two, three, four, five, six, seven},
		Actions:   []plan.Action{claim, power(two), power(three), release},
		Shortages: []plan.Shortage{{Fleet: "macos", Group: "m2", Type: "M2-L", OS: "Tahoe", Missing: 1, Trouble: plan.Trouble{Code: plantest.Code("pool-too-small"), Text: "the pool has no more", Remedy: "order one"}}},
		Rejected:  []plan.Rejected{{Server: numbered(8, "acme-pool-08"), Trouble: plan.Trouble{Code: plantest.Code("server-not-ready"), Text: "Scaleway says status locked", Remedy: "wait"}}},
		Strays:    []inventory.Server{numbered(9, "someones-mac")},
		Orphans: []plan.Orphan{{Name: "acme-production-web-m2-0000b", Fleet: "web", Group: "m2", Server: numbered(11, "acme-production-web-m2-0000b"),
			Witness: "name", Ready: "True", Pods: new(2), Seen: plan.HostSeen{OSVersion: inventory.Present("26.3")},
			Trouble: plan.Trouble{Code: plantest.Code("orphaned-member"), Text: `the fleet "web" is not in the configuration any more`, Remedy: "write it again"}}},
		Lost:    []plan.Lost{{Name: "acme-production-builders-m2-0000a", Fleet: "builders", Trouble: plan.Trouble{Code: plantest.Code("server-vanished"), Text: "it is not in the inventory", Remedy: "macfleet hosts forget-key acme-production-builders-m2-0000a"}}},
		Cluster: true}
}

// limited makes a plan one of a selection.
func limited(p *plan.Plan) *plan.Plan {
	p.Narrowed, p.On, p.Steps, p.LeftOut, p.Cluster = true, []string{"fleet=runners"}, []plan.StepID{"power"}, 11, true
	return p
}

// silent is a plan without a difference, in which most hosts could not be contacted.
func silent() *plan.Plan {
	p := &plan.Plan{Owner: fleet.Owner{Name: "acme", Environment: "production"}, Fleets: []string{"runners"}}
	for n := range 9 {
		h := member(n+1, "runners")
		if n > 2 {
			h.Unknown = &plan.Trouble{Code: plantest.Code("unreachable"), Text: "dial tcp 198.51.100.4:22: connect: no route to host"}
			h.Converged = plan.NotCompared
		}
		p.Hosts = append(p.Hosts, h)
	}
	return p
}

// joining is a plan of hosts that become Nodes, with one of each thing that is done
// in a cluster.
func joining() *plan.Plan {
	kubelet := fleet.Artifact{Name: "tart_kubelet", Version: "0.5.0", SHA256: strings.Repeat("5", 64), Size: 24 << 20, Fetch: fleet.FetchPush}
	tart := fleet.Artifact{Name: "tart", Version: "2.32.1", SHA256: strings.Repeat("7", 64), Size: 61_000_000, Fetch: fleet.FetchHost}
	p := &plan.Plan{Owner: fleet.Owner{Name: "acme", Environment: "production"}, Fleets: []string{"builders", "runners"}, Cluster: true,
		Unread: []plan.Unread{{Probe: "cluster.join", Why: "kube-public/cluster-info does not exist"}}}
	objects := []inventory.Object{{Kind: "Secret", Namespace: "default", Name: "acme-kubeconfig", State: inventory.ObjectMissing, Why: "it does not exist"},
		{Kind: "ClusterRole", Name: "macfleet-tart-kubelet", State: inventory.ObjectDiffers, Why: "rules", Prepared: true}}
	p.Actions = []plan.Action{{Kind: plan.KeepObject, Object: &objects[0], Reason: plan.Reason{Code: plantest.Code("object-missing"), Text: "it does not exist"}, Origin: plan.Origin{Pending: true}},
		{Kind: plan.KeepObject, Object: &objects[1], Reason: plan.Reason{Code: plantest.Code("object-differs"), Text: "rules"}, Origin: plan.Origin{Drift: true},
			Refusal: &plan.Trouble{Code: plantest.Code("cluster-not-prepared"), Text: "the ClusterRole is not as this version wants it: rules", Remedy: "let an administrator of the cluster run: macfleet init cluster"}}}
	for n := 1; n <= 4; n++ {
		h := member(n, map[bool]string{true: "builders", false: "runners"}[n == 1])
		h.Spec.Spec.TartKubelet = &fleet.TartKubelet{}
		h.Converged, h.Pods = plan.Differs, inventory.Present([]inventory.Pod{{Name: "a", Reason: inventory.CreateFailed}})
		h.Node = inventory.Present(inventory.Node{Name: h.Name, Ready: inventory.Ready})
		act := func(k plan.Kind, code, text string) plan.Action {
			return plan.Action{Kind: k, Host: h.Name, Fleet: h.Fleet, Group: h.Group, ServerID: h.Server.ID, Reason: plan.Reason{Code: plantest.Code(code), Text: text}, Origin: plan.Origin{Drift: true}}
		}
		step := act(plan.RunStep, "kubelet-outdated", "the kubelet is 0.4.0")
		step.Step, step.Disruption = "tart_kubelet", plan.Restart
		step.Fields = []plan.Field{{Name: "version", Before: "0.4.0 (444444444444)", After: "0.5.0 (555555555555)"}}
		step.Changes = []plan.Change{{Fields: step.Fields, Disruption: plan.Restart, Delivery: &plan.Delivery{Artifact: kubelet, Space: 48 << 20, Free: inventory.Present(int64(n) * 95e9)}}}
		switch n {
		case 1:
			for _, vm := range []string{"tahoe-xcode-26-1-base-image-that-was-baked-on-the-machine-last-night", "sequoia-base"} {
				step.Fields = append(step.Fields, plan.Field{Name: "virtual machine " + vm, Before: "kept", After: "deleted by the garbage collection"})
			}
			step.Changes = append(step.Changes, plan.Change{Delivery: &plan.Delivery{Artifact: tart, Space: 200_000_000}})
			identity := act(plan.IdentifyHost, "identity-missing", "the cluster does not know its kubelet yet")
			identity.Fields = []plan.Field{{Name: "ServiceAccount", After: "present"}, {Name: "token", After: "present"}, {Name: "binding", After: "present"}}
			node := act(plan.ReplaceNode, "different-provider-id", "the Node says that it is another server")
			node.Disruption = plan.Restart
			node.Fields = []plan.Field{{Name: "provider id", Before: "scw-applesilicon://fr-par-1/another", After: h.Server.ProviderID()}}
			p.Actions = append(p.Actions, identity, node, step)
		default:
			pods := act(plan.ReleasePods, "stuck-terminating-pods", "3 Pods should be gone, and only the kubelet's finalizer keeps them")
			for i := range 3 {
				pods.Pods = append(pods.Pods, inventory.Pod{Namespace: "ci", Name: fmt.Sprintf("pod-%d-%02d", n, i)})
			}
			id := act(plan.SetProviderID, "empty-provider-id", "the Node does not say which server it is")
			id.Fields = []plan.Field{{Name: "provider id", After: h.Server.ProviderID()}}
			p.Actions = append(p.Actions, step, id, pods)
		}
		h.Warnings = []plan.StepWarning{{Trouble: plan.Trouble{Code: plantest.Code("tart-create-failed"), Text: "the virtual machines of 1 Pod could not be made", Remedy: "look at " + h.Name}}}
		p.Hosts = append(p.Hosts, h)
	}
	return p
}

// nodes is what the steps themselves plan for two fleets of nine hosts that join a
// cluster. Each host has its own arguments, and a fleet is one block even so.
func nodes() *plan.Plan {
	cfg, _, snap := plantest.Joining(18)
	return plan.Compute(cfg, steps.For, snap, plan.Selection{})
}

// crashing shows a roll after which two of four kubelets do not run though their Nodes
// still say Ready, one has just been started, and another could not be brought the
// new one.
func crashing(v *view.Text) {
	p := joining()
	p.Unread, p.Actions = nil, nil
	loop := plan.Kubelet{Fault: plan.Reason{Code: plan.CodeKubeletCrashLoop, Text: "crash-looping: 14 starts, last exit code 1"}}
	heard := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	for i, k := range []plan.Kubelet{loop, loop, {Started: heard.Add(time.Second)}, {Started: heard.Add(-time.Hour)}} {
		h := &p.Hosts[i]
		h.Warnings, h.Converged = nil, plan.Converged
		h.Node = inventory.Present(inventory.Node{Name: h.Name, ProviderID: h.Server.ProviderID(), Ready: inventory.Ready, LastHeartbeat: heard})
		h.Kubelet = inventory.Present(k)
	}
	step := plan.Action{Kind: plan.RunStep, Host: p.Hosts[3].Name, ServerID: p.Hosts[3].Server.ID, Step: "tart_kubelet"}
	lost, loops := step, step
	loops.Host, loops.ServerID = p.Hosts[0].Name, p.Hosts[0].Server.ID
	showApplied(v, engine.Result{Done: 2, After: p, Failures: []engine.Failure{
		{Action: loops, OfNode: true, Err: errors.New("tart_kubelet-run failed with exit code 70: tart-kubelet does not stay up"),
			Remedy: "read /var/log/tart-kubelet.log on the host; macfleet apply --rollback --on name=" + loops.Host + " --step tart_kubelet brings back 0.4.0, which the host has kept"},
		{Action: lost, OfNode: true, Err: errors.New("the connection broke")}}})
	v.Hosts(p, narrow)
}

func clean() *plan.Plan {
	return &plan.Plan{Owner: fleet.Owner{Name: "acme"}, Fleets: []string{"runners"}, Hosts: []plan.Host{member(2, "runners"), member(3, "runners")}}
}

// waited is a run that was stopped while Nodes were waited for.
func waited() engine.Result {
	h := member(2, "runners")
	return engine.Result{Done: 4, NotWaited: 2, Interrupted: true, After: joining(), Failures: []engine.Failure{
		{Action: joining().Actions[0], Err: errors.New("the api server is away")},
		{Action: plan.Action{Kind: plan.AwaitNode, Host: h.Name}, Err: &plan.Trouble{Code: plantest.Code("node-not-ready"),
			Text: "its Node is not Ready after 5m0s: the cluster has no Node of that name; on the host: tart_kubelet: kubelet-crash-loop: crash-looping: 2 starts, last exit code 2", Remedy: "kubectl describe node " + h.Name}}}}
}

// TestDocument keeps documents whole but for the drift in them, which repeats what is
// among the changes.
func TestDocument(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]*plan.Plan{"plan.json": everything(), "joining.json": joining()} {
		var b bytes.Buffer
		must(t, wire.Write(&b, wire.PlanOf(p)))
		if err := schematest.Validate("plan", b.Bytes()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var d wire.Plan
		must(t, json.Unmarshal(b.Bytes(), &d))
		drifted := slices.DeleteFunc(slices.Clone(d.ResourceChanges), func(c wire.Action) bool { return !c.Drift })
		if diff := cmp.Diff(drifted, d.ResourceDrift, cmp.Exporter(func(reflect.Type) bool { return true })); diff != "" {
			t.Errorf("%s: the drift is not that of the changes:\n%s", name, diff)
		}
		rest, _ := without(t, b.Bytes(), "resource_drift")
		golden(t, name, rest)
	}
	var b bytes.Buffer
	must(t, view.WriteHosts(&b, joining(), narrow))
	golden(t, "joininghosts.json", b.String())
}

func TestStream(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	at := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	s := view.NewStream(&b, func() time.Time { return at })
	s.Plan(everything())
	a := power(member(2, "runners"))
	s.Event(engine.Event{Type: engine.Started, Host: a.Host, Action: &a})
	s.Event(engine.Event{Type: engine.Failed, Host: a.Host, Action: &a, Err: errors.New("exit 1"), Seconds: 1})
	s.Event(engine.Event{Type: engine.Sending, Host: a.Host, Artifact: "tart_kubelet", Bytes: 12 << 20, Size: 24 << 20})
	w := plan.Action{Kind: plan.AwaitNode, Host: a.Host}
	s.Event(engine.Event{Type: engine.Waiting, Host: a.Host, Action: &w})
	s.Event(engine.Event{Type: engine.NodeReady, Host: a.Host, Action: &w, Seconds: 12})
	o := joining().Actions[0]
	s.Event(engine.Event{Type: engine.Started, Action: &o})
	s.Outcome(engine.Result{Done: 3, Failures: []engine.Failure{{Action: a, Err: errors.New("exit 1")}}, After: everything()})
	golden(t, "stream.jsonl", b.String())
}

// TestOnlyWholePiecesAreWiderThanTheTerminal holds for any text: no word is lost or broken, and what is wider than the
// terminal has its own line.
func TestOnlyWholePiecesAreWiderThanTheTerminal(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.IntRange(20, 200).Draw(t, "width")
		text := rapid.StringMatching(`((macfleet apply --on name=)?[a-zé→ ]{1,90} ?){1,8}`).Draw(t, "text")
		var b bytes.Buffer
		view.NewText(&b, width, false).Say(text)
		for line := range strings.Lines(b.String()) {
			if w := lipgloss.Width(strings.TrimSuffix(line, "\n")); w > width && len(view.Pieces(line)) > 1 {
				t.Fatalf("%d columns in %q", w, line)
			}
		}
		if diff := cmp.Diff(strings.Fields(text), strings.Fields(b.String())); diff != "" {
			t.Fatalf("other words:\n%s", diff)
		}
	})
}

// TestCommandsStayWhole: a command that a person copies stays on one line.
func TestCommandsStayWhole(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"fix: macfleet apply --on name=fba75":          {"fix:", "macfleet apply --on name=fba75"},
		"macfleet plan shows what is left":             {"macfleet plan", "shows", "what", "is", "left"},
		"run macfleet lock release --force x1, then y": {"run", "macfleet lock release --force x1,", "then", "y"},
		`macfleet hold fba75 --reason 'a disk' to go`:  {"macfleet hold fba75 --reason 'a disk'", "to", "go"},
		"kubectl describe node NAME, and read it":      {"kubectl describe node NAME,", "and", "read", "it"},
		"sudo rm ~/.macfleet/refused on the host":      {"sudo rm ~/.macfleet/refused", "on", "the", "host"},
		"macfleet": {"macfleet"},
	} {
		if diff := cmp.Diff(want, view.Pieces(text)); diff != "" {
			t.Errorf("%s:\n%s", text, diff)
		}
	}
}

// TestColour keeps the precedence of what switches colours on and off.
func TestColour(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		terminal bool
		env      string
		want     bool
	}{
		{true, "", true}, {false, "", false},
		{true, "NO_COLOR=1 FORCE_COLOR=1", false}, {false, "FORCE_COLOR=1", true}, {true, "FORCE_COLOR=0", false},
		{false, "CLICOLOR_FORCE=1 CLICOLOR=0", true}, {true, "CLICOLOR=0", false}, {true, "TERM=dumb", false}, {false, "TERM=dumb FORCE_COLOR=3", true},
	} {
		env := make(map[string]string)
		for _, pair := range strings.Fields(c.env) {
			name, value, _ := strings.Cut(pair, "=")
			env[name] = value
		}
		equal(t, view.Colour(c.terminal, func(name string) string { return env[name] }), c.want, "terminal", c.terminal, c.env)
	}
}

// TestPrintable: characters that move the cursor, reverse the line or are invisible are
// escaped.
func TestPrintable(t *testing.T) {
	t.Parallel()
	say := func(text string) string {
		var b bytes.Buffer
		view.NewText(&b, 0, false).Say(text)
		return strings.TrimSuffix(b.String(), "\n")
	}
	for text, want := range map[string]string{
		"a plain 'name' → é":    "a plain 'name' → é",
		"\x1b[31m\ttab\r\n":     `\x1b[31m\ttab\r\n`,
		"acme\u202egnp.exe":     `acme\u202egnp.exe`,
		"ac\u200bme\ufeff":      `ac\u200bme\ufeff`,
		"no\u00a0break\u2028":   `no\u00a0break\u2028`,
		"caf\xe9 \x9b2J":        `caf\xe9 \x9b2J`,
		"\ufffd is visible":     "\ufffd is visible",
		"tag \U000e0041 hidden": `tag \U000e0041 hidden`,
	} {
		equal(t, say(text), want, text, "became")
	}
	rapid.Check(t, func(t *rapid.T) {
		got := say(string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")) + rapid.String().Draw(t, "text"))
		if !utf8.ValidString(got) || strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Fatalf("it lets %q through", got)
		}
	})
}

// TestTableMeasuresWhatItShows: a name with a control character is longer on the
// screen than in memory.
func TestTableMeasuresWhatItShows(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	view.NewText(&b, 0, false).Table([][]string{{"NAME", "TYPE"}, {"a\x1bb", "M2-L"}, {"acme", "M2-L"}})
	want := "NAME    TYPE\na\\x1bb  M2-L\nacme    M2-L\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
}

// TestNarrowTable drops columns in the order given before it wraps the last one.
func TestNarrowTable(t *testing.T) {
	t.Parallel()
	rows := [][]string{{"NAME", "ZONE", "TYPE", "WHY"}, {"acme", "fr-par-1", "M2-L", "it sleeps after ten minutes, and should never sleep"}}
	for width, want := range map[int]string{
		60: "NAME  ZONE      TYPE  WHY\nacme  fr-par-1  M2-L  it sleeps after ten minutes, and\n                      should never sleep\n",
		44: "NAME  TYPE  WHY\nacme  M2-L  it sleeps after ten minutes, and\n            should never sleep\n",
		34: "NAME  WHY\nacme  it sleeps after ten minutes,\n      and should never sleep\n",
	} {
		var b bytes.Buffer
		view.NewText(&b, width, false).Table(rows, "ZONE", "TYPE")
		if diff := cmp.Diff(want, b.String()); diff != "" {
			t.Errorf("%d columns:\n%s", width, diff)
		}
	}
}

// must ends the test at the first error.
func must(t testing.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func equal[T comparable](t testing.TB, got, want T, what ...any) {
	t.Helper()
	if got != want {
		t.Errorf("%v\n got %#v\nwant %#v", what, got, want)
	}
}

func has(t testing.TB, text, part string, what ...any) {
	t.Helper()
	if !strings.Contains(text, part) {
		t.Errorf("%v: %q is not in\n%s", what, part, text)
	}
}
