package plan_test

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/drift"
	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/internal/view"
	"github.com/macfleet/macfleet/internal/wire"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/plan/plantest"
)

// planted is a value that a test looks for; "<" and the quote are escaped by
// some encoders.
const planted = `planted-<se"cret>-value`

// full has a text, which is only the planted value, in every place that can hold
// one: it is filled by reflection, so that a field added later is in it too.
func full(t *testing.T, fill func(reflect.Value)) plan.Snapshot {
	t.Helper()
	seen := plan.HostSeen{Trouble: &plan.Trouble{}, Entered: &plan.Entered{}}
	fill(reflect.ValueOf(&seen).Elem())
	marker := filled[plan.Marker](fill)
	marker.Run, marker.Hold = &plan.MarkerRun{}, &inventory.Hold{Who: planted, Reason: planted}
	fill(reflect.ValueOf(marker.Run).Elem())
	marker.Steps = map[plan.StepID]plan.Digest{planted: {Wanted: planted, Facts: planted}}
	lock, claim := filled[plan.Lock](fill), filled[plan.Claim](fill)
	seen.Serial, seen.OSVersion = inventory.Present(planted), inventory.Unread[string](planted)
	seen.Marker, seen.Claim = inventory.Present(marker), inventory.Present(claim)
	seen.Facts = plan.Facts{planted: inventory.Present(plan.Answer{Stdout: planted, Stderr: planted}),
		"other": inventory.Unread[plan.Answer](planted)}
	unread := plan.HostSeen{Serial: inventory.Unread[string](planted), Marker: inventory.Unread[plan.Marker](planted),
		Claim: inventory.Unread[plan.Claim](planted), OSVersion: inventory.Present(planted)}
	server := filled[inventory.Server](fill)
	node := filled[inventory.Node](fill)
	node.Hold = &inventory.Hold{Who: planted, Reason: planted}
	pin := filled[plan.Pin](fill)
	node.Labels = map[string]string{planted: planted}
	node.Capacity = inventory.Capacity{CPU: 1, Memory: 2, Pods: 3}
	return plan.Snapshot{Servers: []inventory.Server{server}, Nodes: inventory.Present([]inventory.Node{node}), Pins: []plan.Pin{pin},
		Cluster: inventory.Present(fullCluster(fill)), Lock: &lock,
		Hosts: map[string]plan.HostSeen{planted: seen, "id-2": unread}}
}

func filled[T any](fill func(reflect.Value)) (x T) {
	fill(reflect.ValueOf(&x).Elem())
	return x
}

// fullCluster is a cluster of one of each thing.
func fullCluster(fill func(reflect.Value)) inventory.Cluster {
	pod := inventory.Pod{Finalizers: []string{planted}, Due: time.Unix(1794000000, 0).UTC()}
	fill(reflect.ValueOf(&pod).Elem())
	identity := filled[inventory.Identity](fill)
	join := filled[inventory.Join](fill)
	object := filled[inventory.Object](fill)
	machine := filled[inventory.Machine](fill)
	return inventory.Cluster{Pods: inventory.Present([]inventory.Pod{pod}), Identities: inventory.Present([]inventory.Identity{identity}),
		Join: inventory.Present(join), Objects: inventory.Present([]inventory.Object{object}), Machines: inventory.Present([]inventory.Machine{machine})}
}

// plant sets every text field of a struct, and of what it points to.
func plant(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(planted)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		plant(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				plant(v.Field(i))
			}
		}
	}
}

// TestScrubbedSnapshotHoldsNothing plants a known value in every field.
func TestScrubbedSnapshotHoldsNothing(t *testing.T) {
	t.Parallel()
	var s secret.Scrubber
	s.Learn(planted)
	snap := full(t, plant)
	for name, in := range map[string]plan.Snapshot{"all": snap, "unread Nodes": {Nodes: inventory.Unread[[]inventory.Node](planted)},
		"an unread cluster": {Cluster: inventory.Unread[inventory.Cluster](planted)},
		"unread Pods":       {Cluster: inventory.Present(inventory.Cluster{Pods: inventory.Unread[[]inventory.Pod](planted)})}} {
		dirty, err := wire.NewRecord(fleet.Owner{}, in).Encode()
		if err != nil || !strings.Contains(string(dirty), `planted-<se`) {
			t.Fatalf("%s: nothing is planted: %v", name, err)
		}
		content, err := wire.NewRecord(fleet.Owner{}, wire.Clean(s.Scrub, in)).Encode()
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(content), "planted") {
			t.Errorf("%s: the value stayed:\n%s", name, content)
		}
	}
}

// TestScrubbingChangesNothingElse keeps every state of a snapshot without a
// secret.
func TestScrubbingChangesNothingElse(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := drawing{t}.snapshot()
		got := wire.Clean(func(text string) string { return text }, want)
		if diff := cmp.Diff(want, got, whole, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("scrubbed (-want +got):\n%s", diff)
		}
	})
}

// TestScrubbedWorldPlans plants a value in one place of a drawn world: no record
// and no plan of it holds the value, and both agree.
func TestScrubbedWorldPlans(t *testing.T) {
	t.Parallel()
	const value = "SentinelValue0123"
	var s secret.Scrubber
	s.Learn(value)
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		for id, h := range w.hosts {
			w.snap.Hosts[id] = sowHost(t, h, value)
		}
		for i := range w.snap.Servers {
			if rapid.IntRange(0, 3).Draw(t, "server") == 0 {
				w.snap.Servers[i].Name += value
			}
		}
		w.snap = wire.Clean(s.Scrub, w.snap)
		content, err := wire.NewRecord(fleet.Owner{Name: "acme"}, w.snap).Encode()
		if err != nil {
			t.Fatal(err)
		}
		if text := string(content) + shown(t, w.compute()); strings.Contains(text, value) {
			t.Fatalf("the value is in the record or the plan: %s", text)
		}
	})
}

func sowHost(t *rapid.T, h plan.HostSeen, value string) plan.HostSeen {
	switch rapid.IntRange(0, 5).Draw(t, "where") {
	case 0:
		h.Trouble = &plan.Trouble{Code: plantest.Code("unreachable"), Text: "it said " + value, Remedy: "r"}
	case 1:
		h.Facts = facts(value, "a "+value+" b")
	case 2:
		h.Marker = inventory.Unread[plan.Marker]("cat: " + value)
	case 3:
		if m, ok := h.Marker.Get(); ok {
			m.Environment = value
			h.Marker = inventory.Present(m)
		}
	case 4:
		h.Serial, h.OSVersion = inventory.Present(value), inventory.Present("26."+value)
	}
	return h
}

// shown is everything that a plan says, to people and to programs.
func shown(t *rapid.T, p *plan.Plan) string {
	var b bytes.Buffer
	text := view.NewText(&b, 0, false)
	text.Plan(p, view.PlanForm{Full: true})
	text.Plan(p, view.PlanForm{})
	r, err := drift.Of(p, nil, time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	text.Drift(p, r, 2)
	text.Hosts(p, view.HostsOptions{Wide: true})
	if err := errors.Join(wire.Write(&b, wire.PlanOf(p)), view.WriteHosts(&b, p, view.HostsOptions{}), view.WriteDrift(&b, p, r), view.WriteDriftMarkdown(&b, r), view.WriteDriftMetrics(&b, r)); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
