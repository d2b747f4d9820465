package load

import (
	"reflect"
	"slices"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"pgregory.net/rapid"

	"github.com/macfleet/macfleet/fleet"
)

// TestLeavesShowWhatIsWritten: a field must distinguish an unset value from a written one, or merging and the noted sources disagree.
func TestLeavesShowWhatIsWritten(t *testing.T) {
	t.Parallel()
	var walk func(reflect.Type, string)
	walk = func(typ reflect.Type, path string) {
		sh := shapeOf("", typ)
		for _, m := range sh.members {
			switch f := typ.FieldByIndex(m.index); {
			case m.block:
				walk(m.typ, path+m.name+".")
			case !slices.Contains([]reflect.Kind{reflect.Pointer, reflect.Slice, reflect.Map}, f.Type.Kind()):
				t.Errorf("%s%s is a %s: make it a pointer, so that a written zero counts", path, m.name, f.Type)
			}
		}
	}
	walk(reflect.TypeFor[fleet.Spec](), "")
}

func parsed(t interface{ Fatal(...any) }, name string, content []byte) *hclsyntax.Body {
	file, diags := hclsyntax.ParseConfig(content, name, hcl.InitialPos)
	body, ok := file.Body.(*hclsyntax.Body)
	if diags.HasErrors() || !ok {
		t.Fatal(diags)
	}
	return body
}

// find returns what is written at a source: the path within its level's block, and the value.
func find(t *rapid.T, files map[string]string, at fleet.Source) (path, value string) {
	headers := map[fleet.Level]string{fleet.InDefaults: "defaults", fleet.InFleet: "fleet", fleet.InGroup: "group", fleet.InHost: "host"}
	text := []byte(files[at.File])
	var visit func(body *hclsyntax.Body, prefix string, level bool)
	visit = func(body *hclsyntax.Body, prefix string, level bool) {
		for name, attr := range body.Attributes {
			if level && attr.NameRange.Start.Line == at.Line {
				path, value = prefix+name, string(attr.Expr.Range().SliceBytes(text))
			}
		}
		for _, b := range body.Blocks {
			switch {
			case !level || b.Type == "group":
				visit(b.Body, "", b.Type == headers[at.Level])
			case b.DefRange().Start.Line == at.Line:
				path = prefix + b.Type
				fallthrough
			default:
				visit(b.Body, prefix+b.Type+".", true)
			}
		}
	}
	visit(parsed(t, at.File, text), "", false)
	return path, value
}

// Whatever the four levels set: each value is the one written where its source says, and a value without a source is built in.
func TestSourcesProperty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		specs := drawSpecs(t)
		files := drawDirectory(t, specs)
		r := mustLoad(t, directory(files), Options{})
		for _, f := range r.Config.Fleets {
			g := f.Groups[0]
			levels := map[fleet.Level]fleet.Spec{fleet.InDefaults: inheritedBy(specs, f.Name), fleet.InFleet: specs[f.Name], fleet.InGroup: specs[f.Name+" group"]}
			checkSources(t, files, g.Spec, g.Sources, levels)
			for _, h := range r.Config.Hosts {
				if h.Fleet == f.Name {
					levels[fleet.InHost] = specs[h.Name]
					checkSources(t, files, h.Spec, h.Sources, levels)
				}
			}
		}
	})
}

func checkSources(t *rapid.T, files map[string]string, spec fleet.Spec, sources fleet.Sources, levels map[fleet.Level]fleet.Spec) {
	builtIn := map[string]string{}
	for _, v := range (fleet.Spec{Hostname: &fleet.Hostname{}, Power: &fleet.Power{}}).WithDefaults().Values() {
		builtIn[v.Path] = v.Text
	}
	order := []fleet.Level{fleet.InHost, fleet.InGroup, fleet.InFleet, fleet.InDefaults}
	seen := map[string]bool{"os": true, "type": true, "replicas": true}
	for _, v := range spec.Values() {
		seen[v.Path] = true
		want := fleet.BuiltIn
		for _, level := range order {
			if writes(levels[level], v.Path) {
				want = level
				break
			}
		}
		at := sources.Of(v.Path)
		if at.Level != want {
			t.Fatalf("%s comes from %s, want %s\n%v", v.Path, at.Level, want, files)
		}
		if at.Level == fleet.BuiltIn {
			if v.Text != builtIn[v.Path] {
				t.Fatalf("%s = %s, want the built in %s", v.Path, v.Text, builtIn[v.Path])
			}
			continue
		}
		if path, value := find(t, files, at); path != v.Path || value != v.Text {
			t.Fatalf("%s = %s comes from %s, where %s = %s is written\n%s", v.Path, v.Text, at, path, value, files[at.File])
		}
	}
	for _, path := range []string{"os", "type", "replicas"} {
		if sources.Of(path).Level == fleet.BuiltIn {
			t.Fatalf("%s has no source", path)
		}
	}
	for path, at := range sources {
		if !seen[path] {
			t.Fatalf("%s has the source %s and no value", path, at)
		}
		if got, _ := find(t, files, at); got != path {
			t.Fatalf("%s comes from %s, where %s is written", path, at, got)
		}
	}
}

// writes reports whether a specification sets the value of a path. Values of what is not set are null.
func writes(spec fleet.Spec, path string) bool {
	return slices.ContainsFunc(spec.Values(), func(v fleet.Value) bool { return v.Path == path && v.Text != "null" })
}
