package load

import (
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/macfleet/macfleet/fleet"
)

// variable is a declared variable.
type variable struct {
	block    variableBlock
	typ      cty.Type // may have optional attributes
	defaults *typeexpr.Defaults
	faulty   bool // the type is not known
}

// variables reads the variable blocks and returns the value of each: the last
// of its default, the environment, MACFLEET_VAR_*, --var-file and --var. All
// values that stand in a file of the directory are checked, also those that
// another one hides.
func (l *loader) variables(blocks []*hclsyntax.Block, envs environments) map[string]cty.Value {
	declared := map[string]*variable{}
	order := []*variable{}
	for _, b := range decodeAll(l, blocks, &scope{closed: before}, variableBlock{}) {
		v := l.declare(b)
		if !b.Place.twice {
			declared[b.Name] = v
			order = append(order, v)
		}
	}
	given := l.given(declared, envs)
	values := map[string]cty.Value{}
	for _, v := range order {
		values[v.block.Name] = l.variable(v, given, envs)
	}
	return values
}

// declare reads a variable's type.
func (l *loader) declare(b variableBlock) *variable {
	v := &variable{block: b, typ: cty.DynamicPseudoType}
	if b.Type == nil {
		return v
	}
	var diags hcl.Diagnostics
	if !guarded(func() { v.typ, v.defaults, diags = typeexpr.TypeConstraintWithDefaults(b.Type) }) {
		l.fault(b.Type.Range(), "Invalid type specification", "This is no type. Write a type such as string, number, bool or list(string).")
		v.faulty = true
		return v
	}
	for _, d := range diags {
		if d.Subject != nil {
			word, _, _ := strings.Cut(string(l.source(*d.Subject)), "(")
			d.Detail += didYouMean(misspelledType(word))
		}
	}
	l.take(diags, b.Type.Range())
	v.faulty = diags.HasErrors()
	return v
}

func misspelledType(word string) string {
	types := []string{"string", "number", "bool", "list", "map", "set", "object", "tuple", "any", "optional"}
	if near := fleet.Nearest(word, types); near != word {
		return near
	}
	return ""
}

// variable returns the value of v, unknown where it is not to be had.
func (l *loader) variable(v *variable, given map[string]given, envs environments) cty.Value {
	var own cty.Value
	if v.block.Default != nil {
		own = l.fit(v, l.eval(v.block.Default, &scope{closed: before}, plain), v.block.Default.Range(), "The default")
	}
	name := v.block.Name
	switch g, ok := given[name]; {
	case ok:
		return l.receive(v, g)
	case !envs.settled && (l.mayStand(name) || envs.mention(name)):
		return cty.DynamicVal // an environment may give it
	case v.block.Default != nil:
		return own
	case !l.mayStand(name):
		l.fault(v.block.Place.header(), "No value for variable", "The variable %q has no default and no value. Give one with --var %s=…, in a file for --var-file, in the environment variable MACFLEET_VAR_%s, or in variables of an environment block.", name, name, name)
	}
	return cty.DynamicVal
}

// fit converts a value to the variable's type. A fault gives an unknown value.
func (l *loader) fit(v *variable, val cty.Value, at hcl.Range, what string) cty.Value {
	if v.faulty || !val.IsWhollyKnown() {
		return cty.DynamicVal
	}
	if val.IsNull() {
		l.fault(at, nullValue, "%s of the variable %q must not be null. Give it a value, or leave it out.", what, v.block.Name)
		return cty.DynamicVal
	}
	var converted cty.Value
	var err error
	if !guarded(func() { converted, err = v.convert(val) }) {
		l.fault(at, wrongType, "%s of the variable %q cannot be converted to its type.", what, v.block.Name)
		return cty.DynamicVal
	}
	if err != nil {
		l.fault(at, wrongType, "%s of the variable %q does not have the type %s: %s.", what, v.block.Name, typeexpr.TypeString(v.typ), withPath(err))
		return cty.DynamicVal
	}
	if tooLargeValue(converted) {
		l.fault(at, tooLarge, "%s of the variable %q is larger than %d bytes.", what, v.block.Name, maxFile)
		return cty.DynamicVal
	}
	return converted
}

func (v *variable) convert(val cty.Value) (cty.Value, error) {
	if v.defaults != nil {
		val = v.defaults.Apply(val)
	}
	return convert.Convert(val, v.typ)
}

// withPath says which part of a value an error concerns.
func withPath(err error) string {
	var at cty.PathError
	if !errors.As(err, &at) {
		return err.Error()
	}
	var b strings.Builder
	for _, step := range at.Path {
		switch s := step.(type) {
		case cty.GetAttrStep:
			b.WriteString("." + s.Name)
		case cty.IndexStep:
			if s.Key.Type() == cty.String {
				fmt.Fprintf(&b, "[%s]", quoted(s.Key.AsString()))
			} else if s.Key.Type() == cty.Number {
				fmt.Fprintf(&b, "[%s]", s.Key.AsBigFloat().Text('f', 0))
			}
		}
	}
	return strings.TrimPrefix(b.String()+": ", ": ") + err.Error()
}

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
		return l.fit(v, l.eval(g.expr, g.scope, plain), g.expr.Range(), "The value")
	}
	content := []byte(g.text)
	l.files[g.origin] = &hcl.File{Bytes: content}
	whole := hcl.Range{Filename: g.origin, Start: hcl.InitialPos, End: hcl.Pos{Line: 1, Column: 1 + len(content), Byte: len(content)}}
	if v.typ == cty.String {
		return l.fit(v, cty.StringVal(g.text), whole, "The value")
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
	return l.fit(v, l.eval(expr, g.scope, plain), expr.Range(), "The value")
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
