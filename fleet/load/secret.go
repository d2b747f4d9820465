package load

import (
	"errors"
	"reflect"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"

	"github.com/macfleet/macfleet/internal/secret"
)

// secretType is the type of what secret() returns. Two calls of cty.Capsule
// would make two types, so it is made once.
var secretType = cty.Capsule("secret", reflect.TypeFor[secret.Ref]())

// secretFunction is secret("scheme://path"): a reference, not its secret.
func secretFunction() function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "reference", Type: cty.String}},
		Type:   function.StaticReturnType(secretType),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			ref, err := secret.ParseRef(args[0].AsString())
			if err != nil {
				return cty.NilVal, function.NewArgError(0, errors.New(withoutText(err)))
			}
			return cty.CapsuleVal(secretType, &ref), nil
		},
	})
}

// withoutText drops the text that ParseRef quotes at the start of its error: a
// text that is no reference may be a secret itself.
func withoutText(err error) string {
	_, rest, found := strings.Cut(err.Error(), "is not a secret reference: ")
	if !found {
		return "this is not a secret reference"
	}
	return rest
}

// assignSecret evaluates an argument of type secret.
func (l *loader) assignSecret(attr *hclsyntax.Attribute, sc *scope, field reflect.Value) bool {
	val, ok := l.value(attr, sc, asSecret)
	if !ok {
		return false
	}
	if val.Type() != secretType {
		l.mask(attr.Expr.Range())
		l.fault(attr.Expr.Range(), wrongType, "The argument %q must be a secret, not %s. A secret never stands in a configuration: write secret(\"…\") with the place where it is found, for example secret(\"file://path\").", attr.Name, describe(val))
		return false
	}
	ref, ok := val.EncapsulatedValue().(*secret.Ref)
	if !ok {
		return false
	}
	field.Set(reflect.ValueOf(*ref))
	return true
}

// mask stars a text out in what is kept of its file, so that a diagnostic can
// show the line and not the secret that somebody wrote there.
func (l *loader) mask(rng hcl.Range) {
	for i, b := range l.source(rng) {
		if b != '"' && b != '\n' {
			l.source(rng)[i] = '*'
		}
	}
}

// secretCalls marks the calls of secret() whose result is the value of the
// whole expression: alone, in parentheses, or as a branch of a condition.
func secretCalls(expr hclsyntax.Expression, found map[*hclsyntax.FunctionCallExpr]bool) {
	switch e := expr.(type) {
	case *hclsyntax.FunctionCallExpr:
		found[e] = true
	case *hclsyntax.ParenthesesExpr:
		secretCalls(e.Expression, found)
	case *hclsyntax.ConditionalExpr:
		secretCalls(e.TrueResult, found)
		secretCalls(e.FalseResult, found)
	}
}
