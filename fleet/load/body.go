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
		if attr, m := body.Attributes[name], sh.member(name); m.name != "" && !m.block {
			attrs[name] = attr
		} else {
			meant[l.strange(name, attr.NameRange, false, sh)] = true
		}
	}
	var blocks hclsyntax.Blocks
	first := map[string]hcl.Range{}
	for _, b := range body.Blocks {
		m := sh.member(b.Type)
		if !m.block {
			suggestion := l.strange(b.Type, b.TypeRange, true, sh)
			meant[suggestion] = true
			if m.name == "" && (suggestion != "" || len(homes(b.Type, true)) > 0) {
				l.lose(b)
			}
			continue
		}
		if !l.labels(b, m) {
			continue
		}
		if before, twice := first[b.Type]; twice && !m.many {
			l.fault(b.DefRange(), "Duplicate block", "There can be only one %s block here; the first is at %s. Merge the two.", b.Type, where(before))
		} else {
			first[b.Type] = b.DefRange()
		}
		blocks = append(blocks, b) // its second is read too, for its own faults
	}
	for _, m := range sh.members {
		l.either(m, attrs, meant, sh, header)
		if m.required && attrs[m.name] == nil && !meant[m.name] {
			l.fault(header, missingArg, "The argument %q is required %s.", m.name, sh.inside())
		}
	}
	return attrs, blocks
}

// either checks an argument that needs exactly one of itself and another one, as its tag "or" says.
func (l *loader) either(m member, attrs hclsyntax.Attributes, meant map[string]bool, sh shape, header hcl.Range) {
	switch other := m.tag.Get("or"); {
	case other == "":
	case attrs[m.name] != nil && attrs[other] != nil:
		l.fault(attrs[other].NameRange, "Conflicting arguments", "The arguments %q and %q exclude each other. Remove one.", m.name, other)
	case attrs[m.name] == nil && attrs[other] == nil && !meant[m.name] && !meant[other]:
		l.fault(header, missingArg, "The argument %q is required %s, or %q with a list.", m.name, sh.inside(), other)
	}
}

// strange reports an argument or a block that the shape does not have, and returns the
// name that was probably meant, or "".
func (l *loader) strange(name string, at hcl.Range, block bool, sh shape) string {
	summary, what := "Unsupported argument", "argument"
	if block {
		summary, what = "Unsupported block", "block"
	}
	switch m := sh.member(name); {
	case m.block:
		l.suspect(name)
		l.fault(at, summary, "%q is a block, not an argument: write %s without the equals sign.", name, m.form())
		return name
	case m.name != "":
		l.fault(at, summary, "%q is an argument, not a block: write it with an equals sign, %s = ….", name, name)
		return name
	}
	if why, instead := notOffered(sh.name, name); why != "" {
		l.suspect(instead)
		l.fault(at, summary, "%s", why)
		return instead
	}
	suggestion := fleet.Nearest(name, sh.names())
	for _, meant := range otherNames[name] {
		if suggestion == "" && sh.member(meant).name != "" {
			suggestion = meant
		}
	}
	help := didYouMean(suggestion)
	switch places := homes(name, block); {
	case suggestion != "":
	case len(places) > 0:
		help = " It belongs " + strings.Join(places, " or ") + "."
	default:
		help = " To list what there is: macfleet explain --schema" + sh.path() + "."
	}
	l.fault(at, summary, "This version of macfleet has no %s %s %s.%s", what, quoted(name), sh.inside(), help)
	l.suspect(suggestion)
	return suggestion
}

// otherNames are names that other tools have for what a block may hold.
var otherNames = map[string][]string{
	"count": {"replicas"}, "size": {"replicas", "type"}, "instances": {"replicas"}, "number": {"replicas"}, "desired": {"replicas"},
	"server_type": {"type"}, "instance_type": {"type"}, "machine_type": {"type"}, "model": {"type"}, "commercial_type": {"type"},
	"os_version": {"os"}, "image": {"os"}, "macos": {"os"}, "ami": {"os"},
	"terraform": {"macfleet"}, "provider": {"scaleway"}, "input": {"variable"}, "local": {"locals"},
	"pool": {"group"}, "node_pool": {"group"}, "server": {"host"}, "url": {"source", "organization"}, "path": {"source"}, "checksum": {"sha256"}, "digest": {"sha256"},
	"org": {"organization"}, "repo": {"repository"}, "pat": {"token"}, "work_dir": {"work_folder"}, "work": {"work_folder"}, "ephemeral": {"mode"}, "group": {"runner_group"},
	"client_id": {"app_id"}, "id": {"app_id"}, "installation": {"installation_id"},
	"username": {"user"}, "login": {"user"}, "key": {"private_key"}, "private_key_path": {"private_key"}, "region": {"zones"}, "zone": {"zones"},
}

// notOffered says why a block has no argument of a name that people expect, and which one to write in its place; "": they
// expect no such argument.
func notOffered(block, name string) (why, instead string) {
	if block == runner && name == "enterprise" {
		return "macfleet registers runners with an organization or a repository. Runners of an enterprise need a classic personal access token, " +
			"and no GitHub App can manage them. Write organization, with a runner_group that the repositories may use.", "organization"
	}
	return "", ""
}

// labels reports whether a block has its one label, or none where none may be.
func (l *loader) labels(b *hclsyntax.Block, m member) bool {
	want := 0
	if m.labeled {
		want = 1
	}
	a := strings.Replace(shape{name: m.name}.inside(), "in a", "A", 1)
	switch have := len(b.Labels); {
	case have == want:
		return true
	case have < want:
		l.fault(b.TypeRange, "Missing name", "%s needs a name: write %s.", a, m.form())
	case want == 0:
		l.fault(b.LabelRanges[0], "Unexpected name", "%s has no name: write %s.", a, m.form())
	default:
		l.fault(b.LabelRanges[1], "Unexpected name", "%s has one name: write %s.", a, m.form())
	}
	l.suspect(m.name)
	l.lose(b)
	return false
}

// form is how a block is written.
func (m member) form() string {
	if m.labeled {
		return m.name + ` "NAME" { … }`
	}
	return m.name + " { … }"
}

// collect sorts the blocks of all files by their type, in the order of files
// and places, and reports which do not belong there, and those that are missing: at the
// macfleet block or, without it, the start of the first file.
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
	if len(bodies) == 0 {
		return found // every file has its own fault
	}
	at := fileStart(bodies[0].SrcRange.Filename)
	if found["macfleet"] != nil {
		at = found["macfleet"][0].DefRange()
	}
	for _, m := range top.members {
		if says := m.tag.Get("says"); says != "" && found[m.name] == nil && !l.mayStand(m.name) {
			l.fault(at, "Missing block", "The configuration has no %s block, which sets %s. Write %s.", m.name, says, m.form())
		}
	}
	return found
}
