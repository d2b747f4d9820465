package load

import (
	"maps"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"

	"github.com/macfleet/macfleet/fleet"
)

type functionTable map[string]function.Function

// functions returns all functions of the language. All are pure: none reads a
// clock, a file or randomness.
func functions() functionTable {
	all := functionTable{"secret": secretFunction()}
	for _, some := range []functionTable{textFunctions(), numberFunctions(), collectionFunctions(), conversionFunctions()} {
		maps.Copy(all, some)
	}
	return all
}

func textFunctions() functionTable {
	return functionTable{
		"chomp":      stdlib.ChompFunc,
		"format":     bounded(stdlib.FormatFunc, shortWidths),
		"formatlist": bounded(stdlib.FormatListFunc, shortWidths),
		"join":       stdlib.JoinFunc,
		"lower":      stdlib.LowerFunc,
		"regex":      stdlib.RegexFunc,
		"regexall":   stdlib.RegexAllFunc,
		"replace":    stdlib.ReplaceFunc,
		"split":      stdlib.SplitFunc,
		"strlen":     stdlib.StrlenFunc,
		"strrev":     stdlib.ReverseFunc,
		"substr":     stdlib.SubstrFunc,
		"title":      stdlib.TitleFunc,
		"trim":       stdlib.TrimFunc,
		"trimprefix": stdlib.TrimPrefixFunc,
		"trimspace":  stdlib.TrimSpaceFunc,
		"trimsuffix": stdlib.TrimSuffixFunc,
		"upper":      stdlib.UpperFunc,
	}
}

func numberFunctions() functionTable {
	return functionTable{
		"abs":      stdlib.AbsoluteFunc,
		"ceil":     stdlib.CeilFunc,
		"floor":    stdlib.FloorFunc,
		"max":      stdlib.MaxFunc,
		"min":      stdlib.MinFunc,
		"parseint": stdlib.ParseIntFunc,
		"signum":   stdlib.SignumFunc,
	}
}

func collectionFunctions() functionTable {
	return functionTable{
		"coalesce":        stdlib.CoalesceFunc,
		"coalescelist":    stdlib.CoalesceListFunc,
		"compact":         stdlib.CompactFunc,
		"concat":          stdlib.ConcatFunc,
		"contains":        stdlib.ContainsFunc,
		"distinct":        stdlib.DistinctFunc,
		"element":         stdlib.ElementFunc,
		"flatten":         stdlib.FlattenFunc,
		"index":           stdlib.IndexFunc,
		"keys":            stdlib.KeysFunc,
		"length":          stdlib.LengthFunc,
		"lookup":          stdlib.LookupFunc,
		"merge":           stdlib.MergeFunc,
		"range":           stdlib.RangeFunc,
		"reverse":         stdlib.ReverseListFunc,
		"setintersection": stdlib.SetIntersectionFunc,
		"setsubtract":     stdlib.SetSubtractFunc,
		"setunion":        stdlib.SetUnionFunc,
		"slice":           stdlib.SliceFunc,
		"sort":            stdlib.SortFunc,
		"values":          stdlib.ValuesFunc,
		"zipmap":          stdlib.ZipmapFunc,
	}
}

func conversionFunctions() functionTable {
	return functionTable{
		"jsondecode": bounded(stdlib.JSONDecodeFunc, flatJSON),
		"jsonencode": stdlib.JSONEncodeFunc,
		"tobool":     stdlib.MakeToFunc(cty.Bool),
		"tolist":     stdlib.MakeToFunc(cty.List(cty.DynamicPseudoType)),
		"tomap":      stdlib.MakeToFunc(cty.Map(cty.DynamicPseudoType)),
		"tonumber":   bounded(stdlib.MakeToFunc(cty.Number), shortNumber),
		"toset":      stdlib.MakeToFunc(cty.Set(cty.DynamicPseudoType)),
		"tostring":   stdlib.MakeToFunc(cty.String),
	}
}

// calls reports whether all functions that an expression calls exist and
// secret() is called only where its result is wanted.
func (l *loader) calls(expr hclsyntax.Expression, use purpose) bool {
	sound := true
	allowed := map[*hclsyntax.FunctionCallExpr]bool{}
	if use == asSecret {
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
			l.unknownFunction(call)
		case call.Name == "secret" && !allowed[call]:
			sound = false
			l.fault(call.Range(), "Secret not allowed here", "secret() can only be the whole value of an argument of type secret, such as private_key in the ssh block: not of another one, and not a part of a text, a list, a comparison or a local.")
		}
		return nil
	})
	return sound
}

func (l *loader) unknownFunction(call *hclsyntax.FunctionCallExpr) {
	help := didYouMean(fleet.Nearest(call.Name, sortedKeys(l.functions)))
	if help == "" {
		help = " Write the value itself, or use a function of the documentation."
	}
	l.fault(call.NameRange, "Unknown function", "No function is named %s.%s", quoted(call.Name), help)
}
