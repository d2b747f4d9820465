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
	variableBlock
	typ      cty.Type // may have optional attributes
	defaults *typeexpr.Defaults
	faulty   bool // the type is not known
	given    *given
	maybe    bool // some environment gives it a value
}

// given is a value that a variable is given from somewhere else than its
// default: an expression in a file, or a text from outside.
type given struct {
	expr   hclsyntax.Expression // nil: text holds
	scope  *scope
	text   string
	origin string // of the text: the name under which messages show it
}

const unknownVariable = "Unknown variable"

// variables are the declared ones, by name.
type variables struct {
	*loader
	declared map[string]*variable
}

// variables reads the variable blocks and returns the value of each: the last
// of its default, the environment, MACFLEET_VAR_*, --var-file and --var. All
// values that stand in a file of the directory are checked, also those that
// another one hides.
func (l *loader) variables(blocks []*hclsyntax.Block, envs environments) map[string]cty.Value {
	vs := variables{l, map[string]*variable{}}
	for _, b := range decodeAll(l, blocks, &scope{closed: before}, variableBlock{}) {
		if v := l.declare(b); !b.Place.twice {
			vs.declared[b.Name] = v
		}
	}
	for _, e := range envs.all {
		vs.ofEnvironment(e, e.Name == envs.chosen.Name)
	}
	for _, name := range sortedKeys(l.opts.Env) {
		origin := "MACFLEET_VAR_" + name
		if vs.declared[name] != nil {
			vs.declared[name].given = &given{text: l.opts.Env[name], origin: origin}
		} else if !l.mayStand(name) {
			l.report(hcl.DiagWarning, nil, unknownVariable, "%s is set, but no variable is named %s.%s", []any{origin, quoted(name), vs.offer(name)})
		}
	}
	for _, file := range l.opts.VarFiles {
		vs.ofFile(file)
	}
	for _, text := range l.opts.Vars {
		vs.ofArgument(text)
	}
	values := map[string]cty.Value{}
	for name, v := range vs.declared {
		values[name] = l.variable(v, envs)
	}
	return values
}

// declare reads a variable's type.
func (l *loader) declare(b variableBlock) *variable {
	v := &variable{variableBlock: b, typ: cty.DynamicPseudoType}
	if b.Type == nil {
		return v
	}
	var diags hcl.Diagnostics
	if loops(b.Type) || !guarded(func() { v.typ, v.defaults, diags = typeexpr.TypeConstraintWithDefaults(b.Type) }) {
		l.fault(b.Type.Range(), "Invalid type specification", "This is not a type. Write a type such as string, number, bool or list(string).")
		v.faulty = true
		return v
	}
	types := []string{"string", "number", "bool", "list", "map", "set", "object", "tuple", "any", "optional"}
	for _, d := range diags {
		if d.Subject != nil {
			word, _, _ := strings.Cut(string(l.source(*d.Subject)), "(")
			if near := fleet.Nearest(word, types); near != word {
				d.Detail += didYouMean(near)
			}
		}
	}
	l.take(diags, b.Type.Range())
	v.faulty = diags.HasErrors()
	return v
}

// loops reports whether an expression holds a for. The library evaluates the defaults in a type
// by itself, without the budget.
func loops(expr hclsyntax.Expression) (found bool) {
	_ = hclsyntax.VisitAll(expr, func(node hclsyntax.Node) hcl.Diagnostics {
		_, isFor := node.(*hclsyntax.ForExpr)
		found = found || isFor
		return nil
	})
	return found
}

// variable returns the value of v, unknown if it has none.
func (l *loader) variable(v *variable, envs environments) cty.Value {
	own := cty.DynamicVal
	if v.Default != nil {
		own = l.fit(v, l.eval(v.Default, &scope{closed: before}, plain), v.Default.Range(), "The default")
	}
	switch {
	case v.given != nil:
		return l.receive(v, *v.given)
	case !envs.settled && (v.maybe || l.mayStand(v.Name)):
		return cty.DynamicVal // an environment may give it
	case v.Default == nil && !l.mayStand(v.Name):
		l.fault(v.Place.header(), "No value for variable", "The variable %q has no default and no value. Set it with --var %[1]s=…, --var-file, MACFLEET_VAR_%[1]s, or variables in an environment block.", v.Name)
	}
	return own
}

// fit converts a value to the variable's type. A fault gives an unknown value.
func (l *loader) fit(v *variable, val cty.Value, at hcl.Range, what string) cty.Value {
	if v.faulty || !val.IsWhollyKnown() {
		return cty.DynamicVal
	}
	if val.IsNull() {
		l.fault(at, nullValue, "%s of the variable %q must not be null. Give it a value, or leave it out.", what, v.Name)
		return cty.DynamicVal
	}
	err, have := errors.New("it cannot be converted"), val
	guarded(func() {
		if v.defaults != nil {
			val = v.defaults.Apply(val)
		}
		val, err = convert.Convert(val, v.typ)
	})
	switch {
	case err != nil && v.typ.IsPrimitiveType():
		is := typeName(have.Type())
		if text, isText := textOf(have); isText {
			is = quoted(text)
		}
		l.fault(at, wrongType, "%s of the variable %q must be %s; %s is not.", what, v.Name, described(v.typ), is)
	case err != nil:
		l.fault(at, wrongType, "%s of the variable %q must be %s: %s.", what, v.Name, described(v.typ), withPath(err))
	case tooLargeValue(val):
		l.fault(at, tooLarge, "%s of the variable %q is larger than %d bytes.", what, v.Name, maxFile)
	default:
		return val
	}
	return cty.DynamicVal
}

// described names the type of a variable for a sentence: "a number", or "of type list(string)".
func described(t cty.Type) string {
	if t.IsPrimitiveType() {
		return typeName(t)
	}
	return "of type " + typeexpr.TypeString(t)
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

// ofEnvironment reads the variables of an environment block. Those of one that is not
// chosen are evaluated for their faults.
func (vs variables) ofEnvironment(e environmentBlock, chosen bool) {
	if e.Variables == nil {
		return
	}
	object, ok := e.Variables.(*hclsyntax.ObjectConsExpr)
	if !ok {
		vs.fault(e.Variables.Range(), wrongType, "The argument %q must be a literal map, { name = value, … }.", "variables")
		return
	}
	first := map[string]hcl.Range{}
	for _, item := range object.Items {
		at := item.KeyExpr.Range()
		name, ok := constant(item.KeyExpr)
		if !ok {
			vs.fault(at, unknownVariable, "This must be the name of a variable.")
			continue
		}
		if !vs.unique(first, "value", name, at) {
			continue
		}
		if v := vs.declaredAt(at, name); v != nil {
			g := given{expr: item.ValueExpr, scope: &scope{closed: before}}
			v.maybe = true
			if chosen {
				v.given = &g
			} else {
				vs.receive(v, g)
			}
		}
	}
}

// ofFile reads a variable file.
func (vs variables) ofFile(file VarFile) {
	name := file.Name
	if vs.files[name] != nil {
		name = "--var-file " + name
	}
	body := vs.parseFile(name, file.Content)
	if body == nil {
		return
	}
	for _, b := range body.Blocks {
		vs.fault(b.TypeRange, "Unsupported block", "A variable file holds only values, name = value.")
	}
	for key, attr := range body.Attributes {
		if v := vs.declaredAt(attr.NameRange, key); v != nil {
			v.given = &given{expr: attr.Expr, scope: &scope{closed: outside}}
		}
	}
}

// ofArgument reads a "name=value".
func (vs variables) ofArgument(text string) {
	name, value, found := strings.Cut(text, "=")
	switch v := vs.declared[name]; {
	case !found || name == "":
		vs.faultOutside("Invalid --var", "--var takes NAME=VALUE, not %s.", quoted(text))
	case v != nil:
		v.given = &given{text: value, origin: "--var " + name}
	case !vs.mayStand(name):
		vs.faultOutside(unknownVariable, "--var gives a value to %s, but no variable has that name.%s", quoted(name), vs.offer(name))
	}
}

// declaredAt returns the variable to which a file gives a value, or nil.
func (vs variables) declaredAt(at hcl.Range, name string) *variable {
	if vs.declared[name] == nil && !vs.mayStand(name) {
		vs.fault(at, unknownVariable, "No variable is named %s.%s", quoted(name), vs.offer(name))
	}
	return vs.declared[name]
}

func (vs variables) offer(name string) string {
	names := sortedKeys(vs.declared)
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
	var expr hclsyntax.Expression
	var diags hcl.Diagnostics
	if fault := excess(g.origin, content); fault != nil {
		diags = hcl.Diagnostics{fault}
	} else {
		expr, diags = hclsyntax.ParseExpression(content, g.origin, hcl.InitialPos)
	}
	if diags.HasErrors() {
		l.fault(whole, invalidValue, "The variable %q, declared at %s, must be %s, written as HCL: %s", v.Name, where(v.Place.header()), described(v.typ), diags.Errs()[0].(*hcl.Diagnostic).Detail)
		return cty.DynamicVal
	}
	if tr := expr.Variables(); len(tr) > 0 {
		if v.typ == cty.DynamicPseudoType {
			l.fault(whole, invalidValue, "The value of the variable %q cannot refer to anything, because %s.%s", v.Name, outside, quotesHint(tr[0]))
		} else {
			l.fault(whole, invalidValue, "The variable %q, declared at %s, must be %s; %s is not.", v.Name, where(v.Place.header()), described(v.typ), quoted(g.text))
		}
		return cty.DynamicVal
	}
	return l.fit(v, l.eval(expr, &scope{closed: outside}, plain), expr.Range(), "The value")
}
