package load

import (
	"cmp"
	"fmt"
	"math/big"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
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

// assign evaluates an argument into a field with those tags and reports whether it
// has a value of the field's type. Types are not converted: "2" is not a number.
func (l *loader) assign(attr *hclsyntax.Attribute, sc *scope, tag reflect.StructTag, field reflect.Value) bool {
	switch field.Type() {
	case reflect.TypeFor[hclsyntax.Expression]():
		field.Set(reflect.ValueOf(attr.Expr)) // the caller evaluates it
		return true
	case reflect.TypeFor[secret.Ref]():
		return l.capsule(attr, sc, asSecret, secretType, field, l.noSecret)
	case reflect.TypeFor[fleet.Artifact]():
		return l.capsule(attr, sc, asArtifact, artifactType, field, l.noObject("artifact"))
	case reflect.TypeFor[fleet.GitHubApp]():
		return l.capsule(attr, sc, asApp, appType, field, l.noObject("github_app"))
	case reflect.TypeFor[fleet.Known]():
		return l.known(attr, sc, tag, field)
	}
	if field.Kind() == reflect.Pointer {
		value := reflect.New(field.Type().Elem())
		if !l.assign(attr, sc, tag, value.Elem()) {
			return false
		}
		field.Set(value)
		return true
	}
	val, ok := l.value(attr, sc, plain)
	switch {
	case !ok:
		return false
	case field.Type() == reflect.TypeFor[fleet.Share]():
		share, ok := parseShare(val)
		if !ok {
			l.fault(attr.Expr.Range(), "Invalid share", "The argument %q must be a number of hosts from 1 to %d, or a share from \"1%%\" to \"100%%\".", attr.Name, maxHosts)
		}
		field.Set(reflect.ValueOf(share))
		return ok
	case field.Type() == reflect.TypeFor[time.Duration]():
		return l.duration(attr, val, tag, field)
	case field.CanInt():
		return l.wholeNumber(attr, val, tag, field)
	}
	return l.convert(attr, val, field) && l.texts(attr, tag, field)
}

// capsule evaluates an argument whose value is a Go value inside a cty value. wrong
// reports a value of any other type.
func (l *loader) capsule(attr *hclsyntax.Attribute, sc *scope, use purpose, want cty.Type, field reflect.Value, wrong func(*hclsyntax.Attribute, *scope, cty.Value)) bool {
	val, ok := l.value(attr, sc, use)
	if ok && val.Type() != want {
		wrong(attr, sc, val)
		return false
	}
	if ok {
		field.Set(reflect.ValueOf(val.EncapsulatedValue()).Elem())
	}
	return ok
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
	want, err := gocty.ImpliedType(field.Interface())
	if err == nil {
		if i, have := misfit(val, want); have != "" {
			l.fault(elementRange(attr.Expr, i), wrongType, "The argument %q must be %s, not %s.%s", attr.Name, typeName(want), have, unquoteHint(val, want))
			return false
		}
		val, err = convert.Convert(val, want)
	}
	if err == nil {
		err = gocty.FromCtyValue(val, field.Addr().Interface())
	}
	if err != nil {
		l.fault(attr.Expr.Range(), wrongType, "The argument %q must be %s: %s.", attr.Name, typeName(want), err)
		return false
	}
	return true
}

// wholeNumber stores a whole number within the bounds of its field.
func (l *loader) wholeNumber(attr *hclsyntax.Attribute, val cty.Value, tag reflect.StructTag, field reflect.Value) bool {
	if val.Type() != cty.Number {
		l.fault(attr.Expr.Range(), wrongType, "The argument %q must be a whole number, not %s.%s", attr.Name, typeName(val.Type()), unquoteHint(val, cty.Number))
		return false
	}
	least, most := bound(tag, "least", 0), bound(tag, "max", maxNumber)
	n, accuracy := val.AsBigFloat().Int64()
	if accuracy != big.Exact || n < least || n > most {
		l.fault(attr.Expr.Range(), badNumber, "The argument %q must be a whole number from %d to %d.", attr.Name, least, most)
		return false
	}
	field.SetInt(n)
	return true
}

// bound returns the number that a tag holds.
func bound(tag reflect.StructTag, key string, otherwise int64) int64 {
	if n, err := strconv.ParseInt(tag.Get(key), 10, 64); err == nil {
		return n
	}
	return otherwise
}

// duration stores a duration within the bounds of its field.
func (l *loader) duration(attr *hclsyntax.Attribute, val cty.Value, tag reflect.StructTag, field reflect.Value) bool {
	var text string
	if !l.convert(attr, val, reflect.ValueOf(&text).Elem()) {
		return false
	}
	const summary = "Invalid duration"
	least, most := durationBounds(tag)
	shortest, _ := time.ParseDuration(least) // a constant tag, as the other
	longest, _ := time.ParseDuration(most)
	d, err := time.ParseDuration(text)
	switch at := attr.Expr.Range(); {
	case err != nil:
		l.fault(at, summary, "The argument %q must be a duration such as \"20s\" or \"1m30s\", not %s.", attr.Name, quoted(text))
	case d < shortest || d > longest:
		l.fault(at, summary, "The argument %q must be from %s to %s, not %s.", attr.Name, least, most, quoted(text))
	case shortest >= time.Second && d%time.Second != 0:
		l.fault(at, summary, "The argument %q must be in whole seconds, not %s.", attr.Name, quoted(text))
	default:
		field.SetInt(int64(d))
		return true
	}
	return false
}

// durationBounds returns the shortest and the longest duration that the tags of a field allow.
func durationBounds(tag reflect.StructTag) (shortest, longest string) {
	return cmp.Or(tag.Get("shortest"), "0s"), cmp.Or(tag.Get("longest"), "1h")
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
		return -1, typeName(val.Type())
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

// primitives are one value of a type, and several. Other types cannot be elements.
var primitives = map[cty.Type][2]string{
	cty.String: {"a string", "strings"}, cty.Number: {"a number", "numbers"}, cty.Bool: {"true or false", "booleans"},
}

// typeName names a type for a sentence.
func typeName(t cty.Type) string {
	switch {
	case t.IsPrimitiveType():
		return primitives[t][0]
	case t == artifactType:
		return objects["artifact"].one
	case t == appType:
		return objects["github_app"].one
	case t.IsCapsuleType():
		return "a secret"
	case (t.IsListType() || t.IsSetType()) && t.ElementType().IsPrimitiveType():
		return "a list of " + primitives[t.ElementType()][1]
	case t.IsListType() || t.IsSetType():
		return "a list of values"
	case t.IsTupleType():
		return "a list"
	case t.IsMapType() && t.ElementType().IsPrimitiveType():
		return "a map of " + primitives[t.ElementType()][1]
	case t.IsMapType() || t.IsObjectType():
		return "a map"
	}
	return "a value of another type"
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
		if want == cty.Number {
			return numberHint(val.AsString())
		}
	case want.IsListType() && val.Type() == cty.String:
		return fmt.Sprintf(" Write it in brackets, [%s].", quoted(val.AsString()))
	}
	return ""
}

// numberHint helps where a number has a unit, or is a word.
func numberHint(text string) string {
	switch strings.ToLower(text) {
	case "never", "off", "none", "no", "disabled":
		return " Write 0, without quotes."
	}
	if number := strings.TrimRight(text, " %abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"); number != "" && number != text {
		if _, err := strconv.ParseFloat(number, 64); err == nil {
			return " Write only the number, without a unit and without quotes."
		}
	}
	return ""
}

// elementRange returns the place of the i-th element where a list is written
// out, otherwise that of the whole expression, as for i = -1.
func elementRange(expr hcl.Expression, i int) hcl.Range {
	if tuple, ok := expr.(*hclsyntax.TupleConsExpr); ok && i >= 0 && i < len(tuple.Exprs) {
		return tuple.Exprs[i].Range()
	}
	return expr.Range()
}

// entryFault says what is wrong with an entry of a map, or "".
func entryFault(kind, key, value string) string {
	switch kind {
	case "label":
		return fleet.CheckLabel(key, value)
	case "host_key":
		return hostKeyFault(value)
	}
	return ""
}

var fingerprint = regexp.MustCompile(`^([a-z0-9-]+ )?SHA256:[A-Za-z0-9+/]{43}$`)

func hostKeyFault(text string) string {
	if fingerprint.MatchString(text) {
		return ""
	}
	return "it is not a fingerprint as ssh-keygen -lf prints it, such as \"SHA256:…\" with 43 characters after the colon"
}

// texts checks a text, or each of a list or a map, by the tags of its field.
func (l *loader) texts(attr *hclsyntax.Attribute, tag reflect.StructTag, field reflect.Value) bool {
	before := len(l.diags)
	kind := tag.Get("is")
	p := phrases[kind]
	each := func(at hcl.Range, text, verb string) {
		if why := wrong(kind, text); why != "" {
			if fleet.IsURL(text) && strings.Contains(text, "@") {
				l.mask(at) // it may hold a password
				text = "…"
			}
			l.fault(at, cmp.Or(p.summary, invalidValue), cmp.Or(p.detail, "The argument %[1]q must not "+verb+" %[2]s: %[3]s."), attr.Name, quoted(text), why)
		}
	}
	switch value := field.Interface().(type) {
	case map[string]string:
		for _, key := range sortedKeys(value) {
			if why := entryFault(kind, key, value[key]); why != "" {
				l.fault(attr.Expr.Range(), invalidValue, "The argument %q must not contain %s = %s: %s.", attr.Name, quoted(key), quoted(value[key]), why)
			}
		}
	case []string:
		if least := bound(tag, "least", 0); len(value) < int(least) {
			l.fault(attr.Expr.Range(), "Empty list", cmp.Or(p.empty, "The argument %q must contain at least %[2]d. Leave it out for the default."), attr.Name, least)
		}
		if most := bound(tag, "max", maxNumber); len(value) > int(most) {
			l.fault(attr.Expr.Range(), "List too long", "The argument %q must contain at most %d elements.", attr.Name, most)
		}
		for i, text := range value {
			at := elementRange(attr.Expr, i)
			same := func(other string) bool { return other == text || p.anyCase && strings.EqualFold(other, text) }
			if p.once != "" && slices.IndexFunc(value, same) < i {
				l.fault(at, "Duplicate "+p.once, "The %s %q is listed twice. Remove one.", p.once, text)
			} else {
				each(at, text, "contain")
			}
		}
	default:
		if field.Kind() == reflect.String {
			each(attr.Expr.Range(), field.String(), "be")
		}
	}
	return len(l.diags) == before
}

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
				return cty.NilVal, function.NewArgError(0, err)
			}
			return cty.CapsuleVal(secretType, &ref), nil
		},
	})
}

// noSecret reports a value where a secret must be.
func (l *loader) noSecret(attr *hclsyntax.Attribute, _ *scope, val cty.Value) {
	l.mask(attr.Expr.Range())
	l.fault(attr.Expr.Range(), wrongType, "The argument %q must be a secret, not %s. Never write a secret into the configuration: write secret(\"…\") with its location, for example secret(\"file://path\").", attr.Name, typeName(val.Type()))
}

// mask stars a text out in what is kept of its file, so that a diagnostic can
// show the line without the secret that was written there.
func (l *loader) mask(rng hcl.Range) {
	for i, b := range l.source(rng) {
		if b != '"' && b != '\n' {
			l.source(rng)[i] = '*'
		}
	}
}

// secretCalls marks the calls of secret() whose result is the value of the
// whole expression: by itself, in parentheses, or as a branch of a condition.
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
