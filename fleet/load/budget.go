package load

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// What all expressions of a configuration may make together. A real configuration makes a small
// part of it. Without these bounds a short file fills the memory of the machine that reads it.
const (
	maxElements = 250_000  // values
	maxText     = 64 << 20 // bytes
	maxDigits   = 1_000    // of a number
	maxPattern  = 1_000    // bytes of a regular expression
)

const tooMuch = "Expression too large"

// A budget is what the expressions of a configuration have made so far. It is charged before
// anything large is made: for each round of a for, each part of a template, each call.
type budget struct {
	elements, text int
	over           string     // says what went beyond; "" so far
	at             *hcl.Range // where; nil: not known
}

// errOver stops an expression that goes beyond the budget.
var errOver = errors.New("over the budget")

// spend charges what something makes and reports whether the budget allowed it.
func (b *budget) spend(elements, text int, what string) bool {
	b.elements, b.text = plus(b.elements, elements), plus(b.text, text)
	if b.over == "" && (b.elements > maxElements || b.text > maxText) {
		b.over = fmt.Sprintf("With %s, the expressions of this configuration make more than %d values or %d MiB of text. Make it shorter.",
			what, maxElements, maxText>>20)
	}
	return b.over == ""
}

// spendValue charges a value that is put into a list, a map or a text.
func (b *budget) spendValue(elements int, v cty.Value, what string) bool {
	_, text := sizeOf(v, 0)
	if text > maxDigits && v.Type() == cty.Number && b.over == "" {
		b.over = fmt.Sprintf("This number has more than %d digits.", maxDigits)
	}
	return b.spend(elements, text, what)
}

// spendArgument charges all of an argument of a function, which copies it at most once. The
// library walks all arguments of a call first, so none may be without an end.
func (b *budget) spendArgument(name string, v cty.Value) bool {
	elements, text := sizeOf(v, maxElements)
	switch {
	case elements > maxElements:
	case slices.Contains(looking, name):
		elements, text = 0, 0
	case slices.Contains(shallow, name) && v.CanIterateElements():
		elements, text = v.LengthInt(), 0
	}
	return b.spend(elements, text, fmt.Sprintf("this argument of %s()", name))
}

// looking are the functions that copy nothing, and shallow those that copy only the direct elements of a list or
// map.
var (
	looking = []string{"contains", "element", "index", "length", "lookup", "strlen"}
	shallow = []string{"coalescelist", "concat", "keys", "merge", "reverse", "slice", "values", "zipmap"}
)

// metered is an expression that charges the budget whenever it is evaluated. Whatever walks
// expressions takes it for parentheses. It panics when the budget is spent, because a for
// would continue with its next element after an error.
type metered struct {
	*hclsyntax.ParenthesesExpr
	budget *budget
	charge func(cty.Value) bool
}

// Value evaluates the expression.
func (m *metered) Value(ctx *hcl.EvalContext) (cty.Value, hcl.Diagnostics) {
	val, diags := m.Expression.Value(ctx)
	m.budget.place(diags, m.SrcRange)
	if !m.charge(val) {
		m.budget.place(nil, m.SrcRange)
		panic(errOver)
	}
	return val, diags
}

// place notes where an expression went beyond the budget. For a call, the last diagnostic has the place.
func (b *budget) place(diags hcl.Diagnostics, otherwise hcl.Range) {
	if b.over == "" || b.at != nil {
		return
	}
	b.at = &otherwise
	if len(diags) > 0 && diags[len(diags)-1].Subject != nil {
		b.at = diags[len(diags)-1].Subject
	}
}

// meter makes everything in an expression charge the budget that is evaluated many times, becomes
// a part of a text, is given to a function, or makes large numbers.
func (b *budget) meter(expr hclsyntax.Expression) {
	wrap := func(e *hclsyntax.Expression, charge func(cty.Value) bool) {
		if _, done := (*e).(*metered); done {
			return
		}
		*e = &metered{&hclsyntax.ParenthesesExpr{Expression: *e, SrcRange: (*e).Range()}, b, charge}
	}
	value := func(elements int, what string) func(cty.Value) bool {
		return func(v cty.Value) bool { return b.spendValue(elements, v, what) }
	}
	_ = hclsyntax.VisitAll(expr, func(node hclsyntax.Node) hcl.Diagnostics {
		switch e := node.(type) {
		case *hclsyntax.ForExpr:
			for _, part := range []*hclsyntax.Expression{&e.KeyExpr, &e.ValExpr, &e.CondExpr} {
				if *part != nil {
					wrap(part, value(nodesIn(*part), "this for"))
				}
			}
		case *hclsyntax.TemplateExpr:
			for i, part := range e.Parts {
				if _, written := part.(*hclsyntax.LiteralValueExpr); !written {
					wrap(&e.Parts[i], value(0, "this text"))
				}
			}
		case *hclsyntax.BinaryOpExpr:
			if e.Op == hclsyntax.OpMultiply || e.Op == hclsyntax.OpDivide {
				wrap(&e.LHS, value(0, "this number"))
				wrap(&e.RHS, value(0, "this number"))
			}
		case *hclsyntax.FunctionCallExpr:
			for i := range e.Args {
				wrap(&e.Args[i], func(v cty.Value) bool { return b.spendArgument(e.Name, v) })
			}
		}
		return nil
	})
}

// nodesIn counts the parts of an expression: what one evaluation makes at most, without
// what its own loops and calls charge.
func nodesIn(node hclsyntax.Node) (n int) {
	_ = hclsyntax.VisitAll(node, func(hclsyntax.Node) hcl.Diagnostics {
		n++
		return nil
	})
	return n
}

// charged is f, which charges the budget before it runs.
func (b *budget) charged(name string, f function.Function) function.Function {
	return function.New(&function.Spec{
		Params:   f.Params(),
		VarParam: f.VarParam(),
		Type: func(args []cty.Value) (cty.Type, error) {
			elements, text := costs(name, args)
			if !b.spend(elements, text, fmt.Sprintf("this call of %s()", name)) {
				return cty.NilType, errOver
			}
			return f.ReturnTypeForValues(args)
		},
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) { return f.Call(args) },
	})
}

// costs returns how much a function makes at most in addition to its arguments.
func costs(name string, args []cty.Value) (elements, text int) {
	texts := make([]string, len(args)) // "" for any other value
	for i, arg := range args {
		texts[i], _ = textOf(arg)
	}
	switch name {
	case "replace":
		return 1, times(strings.Count(texts[0], texts[1]), len(texts[2]))
	case "join":
		parts, _ := sizeOf(cty.TupleVal(args), maxElements)
		return 1, times(parts, len(texts[0]))
	case "distinct": // it compares each with each
		parts, _ := sizeOf(args[0], maxElements)
		return times(parts, parts) / 1000, 0
	case "split":
		return 1 + strings.Count(texts[1], texts[0]), 0
	case "format", "formatlist":
		return 1, formatted(texts[0], args[1:])
	case "jsonencode":
		return 1, encoded(sizeOf(args[0], maxElements))
	case "jsondecode":
		return 1 + strings.Count(texts[0], ",") + strings.Count(texts[0], "[") + strings.Count(texts[0], "{"), 0
	case "regexall":
		return 1 + matched(texts[0], texts[1]), 0
	}
	return 1, 0
}

// encoded returns how long values are at most as JSON, where a character may become \u003c.
func encoded(elements, text int) int { return plus(times(6, text), times(8, elements)) }

// formatted returns how long all texts are at most that format or formatlist makes. Each
// element of a list is used once for a verb, all else once for a verb in each text.
func formatted(format string, args []cty.Value) int {
	const width = 1_000 // of a verb
	lists, others, rounds := 0, 0, 1
	for _, arg := range args {
		size := encoded(sizeOf(arg, maxElements))
		if t := arg.Type(); arg.IsKnown() && !arg.IsNull() && (t.IsListType() || t.IsSetType() || t.IsTupleType()) {
			lists, rounds = plus(lists, size), max(rounds, arg.LengthInt())
		} else {
			others = plus(others, size)
		}
	}
	verbs := strings.Count(format, "%")
	each := plus(len(format), times(verbs, plus(width, others)))
	return plus(times(rounds, each), times(verbs, lists))
}

// matched returns how many values regexall makes.
func matched(pattern, text string) int {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return 0 // the function reports it
	}
	groups := re.NumSubexp() + 1
	return times(groups, len(re.FindAllStringIndex(text, maxElements/groups+1)))
}

// sizeOf counts the values in a value and the bytes of their texts. It stops behind limit values
// in lists and maps: one that holds the same list many times, in many levels, has no end.
func sizeOf(val cty.Value, limit int) (elements, text int) {
	var walk func(v cty.Value)
	walk = func(v cty.Value) {
		elements++
		switch known, isText := textOf(v); {
		case isText:
			text = plus(text, len(known))
		case !v.IsKnown() || v.IsNull():
		case v.Type() == cty.Number:
			text = plus(text, digits(v))
		case v.CanIterateElements():
			for it := v.ElementIterator(); elements <= limit && it.Next(); {
				key, inner := it.Element()
				name, _ := textOf(key)
				text = plus(text, len(name))
				walk(inner)
			}
		}
	}
	walk(val)
	return elements, text
}

// textOf returns the text that a value is.
func textOf(v cty.Value) (text string, ok bool) {
	if v.Type() != cty.String || !v.IsKnown() || v.IsNull() {
		return "", false
	}
	return v.AsString(), true
}

// digits returns how long a number is as text, roughly.
func digits(number cty.Value) int {
	const most = 20 // of a number of usual size
	exponent := number.AsBigFloat().MantExp(nil)
	return max(most, max(exponent, -exponent)*3/10)
}

// plus and times stay at the largest number where the result is larger.
func plus(a, b int) int {
	if a > math.MaxInt-b {
		return math.MaxInt
	}
	return a + b
}

func times(a, b int) int {
	if b > 0 && a > math.MaxInt/b {
		return math.MaxInt
	}
	return a * b
}
