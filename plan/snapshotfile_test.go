package plan_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/schematest"
	"github.com/macfleet/macfleet/internal/wire"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/plan/plantest"
)

// drawing makes values from rapid.
type drawing struct{ *rapid.T }

// bytes is what a host may print: any text, and bytes that are no UTF-8.
func (d drawing) bytes() string {
	if rapid.IntRange(0, 4).Draw(d.T, "bytes") == 0 {
		return string(rapid.SliceOfN(rapid.Byte(), 0, 12).Draw(d.T, "raw"))
	}
	return d.text()
}

// text is any text that JSON can hold: ids and names, escapes.
func (d drawing) text() string { return rapid.StringN(0, 12, 40).Draw(d.T, "text") }

func (d drawing) bool() bool { return rapid.Bool().Draw(d.T, "bool") }

func (d drawing) times() time.Time {
	return time.Unix(rapid.Int64Range(-60000000000, 200000000000).Draw(d.T, "s"), rapid.Int64Range(0, 999999999).Draw(d.T, "ns")).UTC()
}

func (d drawing) upTo(n int) int { return rapid.IntRange(0, n).Draw(d.T, "n") }

func drawSeen[T any](d drawing, value func() T) inventory.Seen[T] {
	switch d.upTo(3) {
	case 0:
		return inventory.Absent[T]()
	case 1:
		return inventory.Unread[T](d.text())
	}
	return inventory.Present(value())
}

func (d drawing) host() plan.HostSeen {
	h := plan.HostSeen{Path: d.text(), Key: d.text(), Fingerprint: d.text(), Pinned: d.bool(), Root: d.bool(),
		Serial: drawSeen(d, d.text), OSVersion: drawSeen(d, d.text), Marker: drawSeen(d, d.marker),
		Claim: drawSeen(d, func() plan.Claim {
			return plan.Claim{Configuration: d.text(), Environment: d.text(), Name: d.text(), ServerID: d.text(), Nonce: d.text()}
		})}
	if d.upTo(3) == 0 {
		h.Trouble = &plan.Trouble{Code: plantest.Code(d.text()), Text: d.text(), Remedy: d.text()}
	}
	for range d.upTo(2) {
		h.Pending = append(h.Pending, plan.StepID(d.text()))
	}
	if d.upTo(3) == 0 {
		h.Undone = &plan.Undone{Step: plan.StepID(d.text()), At: d.times(), Why: d.text(), Exit: d.upTo(255)}
	}
	if d.upTo(3) == 0 {
		h.Entered = &plan.Entered{ID: d.text(), Who: d.text(), Epoch: int64(d.upTo(9)), At: d.times(), Alone: d.bool(), Held: d.bool(),
			Idle: time.Duration(d.upTo(999)) * time.Second}
	}
	if d.upTo(3) == 0 {
		h.Password = &plan.Password{Source: d.text(), Trouble: &plan.Trouble{Code: plantest.Code(d.text()), Text: d.text(), Remedy: d.text()}}
	}
	for range d.upTo(3) {
		if h.Facts == nil {
			h.Facts = make(plan.Facts)
		}
		h.Facts[d.text()] = drawSeen(d, func() plan.Answer { return plan.Answer{Exit: d.upTo(255), Stdout: d.bytes(), Stderr: d.bytes()} })
	}
	return h
}

func (d drawing) marker() plan.Marker {
	m := plan.Marker{Configuration: d.text(), Environment: d.text(), Name: d.text(), Fleet: d.text(), Group: d.text(),
		ServerID: d.text(), Serial: d.text(), ClusterUID: d.text(), Version: d.text()}
	if d.bool() {
		m.Run = &plan.MarkerRun{ID: d.text(), Epoch: int64(d.upTo(9)), Who: d.text(), At: d.times()}
	}
	for range d.upTo(2) {
		m = m.With(plan.StepID(d.text()), plan.Digest{Wanted: d.text(), Facts: d.text()})
	}
	m.Hold = d.hold(d.text)
	return m
}

// hold is a hold or none.
func (d drawing) hold(text func() string) *inventory.Hold {
	if d.bool() {
		return nil
	}
	return &inventory.Hold{Who: text(), Reason: text(), Since: d.times(), Until: d.times()}
}

func (d drawing) node() inventory.Node {
	n := inventory.Node{LastHeartbeat: d.times(), Name: d.text(), UID: d.text(), ProviderID: d.text(), Ready: inventory.Readiness(d.text()), Cordoned: d.bool(), CordonedBy: d.text(), CordonRun: d.text(),
		Why: d.text(), Capacity: inventory.Capacity{CPU: d.upTo(9), Memory: int64(d.upTo(9)), Pods: d.upTo(9)}}
	for range d.upTo(2) {
		if n.Labels == nil {
			n.Labels = make(map[string]string)
		}
		n.Labels[d.text()] = d.text()
	}
	n.Hold, n.HoldUnread = d.hold(d.text), d.text()
	return n
}

func (d drawing) cluster() inventory.Cluster {
	return inventory.Cluster{
		Pods: drawSeen(d, func() []inventory.Pod { return drawList(d, d.pod) }),
		Identities: drawSeen(d, func() []inventory.Identity {
			return drawList(d, func() inventory.Identity {
				return inventory.Identity{Host: d.text(), ServiceAccount: d.text(), Secret: d.text(), Issued: d.bool(), Bound: d.bool()}
			})
		}),
		Join: drawSeen(d, func() inventory.Join { return inventory.Join{Server: d.text(), CA: d.text()} }),
		Objects: drawSeen(d, func() []inventory.Object {
			return drawList(d, func() inventory.Object {
				return inventory.Object{Kind: d.text(), Namespace: d.text(), Name: d.text(), State: inventory.ObjectState(d.text()), Why: d.text(),
					Prepared: d.bool(), Gates: inventory.Gate(d.text()), Void: d.bool()}
			})
		}),
		Machines: drawSeen(d, func() []inventory.Machine {
			return drawList(d, func() inventory.Machine {
				return inventory.Machine{Namespace: d.text(), Name: d.text(), ProviderID: d.text(), NodeRef: d.text(), Paused: d.bool(),
					Deployment: d.text(), Available: d.bool(), Infrastructure: d.text(), InfrastructurePaused: d.bool(), InfrastructureUnread: d.text()}
			})
		}),
	}
}

func (d drawing) pod() inventory.Pod {
	p := inventory.Pod{Namespace: d.text(), Name: d.text(), UID: d.text(), Node: d.text(), Phase: d.text(), Reason: d.text(), Controller: d.text(),
		Mirror: d.bool(), Finalizers: drawList(d, d.text), Overdue: d.bool()}
	if d.bool() {
		p.Due = d.times()
	}
	return p
}

func drawList[T any](d drawing, value func() T) []T {
	var out []T
	for range d.upTo(2) {
		out = append(out, value())
	}
	return out
}

func (d drawing) snapshot() plan.Snapshot {
	s := plan.Snapshot{Nodes: drawSeen(d, func() []inventory.Node {
		var out []inventory.Node
		for range d.upTo(2) {
			out = append(out, d.node())
		}
		return out
	}), Cluster: drawSeen(d, d.cluster)}
	if d.bool() {
		s.Lock = &plan.Lock{Run: plan.Run{ID: d.text(), Who: d.text(), Epoch: int64(d.upTo(9))}, Since: d.times(), Renewed: d.times(), Alive: d.bool(), Unread: d.text()}
	}
	for range d.upTo(2) {
		s.Servers = append(s.Servers, inventory.Server{ID: d.text(), Name: d.text(), Type: d.text(), Zone: d.text(), Address: d.text(),
			OSFamily: d.text(), Status: d.text(), Delivered: d.bool(), Created: d.times()})
	}
	for range d.upTo(2) {
		s.Pins = append(s.Pins, plan.Pin{ServerID: d.text(), Name: d.text(), Key: d.text(), Since: d.times()})
	}
	for range d.upTo(3) {
		if s.Hosts == nil {
			s.Hosts = make(map[string]plan.HostSeen)
		}
		s.Hosts[d.text()] = d.host()
	}
	return s
}

func (d drawing) record() wire.Record {
	r := wire.NewRecord(fleet.Owner{Name: "acme", Environment: d.text()}, d.snapshot())
	r.MacfleetVersion, r.Taken = d.text(), d.times()
	return r
}

// TestRecordRoundTrip holds for every state of every field.
func TestRecordRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := drawing{t}.record()
		content, err := want.Encode()
		if err != nil {
			t.Fatal(err)
		}
		got, err := wire.DecodeRecord(content)
		if err != nil {
			t.Fatalf("%v\n%s", err, content)
		}
		if diff := cmp.Diff(want, got, whole, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("decoded (-want +got):\n%s", diff)
		}
		again, err := got.Encode()
		if err != nil || !bytes.Equal(content, again) {
			t.Fatalf("encoded twice (%v):\n%s\n%s", err, content, again)
		}
	})
}

// TestRecordFollowsItsSchema checks the written bytes.
func TestRecordFollowsItsSchema(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := drawing{t}.record()
		content, err := r.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if err := schematest.Validate("snapshot", content); err != nil {
			t.Fatalf("%v\n%s", err, content)
		}
	})
}

// TestPlanFromARecord gives the very plan of the observation.
func TestPlanFromARecord(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		for next := plan.Next(w.cfg, w.snap, w.sel); len(next) > 0; next = plan.Next(w.cfg, w.snap, w.sel) {
			for _, s := range next {
				w.snap.Hosts[s.ID] = w.hosts[s.ID]
			}
		}
		content, err := wire.NewRecord(w.cfg.Owner, w.snap).Encode()
		if err != nil {
			t.Fatal(err)
		}
		r, err := wire.DecodeRecord(content)
		if err != nil {
			t.Fatal(err)
		}
		live, err := checked(w, w.snap)
		again, err2 := checked(w, r.Snapshot)
		if (err == nil) != (err2 == nil) {
			t.Fatalf("live: %v, from the record: %v", err, err2)
		}
		if diff := cmp.Diff(live, again, whole, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("the plan (-live +recorded):\n%s", diff)
		}
	})
}

func checked(w *world, snap plan.Snapshot) (*plan.Plan, error) {
	sel, err := plan.CheckLists(w.cfg, snap, w.sel)
	return plan.Compute(w.cfg, w.steps, snap, sel), err
}

func minimal(t testing.TB) string {
	t.Helper()
	r := wire.NewRecord(fleet.Owner{Name: "acme", Environment: "prod"},
		plan.Snapshot{Taken: time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC), Nodes: inventory.Absent[[]inventory.Node](), Hosts: map[string]plan.HostSeen{
			"id-1": {Serial: inventory.Present("C07"), Facts: plan.Facts{"power.get": inventory.Present(plan.Answer{Stdout: "\xff"})}}}})
	content, err := r.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestDecodeRecordRefuses(t *testing.T) {
	t.Parallel()
	good := minimal(t)
	if _, err := wire.DecodeRecord([]byte(good)); err != nil {
		t.Fatal(err)
	}
	// A key of a later version is skipped.
	if _, err := wire.DecodeRecord([]byte(strings.Replace(strings.Replace(good, "{", `{"later": [1],`, 1), `"2.0"`, `"2.7"`, 1))); err != nil {
		t.Errorf("a later minor version: %v", err)
	}
	tests := []struct{ name, content, part string }{
		{"nothing", "", "truncated"},
		{"half", good[:len(good)/2], "truncated"},
		{"more behind it", good + "{}", "data after"},
		{"no JSON", "plan for acme", "invalid character"},
		{"a list", "[]", "JSON array"},
		{"another document", `{"format_version":"2.0","resource_changes":[]}`, "has no configuration"},
		{"no version", `{}`, `format_version ""`},
		{"a later version", strings.Replace(good, `"2.0"`, `"1.0"`, 1), `format_version "1.0", this macfleet reads 2.x`},
		{"a version of another type", strings.Replace(good, `"2.0"`, `1`, 1), "format_version is a JSON number"},
		{"servers of another type", strings.Replace(good, `"servers": []`, `"servers": {}`, 1), "servers is a JSON object"},
		{"no servers", strings.Replace(good, `"servers": [],`, ``, 1), "has no servers"},
		{"no pins", strings.Replace(good, `"pins": [],`, ``, 1), "has no pins"},
		{"a state that there is not", strings.Replace(good, `"absent"`, `"perhaps"`, 1), `state "perhaps"`},
		{"present without a value", strings.Replace(good, `"absent"`, `"present"`, 1), "a value is required"},
		{"a time that is none", strings.Replace(good, "2026-11-21", "2026-31-21", 1), "parsing time"},
		{"bytes that are none", strings.Replace(good, `"/w=="`, `"?"`, 1), "illegal base64"},
		{"bytes of nothing", strings.Replace(good, `"base64"`, `"base32"`, 1), "needs the field base64"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := wire.DecodeRecord([]byte(tt.content))
			if !errors.Is(err, wire.ErrNoSnapshot) || !strings.Contains(err.Error(), tt.part) || !strings.Contains(err.Error(), "record a new one") {
				t.Errorf("error %v, want one with %q and what to do", err, tt.part)
			}
		})
	}
}

func TestRecordCheck(t *testing.T) {
	t.Parallel()
	r := wire.NewRecord(fleet.Owner{Name: "acme", Environment: "prod"}, plan.Snapshot{})
	if err := r.Check(r.OwnedHead.Owner()); err != nil {
		t.Error(err)
	}
	for _, other := range []fleet.Owner{{Name: "acme", Environment: "staging"}, {Name: "globex", Environment: "prod"}, {Name: "acme"}} {
		err := r.Check(other)
		if err == nil || !strings.Contains(err.Error(), `"acme", environment "prod"`) || !strings.Contains(err.Error(), "-e") {
			t.Errorf("%v: %v", other, err)
		}
	}
}

// TestWhatAFileDoesNotSayIsUnread: a key that is missing is never "absent".
func TestWhatAFileDoesNotSayIsUnread(t *testing.T) {
	t.Parallel()
	content := minimal(t)
	for _, key := range []string{"nodes", "cluster", "marker"} {
		content = strings.Replace(content, `"`+key+`"`, `"later"`, 1)
	}
	r, err := wire.DecodeRecord([]byte(content))
	if err != nil || !r.Nodes.IsUnread() || !r.Cluster.IsUnread() || !r.Hosts["id-1"].Marker.IsUnread() {
		t.Errorf("%v: %+v", err, r)
	}
}

func TestEncodeRefusesTimesThatAreNone(t *testing.T) {
	t.Parallel()
	s := plan.Snapshot{Pins: []plan.Pin{{Since: time.Date(12026, 1, 1, 0, 0, 0, 0, time.UTC)}}}
	if content, err := wire.NewRecord(fleet.Owner{}, s).Encode(); err == nil {
		t.Errorf("encoded %s", content)
	}
}

// FuzzDecodeRecord never panics, and what it reads it writes and reads again.
func FuzzDecodeRecord(f *testing.F) {
	f.Add([]byte(minimal(f)))
	f.Add([]byte(`{"format_version":"2.0","configuration":"a","servers":[null],"nodes":{"state":"present","value":[null]},"pins":[],"hosts":{"x":null}}`))
	f.Add([]byte(`{"format_version":"2.0","taken":"2026-11-21T10:00:00+02:00"}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		r, err := wire.DecodeRecord(content)
		if err != nil {
			if !errors.Is(err, wire.ErrNoSnapshot) {
				t.Fatalf("%v is not ErrNoSnapshot", err)
			}
			return
		}
		text, err := r.Encode()
		if err != nil {
			t.Fatalf("read and not written: %v", err)
		}
		again, err := wire.DecodeRecord(text)
		if err != nil {
			t.Fatalf("written and not read: %v\n%s", err, text)
		}
		if diff := cmp.Diff(r, again, whole, cmpopts.EquateEmpty(), cmp.Comparer(time.Time.Equal)); diff != "" {
			t.Fatal(diff)
		}
		// Whatever a file says, a plan of it is made or refused, without a panic.
		w := newWorld(1, 1, 1)
		_, _ = plan.CheckLists(w.cfg, r.Snapshot, w.sel)
		_ = plan.GapsOf(w.cfg, w.steps, r.Snapshot, w.sel)
		plan.Compute(w.cfg, w.steps, r.Snapshot, w.sel).Summarise()
	})
}
