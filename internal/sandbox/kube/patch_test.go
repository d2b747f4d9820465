package kube

import (
	"encoding/json"
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"pgregory.net/rapid"
)

// plain draws an object of plain values, some of them nested.
func plain(depth int) *rapid.Generator[map[string]any] {
	value := rapid.OneOf(
		rapid.Map(rapid.StringMatching(`[a-z]{0,3}`), func(s string) any { return s }),
		rapid.Map(rapid.Int64Range(-9, 9), func(n int64) any { return n }),
		rapid.Map(rapid.Bool(), func(b bool) any { return b }),
		rapid.Map(rapid.SliceOfN(rapid.StringMatching(`[a-c]`), 0, 3), func(list []string) any {
			items := []any{}
			for _, item := range list {
				items = append(items, item)
			}
			return items
		}),
	)
	if depth > 0 {
		value = rapid.OneOf(value, rapid.Map(plain(depth-1), func(m map[string]any) any { return m }))
	}
	return rapid.MapOfN(rapid.StringMatching(`[a-d]`), value, 0, 4)
}

// node draws a Node: its lists of conditions and taints merge by their keys.
func node() *rapid.Generator[*object] {
	text := rapid.StringMatching(`[a-z]{1,2}`)
	return rapid.Custom(func(t *rapid.T) *object {
		o := &object{Object: map[string]any{}}
		o.SetName("acme-01")
		o.SetLabels(rapid.MapOfN(text, text, 0, 3).Draw(t, "labels"))
		o.SetFinalizers(rapid.SliceOfNDistinct(text, 0, 3, rapid.ID).Draw(t, "finalizers"))
		var conditions []any
		for _, kind := range rapid.SliceOfNDistinct(text, 0, 3, rapid.ID).Draw(t, "conditions") {
			conditions = append(conditions, map[string]any{"type": kind, "status": text.Draw(t, "status"), "lastHeartbeatTime": "2026-05-04T10:00:00Z", "lastTransitionTime": "2026-05-04T10:00:00Z"})
		}
		set(o, conditions, "status", "conditions")
		normal, err := newCatalogue().named(nodes).normal(o.Object)
		must(t, err)
		return normal
	})
}

// TestMergePatchLeadsThere creates patches as clients do and checks that they have the expected
// result.
func TestMergePatchLeadsThere(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		from, to := encoded(plain(2).Draw(t, "from")), encoded(plain(2).Draw(t, "to"))
		patch, err := jsonmergepatch.CreateThreeWayJSONMergePatch(from, to, from)
		must(t, err)
		got, err := mergePatched(from, patch)
		must(t, err)
		same(t, got, to)
		again, err := mergePatched(got, patch)
		must(t, err)
		same(t, again, got)
	})
}

func TestStrategicPatchLeadsThere(t *testing.T) {
	t.Parallel()
	k := newCatalogue().named(nodes)
	rapid.Check(t, func(t *rapid.T) {
		from, to := encoded(node().Draw(t, "from").Object), encoded(node().Draw(t, "to").Object)
		patch, err := strategicpatch.CreateTwoWayMergePatch(from, to, k.typed())
		must(t, err)
		got, err := k.patched(types.StrategicMergePatchType, from, patch)
		must(t, err)
		same(t, got, to)
	})
}

// TestJSONPatchTests draws a patch with a test of one finalizer and its removal: if the test fails,
// nothing changes.
func TestJSONPatchTests(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		o := node().Draw(t, "object")
		wanted := rapid.StringMatching(`[a-z]{1,2}`).Draw(t, "finalizer")
		present := o.GetFinalizers()
		patch := encoded([]any{
			map[string]any{"op": "test", "path": "/metadata/finalizers/0", "value": wanted},
			map[string]any{"op": "remove", "path": "/metadata/finalizers/0"},
		})
		got, err := jsonPatched(encoded(o.Object), patch)
		if len(present) == 0 || present[0] != wanted {
			if !errors.IsInvalid(err) {
				t.Fatalf("%v, want 422", err)
			}
			return
		}
		must(t, err)
		content, err := jsonObject(got)
		must(t, err)
		if left := (&object{Object: content}).GetFinalizers(); len(left) != len(present)-1 {
			t.Fatalf("%q is left of %q", left, present)
		}
	})
}

func same(t *rapid.T, got, want []byte) {
	var x, y any
	if json.Unmarshal(got, &x) != nil || json.Unmarshal(want, &y) != nil || !reflect.DeepEqual(x, y) {
		t.Fatalf("got  %s\nwant %s", got, want)
	}
}

// FuzzPatches tries arbitrary patches.
func FuzzPatches(f *testing.F) {
	for _, seed := range []string{`{}`, `null`, `[]`, `{"metadata":{"labels":null}}`, `[{"op":"remove","path":"/spec"}]`, `{"spec":{"$patch":"replace"}}`, `{"status":{"conditions":[{"type":"Ready","$patch":"delete"}]}}`} {
		f.Add([]byte(seed))
	}
	k := newCatalogue().named(nodes)
	original := []byte(`{"apiVersion":"v1","kind":"Node","metadata":{"name":"a","labels":{"x":"y"}},"spec":{"taints":[{"key":"k","effect":"NoSchedule"}]},"status":{"conditions":[{"type":"Ready","status":"True"}]}}`)
	f.Fuzz(func(t *testing.T, patch []byte) {
		for _, form := range []types.PatchType{types.MergePatchType, types.JSONPatchType, types.StrategicMergePatchType} {
			patched, err := k.patched(form, original, patch)
			if err != nil {
				continue
			}
			if content, err := jsonObject(patched); err == nil {
				_, _ = k.normal(content)
			}
		}
	})
}

func must(t rapid.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
