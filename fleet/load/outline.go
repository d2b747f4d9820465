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
// fault it takes what the parser could make out, and what cannot be read at all
// is passed over.
func Outline(fsys fs.FS) Names {
	n := Names{Steps: stepNames()}
	names, _, _ := list(fsys) // an unreadable directory has no names
	for _, name := range names {
		content, err := read(fsys, name)
		if err != nil || excess(name, content) != nil {
			continue
		}
		file, _ := hclsyntax.ParseConfig(content, name, hcl.InitialPos)
		if file == nil {
			continue
		}
		if body, ok := file.Body.(*hclsyntax.Body); ok {
			n.read(body)
		}
	}
	for _, list := range []*[]string{&n.Environments, &n.Fleets, &n.Groups, &n.Types, &n.Zones, &n.Steps, &n.Hosts, &n.Variables, &n.Artifacts} {
		*list = slices.DeleteFunc(*list, unprintable)
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return n
}

func (n *Names) read(body *hclsyntax.Body) {
	labelled := map[string]*[]string{"environment": &n.Environments, "fleet": &n.Fleets, "host": &n.Hosts, "variable": &n.Variables, "artifact": &n.Artifacts}
	for _, b := range body.Blocks {
		if to := labelled[b.Type]; to != nil {
			*to = append(*to, b.Labels...)
		}
		switch b.Type {
		case "scaleway":
			n.Zones = append(n.Zones, texts(b.Body, "zones")...)
		case "fleet":
			n.groups(b.Body)
		}
	}
}

func (n *Names) groups(body *hclsyntax.Body) {
	for _, g := range body.Blocks {
		if g.Type == "group" {
			n.Groups = append(n.Groups, g.Labels...)
			n.Types = append(n.Types, texts(g.Body, "type")...)
		}
	}
}

// texts returns the text, or the texts of the list, that an argument is written
// as. What refers to something or calls a function has none.
func texts(body *hclsyntax.Body, name string) []string {
	attr := body.Attributes[name]
	if attr == nil {
		return nil
	}
	exprs := []hclsyntax.Expression{attr.Expr}
	if list, ok := attr.Expr.(*hclsyntax.TupleConsExpr); ok {
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
