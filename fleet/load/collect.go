package load

import (
	"reflect"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// collect sorts the blocks of all files by their type, in the order of files
// and places, and reports which do not belong there or are missing.
func (l *loader) collect(bodies []*hclsyntax.Body) map[string][]*hclsyntax.Block {
	top := shapeOf("", reflect.TypeFor[document]())
	all := &hclsyntax.Body{Attributes: hclsyntax.Attributes{}}
	for _, b := range bodies {
		all.Blocks = append(all.Blocks, b.Blocks...)
		for _, name := range sortedKeys(b.Attributes) {
			l.strangeArgument(b.Attributes[name], top)
		}
	}
	_, blocks := l.check(all, top, hcl.Range{})
	found := map[string][]*hclsyntax.Block{}
	for _, b := range blocks {
		found[b.Type] = append(found[b.Type], b)
	}
	l.missing(found, bodies)
	return found
}

// missing reports the blocks without which there is no configuration. Their
// place is the macfleet block or, without it, the start of the first file.
func (l *loader) missing(found map[string][]*hclsyntax.Block, bodies []*hclsyntax.Body) {
	if len(bodies) == 0 {
		return // every file has its own fault
	}
	at := fileStart(bodies[0].SrcRange.Filename)
	if found["macfleet"] != nil {
		at = found["macfleet"][0].DefRange()
	}
	purposes := map[string]string{
		"macfleet": "the name of the configuration",
		"scaleway": "the zones and the prefix of the pool",
		"ssh":      "how hosts are reached",
	}
	for _, name := range sortedKeys(purposes) {
		if found[name] == nil && !l.mayStand(name) {
			l.fault(at, "Missing block", "The configuration has no %s block. It says %s and is required.", name, purposes[name])
		}
	}
}

// free returns the arguments of a block that takes any names, and reports the
// blocks in it.
func (l *loader) free(block *hclsyntax.Block) []*hclsyntax.Attribute {
	for _, b := range block.Body.Blocks {
		l.fault(b.TypeRange, "Unsupported block", "A %s block holds only arguments, name = value.", block.Type)
	}
	var attrs []*hclsyntax.Attribute
	for _, name := range sortedKeys(block.Body.Attributes) {
		attrs = append(attrs, block.Body.Attributes[name])
	}
	return attrs
}
