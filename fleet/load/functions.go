package load

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"

	"github.com/macfleet/macfleet/fleet"
)

// functions returns all functions of the language. All are pure: none reads a
// clock, a file or randomness. Each charges the budget.
func (b *budget) functions() map[string]function.Function {
	all := map[string]function.Function{
		"secret": secretFunction(),

		"chomp": stdlib.ChompFunc, "join": stdlib.JoinFunc, "lower": stdlib.LowerFunc, "regex": bounded(stdlib.RegexFunc, shortPattern),
		"regexall": bounded(stdlib.RegexAllFunc, shortPattern), "replace": stdlib.ReplaceFunc, "split": stdlib.SplitFunc, "strlen": stdlib.StrlenFunc,
		"strrev": stdlib.ReverseFunc, "substr": stdlib.SubstrFunc, "title": stdlib.TitleFunc, "trim": stdlib.TrimFunc,
		"trimprefix": stdlib.TrimPrefixFunc, "trimspace": stdlib.TrimSpaceFunc, "trimsuffix": stdlib.TrimSuffixFunc,
		"upper": stdlib.UpperFunc, "format": bounded(stdlib.FormatFunc, shortWidths),
		"formatlist": bounded(stdlib.FormatListFunc, shortWidths),

		"abs": stdlib.AbsoluteFunc, "ceil": stdlib.CeilFunc, "floor": stdlib.FloorFunc, "max": stdlib.MaxFunc,
		"min": stdlib.MinFunc, "parseint": stdlib.ParseIntFunc, "signum": stdlib.SignumFunc,

		"coalesce": stdlib.CoalesceFunc, "coalescelist": stdlib.CoalesceListFunc, "compact": stdlib.CompactFunc,
		"concat": stdlib.ConcatFunc, "contains": stdlib.ContainsFunc, "distinct": stdlib.DistinctFunc, "element": stdlib.ElementFunc,
		"flatten": stdlib.FlattenFunc, "index": stdlib.IndexFunc, "keys": stdlib.KeysFunc, "length": stdlib.LengthFunc,
		"lookup": stdlib.LookupFunc, "merge": stdlib.MergeFunc, "range": stdlib.RangeFunc, "reverse": stdlib.ReverseListFunc,
		"setintersection": stdlib.SetIntersectionFunc, "setsubtract": stdlib.SetSubtractFunc, "setunion": stdlib.SetUnionFunc,
		"slice": stdlib.SliceFunc, "sort": stdlib.SortFunc, "values": stdlib.ValuesFunc, "zipmap": stdlib.ZipmapFunc,

		"jsondecode": bounded(stdlib.JSONDecodeFunc, flatJSON), "jsonencode": stdlib.JSONEncodeFunc,
		"tobool": stdlib.MakeToFunc(cty.Bool), "tostring": stdlib.MakeToFunc(cty.String),
		"tonumber": bounded(stdlib.MakeToFunc(cty.Number), shortNumber),
		"tolist":   stdlib.MakeToFunc(cty.List(cty.DynamicPseudoType)),
		"tomap":    stdlib.MakeToFunc(cty.Map(cty.DynamicPseudoType)),
		"toset":    stdlib.MakeToFunc(cty.Set(cty.DynamicPseudoType)),
	}
	for name, f := range all {
		all[name] = b.charged(name, f)
	}
	return all
}

// calls reports whether all functions that an expression calls exist and
// secret() is called only where its result is used.
func (l *loader) calls(expr hclsyntax.Expression, use purpose) bool {
	sound := true
	allowed := map[*hclsyntax.FunctionCallExpr]bool{}
	if use == asSecret || use == asKnown {
		secretCalls(expr, allowed)
	}
	_ = hclsyntax.VisitAll(expr, func(node hclsyntax.Node) hcl.Diagnostics {
		call, ok := node.(*hclsyntax.FunctionCallExpr)
		if !ok {
			return nil
		}
		switch _, exists := l.functions[call.Name]; {
		case !exists:
			sound = false
			help := didYouMean(fleet.Nearest(call.Name, sortedKeys(l.functions)))
			l.fault(call.NameRange, "Unknown function", "No function is named %s.%s", quoted(call.Name),
				cmp.Or(help, " Write the value itself, or use a function of the documentation."))
		case call.Name == "secret" && !allowed[call]:
			sound = false
			l.fault(call.Range(), "Secret not allowed here", "secret() can only be the whole value of an argument of type secret, such as private_key in the ssh block: not of another one, and not a part of a text, a list, a comparison or a local.")
		}
		return nil
	})
	return sound
}

// bounded is f with a check of its first argument: some functions make much out of a
// short text.
func bounded(f function.Function, check func(text string) string) function.Function {
	return function.New(&function.Spec{
		Params:   f.Params(),
		VarParam: f.VarParam(),
		Type: func(args []cty.Value) (cty.Type, error) {
			if text, ok := textOf(args[0]); ok {
				if why := check(text); why != "" {
					return cty.NilType, function.NewArgErrorf(0, "%s", why)
				}
			}
			return f.ReturnTypeForValues(args)
		},
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) { return f.Call(args) },
	})
}

var longWidth = regexp.MustCompile(`%[-+# 0-9.\[\]]*[0-9]{4}`)

// shortWidths refuses a format such as "%1000000000d".
func shortWidths(text string) string {
	if longWidth.MatchString(strings.ReplaceAll(text, "%%", "")) { // %% is a percent sign
		return "a width has at most 3 digits"
	}
	return ""
}

// flatJSON refuses deeply nested JSON: each level holds the types of all below it again.
func flatJSON(text string) string {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++ // what is escaped ends no text
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[' || c == '{':
			depth++
		case c == ']' || c == '}':
			depth--
		}
		if depth > maxDepth {
			return fmt.Sprintf("its lists and objects are nested more than %d deep", maxDepth)
		}
	}
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

// shortPattern refuses a long regular expression: matching takes memory for each part of it.
func shortPattern(text string) string {
	if len(text) > maxPattern {
		return fmt.Sprintf("a regular expression has at most %d bytes", maxPattern)
	}
	return ""
}
