package load

import (
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// locals evaluates all locals into sc, each after those it refers to.
func (l *loader) locals(blocks []*hclsyntax.Block, sc *scope) {
	attrs, values := map[string]*hclsyntax.Attribute{}, map[string]cty.Value{}
	sc.values["local"] = values
	first := map[string]hcl.Range{}
	for _, block := range blocks {
		for _, b := range block.Body.Blocks {
			l.fault(b.TypeRange, "Unsupported block", "A locals block holds only arguments, name = value.")
		}
		for _, name := range sortedKeys(block.Body.Attributes) {
			if attr := block.Body.Attributes[name]; l.unique(first, "local", name, attr.NameRange) {
				attrs[name] = attr
				values[name] = cty.DynamicVal // exists, as far as a cycle is concerned
			}
		}
	}
	done, cyclic := map[string]bool{}, map[string]bool{}
	var evaluate func(name string, path []string) // that leads to it
	evaluate = func(name string, path []string) {
		attr := attrs[name]
		if attr == nil || done[name] {
			return
		}
		if i := slices.Index(path, name); i >= 0 {
			steps := ""
			for _, n := range path[i:] {
				steps += "local." + n + " → "
				cyclic[n] = true
			}
			l.fault(attr.NameRange, "Cycle of locals", "These locals need each other, so none can have a value: %slocal.%s. Remove one of the references.", steps, name)
			return
		}
		for _, tr := range attr.Expr.Variables() {
			if root, needed, ok := split(tr); ok && root == "local" {
				evaluate(needed, append(path, name))
			}
		}
		done[name] = true
		if cyclic[name] {
			l.sound(attr.Expr, sc, plain) // its other faults
			return
		}
		values[name] = l.eval(attr.Expr, sc, plain)
	}
	// By their places, so that a cycle is reported at its first local.
	byPlace := func(a, b string) int { return compareRanges(&attrs[a].NameRange, &attrs[b].NameRange) }
	for _, name := range slices.SortedFunc(maps.Keys(attrs), byPlace) {
		evaluate(name, nil)
	}
}
