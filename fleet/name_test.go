package fleet_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/macfleet/macfleet/fleet"
)

var (
	acme       = fleet.Owner{Name: "acme"}
	production = fleet.Owner{Name: "acme", Environment: "prod"}
)

func TestParse(t *testing.T) {
	t.Parallel()
	place := func(f, g, s string) *fleet.Place { return &fleet.Place{Fleet: f, Group: g, Suffix: s} }
	for _, tc := range []struct {
		owner fleet.Owner
		name  string
		want  *fleet.Place // nil: not owned
	}{
		{acme, "acme-macos-m2-0a1b2", place("macos", "m2", "0a1b2")},
		{production, "acme-prod-macos-m2-0a1b2", place("macos", "m2", "0a1b2")},
		{fleet.Owner{Name: "a-c-me", Environment: "p-r"}, "a-c-me-p-r-1-2-00000", place("1", "2", "00000")},
		{fleet.Owner{Name: "acme--x"}, "acme--x-macos-m2-0a1b2", place("macos", "m2", "0a1b2")},
		// A fleet may be called like an environment of another owner.
		{acme, "acme-prod-m2-0a1b2", place("prod", "m2", "0a1b2")},
		{production, "acme-prod-m2-0a1b2", nil},
		{acme, "acme-prod-macos-m2-0a1b2", nil},
		{production, "acme-macos-m2-0a1b2", nil},
		{fleet.Owner{}, "-macos-m2-0a1b2", place("macos", "m2", "0a1b2")},
	} {
		got, ok := tc.owner.Parse(tc.name)
		if ok != (tc.want != nil) || ok && got != *tc.want || !ok && got != (fleet.Place{}) {
			t.Errorf("%s: Parse(%q) = %+v, %t, want %+v", tc.owner, tc.name, got, ok, tc.want)
		}
	}
	for _, name := range []string{"bacme-macos-m2-0a1b2", "acm-macos-m2-0a1b2", "macos-m2-0a1b2", "-macos-m2-0a1b2", "acme-m2-0a1b2", "acme-macos--0a1b2", "acme--m2-0a1b2",
		"acme-macos-m2-", "acme-macos-m2", "acme-macos-m2-0a1b", "acme-macos-m2-0a1", "acme-macos-m2-0a1b23", "acme-macos-m2-0a1bg", "acme-macos-m2-0A1B2", "acme-Macos-m2-0a1b2",
		"acme-macos-M2-0a1b2", "Acme-macos-m2-0a1b2", "acme-mac_os-m2-0a1b2", "acme-macos-m.2-0a1b2", "acme-macos-m2-0a1b2\n", "acme-macos-m2\n-0a1b2",
		" acme-macos-m2-0a1b2", "acme-macos-mü-0a1b2", "acme", "---", ""} {
		if got, ok := acme.Parse(name); ok || got != (fleet.Place{}) {
			t.Errorf("acme: Parse(%q) = %+v, %t", name, got, ok)
		}
	}
	if got := acme.HostName("macos", "m2", "0A1"); got != "acme-macos-m2-0a1" { // which Parse does not own
		t.Errorf("a short id gives %q", got)
	}
}

func TestCheckParts(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct{ owner, part bool }{
		"acme": {true, true}, "a": {true, true}, "0": {true, true}, "m2": {true, true},
		"acme-mac": {true, false}, "a--b": {true, false},
		"": {}, "-": {}, "-a": {}, "a-": {}, "Acme": {}, "a_b": {}, "a.b": {}, "a b": {}, "ä": {}, "a\n": {}, "\na": {}, "a\x00": {},
	} {
		if got := fleet.CheckText("owner", text) == ""; got != want.owner {
			t.Errorf("%q as an owner accepts: %t", text, got)
		}
		if got := fleet.CheckText("part", text) == ""; got != want.part {
			t.Errorf("%q as a part accepts: %t", text, got)
		}
	}
}

// owners draws owners that are easily mistaken for each other.
func owners() *rapid.Generator[fleet.Owner] {
	part := rapid.SampledFrom([]string{"acme", "prod", "acme-prod", "a", "a-a", "a--a", "m2", "0a1b2"})
	return rapid.Custom(func(t *rapid.T) fleet.Owner {
		o := fleet.Owner{Name: part.Draw(t, "name")}
		if rapid.Bool().Draw(t, "environments") {
			o.Environment = part.Draw(t, "environment")
		}
		return o
	})
}

func parts() *rapid.Generator[string] {
	return rapid.OneOf(rapid.SampledFrom([]string{"prod", "a", "m2", "0a1b2", "acme", "pool"}), rapid.StringMatching(`[a-z0-9]{1,6}`))
}

func serverIDs() *rapid.Generator[string] {
	return rapid.StringMatching(`[0-9a-fA-F]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
}

func TestParseReadsWhatHostNameWrites(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		o, f, g, id := owners().Draw(t, "owner"), parts().Draw(t, "fleet"), parts().Draw(t, "group"), serverIDs().Draw(t, "id")
		name := o.HostName(f, g, id)
		got, ok := o.Parse(name)
		want := fleet.Place{Fleet: f, Group: g, Suffix: strings.ToLower(id[:fleet.SuffixLength])}
		if !ok || got != want {
			t.Fatalf("%s: Parse(%q) = %+v, %t; want %+v", o, name, got, ok, want)
		}
	})
}

func TestNoOwnerOwnsAnothersName(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := owners().Draw(t, "a"), owners().Draw(t, "b")
		name := a.HostName(parts().Draw(t, "fleet"), parts().Draw(t, "group"), serverIDs().Draw(t, "id"))
		_, owned := b.Parse(name)
		if owned != (a.String() == b.String()) {
			t.Fatalf("%q of %q: %q owns it: %t", name, a, b, owned)
		}
	})
}

// TestWhatParsesIsWhole: a name that is owned is exactly the owner, two parts
// and a suffix, in lower case; nothing else parses, whatever its bytes.
func TestWhatParsesIsWhole(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		o := owners().Draw(t, "owner")
		name := o.HostName(parts().Draw(t, "fleet"), parts().Draw(t, "group"), serverIDs().Draw(t, "id"))
		cut := rapid.IntRange(0, len(name)).Draw(t, "cut")
		end := rapid.IntRange(cut, min(len(name), cut+3)).Draw(t, "end")
		name = name[:cut] + rapid.OneOf(rapid.StringMatching(`[a-zA-Z0-9-]{0,4}`), rapid.String()).Draw(t, "insert") + name[end:]
		p, ok := o.Parse(name)
		if !ok {
			return
		}
		if want := strings.Join([]string{o.String(), p.Fleet, p.Group, p.Suffix}, "-"); name != want {
			t.Fatalf("Parse(%q) = %+v, which is %q", name, p, want)
		}
		if name != strings.ToLower(name) || fleet.CheckText("part", p.Fleet) != "" || fleet.CheckText("part", p.Group) != "" || len(p.Suffix) != fleet.SuffixLength {
			t.Fatalf("Parse(%q) = %+v", name, p)
		}
	})
}

func TestPoolConflict(t *testing.T) {
	t.Parallel()
	const every = "every server of"
	for want, prefixes := range map[string][]string{ // part of the answer; "": no conflict
		"": {"acme-pool-", "pool-acme-prod-", "acme-prod_", "ACME-PROD-",
			"acme-prod-pool-m2-free-",  // four parts after the owner
			"acme-prod-pool-m2-0a1b2-", // the same with a suffix in the middle
			"acme-prod-pool-m2-free",   // no suffix begins like this
			"acme-prod-pool-m2-0a1b23", // a suffix has five characters
			"acme-prod--",              // no fleet is empty
			"acme-prod-pool--", "acme-prod-Pool"},
		every:                       {"", "a", "acme-", "acme-prod", "acme-prod-"},
		`"acme-prod-p-x-0a1b2"`:     {"acme-prod-p"},
		`"acme-prod-pool-x-0a1b2"`:  {"acme-prod-pool", "acme-prod-pool-"},
		`"acme-prod-pool-m2-0a1b2"`: {"acme-prod-pool-m2", "acme-prod-pool-m2-"},
		`"acme-prod-pool-m2-feeb2"`: {"acme-prod-pool-m2-fee"},
		`"acme-prod-pool-m2-feed5"`: {"acme-prod-pool-m2-feed5"},
	} {
		for _, prefix := range prefixes {
			if got := production.PoolConflict(prefix); (got == "") != (want == "") || !strings.Contains(got, want) {
				t.Errorf("PoolConflict(%q) = %q, want %q in it", prefix, got, want)
			}
		}
	}
	if got := acme.PoolConflict("acme-pool-"); !strings.Contains(got, `"acme-pool-x-0a1b2"`) {
		t.Errorf("without an environment: %q", got)
	}
}

// TestPoolConflictIsExact draws prefixes next to and inside owned names. Where
// no conflict is seen, no owned name may have the prefix; where one is seen,
// some owned name has it, which the answer shows.
func TestPoolConflictIsExact(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		o := owners().Draw(t, "owner")
		name := o.HostName(parts().Draw(t, "fleet"), parts().Draw(t, "group"), serverIDs().Draw(t, "id"))
		prefix := name[:rapid.IntRange(0, len(name)).Draw(t, "length")]
		prefix += rapid.StringMatching(`([a-zA-F0-9_-]{1,3})?`).Draw(t, "more")
		rest := rapid.OneOf(rapid.StringMatching(`[a-z0-9]{0,4}(-[a-z0-9]{0,4}){0,2}-?[0-9a-f]{0,5}`), rapid.Just(strings.TrimPrefix(name, prefix))).Draw(t, "rest")
		why := o.PoolConflict(prefix)
		if at, owned := o.Parse(prefix + rest); owned && why == "" {
			t.Fatalf("%s: no conflict with %q, and %q is owned: %+v", o, prefix, prefix+rest, at)
		}
		if strings.HasPrefix(name, prefix) && why == "" {
			t.Fatalf("%s: no conflict with %q, and the owned name %q has it", o, prefix, name)
		}
		if why != "" && !hasWitness(o, prefix, why) {
			t.Fatalf("%s: a conflict with %q is seen without an owned name: %s", o, prefix, why)
		}
	})
}

// hasWitness reports whether some owned name has the prefix: the one that the answer names, or any where the prefix ends inside the owner.
func hasWitness(o fleet.Owner, prefix, why string) bool {
	if strings.HasPrefix(o.String()+"-", prefix) {
		return true
	}
	var shown string
	if _, err := fmt.Sscanf(why[strings.LastIndex(why, " ")+1:], "%q", &shown); err != nil {
		return false
	}
	_, owned := o.Parse(shown)
	return owned && strings.HasPrefix(shown, prefix)
}

func TestConfigGroup(t *testing.T) {
	t.Parallel()
	cfg := fleet.Config{Fleets: []fleet.Fleet{
		{Name: "macos", Groups: []fleet.Group{{Name: "m2", Replicas: 1}, {Name: "m4", Replicas: 2}}},
		{Name: "runners", Groups: []fleet.Group{{Name: "m2", Replicas: 3}}},
	}}
	for _, tc := range []struct {
		fleet, group string
		replicas     int
		ok           bool
	}{{"macos", "m4", 2, true}, {"runners", "m2", 3, true}, {"runners", "m4", 0, false}, {"", "", 0, false}} {
		f, g, ok := cfg.Group(tc.fleet, tc.group)
		if ok != tc.ok || g.Replicas != tc.replicas || ok && (f.Name != tc.fleet || g.Name != tc.group) {
			t.Errorf("Group(%q, %q) = %q, %+v, %t", tc.fleet, tc.group, f.Name, g, ok)
		}
	}
}
