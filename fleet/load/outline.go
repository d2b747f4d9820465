package load

import (
	"io/fs"
	"slices"
	"unicode"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// Names are the names that a directory defines, each list sorted and without
// repetitions: what can be offered to a person who types.
type Names struct {
	Environments []string
	Fleets       []string
	Groups       []string // of all fleets
	Types        []string // server types of groups, where written out
	Zones        []string // where written out
	Steps        []string // of this version, whether or not a block names them
	Hosts        []string // that have a block
	Variables    []string
	Artifacts    []string
}

// Outline reads the names of a directory without evaluating anything, so it
// needs no environment and no variable. It never fails: of a file with a syntax
// fault it takes what the parser could make out, and what cannot be read
// is skipped.
func Outline(fsys fs.FS) Names {
	n := Names{Steps: stepNames()}
	// The labels of blocks, and the texts of arguments, by where they stand.
	lists := map[string]*[]string{"environment": &n.Environments, "fleet": &n.Fleets, "fleet group": &n.Groups,
		"fleet group type =": &n.Types, "fleet group types =": &n.Types, "scaleway zones =": &n.Zones, "host": &n.Hosts, "variable": &n.Variables, "artifact": &n.Artifacts, " ": &n.Steps}
	var visit func(body *hclsyntax.Body, within string)
	visit = func(body *hclsyntax.Body, within string) {
		for _, b := range body.Blocks {
			if to := lists[within+b.Type]; to != nil {
				*to = append(*to, b.Labels...)
			}
			visit(b.Body, within+b.Type+" ")
		}
		for name, attr := range body.Attributes {
			if to := lists[within+name+" ="]; to != nil {
				*to = append(*to, texts(attr.Expr)...)
			}
		}
	}
	names, _, _ := list(fsys) // an unreadable directory has no names
	for _, name := range names {
		content, fault := read(fsys, name)
		if fault != nil || excess(name, content) != nil {
			continue
		}
		if file, _ := hclsyntax.ParseConfig(content, name, hcl.InitialPos); file != nil {
			visit(file.Body.(*hclsyntax.Body), "")
		}
	}
	for _, list := range lists {
		*list = slices.DeleteFunc(*list, unprintable)
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return n
}

// texts returns the text, or the texts of the list, that an expression is written
// as. What refers to something or calls a function has none.
func texts(expr hclsyntax.Expression) []string {
	exprs := []hclsyntax.Expression{expr}
	if list, ok := expr.(*hclsyntax.TupleConsExpr); ok {
		exprs = list.Exprs
	}
	var all []string
	for _, e := range exprs {
		if text, ok := literal(e); ok {
			all = append(all, text)
		}
	}
	return all
}

// unprintable reports a name that no shell should be offered.
func unprintable(name string) bool {
	return name == "" || slices.ContainsFunc([]rune(name), func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsGraphic(r) })
}
