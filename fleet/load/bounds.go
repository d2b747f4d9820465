package load

import (
	"fmt"
	"strings"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// Some functions make much out of a short text: bounded ones refuse such texts.

// bounded is f with a check of the texts among its arguments.
func bounded(f function.Function, check func(text string) string) function.Function {
	return function.New(&function.Spec{
		Params:   f.Params(),
		VarParam: f.VarParam(),
		Type: func(args []cty.Value) (cty.Type, error) {
			for i, arg := range args {
				if why := refuse(arg, check); why != "" {
					return cty.NilType, function.NewArgErrorf(i, "%s", why)
				}
			}
			return f.ReturnTypeForValues(args)
		},
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) { return f.Call(args) },
	})
}

func refuse(arg cty.Value, check func(string) string) string {
	if !arg.IsKnown() || arg.IsNull() || arg.Type() != cty.String {
		return ""
	}
	return check(arg.AsString())
}

// shortWidths refuses a format such as "%1000000000d".
func shortWidths(text string) string {
	const most = 3 // digits
	for _, verb := range strings.Split(text, "%")[1:] {
		end := strings.IndexFunc(verb, func(r rune) bool { return !strings.ContainsRune("+-# 0123456789.[]", r) })
		if end < 0 {
			end = len(verb)
		}
		digits := strings.FieldsFunc(verb[:end], func(r rune) bool { return r < '0' || r > '9' })
		for _, d := range digits {
			if len(d) > most {
				return fmt.Sprintf("a width has at most %d digits", most)
			}
		}
	}
	return ""
}

// flatJSON refuses deeply nested JSON.
func flatJSON(text string) string {
	if strings.Count(text, "[")+strings.Count(text, "{") > maxOperators {
		return fmt.Sprintf("it has more than %d lists and objects", maxOperators)
	}
	return ""
}

// shortNumber refuses a number whose digits would fill the memory.
func shortNumber(text string) string {
	if longExponent(text) {
		return "the exponent is too large"
	}
	return ""
}
