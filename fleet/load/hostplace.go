package load

import (
	"reflect"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/macfleet/macfleet/fleet"
)

// unchanging is the scope of what may not differ from one environment to the
// next: the same server in two of them would have two masters.
const unchanging = "a host belongs to the same environment whichever is chosen. Write the environment's name in quotes"

// environment reads which environment a host is said to belong to, "" where the
// block does not say. It reports false for a fault.
func (r *roster) environment(b hostBlock) (string, bool) {
	attr := b.Place.attrs["environment"]
	if attr == nil {
		return "", true
	}
	var name string
	if !r.assign(attr, &scope{closed: unchanging}, argument{name: "environment"}, reflect.ValueOf(&name).Elem()) {
		return "", false
	}
	const summary = "Unknown environment"
	names := r.envs.names()
	switch at := attr.Expr.Range(); {
	case slices.Contains(names, name):
		return name, true
	case r.mayStand(name) || len(names) == 0 && r.mayStand("environment"):
	case len(names) == 0:
		r.fault(at, summary, "The configuration defines no environment. Leave the argument out, or write environment %s { … }.", quoted(name))
	default:
		r.fault(at, summary, "No environment is named %s.%s The configuration defines %s.", quoted(name), didYouMean(fleet.Nearest(name, names)), listed(names))
	}
	return "", false
}

// group reads the reference fleet.NAME.group.NAME, "" where the block has none.
// It reports false for a fault. The reference is not evaluated: fleets are no
// values.
func (r *roster) group(b hostBlock) (fleetName, group string, ok bool) {
	if b.Group == nil {
		return "", "", true
	}
	const summary = "Invalid group"
	at := b.Group.Range()
	parts, ok := path(b.Group)
	switch text, isText := literal(b.Group); {
	case isText:
		r.fault(at, summary, "The group is a reference, not a text. Write it without quotes: group = %s.", r.unquoted(text))
	case !ok || len(parts) != 4 || parts[0] != "fleet" || parts[2] != "group":
		r.fault(at, summary, "The group is a reference of the form fleet.NAME.group.NAME. Write it so: group = %s.", r.exampleGroup())
	case r.exists(at, parts[1], parts[3], ""):
		return parts[1], parts[3], true
	}
	return "", "", false
}

// exists reports whether there is that fleet with that group, and says what is
// missing; context is put before it.
func (r *roster) exists(at hcl.Range, fleetName, group, context string) bool {
	var fleets, groups []string
	for _, f := range r.fleets {
		fleets = append(fleets, f.Name)
		if f.Name == fleetName {
			for _, g := range f.Groups {
				groups = append(groups, g.Name)
			}
		}
	}
	switch {
	case slices.Contains(groups, group):
		return true
	case !slices.Contains(fleets, fleetName):
		if !r.mayStand(fleetName) {
			r.fault(at, "Unknown fleet", "%sNo fleet is named %s.%s", context, quoted(fleetName), offer("fleet.", fleet.Nearest(fleetName, fleets), fleets))
		}
	case !r.mayStand(group):
		prefix := groupReference(fleetName, "")
		r.fault(at, "Unknown group", "%sThe fleet %q has no group %s.%s", context, fleetName, quoted(group), offer(prefix, fleet.Nearest(group, groups), groups))
	}
	return false
}

// unquoted returns the reference that a text probably means.
func (r *roster) unquoted(text string) string {
	for _, f := range r.fleets {
		for _, g := range f.Groups {
			if ref := groupReference(f.Name, g.Name); ref == strings.TrimSpace(text) {
				return ref
			}
		}
	}
	return r.exampleGroup()
}

// exampleGroup returns a reference to a group that exists, if one does.
func (r *roster) exampleGroup() string {
	for _, f := range r.fleets {
		for _, g := range f.Groups {
			return groupReference(f.Name, g.Name)
		}
	}
	return "fleet.runners.group.m2"
}

// groupReference writes a reference to a group. A name that begins with a digit
// cannot stand behind a dot.
func groupReference(fleetName, group string) string {
	step := func(name string) string {
		if name != "" && !hclsyntax.ValidIdentifier(name) {
			return "[" + quoted(name) + "]"
		}
		return "." + name
	}
	return "fleet" + step(fleetName) + ".group" + step(group)
}

// path returns the names of a reference.
func path(expr hclsyntax.Expression) ([]string, bool) {
	tr, diags := hcl.AbsTraversalForExpr(expr)
	if diags.HasErrors() {
		return nil, false
	}
	names := []string{tr.RootName()}
	for _, step := range tr[1:] {
		name, ok := stepName(step)
		if !ok {
			return nil, false
		}
		names = append(names, name)
	}
	return names, true
}

// literal returns the text of an expression that is one and refers to nothing.
func literal(expr hclsyntax.Expression) (text string, ok bool) {
	if _, isTemplate := expr.(*hclsyntax.TemplateExpr); !isTemplate {
		return "", false
	}
	sound := guarded(func() {
		val, diags := expr.Value(nil)
		if ok = !diags.HasErrors() && val.Type() == cty.String && val.IsKnown() && !val.IsNull(); ok {
			text = val.AsString()
		}
	})
	return text, ok && sound
}
