package load

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

func TestOutline(t *testing.T) {
	t.Parallel()
	want := Names{
		Environments: []string{"production", "staging"},
		Fleets:       []string{"macos", "runners"},
		Groups:       []string{"m2", "m4"},
		Types:        []string{"M2-L", "M4-S"},
		Steps:        slices.Sorted(slices.Values(stepNames())),
		Hosts:        []string{"legacy"},
		Variables:    []string{"runners"},
		Artifacts:    []string{"tart"},
	}
	files := map[string]string{
		"a.fleet.hcl": full,
		"b.fleet.hcl": "host \"legacy\" {\n  group = fleet.runners.group.m2\n}\nhost \"not a\\nname\" {}\nhost {}\nartifact \"tart\" {}\n" +
			"locals {\n  broken = = 1\n}\nfleet",
		"c.fleet.hcl": strings.Repeat("a = [", 200),
		"d.hcl":       "fleet \"elsewhere\" {}\n",
	}
	equal(t, "names", want, Outline(directory(files)))
	files["e.fleet.hcl"] = "scaleway {\n  zones = [\"fr-par-3\", \"fr-par-1\", var.zone, upper(\"x\"), \"fr-par-3\"]\n}\n"
	equal(t, "zones", []string{"fr-par-1", "fr-par-3"}, Outline(directory(files)).Zones)
	none := Outline(unreadable{fstest.MapFS{"b.fleet.hcl": {}}})
	equal(t, "names of what cannot be read", Names{Steps: slices.Sorted(slices.Values(stepNames()))}, none)
}
