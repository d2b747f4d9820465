package load

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/fleet"
)

// steps is the shape of what holds the blocks of all steps, which are known by
// reflection only: a new field of fleet.Spec needs no change here.
var steps = shapeOf("", reflect.TypeFor[fleet.Spec]())

// stepNames returns the ids of all steps in the order of fleet.Spec.
func stepNames() []string { return steps.names() }

// hasStep reports whether spec has a block for the step.
func hasStep(spec fleet.Spec, name string) bool {
	m := steps.member(name)
	return m.name != "" && !reflect.ValueOf(spec).FieldByIndex(m.index).IsZero()
}

// without returns spec less the steps of those names.
func without(spec fleet.Spec, names []string) fleet.Spec {
	for _, m := range steps.members {
		if slices.Contains(names, m.name) {
			reflect.ValueOf(&spec).Elem().FieldByIndex(m.index).SetZero()
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

// overlay copies the fields that are set in src onto dst. Set is what is not zero:
// nil is the sign of what was not written, so an empty list counts.
func overlay(dst, src reflect.Value) {
	for f, from := range src.Fields() {
		to := dst.FieldByIndex(f.Index)
		isBlock := strings.HasSuffix(f.Tag.Get("hcl"), ",block")
		switch {
		case from.IsZero():
		case from.Kind() == reflect.Pointer && isBlock:
			if to.IsNil() {
				to.Set(reflect.New(from.Type().Elem()))
			}
			overlay(to.Elem(), from.Elem())
		case from.Kind() == reflect.Pointer:
			to.Set(reflect.New(from.Type().Elem()))
			to.Elem().Set(from.Elem())
		case from.Kind() == reflect.Slice:
			to.Set(reflect.AppendSlice(reflect.MakeSlice(from.Type(), 0, from.Len()), from))
		case from.Kind() == reflect.Map:
			to.Set(reflect.MakeMap(from.Type()))
			for key, value := range from.Seq2() {
				to.SetMapIndex(key, value)
			}
		default:
			to.Set(from)
		}
	}
}

// A layer is what one level says of the steps, or several of them one over the
// other, and where each value was written. Values and sources are merged by one rule:
// the value nearer to the host wins.
type layer struct {
	spec    fleet.Spec
	sources fleet.Sources
}

// layerOf is what a block of that level says about the steps and its other attributes. An
// argument that is written has a value other than the field's zero, so the sources are
// those of what overlay lets win; a test holds the fields to it.
func (l *loader) layerOf(level fleet.Level, at place, spec fleet.Spec) layer {
	sources := fleet.Sources{}
	for path, rng := range at.names {
		if path == "types" {
			path = "type" // a group has one of them
		}
		if step, _, _ := strings.Cut(path, "."); hasStep(spec, step) || slices.Contains([]string{"os", "type", "replicas"}, path) {
			at := fleet.Source{Level: level, File: rng.Filename, Line: rng.Start.Line}
			sources[path] = at
			if other, known := l.lines[at]; !known || rng.Start.Byte < other.Start.Byte {
				l.lines[at] = rng
			}
		}
	}
	return layer{spec, sources}
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
