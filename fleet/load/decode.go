package load

import (
	"reflect"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// place is where a decoded block and its arguments stand. A struct that has a
// field "Place place" gets it.
type place struct {
	block *hclsyntax.Block
	attrs hclsyntax.Attributes
	good  map[string]bool      // arguments that have a value of the right type
	names map[string]hcl.Range // of all arguments and blocks in it, by paths such as power.sleep
	twice bool                 // another one has its name
}

// An argument is what is known of one that was decoded, also where its block is far.
type argument struct {
	good   bool // it has a value of the right type
	varies bool // it refers to something, so it may have another value in another environment
}

// at returns the place of an argument's value, or the block's header.
func (p place) at(name string) hcl.Range {
	if attr := p.attrs[name]; attr != nil {
		return attr.Expr.Range()
	}
	return p.header()
}

// header returns the place of the block's first line.
func (p place) header() hcl.Range { return p.block.DefRange() }

// label returns the place of the block's name.
func (p place) label() hcl.Range {
	if len(p.block.LabelRanges) == 0 {
		return p.header()
	}
	return p.block.LabelRanges[0]
}

// written reports whether the block has the argument, however faulty.
func (p place) written(name string) bool { return p.attrs[name] != nil }

// decodeAll decodes blocks of one type, each over what holds where it says nothing.
func decodeAll[T any](l *loader, blocks []*hclsyntax.Block, sc *scope, otherwise T) []T {
	all := make([]T, len(blocks))
	first := map[string]hcl.Range{}
	for i, b := range blocks {
		all[i] = otherwise
		l.decode(b, sc, reflect.ValueOf(&all[i]).Elem(), first)
	}
	return all
}

// decodeOnly decodes the blocks of a type that may appear only once and returns the
// first, or what holds without any. That there are more is reported where they are collected.
func decodeOnly[T any](l *loader, blocks []*hclsyntax.Block, sc *scope, otherwise T) T {
	return append(decodeAll(l, blocks, sc, otherwise), otherwise)[0]
}

// decode reads a block into a struct whose hcl tags describe it. A faulty
// argument leaves its field as it is. first holds the names of its sibling blocks.
func (l *loader) decode(block *hclsyntax.Block, sc *scope, target reflect.Value, first map[string]hcl.Range) place {
	sh := shapeOf(block.Type, target.Type())
	attrs, blocks := l.check(block.Body, sh, block.DefRange())
	at := place{block: block, attrs: attrs, good: map[string]bool{}, names: map[string]hcl.Range{}}
	if sh.label != nil {
		name := block.Labels[0]
		target.FieldByIndex(sh.label.Index).SetString(name)
		at.twice = !l.unique(first, block.Type, name, at.label())
		if why := wrong(sh.label.Tag.Get("is"), name); why != "" && !at.twice {
			l.fault(at.label(), "Invalid name", "The name of the %s cannot be %s: %s.", block.Type, quoted(name), why)
		}
	}
	for _, m := range sh.members {
		if attr := attrs[m.name]; attr != nil {
			at.names[m.name] = attr.NameRange
			at.good[m.name] = l.assign(attr, sc, m.tag, target.FieldByIndex(m.index))
			l.args[attr.NameRange] = argument{good: at.good[m.name], varies: len(attr.Expr.Variables()) > 0}
		}
	}
	inner := map[string]hcl.Range{}
	for _, b := range blocks {
		m := sh.member(b.Type)
		value := reflect.New(m.typ).Elem()
		field := target.FieldByIndex(m.index)
		if field.Kind() == reflect.Struct {
			value.Set(field)
		}
		within := l.decode(b, sc, value, inner)
		at.names[m.name] = b.DefRange()
		if m.many {
			field.Set(reflect.Append(field, value))
			continue
		}
		for path, rng := range within.names {
			at.names[m.name+"."+path] = rng
		}
		if field.Kind() == reflect.Struct {
			field.Set(value)
		} else if field.IsNil() {
			field.Set(value.Addr())
		}
	}
	if field := target.FieldByName("Place"); field.IsValid() && field.Type() == reflect.TypeFor[place]() {
		field.Set(reflect.ValueOf(at))
	}
	return at
}
