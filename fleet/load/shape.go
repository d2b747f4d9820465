package load

import (
	"reflect"
	"slices"
	"strings"
)

// A shape is what a block may hold, read from the hcl tags of the struct that
// it is decoded into: `hcl:"name"` is a required argument, "name,optional" one
// that may be left out, "name,label" the block's label, "name,block" a nested
// block (a slice: any number of them, else at most one). The fields of an
// embedded struct count as the struct's own, so that steps and the other things
// of a fleet are one shape and a misspelled name is compared with all of them.
type shape struct {
	name   string // the block's type; "" = the top of a file
	args   []argument
	blocks []nested
	label  *reflect.StructField // of the name; nil: the block has none
}

// The tags of an argument bound it: "max" and "least" a whole number, "least" the
// length of a list, "shortest" and "longest" a duration; "is" is the kind of a text.
type argument struct {
	name     string
	required bool
	tag      reflect.StructTag
	index    []int // of the field
}

type nested struct {
	name    string
	many    bool
	labeled bool
	index   []int
	typ     reflect.Type // of the struct it is decoded into
}

// shapeOf reads the shape of a struct type.
func shapeOf(name string, t reflect.Type) shape {
	sh := shape{name: name}
	for _, f := range reflect.VisibleFields(t) {
		field, kind, _ := strings.Cut(f.Tag.Get("hcl"), ",")
		switch {
		case field == "":
		case kind == "label":
			sh.label = &f
		case kind == "block":
			n := nested{name: field, many: f.Type.Kind() == reflect.Slice, index: f.Index, typ: f.Type}
			if f.Type.Kind() != reflect.Struct {
				n.typ = f.Type.Elem()
			}
			n.labeled = shapeOf(field, n.typ).label != nil
			sh.blocks = append(sh.blocks, n)
		default:
			sh.args = append(sh.args, argument{field, kind != "optional", f.Tag, f.Index})
		}
	}
	return sh
}

func (sh shape) argument(name string) bool {
	return slices.ContainsFunc(sh.args, func(a argument) bool { return a.name == name })
}

func (sh shape) block(name string) (nested, bool) {
	for _, n := range sh.blocks {
		if n.name == name {
			return n, true
		}
	}
	return nested{}, false
}

// names returns all names that may stand in the block, arguments first.
func (sh shape) names() []string {
	var all []string
	for _, a := range sh.args {
		all = append(all, a.name)
	}
	for _, n := range sh.blocks {
		all = append(all, n.name)
	}
	return all
}

// inside says where the block's contents stand: "in a fleet block".
func (sh shape) inside() string {
	switch {
	case sh.name == "":
		return "at the top of a file"
	case strings.ContainsRune("aeiou", rune(sh.name[0])) || sh.name == "ssh":
		return "in an " + sh.name + " block"
	}
	return "in a " + sh.name + " block"
}

// homes says where in the whole language a name may stand: as a block, or as an
// argument; where it may not stand so at all, then in the other way.
func homes(name string, block bool) []string {
	var same, other []string
	var visit func(shape)
	visit = func(sh shape) {
		_, isBlock := sh.block(name)
		switch {
		case isBlock && block || sh.argument(name) && !block:
			same = append(same, sh.inside())
		case isBlock || sh.argument(name):
			other = append(other, sh.inside())
		}
		for _, n := range sh.blocks {
			visit(shapeOf(n.name, n.typ))
		}
	}
	visit(shapeOf("", reflect.TypeFor[document]()))
	if len(same) == 0 {
		same = other
	}
	return slices.Compact(same)
}
