package load

import (
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// locals evaluates all locals into sc, each after those it refers to.
func (l *loader) locals(blocks []*hclsyntax.Block, sc *scope) {
	d := &locals{loader: l, scope: sc, attrs: map[string]*hclsyntax.Attribute{}, done: map[string]bool{}, cyclic: map[string]bool{}}
	sc.values["local"] = map[string]cty.Value{}
	first := map[string]hcl.Range{}
	for _, block := range blocks {
		for _, b := range block.Body.Blocks {
			l.fault(b.TypeRange, "Unsupported block", "A locals block holds only arguments, name = value.")
		}
		for _, name := range sortedKeys(block.Body.Attributes) {
			if attr := block.Body.Attributes[name]; l.unique(first, "local", name, attr.NameRange) {
				d.attrs[name] = attr
				sc.values["local"][name] = cty.DynamicVal // exists, as far as a cycle is concerned
			}
		}
	}
	// By their places, so that a cycle is reported at its first local.
	for _, name := range slices.SortedFunc(maps.Keys(d.attrs), func(a, b string) int { return compareRanges(&d.attrs[a].NameRange, &d.attrs[b].NameRange) }) {
		d.evaluate(name, nil)
	}
}

type locals struct {
	*loader
	scope  *scope
	attrs  map[string]*hclsyntax.Attribute
	done   map[string]bool
	cyclic map[string]bool // without a value, because it needs itself
}

// evaluate gives a local its value; path leads to it.
func (d *locals) evaluate(name string, path []string) {
	attr := d.attrs[name]
	if attr == nil || d.done[name] {
		return
	}
	if i := slices.Index(path, name); i >= 0 {
		d.cycle(path[i:])
		return
	}
	for _, tr := range attr.Expr.Variables() {
		if root, needed, ok := split(tr); ok && root == "local" {
			d.evaluate(needed, append(path, name))
		}
	}
	d.done[name] = true
	if d.cyclic[name] {
		d.sound(attr.Expr, d.scope, plain) // its other faults
		return
	}
	val := d.eval(attr.Expr, d.scope, plain)
	if tooLargeValue(val) {
		d.fault(attr.Expr.Range(), tooLarge, "The value of local.%s is larger than %d bytes.", name, maxFile)
		val = cty.DynamicVal
	}
	d.scope.values["local"][name] = val
}

// cycle reports locals that need each other.
func (d *locals) cycle(names []string) {
	steps := make([]string, 0, len(names)+1)
	for _, n := range append(slices.Clone(names), names[0]) {
		steps = append(steps, "local."+n)
		d.cyclic[n] = true
	}
	d.fault(d.attrs[names[0]].NameRange, "Cycle of locals", "These locals need each other, so none can have a value: %s. Remove one of the references.", strings.Join(steps, " → "))
}

// tooLargeValue reports whether the texts and elements of a value are more than
// maxFile. Without a bound, locals that each double the one before would fill
// the memory.
func tooLargeValue(val cty.Value) bool {
	size := 0
	_ = cty.Walk(val, func(_ cty.Path, v cty.Value) (bool, error) {
		size++
		if v.Type() == cty.String && v.IsKnown() && !v.IsNull() {
			size += len(v.AsString())
		}
		return size <= maxFile, nil
	})
	return size > maxFile
}
