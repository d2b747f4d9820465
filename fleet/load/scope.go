package load

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// scope is what an expression may refer to.
type scope struct {
	// closed says why nothing may be referred to; "" = what follows may.
	closed string
	vars   map[string]cty.Value
	locals map[string]cty.Value
	env    map[string]cty.Value // nil: no environment is defined
	chosen string               // name of the environment; may be ""

	artifacts map[string]cty.Value // unknown where the block is faulty
}

// Reasons for a closed scope. Each completes "Nothing can be referred to here".
const (
	before  = "this is read before variables, locals and the environment have values. Write the value itself"
	outside = "this value comes from outside the configuration"
)

// purpose is what an expression's value is for.
type purpose int

const (
	plain      purpose = iota
	asSecret           // secret() may be called
	asArtifact         // artifact.NAME may be referred to
)

// eval evaluates an expression. A fault is reported and gives an unknown value,
// as does a reference to an unknown one.
func (l *loader) eval(expr hclsyntax.Expression, sc *scope, use purpose) cty.Value {
	if !l.sound(expr, sc, use) {
		return cty.DynamicVal
	}
	var val cty.Value
	var diags hcl.Diagnostics
	if !guarded(func() { val, diags = expr.Value(l.context(expr, sc)) }) {
		l.fault(expr.Range(), "Unusable expression", "This expression cannot be evaluated. Write it in another way.")
		return cty.DynamicVal
	}
	l.take(diags, expr.Range())
	if diags.HasErrors() {
		return cty.DynamicVal
	}
	return val
}

// sound reports whether all that an expression refers to exists and has a
// value. It says what does not, once and with a suggestion, so that the
// evaluator never gets to it.
func (l *loader) sound(expr hclsyntax.Expression, sc *scope, use purpose) bool {
	sound := true
	for _, tr := range expr.Variables() {
		if !l.reference(tr, sc, use) {
			sound = false
		}
	}
	return l.calls(expr, use) && sound
}

// context holds what the expression refers to and no more.
func (l *loader) context(expr hclsyntax.Expression, sc *scope) *hcl.EvalContext {
	used := map[string]map[string]cty.Value{}
	for _, tr := range expr.Variables() {
		root, name, _ := split(tr)
		if used[root] == nil {
			used[root] = map[string]cty.Value{}
		}
		used[root][name] = sc.values(root)[name]
	}
	ctx := &hcl.EvalContext{Functions: l.functions, Variables: map[string]cty.Value{}}
	for root, values := range used {
		ctx.Variables[root] = cty.ObjectVal(values)
	}
	return ctx
}

func (sc *scope) values(root string) map[string]cty.Value {
	switch root {
	case "var":
		return sc.vars
	case "local":
		return sc.locals
	case "artifact":
		return sc.artifacts
	}
	return sc.env
}

// guarded runs f and reports false when it panics: the HCL and cty libraries do
// so on some input that no one writes in earnest.
func guarded(f func()) (ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	f()
	return true
}
