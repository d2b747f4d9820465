package load

import (
	"fmt"
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/macfleet/macfleet/fleet"
)

func drawPower(t *rapid.T, label string) *fleet.Power {
	if !rapid.Bool().Draw(t, label) {
		return nil
	}
	number := rapid.Ptr(rapid.IntRange(0, 100), true)
	return &fleet.Power{
		Sleep:                 number.Draw(t, label+" sleep"),
		DisplaySleep:          number.Draw(t, label+" display"),
		AutoLogout:            number.Draw(t, label+" logout"),
		RestartAfterPowerLoss: rapid.Ptr(rapid.Bool(), true).Draw(t, label+" restart"),
	}
}

func drawSpec(t *rapid.T, label string) fleet.Spec {
	s := fleet.Spec{Power: drawPower(t, label)}
	if rapid.Bool().Draw(t, label+" hostname") {
		s.Hostname = &fleet.Hostname{}
	}
	return s
}

func TestMergeProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := drawSpec(t, "a"), drawSpec(t, "b"), drawSpec(t, "c")
		laws := map[string][2]fleet.Spec{
			"idempotent":   {merge(a, a), a},
			"again":        {merge(merge(a, b), b), merge(a, b)},
			"nothing":      {merge(a, fleet.Spec{}), a},
			"from nothing": {merge(fleet.Spec{}, a), a},
			"associative":  {merge(merge(a, b), c), merge(a, merge(b, c))},
		}
		for law, sides := range laws {
			equal(t, law, sides[0], sides[1])
		}
	})
}

// lines writes what of a power block is set.
func lines(p *fleet.Power) (all []string) {
	for _, v := range (fleet.Spec{Power: p}).Values() {
		if name, inside := strings.CutPrefix(v.Path, "power."); inside && v.Text != "null" {
			all = append(all, name+" = "+v.Text)
		}
	}
	return all
}

// written writes a block with its lines and inner blocks in any order.
func written(t *rapid.T, head string, items []string) string {
	return head + " {\n" + strings.Join(rapid.Permutation(items).Draw(t, head), "\n") + "\n}\n"
}

// TestOrderAndSplit writes one configuration twice, with all in another order
// and over other files, and reads the same but for the order of the fleets.
func TestOrderAndSplit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		specs := drawSpecs(t)
		first, second := drawDirectory(t, specs), drawDirectory(t, specs)
		r, other := mustLoad(t, directory(first), Options{}), mustLoad(t, directory(second), Options{})
		byName := func(c *fleet.Config) {
			sort.Slice(c.Fleets, func(i, j int) bool { return c.Fleets[i].Name < c.Fleets[j].Name })
			sort.Slice(c.Hosts, func(i, j int) bool { return c.Hosts[i].Name < c.Hosts[j].Name })
		}
		byName(r.Config)
		byName(other.Config)
		equal(t, fmt.Sprintf("%v\n%v", first, second), r.Config, other.Config, withoutLines)
		want := merge(merge(inheritedBy(specs, "a"), specs["a"]), specs["a group"]).WithBuiltIn().WithDefaults()
		equal(t, "merged", want, r.Config.Fleets[0].Groups[0].Spec)
		for _, h := range r.Config.Hosts {
			_, g, _ := r.Config.Group(h.Fleet, h.Group)
			equal(t, "merged for "+h.Name, merge(g.Spec, specs[h.Name]).WithBuiltIn().WithDefaults(), h.Spec)
		}
		if len(r.Config.Hosts) != 2 {
			t.Fatalf("hosts = %v", r.Config.Hosts)
		}
	})
}

// withoutLines compares all of a source but its place.
var withoutLines = cmp.Transformer("levels", func(s fleet.Sources) map[string]fleet.Level {
	levels := map[string]fleet.Level{}
	for path, at := range s {
		levels[path] = at.Level
	}
	return levels
})

// The hosts of a drawn directory: one is adopted, one overrides.
const (
	adoptedHost    = "legacy-01"
	overriddenHost = "acme-b-g-8f1c2"
)

func drawSpecs(t *rapid.T) map[string]fleet.Spec {
	specs := map[string]fleet.Spec{}
	for _, name := range []string{"defaults", "a", "b", "a group", "b group", adoptedHost, overriddenHost} {
		specs[name] = drawSpec(t, name)
	}
	if specs[overriddenHost] == (fleet.Spec{}) { // it would say nothing
		specs[overriddenHost] = fleet.Spec{Hostname: &fleet.Hostname{}}
	}
	possible := specs["defaults"].Power != nil && specs["a"].Power == nil && specs["a group"].Power == nil
	if possible && rapid.Bool().Draw(t, "a disables") {
		specs["a disables"] = fleet.Spec{Power: &fleet.Power{}}
	}
	return specs
}

// inheritedBy returns what a fleet has of the defaults.
func inheritedBy(specs map[string]fleet.Spec, name string) fleet.Spec {
	s := specs["defaults"]
	if specs[name+" disables"].Power != nil {
		s.Power = nil
	}
	return s
}

func drawDirectory(t *rapid.T, specs map[string]fleet.Spec) map[string]string {
	steps := func(name string) []string {
		var all []string
		if s := specs[name]; s.Power != nil {
			all = append(all, written(t, "power", lines(s.Power)))
		}
		if specs[name].Hostname != nil {
			all = append(all, "hostname {}\n")
		}
		return all
	}
	blocks := []string{
		written(t, "macfleet", []string{`name = "acme"`}),
		written(t, "scaleway", []string{`zones = ["fr-par-1"]`, `pool_prefix = "pool-"`}),
		written(t, "ssh", []string{`private_key = secret("env://KEY")`, `user = local.user`}),
		written(t, "locals", []string{`user = "${local.stem}1"`, `unused = local.user`}),
		written(t, "locals", []string{`stem = "m"`}),
		written(t, "defaults", append(steps("defaults"), `os = "Tahoe"`)),
	}
	for _, name := range []string{"a", "b"} {
		group := written(t, `group "g"`, append(steps(name+" group"), `type = "M2-L"`, "replicas = 1"))
		items := append(steps(name), group)
		if specs[name+" disables"].Power != nil {
			items = append(items, `disable = ["power"]`)
		}
		blocks = append(blocks, written(t, fmt.Sprintf("fleet %q", name), items))
	}
	blocks = append(blocks,
		written(t, fmt.Sprintf("host %q", adoptedHost), append(steps(adoptedHost), `server_id = "0a1b2c3d-0000-4000-8000-000000000001"`, "group = fleet.a.group.g")),
		written(t, fmt.Sprintf("host %q", overriddenHost), steps(overriddenHost)))
	files := map[string]string{}
	for _, block := range rapid.Permutation(blocks).Draw(t, "blocks") {
		name := rapid.SampledFrom([]string{"a.fleet.hcl", "b.fleet.hcl", "c.fleet.hcl"}).Draw(t, "file")
		files[name] += block
	}
	return files
}
