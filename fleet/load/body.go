package load

import (
	"reflect"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/macfleet/macfleet/fleet"
)

// check compares a body with its shape and returns the arguments and blocks
// that the shape has. All the names of a body are compared with all that may
// stand there: that is what makes the suggestions good.
func (l *loader) check(body *hclsyntax.Body, sh shape, header hcl.Range) (hclsyntax.Attributes, hclsyntax.Blocks) {
	attrs, meant := hclsyntax.Attributes{}, map[string]bool{}
	for _, name := range sortedKeys(body.Attributes) {
		if attr := body.Attributes[name]; sh.argument(name) {
			attrs[name] = attr
		} else {
			meant[l.strange(name, attr.NameRange, false, sh)] = true
		}
	}
	var blocks hclsyntax.Blocks
	first := map[string]hcl.Range{}
	for _, b := range body.Blocks {
		n, known := sh.block(b.Type)
		switch {
		case !known:
			suggestion := l.strange(b.Type, b.TypeRange, true, sh)
			meant[suggestion] = true
			if !sh.argument(b.Type) && (suggestion != "" || len(homes(b.Type, true)) > 0) {
				l.lose(b)
			}
		case l.labels(b, n):
			l.once(b, n, first)
			blocks = append(blocks, b) // its second is read too, for its own faults
		}
	}
	for _, a := range sh.args {
		if a.required && attrs[a.name] == nil && !meant[a.name] {
			l.fault(header, "Missing argument", "The argument %q is required %s.", a.name, sh.inside())
		}
	}
	return attrs, blocks
}

// strange reports an argument or a block that the shape does not have, and returns the
// name that was probably meant, or "".
func (l *loader) strange(name string, at hcl.Range, block bool, sh shape) string {
	summary, what := "Unsupported argument", "argument"
	if block {
		summary, what = "Unsupported block", "block"
	}
	n, isBlock := sh.block(name)
	switch {
	case isBlock:
		l.suspect(name)
		l.fault(at, summary, "%q is a block, not an argument: write %s without the equals sign.", name, blockForm(n))
		return name
	case sh.argument(name):
		l.fault(at, summary, "%q is an argument, not a block: write it with an equals sign, %s = ….", name, name)
		return name
	}
	suggestion := fleet.Nearest(name, sh.names())
	l.fault(at, summary, "This version of macfleet has no %s %s %s.%s", what, quoted(name), sh.inside(), didYouMean(suggestion)+elsewhere(name, block, suggestion))
	l.suspect(suggestion)
	return suggestion
}

// elsewhere says where a name may stand that may not stand here.
func elsewhere(name string, block bool, suggestion string) string {
	places := homes(name, block)
	if suggestion != "" || len(places) == 0 {
		return ""
	}
	return " It belongs " + strings.Join(places, " or ") + "."
}

// labels reports whether a block has its one label, or none where none may be.
func (l *loader) labels(b *hclsyntax.Block, n nested) bool {
	want := 0
	if n.labeled {
		want = 1
	}
	switch have := len(b.Labels); {
	case have == want:
		return true
	case have < want:
		l.fault(b.TypeRange, "Missing name", "%s needs a name: write %s.", aBlock(n.name), blockForm(n))
	case want == 0:
		l.fault(b.LabelRanges[0], "Unexpected name", "%s has no name: write %s.", aBlock(n.name), blockForm(n))
	default:
		l.fault(b.LabelRanges[1], "Unexpected name", "%s has one name: write %s.", aBlock(n.name), blockForm(n))
	}
	l.suspect(n.name)
	l.lose(b)
	return false
}

// once reports a block that must be alone and is not the first.
func (l *loader) once(b *hclsyntax.Block, n nested, first map[string]hcl.Range) {
	before, twice := first[b.Type]
	if n.many || !twice {
		first[b.Type] = b.DefRange()
		return
	}
	l.fault(b.DefRange(), "Duplicate block", "There can be only one %s block here; the first is at %s. Merge the two.", b.Type, where(before))
}

func blockForm(n nested) string {
	if n.labeled {
		return n.name + ` "NAME" { … }`
	}
	return n.name + " { … }"
}

// aBlock begins a sentence about a block.
func aBlock(name string) string {
	return strings.Replace(shape{name: name}.inside(), "in a", "A", 1)
}

// collect sorts the blocks of all files by their type, in the order of files
// and places, and reports which do not belong there or are missing.
func (l *loader) collect(bodies []*hclsyntax.Body) map[string][]*hclsyntax.Block {
	top := shapeOf("", reflect.TypeFor[document]())
	all := &hclsyntax.Body{Attributes: hclsyntax.Attributes{}}
	for _, b := range bodies {
		all.Blocks = append(all.Blocks, b.Blocks...)
		for _, name := range sortedKeys(b.Attributes) {
			l.strange(name, b.Attributes[name].NameRange, false, top)
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
