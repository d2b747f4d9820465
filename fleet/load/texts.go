package load

import (
	"reflect"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/macfleet/macfleet/fleet"
)

// texts checks a text, or each of a list, by the tags of its field.
func (l *loader) texts(attr *hclsyntax.Attribute, a argument, field reflect.Value) bool {
	switch {
	case field.Kind() == reflect.String:
		why := fleet.CheckText(a.kind, field.String())
		if why != "" {
			l.fault(attr.Expr.Range(), "Invalid value", "The argument %q must not be %s: %s.", a.name, quoted(field.String()), why)
		}
		return why == ""
	case field.Type() == reflect.TypeFor[map[string]string]():
		return l.textMap(attr, a, field.Interface().(map[string]string))
	case field.Kind() != reflect.Slice || field.Type().Elem().Kind() != reflect.String:
		return true
	case field.Len() < a.least:
		l.fault(attr.Expr.Range(), "Empty list", "The argument %q must hold at least %d. Leave it out to have its default.", a.name, a.least)
		return false
	}
	ok := true
	for i := range field.Len() {
		text := field.Index(i).String()
		if why := fleet.CheckText(a.kind, text); why != "" {
			ok = false
			l.fault(elementRange(attr.Expr, i), "Invalid value", "The argument %q must not hold %s: %s.", a.name, quoted(text), why)
		}
	}
	return ok
}

// textMap checks the texts of a map, each with its key.
func (l *loader) textMap(attr *hclsyntax.Attribute, a argument, m map[string]string) bool {
	ok := true
	for _, key := range sortedKeys(m) {
		if why := fleet.CheckPair(a.kind, key, m[key]); why != "" {
			ok = false
			l.fault(attr.Expr.Range(), "Invalid value", "The argument %q must not hold %s = %s: %s.", a.name, quoted(key), quoted(m[key]), why)
		}
	}
	return ok
}
