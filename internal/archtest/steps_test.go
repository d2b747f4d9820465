package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps"
	"github.com/macfleet/macfleet/steps/stepstest"
)

// ids returns the steps that exist, by the fields of the specification.
func ids(t *testing.T) []plan.StepID {
	t.Helper()
	var out []plan.StepID
	spec := reflect.TypeFor[fleet.Spec]()
	for i := range spec.NumField() {
		name, kind, _ := strings.Cut(spec.Field(i).Tag.Get("hcl"), ",")
		if kind != "block" {
			t.Errorf("fleet.Spec.%s is not a block", spec.Field(i).Name)
		}
		out = append(out, plan.StepID(name))
	}
	return out
}

// packageOf returns the package of a step with more than one file.
func packageOf(id plan.StepID) string { return "steps/" + strings.ReplaceAll(string(id), "_", "") }

// TestOneStepOnePlace counts what a step touches: one field of the
// specification, one file with its scripts or one package, one row of the
// documentation, and its id in no other package.
func TestOneStepOnePlace(t *testing.T) {
	t.Parallel()
	listed := make(map[plan.StepID]bool)
	for _, s := range steps.For(fleet.Host{}) {
		if listed[s.ID()] {
			t.Errorf("steps.For lists %s twice", s.ID())
		}
		listed[s.ID()] = true
	}
	docs, err := os.ReadFile(filepath.Join(root, "docs", "steps.md"))
	must(t, err)
	for _, id := range ids(t) {
		if !listed[id] {
			t.Errorf("steps.For lacks %s", id)
		}
		delete(listed, id)
		_, file := os.Stat(filepath.Join(root, "steps", string(id)+".go"))
		if _, folder := os.Stat(filepath.Join(root, packageOf(id))); (file == nil) == (folder == nil) {
			t.Errorf("step %s needs either its own file or its own package: %v, %v", id, file, folder)
		}
		if n := strings.Count(string(docs), "\n| `"+string(id)+"` |"); n != 1 {
			t.Errorf("docs/steps.md has %d rows for %s", n, id)
		}
		elsewhere(t, id)
	}
	for id := range listed {
		t.Errorf("steps.For lists %s, which is not a field of fleet.Spec", id)
	}
}

// elsewhere finds a step's id as a text in other packages than steps.
func elsewhere(t *testing.T, id plan.StepID) {
	t.Helper()
	for _, s := range sources(t) {
		if s.Test || s.Name == "steps/"+string(id)+".go" || s.Pkg == packageOf(id) {
			continue
		}
		ast.Inspect(s.AST, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING || strings.HasPrefix(s.Pkg, "internal/sandbox") || s.Pkg == "internal/scriptlint" || s.Pkg == "internal/bench" {
				return true // they name tools, which may be called like a step
			}
			if text, err := strconv.Unquote(lit.Value); err == nil && text == string(id) && !vendorName(text, s.Pkg) {
				t.Errorf("%s: the id of step %s belongs into its own file or package", s.Set.Position(n.Pos()), id)
			}
			return true
		})
	}
}

// vendorName reports whether a text that is also the id of a step is a vendor, a program or the path to a host there.
func vendorName(text, pkg string) bool {
	return text == "tailscale" && slices.Contains([]string{"hosts", "hosts/tailnet", "fleet/load", "internal/app", "internal/artifact"}, pkg)
}

// TestEveryFieldReachesItsStep walks the specification and changes one field at
// a time: the step's desired state must change with it, and its findings too, both on an
// untouched Mac and on one that has the other value. A field must also say whether it is
// per host or per fleet.
func TestEveryFieldReachesItsStep(t *testing.T) {
	t.Parallel()
	spec := reflect.TypeFor[fleet.Spec]()
	for i := range spec.NumField() {
		field := spec.Field(i)
		t.Run(field.Name, func(t *testing.T) {
			t.Parallel()
			reaches(t, field, i, field.Type.Elem(), func(block reflect.Value) reflect.Value { return block })
		})
	}
	host := reflect.TypeFor[fleet.Host]()
	for i := range host.NumField() {
		if f := host.Field(i); f.Name != "Spec" && f.Tag.Get("per") == "" {
			t.Errorf("fleet.Host.%s has no per tag", f.Name)
		}
	}
}

// reaches changes each field of a block of the i-th step, and of the blocks in it.
func reaches(t *testing.T, step reflect.StructField, i int, block reflect.Type, at func(reflect.Value) reflect.Value) {
	t.Helper()
	for j := range block.NumField() {
		f := block.Field(j)
		if _, kind, _ := strings.Cut(f.Tag.Get("hcl"), ","); kind == "block" {
			reaches(t, step, i, f.Type.Elem(), func(v reflect.Value) reflect.Value {
				inner := at(v).Field(j)
				inner.Set(reflect.New(f.Type.Elem()))
				return inner.Elem()
			})
			continue
		}
		switch f.Tag.Get("per") {
		case "run":
			continue // hosts are not compared with it
		case "fleet", "host":
		default:
			t.Errorf("%s.%s has no per tag", block.Name(), f.Name)
		}
		base, moved := specWith(i, nil), specWith(i, func(v reflect.Value) { disturb(t, at(v).Field(j), f.Tag.Get("default")) })
		before, after := stepWith(t, base, step), stepWith(t, moved, step)
		if before.Wanted() == after.Wanted() {
			t.Errorf("%s.%s does not reach what the step wants", block.Name(), f.Name)
		}
		for what, facts := range map[string]plan.Facts{"untouched": stepstest.FactoryFacts(), "settled": stepstest.SettledFacts(hostName)} {
			was, is := before.Diff(stepstest.View(hostWith(base), facts)), after.Diff(stepstest.View(hostWith(moved), facts))
			if summary(was) == summary(is) {
				t.Errorf("%s.%s does not reach what the step finds on a Mac that is %s", block.Name(), f.Name, what)
			}
			if what == "settled" && len(was.Changes)+len(was.Unread) > 0 {
				t.Errorf("%s is not settled: %+v", step.Name, was)
			}
		}
	}
}

func specWith(i int, change func(reflect.Value)) fleet.Spec {
	var spec fleet.Spec
	f := reflect.ValueOf(&spec).Elem().Field(i)
	f.Set(reflect.New(f.Type().Elem()))
	if spec.Tart != nil {
		spec.Tart.Artifact = stepstest.TartArtifact()
	}
	if spec.TartKubelet != nil {
		spec.TartKubelet.Artifact = stepstest.KubeletArtifact()
	}
	if spec.GithubRunner != nil {
		spec.GithubRunner = stepstest.GithubRunner()
	}
	if spec.Tailscale != nil {
		spec.Tailscale.Artifact = stepstest.TailscaleArtifact()
	}
	if spec.NodeExporter != nil {
		spec.NodeExporter.Artifact = stepstest.ExporterArtifact()
	}
	if change != nil {
		change(f.Elem())
	}
	return spec
}

// disturb sets a field to something that is no default.
func disturb(t *testing.T, f reflect.Value, standard string) {
	t.Helper()
	if f.Kind() == reflect.Pointer {
		f.Set(reflect.New(f.Type().Elem()))
		f = f.Elem()
	}
	switch f.Kind() {
	case reflect.Int:
		f.SetInt(77)
	case reflect.Bool:
		f.SetBool(standard != "true")
	case reflect.String:
		f.SetString("77Mi") // of the quantities that are among the texts
	case reflect.Map: // of labels
		f.Set(reflect.ValueOf(map[string]string{"acme.io/moved": "yes"}))
	case reflect.Struct: // an artifact
		other := *stepstest.KubeletArtifact()
		other.Version, other.SHA256 = "9.9.9", stepstest.OlderSHA()
		f.Set(reflect.ValueOf(other))
	case reflect.Slice: // of texts, which may have a grammar: a network is a text of all
		f.Set(reflect.ValueOf([]string{"198.51.100.0/24"}))
	default:
		t.Fatalf("teach this test about fields of kind %s", f.Kind())
	}
}

const hostName = stepstest.Name

func hostWith(spec fleet.Spec) fleet.Host {
	return fleet.Host{Name: hostName, User: "m1", Spec: spec.WithDefaults(), Tailnet: stepstest.TailnetBlock()}
}

// stepWith returns the step of a field of the specification.
func stepWith(t *testing.T, spec fleet.Spec, field reflect.StructField) plan.Step {
	t.Helper()
	id, _, _ := strings.Cut(field.Tag.Get("hcl"), ",")
	return stepstest.StepOf(t, plan.StepID(id), hostWith(spec))
}

// summary prints what a finding says and does.
func summary(f plan.Finding) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s%v %v\n", f.Facts, f.Refused, f.Warnings)
	for _, c := range f.Changes {
		fmt.Fprintf(&b, "%s %q %v %+v\n", c.Command.Name, c.Command.Args, c.Fields, c.Guard)
	}
	return b.String()
}
