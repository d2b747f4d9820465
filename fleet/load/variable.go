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
	first := map[string]hcl.Range{}
	for _, b := range decodeAll[variableBlock](l, blocks, &scope{closed: before}) {
		if !hclsyntax.ValidIdentifier(b.Name) {
			l.fault(b.Place.label(), "Invalid name", "The name of the variable cannot be %s: it must be letters, digits, hyphens and underscores, and begin with a letter.", quoted(b.Name))
		}
		v := l.declare(b)
		if l.unique(first, "variable", b.Name, b.Place.label()) {
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
		own = l.fit(v, l.eval(v.block.Default, &scope{closed: before}, plain), v.block.Default.Range(), "the default")
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
		l.fault(at, nullValue, "%s of the variable %q must not be null. Give it a value, or leave it out.", capital(what), v.block.Name)
		return cty.DynamicVal
	}
	var converted cty.Value
	var err error
	if !guarded(func() { converted, err = v.convert(val) }) {
		l.fault(at, wrongType, "%s of the variable %q cannot be converted to its type.", capital(what), v.block.Name)
		return cty.DynamicVal
	}
	if err != nil {
		l.fault(at, wrongType, "%s of the variable %q does not have the type %s: %s.", capital(what), v.block.Name, typeexpr.TypeString(v.typ), withPath(err))
		return cty.DynamicVal
	}
	if tooLargeValue(converted) {
		l.fault(at, tooLarge, "%s of the variable %q is larger than %d bytes.", capital(what), v.block.Name, maxFile)
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

func capital(text string) string { return strings.ToUpper(text[:1]) + text[1:] }
