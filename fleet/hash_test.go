package fleet_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet"
)

// filled makes a value of a type with one of everything in it.
func filled(t *testing.T, of reflect.Type) reflect.Value {
	t.Helper()
	v := reflect.New(of).Elem()
	switch of.Kind() {
	case reflect.String:
		v.SetString("a")
	case reflect.Bool:
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	case reflect.Pointer:
		v.Set(reflect.New(of.Elem()))
		v.Elem().Set(filled(t, of.Elem()))
	case reflect.Slice:
		v.Set(reflect.Append(v, filled(t, of.Elem())))
	case reflect.Map:
		v.Set(reflect.MakeMap(of))
		v.SetMapIndex(reflect.ValueOf("a").Convert(of.Key()), filled(t, of.Elem()))
	case reflect.Array: // of false
	case reflect.Struct:
		for i := range of.NumField() {
			if of.Field(i).Type == reflect.TypeFor[[]fleet.Ignore]() {
				continue // TestHash checks them
			}
			v.Field(i).Set(filled(t, of.Field(i).Type))
		}
	default:
		t.Fatalf("a configuration holds a %s", of)
	}
	return v
}

// each calls do after every single change of a value, and undoes it.
func each(v reflect.Value, path string, do func(path string)) {
	old := reflect.New(v.Type()).Elem()
	old.Set(v)
	changed := func(to reflect.Value) {
		v.Set(to)
		do(path)
		v.Set(old)
	}
	switch v.Kind() {
	case reflect.String:
		changed(reflect.ValueOf(v.String() + "b").Convert(v.Type()))
	case reflect.Bool:
		changed(reflect.ValueOf(!v.Bool()))
	case reflect.Int, reflect.Int64:
		changed(reflect.ValueOf(v.Int() + 1).Convert(v.Type()))
	case reflect.Pointer:
		changed(reflect.Zero(v.Type()))
		each(v.Elem(), path, do)
	case reflect.Slice:
		changed(reflect.Zero(v.Type()))
		changed(reflect.AppendSlice(v, v))
		each(v.Index(0), path+"[]", do)
	case reflect.Array:
		for i := range v.Len() {
			each(v.Index(i), fmt.Sprintf("%s[%d]", path, i), do)
		}
	case reflect.Map:
		changed(reflect.Zero(v.Type()))
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.Type != reflect.TypeFor[fleet.Sources]() && f.Type != reflect.TypeFor[[]fleet.Ignore]() {
				each(v.Field(i), path+"."+f.Name, do)
			}
		}
	}
}

// TestHashDependsOnEveryValue changes the values of a configuration one at a time.
func TestHashDependsOnEveryValue(t *testing.T) {
	t.Parallel()
	c := filled(t, reflect.TypeFor[fleet.Config]()).Interface().(fleet.Config)
	first := c.Hash()
	seen := map[string]string{first: "unchanged"}
	n := 0
	each(reflect.ValueOf(&c).Elem(), "Config", func(path string) {
		n++
		if other, twice := seen[c.Hash()]; twice {
			t.Errorf("%s: the hash is that of %s", path, other)
		}
		seen[c.Hash()] = path
	})
	if n < 50 || c.Hash() != first {
		t.Errorf("%d changes were tried; the hash of the configuration itself is %s, then %s", n, first, c.Hash())
	}
}

func TestHash(t *testing.T) {
	t.Parallel()
	base := func() *fleet.Config {
		return &fleet.Config{Owner: fleet.Owner{Name: "acme", Environment: "production"}, SSH: fleet.SSH{User: "m1", Timeouts: fleet.Timeouts{Dial: time.Second}},
			Fleets: []fleet.Fleet{{Name: "macos", Groups: []fleet.Group{{Name: "m2", Replicas: 2}}}}}
	}
	// The text is in plan files that another process reads.
	const want = "sha256:"
	if got := base().Hash(); got != base().Hash() || len(got) != len(want)+64 || got[:len(want)] != want {
		t.Errorf("hash %s", got)
	}
	same := base() // the lines of values do not count, and a plan stays approved when an alarm is ignored
	same.Fleets[0].Groups[0].Sources = fleet.Sources{"type": {Level: fleet.InGroup, File: "a.fleet.hcl", Line: 7}}
	same.Ignores = []fleet.Ignore{{Name: "x"}}
	if same.Hash() != base().Hash() {
		t.Error("a line or an ignored alarm counts")
	}
	a, b := base(), base()
	a.Fleets[0].Name, a.Fleets[0].OS = "ab", "c"
	b.Fleets[0].Name, b.Fleets[0].OS = "a", "bc"
	if a.Hash() == b.Hash() {
		t.Error("two texts run into one another")
	}
}
