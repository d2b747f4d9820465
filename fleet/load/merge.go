package load

import (
	"reflect"
	"slices"

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
