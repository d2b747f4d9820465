package archtest

import (
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
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

// TestOneStepOnePlace counts what a step touches: one field of the
// specification, one file with its scripts, one row of the documentation, and
// its id in no other package.
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
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ids(t) {
		if !listed[id] {
			t.Errorf("steps.For lacks %s", id)
		}
		delete(listed, id)
		if _, err := os.Stat(filepath.Join(root, "steps", string(id)+".go")); err != nil {
			t.Errorf("step %s: %v", id, err)
		}
		if n := strings.Count(string(docs), "\n| `"+string(id)+"` |"); n != 1 {
			t.Errorf("docs/steps.md has %d rows for %s", n, id)
		}
		elsewhere(t, id)
	}
	for id := range listed {
		t.Errorf("steps.For lists %s, which is no field of fleet.Spec", id)
	}
}

// elsewhere finds a step's id as a text in other packages than steps.
func elsewhere(t *testing.T, id plan.StepID) {
	t.Helper()
	for _, s := range sources(t) {
		if s.test || s.name == "steps/"+string(id)+".go" {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING || strings.HasPrefix(s.pkg, "internal/sandbox") || s.pkg == "internal/scriptlint" || s.pkg == "internal/bench" {
				return true // they know tools, which may bear a step's name
			}
			if text, err := strconv.Unquote(lit.Value); err == nil && text == string(id) {
				t.Errorf("%s: the id of step %s belongs into steps/%s.go alone", s.fset.Position(n.Pos()), id, id)
			}
			return true
		})
	}
}

// TestEveryFieldReachesItsStep walks the specification and changes one field at
// a time: what the step wants must change with it, on the first set-up and on
// every later run alike, because one renderer serves both. A field that does
// not say whether it is per host or per fleet is an error too.
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
		if per := f.Tag.Get("per"); per != "fleet" && per != "host" {
			t.Errorf("%s.%s has no per tag", block.Name(), f.Name)
		}
		base, moved := specWith(i, nil), specWith(i, func(v reflect.Value) { disturb(t, at(v).Field(j), f.Tag.Get("default")) })
		if wanted(t, base, step) == wanted(t, moved, step) {
			t.Errorf("%s.%s does not reach the step", block.Name(), f.Name)
		}
	}
}

func specWith(i int, change func(reflect.Value)) fleet.Spec {
	var spec fleet.Spec
	f := reflect.ValueOf(&spec).Elem().Field(i)
	f.Set(reflect.New(f.Type().Elem()))
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
		f.Set(reflect.ValueOf(*stepstest.KubeletArtifact()))
	case reflect.Slice: // of texts, which may have a grammar: a network is a text of all
		f.Set(reflect.ValueOf([]string{"198.51.100.0/24"}))
	default:
		t.Fatalf("teach this test about fields of kind %s", f.Kind())
	}
}

// wanted returns what a step wants by its specification.
func wanted(t *testing.T, spec fleet.Spec, field reflect.StructField) string {
	t.Helper()
	id, _, _ := strings.Cut(field.Tag.Get("hcl"), ",")
	for _, s := range steps.For(fleet.Host{Name: "acme-macos-m2-0a1b2", User: "m1", Spec: spec.WithDefaults()}) {
		if string(s.ID()) == id {
			return s.Wanted()
		}
	}
	t.Fatalf("no step %s", id)
	return ""
}
