package plan_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/wire"
	"github.com/macfleet/macfleet/plan"
)

// TestPlanFromARecord gives the very plan of the observation.
func TestPlanFromARecord(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w, _ := drawComputed(t)
		content := must(wire.NewRecord(w.cfg.Owner, w.snap).Encode())
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
	content := must(r.Encode())
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
