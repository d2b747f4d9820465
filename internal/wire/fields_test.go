package wire_test

import (
	"bytes"
	"encoding"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/schematest"
	"github.com/macfleet/macfleet/internal/wire"
	"github.com/macfleet/macfleet/plan"
)

// whole compares values with all their fields, also unexported ones.
var whole = cmp.Exporter(func(reflect.Type) bool { return true })

// filler sets every field that it reaches to a different value.
type filler struct {
	n      int
	absent bool              // observations are unread, each with a reason
	draw   *rand.Rand        // each field has any value, and may be missing; nil: none is
	text   func() string     // what texts are filled with
	left   map[string]string // fields that stay unchanged, by path, and why
	met    map[string]bool   // those that were reached
}

func newFiller(left map[string]string) *filler {
	f := &filler{left: left, met: make(map[string]bool)}
	f.text = func() string { return fmt.Sprintf("text %d", f.n) }
	return f
}

// path is a field's path without indices: Hosts.Server.ID.
func (f *filler) fill(v reflect.Value, path string) {
	f.n++
	switch {
	case v.Type() == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Unix(1_700_000_000+int64(f.upTo(2_000_000_000, f.n)), int64(f.upTo(999_999_999, 0))).UTC()))
		return
	case strings.HasPrefix(v.Type().Name(), "Seen["):
		f.seen(v, path)
		return
	case v.Type() == reflect.TypeFor[plan.Code]():
		inside(v, "name").SetString(fmt.Sprintf("code-%d", f.upTo(9, f.n)))
		return
	case v.Kind() == reflect.Int && v.Type().Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		v.SetInt(int64(1 + f.upTo(3, f.n%4))) // one of few classes
		return
	}
	if v.Type() == reflect.TypeFor[plan.Stage]() {
		v.SetString(string(plan.Wiping))
		return
	}
	switch v.Kind() {
	case reflect.String:
		text := f.text()
		if f.draw != nil && (strings.HasSuffix(path, ".Stdout") || strings.HasSuffix(path, ".Stderr")) {
			text += string([]byte{byte(f.draw.Int()), byte(f.draw.Int())}) // what a host prints may be no UTF-8
		}
		v.SetString(text)
	case reflect.Bool:
		v.SetBool(f.upTo(1, 1) == 1)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(f.upTo(999, f.n)))
	case reflect.Pointer:
		if f.upTo(1, 1) == 1 {
			v.Set(reflect.New(v.Type().Elem()))
			f.fill(v.Elem(), path)
		}
	case reflect.Slice:
		n := f.upTo(2, 2)
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			f.fill(v.Index(i), path)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range f.upTo(2, 2) {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			f.fill(key, path)
			f.fill(value, path)
			v.SetMapIndex(key, value)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			name := strings.TrimPrefix(path+"."+v.Type().Field(i).Name, ".")
			if f.left[name] != "" {
				f.met[name] = true
				continue
			}
			f.fill(v.Field(i), name)
		}
	default:
		panic(fmt.Sprintf("%s is a %s", path, v.Kind()))
	}
}

// upTo draws a number, or returns the one of a filler that draws nothing.
func (f *filler) upTo(most, otherwise int) int {
	if f.draw == nil {
		return otherwise
	}
	return f.draw.IntN(most + 1)
}

// seen fills an observation, whose fields are unexported.
func (f *filler) seen(v reflect.Value, path string) {
	state := 2
	if f.absent {
		state = 0
	}
	switch state = f.upTo(2, state); state {
	case 0:
		f.fill(inside(v, "why"), path)
	case 2:
		f.fill(inside(v, "value"), path)
	}
	inside(v, "state").SetInt(int64(state))
}

// inside returns an unexported field so that it can be set.
func inside(v reflect.Value, name string) reflect.Value {
	field := v.FieldByName(name)
	return reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Elem()
}

func (f *filler) stale(t *testing.T) {
	t.Helper()
	for path := range f.left {
		if !f.met[path] {
			t.Errorf("%s is an exception, and there is no such field", path)
		}
	}
}

// notInRecords are the fields of a snapshot that are in no record, and why.
func notInRecords() map[string]string {
	return map[string]string{"Hosts.Refusals": "the digests of refused passwords stay on the host", "Asked": "it is of one command"}
}

// recorded fills a snapshot, encodes it as a record that follows the schema, and reads the same from it.
func recorded(t interface {
	Helper()
	Fatalf(string, ...any)
}, f *filler) {
	t.Helper()
	var snap plan.Snapshot
	f.fill(reflect.ValueOf(&snap).Elem(), "")
	want := wire.NewRecord(fleet.Owner{Name: "acme", Environment: f.text()}, snap)
	want.MacfleetVersion = f.text()
	content, err := want.Encode()
	if err != nil {
		t.Fatalf("%v", err)
	}
	if err := schematest.Validate("snapshot", content); err != nil {
		t.Fatalf("%v\n%s", err, content)
	}
	got, err := wire.DecodeRecord(content)
	if err != nil {
		t.Fatalf("%v\n%s", err, content)
	}
	if diff := cmp.Diff(want, got, whole, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("decoded (-want +got):\n%s", diff)
	}
	if again, err := got.Encode(); err != nil || !bytes.Equal(content, again) {
		t.Fatalf("encoded twice (%v):\n%s\n%s", err, content, again)
	}
}

// TestEveryFieldOfASnapshotIsRecorded fills all fields, encodes and decodes them.
func TestEveryFieldOfASnapshotIsRecorded(t *testing.T) {
	t.Parallel()
	for _, absent := range []bool{false, true} {
		f := newFiller(notInRecords())
		f.absent = absent
		recorded(t, f)
		f.stale(t)
	}
}

// TestRecordRoundTrip holds for every state of every field, and for any text.
func TestRecordRoundTrip(t *testing.T) {
	t.Parallel()
	text := rapid.StringN(0, 12, 40)
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SliceOfN(text, 3, 9).Draw(t, "texts")
		f := newFiller(notInRecords())
		f.draw = rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		f.text = func() string { return texts[f.draw.IntN(len(texts))] }
		recorded(t, f)
	})
}

// notInPlans are the fields of a plan that are in no document, and why.
func notInPlans() map[string]string {
	const observed = "apply observes it again"
	left := map[string]string{
		"Sizes":                                    "apply counts again, and stores them with the pins",
		"Healthy":                                  "apply counts it again, and no output of plan depends on it",
		"Hosts.Spec":                               "it is in the configuration",
		"Hosts.Node":                               observed,
		"Hosts.Asked":                              "its actions have the reason release-asked",
		"Hosts.Unowned":                            observed,
		"Hosts.Identity":                           observed,
		"Hosts.Join":                               observed,
		"Hosts.Cluster":                            observed,
		"Hosts.MovedFrom":                          observed,
		"Hosts.Pods":                               observed,
		"Hosts.Peers.Seen":                         observed,
		"Hosts.Peers.Works":                        "it is the same for all hosts of a step",
		"Hosts.Former":                             observed,
		"Hosts.Kubelet":                            observed,
		"Orphans.Seen":                             observed,
		"Orphans.Node":                             observed,
		"Hosts.Verified":                           "it is in the markers",
		"Actions.Changes.Fields":                   "its action has the fields of all changes",
		"Actions.Changes.Command":                  "documents hold no commands",
		"Actions.Changes.Guard.Persist":            "documents hold no commands",
		"Actions.Changes.Guard.Restore.Name":       "documents hold no commands",
		"Actions.Changes.Guard.Restore.Script":     "documents hold no commands",
		"Actions.Changes.Guard.Restore.As":         "documents hold no commands",
		"Actions.Changes.Guard.Restore.Args":       "documents hold no commands",
		"Actions.Changes.Delivery.Artifact.Source": "a source may hold a token; the digest counts",
	}
	host := reflect.TypeFor[plan.Host]()
	for i := range host.NumField() {
		if f := host.Field(i); !f.IsExported() {
			left["Hosts."+f.Name] = "only the computation needs it"
		}
	}
	seen := reflect.TypeFor[plan.HostSeen]()
	for i := range seen.NumField() {
		if name := seen.Field(i).Name; !slices.Contains([]string{"Fingerprint", "Pinned"}, name) {
			left["Hosts.Seen."+name] = observed
		}
	}
	return left
}

// TestEveryFieldOfAPlanIsInItsFile fills all fields of a plan, its hosts, actions and
// troubles, and reads its plan file.
func TestEveryFieldOfAPlanIsInItsFile(t *testing.T) {
	t.Parallel()
	f := newFiller(notInPlans())
	var want plan.Plan
	f.fill(reflect.ValueOf(&want).Elem(), "")
	f.stale(t)
	content, err := wire.NewPlanFile(&want).Encode()
	if err != nil {
		t.Fatal(err)
	}
	file, err := wire.DecodePlanFile(content)
	if err != nil {
		t.Fatalf("%v\n%s", err, content)
	}
	if diff := cmp.Diff(&want, file.Plan, whole); diff != "" {
		t.Errorf("decoded (-want +got):\n%s", diff)
	}
	if strings.Contains(string(content), "null") {
		t.Errorf("a list is null:\n%s", content)
	}
}

// TestEveryFieldOfAPlanFile survives, and a reader finds the plan's output.
func TestEveryFieldOfAPlanFile(t *testing.T) {
	t.Parallel()
	f := newFiller(map[string]string{"Document": "it is derived from the plan", "Plan": "another test fills it", "Approves": "it is derived from the digests",
		"OwnedHead.Head.FormatVersion": "another one is not read", "OwnedHead.Configuration": "it is the plan's", "OwnedHead.Environment": "it is the plan's", "SelfDigest": "it is made from the bytes"})
	p := plan.Plan{Owner: fleet.Owner{Name: "acme"}, Actions: []plan.Action{{Kind: plan.RunStep, Host: "one", Step: "power"}}}
	want := wire.NewPlanFile(&p)
	f.fill(reflect.ValueOf(&want).Elem(), "")
	f.stale(t)
	want.Digests = p.Approve().Digests
	content, err := want.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := wire.DecodePlanFile(content)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Actions()) != 1 || !slices.Equal(got.Approves, []string{"host.one.power"}) {
		t.Errorf("it approves %q", got.Approves)
	}
	want.Document.MacfleetVersion = want.MacfleetVersion
	got.Plan, got.SelfDigest, got.Approves = want.Plan, "", nil
	if diff := cmp.Diff(want, got, whole, cmp.Comparer(func(a, b wire.Plan) bool { return a.MacfleetVersion == b.MacfleetVersion })); diff != "" {
		t.Errorf("decoded (-want +got):\n%s", diff)
	}
}

const planted = `planted-<se"cret>-value`

// texts calls a function with every text of a value, also of map keys and unexported
// fields.
func texts(v reflect.Value, path string, say func(path, text string)) {
	switch v.Kind() {
	case reflect.String:
		say(path, v.String())
	case reflect.Pointer:
		if !v.IsNil() {
			texts(v.Elem(), path, say)
		}
	case reflect.Slice:
		for i := range v.Len() {
			texts(v.Index(i), path, say)
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			texts(k, path, say)
			texts(v.MapIndex(k), path, say)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			texts(v.Field(i), path+"."+v.Type().Field(i).Name, say)
		}
	}
}

// TestCleanLeavesNoSecret plants one in every text of an observation.
func TestCleanLeavesNoSecret(t *testing.T) {
	t.Parallel()
	scrub := func(text string) string { return strings.ReplaceAll(text, planted, "<secret>") }
	for _, absent := range []bool{false, true} {
		f := newFiller(map[string]string{})
		f.absent = absent
		f.text = func() string { return fmt.Sprint(f.n, planted) }
		var snap plan.Snapshot
		f.fill(reflect.ValueOf(&snap).Elem(), "")
		found := 0
		texts(reflect.ValueOf(wire.Clean(scrub, snap)), "", func(path, text string) {
			if strings.Contains(text, planted) && !strings.Contains(path, ".Refusals") { // they hold no secret
				t.Errorf("%s still is %s", path, text)
			}
			if strings.Contains(text, "<secret>") {
				found++
			}
		})
		before := 0
		texts(reflect.ValueOf(snap), "", func(_, text string) {
			if strings.Contains(text, planted) {
				before++
			}
		})
		if found < 50 && !absent || before < found {
			t.Errorf("%d of %d texts are clean, and what was given lost none", found, before)
		}
	}
}

// TestCleanTextIsUTF8: only the output of hosts keeps its bytes.
func TestCleanTextIsUTF8(t *testing.T) {
	t.Parallel()
	f := newFiller(map[string]string{})
	f.text = func() string { return fmt.Sprint(f.n, "\xff") }
	var snap plan.Snapshot
	f.fill(reflect.ValueOf(&snap).Elem(), "")
	texts(reflect.ValueOf(wire.Clean(nil, snap)), "", func(path, text string) {
		kept := strings.HasSuffix(path, ".Stdout") || strings.HasSuffix(path, ".Stderr") || strings.Contains(path, ".Refusals")
		if text != "" && utf8.ValidString(text) == kept {
			t.Errorf("%s is %q", path, text)
		}
	})
}

// TestCleanChangesNothingElse, also not the original.
func TestCleanChangesNothingElse(t *testing.T) {
	t.Parallel()
	fill := func() (snap plan.Snapshot) {
		newFiller(map[string]string{}).fill(reflect.ValueOf(&snap).Elem(), "")
		return snap
	}
	given := fill()
	if diff := cmp.Diff(given, wire.Clean(nil, given), whole); diff != "" {
		t.Errorf("cleaned (-want +got):\n%s", diff)
	}
	wire.Clean(func(string) string { return "other" }, given)
	if diff := cmp.Diff(fill(), given, whole); diff != "" {
		t.Errorf("the original (-before +after):\n%s", diff)
	}
	if s := wire.Clean(nil, inventory.Absent[string]()); !s.IsAbsent() {
		t.Errorf("absent became %+v", s)
	}
}
