package load

import (
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/macfleet/macfleet/fleet"
)

// given is a value that a variable is given from somewhere else than its
// default: an expression in a file, or a text from outside.
type given struct {
	expr   hclsyntax.Expression // nil: text holds
	text   string
	origin string // of the text: the name under which messages show it
	scope  *scope
}

const unknownVariable = "Unknown variable"

// given gathers what is given to the declared variables, the last one winning.
func (l *loader) given(declared map[string]*variable, envs environments) map[string]given {
	all := map[string]given{}
	for i := range envs.all {
		e := &envs.all[i]
		for name, g := range l.ofEnvironment(e, declared) {
			if envs.chosen != nil && e.Name == envs.chosen.Name {
				all[name] = g
			} else {
				l.receive(declared[name], g) // for its faults
			}
		}
	}
	for _, name := range sortedKeys(l.opts.Env) {
		origin := "MACFLEET_VAR_" + name
		if declared[name] != nil {
			all[name] = given{text: l.opts.Env[name], origin: origin, scope: &scope{closed: outside}}
		} else if !l.mayStand(name) {
			l.report(hcl.DiagWarning, nil, unknownVariable, "%s is set, but no variable is named %s.%s", []any{origin, quoted(name), l.offerVariable(name, declared)})
		}
	}
	for _, file := range l.opts.VarFiles {
		l.ofFile(file, declared, all)
	}
	for _, text := range l.opts.Vars {
		l.ofArgument(text, declared, all)
	}
	return all
}

// ofEnvironment reads the variables of an environment block.
func (l *loader) ofEnvironment(e *environmentBlock, declared map[string]*variable) map[string]given {
	all := map[string]given{}
	if e.Variables == nil {
		return all
	}
	object, ok := e.Variables.(*hclsyntax.ObjectConsExpr)
	if !ok {
		l.fault(e.Variables.Range(), wrongType, "The argument %q must be written out as a map, { name = value, … }.", "variables")
		return all
	}
	first := map[string]hcl.Range{}
	for _, item := range object.Items {
		at := item.KeyExpr.Range()
		name := hcl.ExprAsKeyword(item.KeyExpr)
		if name == "" {
			if key, diags := item.KeyExpr.Value(nil); !diags.HasErrors() && key.Type() == cty.String && key.IsKnown() && !key.IsNull() {
				name = key.AsString()
			}
		}
		switch {
		case name == "":
			l.fault(at, unknownVariable, "This must be the name of a variable.")
		case !l.unique(first, "value", name, at):
		case l.declaredAt(at, name, declared):
			all[name] = given{expr: item.ValueExpr, scope: &scope{closed: before}}
		}
	}
	return all
}

// ofFile reads a variable file.
func (l *loader) ofFile(file VarFile, declared map[string]*variable, all map[string]given) {
	name := file.Name
	if l.files[name] != nil {
		name = "--var-file " + name
	}
	body := l.parseFile(name, file.Content)
	if body == nil {
		return
	}
	for _, b := range body.Blocks {
		l.fault(b.TypeRange, "Unsupported block", "A variable file holds only values, name = value.")
	}
	for _, key := range sortedKeys(body.Attributes) {
		attr := body.Attributes[key]
		if l.declaredAt(attr.NameRange, key, declared) {
			all[key] = given{expr: attr.Expr, scope: &scope{closed: outside}}
		}
	}
}

// ofArgument reads a "name=value".
func (l *loader) ofArgument(text string, declared map[string]*variable, all map[string]given) {
	name, value, found := strings.Cut(text, "=")
	switch {
	case !found || name == "":
		l.faultOutside("Invalid --var", "--var takes NAME=VALUE, not %s.", quoted(text))
	case declared[name] != nil:
		all[name] = given{text: value, origin: "--var " + name, scope: &scope{closed: outside}}
	case !l.mayStand(name):
		l.faultOutside(unknownVariable, "--var gives a value to %s, but no variable has that name.%s", quoted(name), l.offerVariable(name, declared))
	}
}

// declaredAt reports whether the variable exists to which a file gives a value.
func (l *loader) declaredAt(at hcl.Range, name string, declared map[string]*variable) bool {
	if declared[name] == nil && !l.mayStand(name) {
		l.fault(at, unknownVariable, "No variable is named %s.%s", quoted(name), l.offerVariable(name, declared))
	}
	return declared[name] != nil
}

func (l *loader) offerVariable(name string, declared map[string]*variable) string {
	names := sortedKeys(declared)
	return offer("", fleet.Nearest(name, names), names)
}

// receive evaluates what a variable is given. A text for a variable of type
// string is its value as it is; for any other it is an HCL expression.
func (l *loader) receive(v *variable, g given) cty.Value {
	if g.expr != nil {
		return l.fit(v, l.eval(g.expr, g.scope, plain), g.expr.Range(), "the value")
	}
	content := []byte(g.text)
	l.files[g.origin] = &hcl.File{Bytes: content}
	whole := hcl.Range{Filename: g.origin, Start: hcl.InitialPos, End: hcl.Pos{Line: 1, Column: 1 + len(content), Byte: len(content)}}
	if v.typ == cty.String {
		return l.fit(v, cty.StringVal(g.text), whole, "the value")
	}
	expr, fault := parseText(g.origin, content)
	if fault != nil {
		l.fault(whole, "Invalid value", "The variable %q is not of type string, so this text must be an HCL expression: %s", v.block.Name, fault.Detail)
		return cty.DynamicVal
	}
	if tr := expr.Variables(); len(tr) > 0 {
		hint := ""
		if v.typ == cty.DynamicPseudoType {
			hint = quotesHint(tr[0])
		}
		l.fault(whole, "Invalid value", "The variable %q has the type %s, so this text must be an expression of that type, which can refer to nothing.%s", v.block.Name, typeexpr.TypeString(v.typ), hint)
		return cty.DynamicVal
	}
	return l.fit(v, l.eval(expr, g.scope, plain), expr.Range(), "the value")
}

// parseText parses one expression; the diagnostic is nil when it is sound.
func parseText(origin string, content []byte) (hclsyntax.Expression, *hcl.Diagnostic) {
	if fault := excess(origin, content); fault != nil {
		return nil, fault
	}
	expr, diags := hclsyntax.ParseExpression(content, origin, hcl.InitialPos)
	for _, d := range diags {
		if d.Severity == hcl.DiagError {
			return nil, d
		}
	}
	return expr, nil
}

// mention reports whether an environment gives a value to the variable.
func (e environments) mention(name string) bool {
	for _, env := range e.all {
		object, ok := env.Variables.(*hclsyntax.ObjectConsExpr)
		if !ok {
			continue
		}
		for _, item := range object.Items {
			if hcl.ExprAsKeyword(item.KeyExpr) == name {
				return true
			}
		}
	}
	return false
}
