package load

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/macfleet/macfleet/fleet"
)

// The steps are known by reflection alone: a new field of fleet.Spec needs no
// change here.

// stepNames returns the ids of all steps in the order of fleet.Spec.
func stepNames() []string { return shapeOf("", reflect.TypeFor[fleet.Spec]()).names() }

// stepOf returns the id of the step whose block is a T.
func stepOf[T any]() string {
	blocks := shapeOf("", reflect.TypeFor[fleet.Spec]()).blocks
	return blocks[slices.IndexFunc(blocks, func(n nested) bool { return n.typ == reflect.TypeFor[T]() })].name
}

// hasStep reports whether spec has a block for the step.
func hasStep(spec fleet.Spec, name string) bool {
	n, ok := shapeOf("", reflect.TypeFor[fleet.Spec]()).block(name)
	return ok && !reflect.ValueOf(spec).FieldByIndex(n.index).IsZero()
}

// without returns spec less the steps of those names.
func without(spec fleet.Spec, names []string) fleet.Spec {
	for _, n := range shapeOf("", reflect.TypeFor[fleet.Spec]()).blocks {
		if slices.Contains(names, n.name) {
			reflect.ValueOf(&spec).Elem().FieldByIndex(n.index).SetZero()
		}
	}
	return spec
}

// merge lays one specification over another, field by field: what is written
// above wins, a list or a map replaces as a whole. The result shares no memory
// with either.
func merge(base, above fleet.Spec) fleet.Spec {
	var out fleet.Spec
	overlay(reflect.ValueOf(&out).Elem(), reflect.ValueOf(base))
	overlay(reflect.ValueOf(&out).Elem(), reflect.ValueOf(above))
	return out
}

// overlay copies what is set in src onto dst. Set is what is not zero: nil is
// the sign of what was not written, so an empty list counts.
func overlay(dst, src reflect.Value) {
	switch {
	case src.Kind() == reflect.Struct:
		for i := range src.NumField() {
			overlay(dst.Field(i), src.Field(i))
		}
	case src.IsZero():
	case src.Type() == reflect.TypeFor[*fleet.Artifact]():
		dst.Set(reflect.New(src.Type().Elem()))
		dst.Elem().Set(src.Elem()) // one value, not a block of them
	case src.Kind() == reflect.Pointer:
		if dst.IsNil() {
			dst.Set(reflect.New(src.Type().Elem()))
		}
		overlay(dst.Elem(), src.Elem())
		if src.Elem().Kind() != reflect.Struct {
			dst.Elem().Set(src.Elem()) // a written 0, false or "" wins too
		}
	case src.Kind() == reflect.Slice:
		dst.Set(reflect.MakeSlice(src.Type(), src.Len(), src.Len()))
		reflect.Copy(dst, src)
	case src.Kind() == reflect.Map:
		dst.Set(reflect.MakeMap(src.Type()))
		for _, key := range src.MapKeys() {
			dst.SetMapIndex(key, src.MapIndex(key))
		}
	default:
		dst.Set(src)
	}
}

// A layer is what one level says of the steps, or several of them one over the
// other, and where each value stands. Values and sources are merged by one rule:
// what is written nearer to the host wins.
type layer struct {
	spec    fleet.Spec
	sources fleet.Sources
}

// layerOf is what a block of that level says. Beside the steps it notes where
// the arguments of those names stand.
func layerOf(level fleet.Level, at place, spec fleet.Spec, args ...string) layer {
	n := notes{level: level, sources: fleet.Sources{}}
	for _, name := range args {
		if attr := at.attrs[name]; attr != nil {
			n.note(name, attr.NameRange)
		}
	}
	if at.block != nil {
		n.body(at.block.Body, reflect.TypeFor[fleet.Spec](), "")
	}
	return layer{spec: spec, sources: n.sources}
}

// over lays l over base.
func (l layer) over(base layer) layer {
	sources := fleet.Sources{}
	maps.Copy(sources, base.sources)
	maps.Copy(sources, l.sources)
	return layer{spec: merge(base.spec, l.spec), sources: sources}
}

// without returns l less the steps of those names.
func (l layer) without(names []string) layer {
	sources := maps.Clone(l.sources)
	maps.DeleteFunc(sources, func(path string, _ fleet.Source) bool {
		step, _, _ := strings.Cut(path, ".")
		return slices.Contains(names, step)
	})
	return layer{spec: without(l.spec, names), sources: sources}
}

// notes gathers where the values of one level stand.
type notes struct {
	level   fleet.Level
	sources fleet.Sources
}

func (n notes) note(path string, at hcl.Range) {
	n.sources[path] = fleet.Source{Level: n.level, File: at.Filename, Line: at.Start.Line}
}

// body notes what a body has of a struct's arguments and blocks. An argument
// that is written has a value other than the field's zero, so noting what is
// written notes what overlay lets win; a test holds the fields to it.
func (n notes) body(body *hclsyntax.Body, t reflect.Type, prefix string) {
	sh := shapeOf("", t)
	for _, a := range sh.args {
		if attr := body.Attributes[a.name]; attr != nil {
			n.note(prefix+a.name, attr.NameRange)
		}
	}
	for _, b := range body.Blocks {
		inner, known := sh.block(b.Type)
		if !known {
			continue
		}
		path := prefix + inner.name
		n.note(path, b.DefRange())
		if !inner.many {
			n.body(b.Body, inner.typ, path+".")
		}
	}
}
