package load

import (
	"fmt"
	"math/big"
	"reflect"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/gocty"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/secret"
)

// maxNumber bounds a whole number whose field has no tag "max": 11 days in
// seconds, two years in minutes.
const maxNumber = 1_000_000

const (
	wrongType = "Wrong type"
	nullValue = "Null value"
	badNumber = "Number out of range"
)

// assign evaluates an argument into a field and reports whether it has a value
// of the field's type. Types are not converted: "2" is no number.
func (l *loader) assign(attr *hclsyntax.Attribute, sc *scope, a argument, field reflect.Value) bool {
	if field.Type() == reflect.TypeFor[hclsyntax.Expression]() {
		field.Set(reflect.ValueOf(attr.Expr)) // the caller evaluates it
		return true
	}
	if field.Kind() == reflect.Pointer {
		value := reflect.New(field.Type().Elem())
		if !l.assign(attr, sc, a, value.Elem()) {
			return false
		}
		field.Set(value)
		return true
	}
	if field.Type() == reflect.TypeFor[secret.Ref]() {
		return l.assignSecret(attr, sc, field)
	}
	if field.Type() == reflect.TypeFor[fleet.Artifact]() {
		return l.assignArtifact(attr, sc, field)
	}
	val, ok := l.value(attr, sc, plain)
	if !ok {
		return false
	}
	if field.Type() == reflect.TypeFor[time.Duration]() {
		return l.duration(attr, val, a, field)
	}
	if field.CanInt() {
		return l.wholeNumber(attr, val, a, field)
	}
	return l.convert(attr, val, field) && l.texts(attr, a, field)
}

// value evaluates an argument. It reports false for a fault, a null, and for a
// value that is unknown because of a fault elsewhere.
func (l *loader) value(attr *hclsyntax.Attribute, sc *scope, use purpose) (cty.Value, bool) {
	val := l.eval(attr.Expr, sc, use)
	switch {
	case !val.IsWhollyKnown():
		l.unknown = true
		return val, false
	case val.IsNull():
		l.fault(attr.Expr.Range(), nullValue, "The argument %q must not be null. Give it a value, or leave it out.", attr.Name)
		return val, false
	}
	return val, true
}

// convert stores a known value in a field that is no pointer, number or secret.
func (l *loader) convert(attr *hclsyntax.Attribute, val cty.Value, field reflect.Value) bool {
	if field.Type() == reflect.TypeFor[cty.Value]() {
		field.Set(reflect.ValueOf(val))
		return true
	}
	want, err := gocty.ImpliedType(field.Interface())
	if err != nil {
		l.fault(attr.Expr.Range(), wrongType, "The argument %q cannot be read by this version of macfleet: %s.", attr.Name, err)
		return false
	}
	if i, have := misfit(val, want); have != "" {
		at := attr.Expr.Range()
		if i >= 0 {
			at = elementRange(attr.Expr, i)
		}
		l.fault(at, wrongType, "The argument %q must be %s, not %s.%s", attr.Name, typeName(want), have, unquoteHint(val, want))
		return false
	}
	if val, err = convert.Convert(val, want); err == nil {
		err = gocty.FromCtyValue(val, field.Addr().Interface())
	}
	if err != nil {
		l.fault(attr.Expr.Range(), wrongType, "The argument %q must be %s: %s.", attr.Name, typeName(want), err)
		return false
	}
	return true
}

// wholeNumber stores a whole number within the bounds of its field.
func (l *loader) wholeNumber(attr *hclsyntax.Attribute, val cty.Value, a argument, field reflect.Value) bool {
	if val.Type() != cty.Number {
		l.fault(attr.Expr.Range(), wrongType, "The argument %q must be a whole number, not %s.%s", attr.Name, describe(val), unquoteHint(val, cty.Number))
		return false
	}
	n, accuracy := val.AsBigFloat().Int64()
	if accuracy != big.Exact || n < int64(a.least) || n > a.most {
		l.fault(attr.Expr.Range(), badNumber, "The argument %q must be a whole number from %d to %d.", attr.Name, a.least, a.most)
		return false
	}
	field.SetInt(n)
	return true
}

// longestDuration bounds every duration.
const longestDuration = time.Hour

// duration stores a duration within the bounds of its field.
func (l *loader) duration(attr *hclsyntax.Attribute, val cty.Value, a argument, field reflect.Value) bool {
	var text string
	if !l.convert(attr, val, reflect.ValueOf(&text).Elem()) {
		return false
	}
	const summary = "Invalid duration"
	d, err := time.ParseDuration(text)
	switch at := attr.Expr.Range(); {
	case err != nil:
		l.fault(at, summary, "The argument %q must be a duration such as \"20s\" or \"1m30s\", not %s.", a.name, quoted(text))
	case d < a.shortest || d > longestDuration:
		l.fault(at, summary, "The argument %q must be from %s to %s, not %s.", a.name, a.shortest, "1h", quoted(text))
	case a.shortest >= time.Second && d%time.Second != 0:
		l.fault(at, summary, "The argument %q must be whole seconds, because the host counts them, not %s.", a.name, quoted(text))
	default:
		field.SetInt(int64(d))
		return true
	}
	return false
}

// misfit returns "" when val is of the type want without a conversion that
// changes what was written. Otherwise it describes what val is; i is the index
// of the faulty element of a list, or -1.
func misfit(val cty.Value, want cty.Type) (i int, have string) {
	t := val.Type()
	sequence := t.IsTupleType() || t.IsListType() || t.IsSetType()
	mapping := t.IsObjectType() || t.IsMapType()
	switch {
	case val.IsNull():
		return -1, "null"
	case want.IsPrimitiveType() && t != want,
		(want.IsListType() || want.IsSetType()) && !sequence,
		(want.IsMapType() || want.IsObjectType()) && !mapping:
		return -1, describe(val)
	case !want.IsListType() && !want.IsSetType() && !want.IsMapType():
		return -1, ""
	}
	n := 0
	for it := val.ElementIterator(); it.Next(); n++ {
		_, element := it.Element()
		if _, inner := misfit(element, want.ElementType()); inner != "" {
			if mapping {
				return -1, "one with " + inner + " in it"
			}
			return n, "one with " + inner + " in it"
		}
	}
	return -1, ""
}

// describe names a value's type for a sentence.
func describe(val cty.Value) string {
	if val.IsNull() {
		return "null"
	}
	return typeName(val.Type())
}

func typeName(t cty.Type) string {
	switch {
	case t == cty.String:
		return "a text"
	case t == cty.Number:
		return "a number"
	case t == cty.Bool:
		return "true or false"
	case t == artifactType:
		return "an artifact"
	case t.IsCapsuleType():
		return "a secret"
	case t.IsListType() || t.IsSetType():
		return "a list of " + plural(t.ElementType())
	case t.IsTupleType():
		return "a list"
	case t.IsMapType() && t.ElementType().IsPrimitiveType():
		return "a map of " + plural(t.ElementType())
	case t.IsMapType() || t.IsObjectType():
		return "a map"
	}
	return "a value of another type"
}

func plural(t cty.Type) string {
	switch t {
	case cty.String:
		return "texts"
	case cty.Number:
		return "numbers"
	case cty.Bool:
		return "booleans"
	}
	return "values"
}

// unquoteHint helps where only the quotes are wrong.
func unquoteHint(val cty.Value, want cty.Type) string {
	switch {
	case want == cty.String && val.Type().IsPrimitiveType():
		return " Put it in quotes."
	case want.IsPrimitiveType() && val.Type() == cty.String:
		if _, err := convert.Convert(val, want); err == nil {
			return " Write it without quotes."
		}
	case want.IsListType() && val.Type() == cty.String:
		return fmt.Sprintf(" Write it in brackets, [%s].", quoted(val.AsString()))
	}
	return ""
}

// elementRange returns the place of the i-th element where a list is written
// out, otherwise that of the whole expression.
func elementRange(expr hcl.Expression, i int) hcl.Range {
	if tuple, ok := expr.(*hclsyntax.TupleConsExpr); ok && i < len(tuple.Exprs) {
		return tuple.Exprs[i].Range()
	}
	return expr.Range()
}
