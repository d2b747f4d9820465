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
	good  map[string]bool // arguments that have a value of the right type
}

// at returns the place of an argument's value, or the block's header.
func (p place) at(name string) hcl.Range {
	if attr := p.attrs[name]; attr != nil {
		return attr.Expr.Range()
	}
	return p.header()
}

// element returns the place of the i-th element of an argument's list, as near
// as it can be told.
func (p place) element(name string, i int) hcl.Range {
	if attr := p.attrs[name]; attr != nil {
		return elementRange(attr.Expr, i)
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

// decodeAll decodes blocks of one type.
func decodeAll[T any](l *loader, blocks []*hclsyntax.Block, sc *scope) []T {
	all := make([]T, len(blocks))
	for i, b := range blocks {
		l.decode(b, sc, reflect.ValueOf(&all[i]).Elem())
	}
	return all
}

// decodeOnly decodes the blocks of a type that must be alone and returns the
// first, or nil. That there are more is reported where they are collected.
func decodeOnly[T any](l *loader, blocks []*hclsyntax.Block, sc *scope) *T {
	all := decodeAll[T](l, blocks, sc)
	if len(all) == 0 {
		return nil
	}
	return &all[0]
}

// decode reads a block into a struct whose hcl tags describe it. A faulty
// argument leaves its field as it is.
func (l *loader) decode(block *hclsyntax.Block, sc *scope, target reflect.Value) {
	sh := shapeOf(block.Type, target.Type())
	attrs, blocks := l.check(block.Body, sh, block.DefRange())
	at := place{block: block, attrs: attrs, good: map[string]bool{}}
	for i, lb := range sh.labels {
		target.FieldByIndex(lb.index).SetString(block.Labels[i])
	}
	for _, a := range sh.args {
		if attr := attrs[a.name]; attr != nil {
			at.good[a.name] = l.assign(attr, sc, a, target.FieldByIndex(a.index))
		}
	}
	for _, b := range blocks {
		n, _ := sh.block(b.Type)
		l.decodeNested(b, sc, n, target.FieldByIndex(n.index))
	}
	if field := target.FieldByName("Place"); field.IsValid() && field.Type() == reflect.TypeFor[place]() {
		field.Set(reflect.ValueOf(at))
	}
}

func (l *loader) decodeNested(b *hclsyntax.Block, sc *scope, n nested, field reflect.Value) {
	value := reflect.New(n.typ)
	l.decode(b, sc, value.Elem())
	switch {
	case n.many:
		field.Set(reflect.Append(field, value.Elem()))
	case field.IsNil():
		field.Set(value)
	}
}
