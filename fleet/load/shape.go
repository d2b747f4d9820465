package load

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A shape is what a block may hold, read from the hcl tags of the struct that
// it is decoded into: `hcl:"name"` is a required argument, "name,optional" one
// that may be left out, "name,label" the block's label, "name,block" a nested
// block (a slice: any number of them, a pointer: at most one). The fields of an
// embedded struct count as the struct's own, so that steps and the other things
// of a fleet are one shape and a misspelled name is compared with all of them.
type shape struct {
	name   string // the block's type; "" = the top of a file
	args   []argument
	blocks []nested
	labels []label
}

type argument struct {
	name     string
	required bool
	most     int64         // of a whole number: the tag "max", or maxNumber
	kind     string        // of a text: the tag "is", see fleet.CheckText
	least    int           // of a list, how many; of a whole number, the smallest: the tag "least"
	index    []int         // of the field
	shortest time.Duration // of a duration: the tag "shortest"
}

type nested struct {
	name    string
	many    bool
	labeled bool
	index   []int
	typ     reflect.Type // of the struct it is decoded into
}

type label struct {
	name  string
	index []int
}

// shapeOf reads the shape of a struct type.
func shapeOf(name string, t reflect.Type) shape {
	sh := shape{name: name}
	for _, f := range reflect.VisibleFields(t) {
		field, kind, _ := strings.Cut(f.Tag.Get("hcl"), ",")
		switch {
		case field == "":
		case kind == "label":
			sh.labels = append(sh.labels, label{field, f.Index})
		case kind == "block":
			n := nested{name: field, many: f.Type.Kind() == reflect.Slice, index: f.Index, typ: f.Type.Elem()}
			n.labeled = len(shapeOf(field, n.typ).labels) > 0
			sh.blocks = append(sh.blocks, n)
		default:
			sh.args = append(sh.args, argument{name: field, required: kind != "optional", most: most(f.Tag), kind: f.Tag.Get("is"), least: least(f.Tag), index: f.Index, shortest: shortest(f.Tag)})
		}
	}
	return sh
}

func most(tag reflect.StructTag) int64 {
	if n, err := strconv.ParseInt(tag.Get("max"), 10, 64); err == nil {
		return n
	}
	return maxNumber
}

func least(tag reflect.StructTag) int {
	n, _ := strconv.Atoi(tag.Get("least")) // without the tag a list may be empty, and a number 0
	return n
}

func shortest(tag reflect.StructTag) time.Duration {
	d, _ := time.ParseDuration(tag.Get("shortest")) // only durations have the tag
	return d
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
