package load

import (
	"reflect"
	"slices"
	"strings"
	"sync"
)

// A shape is what a block may hold, read from the hcl tags of the struct that
// it is decoded into: `hcl:"name"` is a required argument, "name,optional" one
// that may be left out, "name,label" the block's label, "name,block" a nested
// block (a slice: any number of them, else at most one). The fields of an
// embedded struct count as the struct's own, so that steps and the other things
// of a fleet are one shape and a misspelled name is compared with all of them.
type shape struct {
	name    string // the block's type; "" = the top of a file
	members []member
	label   *reflect.StructField // of the name; nil: the block has none
}

// A member is an argument or a nested block. The tags of an argument bound it: "max"
// and "least" a whole number, "least" the length of a list, "shortest" and "longest" a
// duration; "is" is the kind of a text. The tag "says" of a block is what it is for,
// where no configuration can be without.
type member struct {
	name     string
	block    bool
	required bool // an argument
	many     bool // such blocks are possible
	labeled  bool
	tag      reflect.StructTag
	index    []int        // of the field
	typ      reflect.Type // of the struct that a block is decoded into
}

// shapeOf reads the shape of a struct type.
func shapeOf(name string, t reflect.Type) shape {
	sh := shape{name: name}
	for _, f := range reflect.VisibleFields(t) {
		field, kind, _ := strings.Cut(f.Tag.Get("hcl"), ",")
		m := member{name: field, block: kind == "block", required: kind == "", tag: f.Tag, index: f.Index, typ: f.Type}
		switch {
		case field == "":
			continue
		case kind == "label":
			sh.label = &f
			continue
		case m.block:
			m.many = f.Type.Kind() == reflect.Slice
			if f.Type.Kind() != reflect.Struct {
				m.typ = f.Type.Elem()
			}
			m.labeled = shapeOf(field, m.typ).label != nil
		}
		sh.members = append(sh.members, m)
	}
	return sh
}

// member returns the argument or the block of that name, or one without a name.
func (sh shape) member(name string) member {
	for _, m := range sh.members {
		if m.name == name {
			return m
		}
	}
	return member{}
}

// members returns the arguments and blocks that a block may hold.
func (m member) members() []member { return shapeOf(m.name, m.typ).members }

// names returns all names that may stand in the block.
func (sh shape) names() []string {
	var all []string
	for _, m := range sh.members {
		all = append(all, m.name)
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

// schemaPaths are the paths of the whole language.
var schemaPaths = sync.OnceValue(func() []string { return Schema().Paths() })

// path is what macfleet explain --schema takes for the block, with a space before it, or "".
func (sh shape) path() string {
	for _, path := range schemaPaths() {
		if path == sh.name || strings.HasSuffix(path, "."+sh.name) {
			return " " + path
		}
	}
	return ""
}

// homes says where in the whole language a name may stand: as a block, or as an
// argument; if neither fits, then in the other form.
func homes(name string, block bool) []string {
	places := map[bool][]string{} // by whether it is a block there
	var visit func(shape)
	visit = func(sh shape) {
		if m := sh.member(name); m.name != "" {
			places[m.block] = append(places[m.block], sh.inside())
		}
		for _, m := range sh.members {
			if m.block {
				visit(shapeOf(m.name, m.typ))
			}
		}
	}
	visit(shapeOf("", reflect.TypeFor[document]()))
	if len(places[block]) == 0 {
		block = !block
	}
	return slices.Compact(places[block])
}
