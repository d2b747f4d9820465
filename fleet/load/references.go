package load

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/macfleet/macfleet/fleet"
)

// roots are what references begin with.
var roots = []string{"var", "local", "env", "artifact", "github_app"}

// An object is a block that a reference gives as a whole, to an argument that takes nothing else.
type object struct {
	use purpose // of such an argument
	one string  // the object in a sentence
	in  string  // such an argument
}

// objects are the blocks of this kind, by their roots.
var objects = map[string]object{
	"artifact":   {asArtifact, "an artifact", "artifact in a tart_kubelet block"},
	"github_app": {asApp, "a GitHub App", "app in a github_runner block"},
}

// noObject returns how a value is reported where an object of that root must be.
func (l *loader) noObject(root string) func(*hclsyntax.Attribute, *scope, cty.Value) {
	return func(attr *hclsyntax.Attribute, sc *scope, val cty.Value) {
		hint := ""
		if val.Type() == cty.String && sc.values[root][val.AsString()] != cty.NilVal {
			hint = didYouMean(root + "." + val.AsString())
		}
		l.fault(attr.Expr.Range(), wrongType, "The argument %q must be %s, not %s. Write %s.NAME with the name of %s block.%s",
			attr.Name, objects[root].one, typeName(val.Type()), root, article(root), hint)
	}
}

// article puts "a" or "an" before the name of a block.
func article(name string) string {
	return strings.TrimSuffix(strings.TrimPrefix(shape{name: name}.inside(), "in "), " block")
}

// reference reports whether a reference can be followed. It says why not,
// unless what is missing may stand in a text that was not understood.
func (l *loader) reference(tr hcl.Traversal, sc *scope, use purpose) bool {
	root, name, ok := split(tr)
	at := tr[:min(2, len(tr))].SourceRange()
	val, known := sc.values[root][name]
	whole, isObject := objects[root]
	switch {
	case sc.closed != "":
		l.fault(tr.SourceRange(), "Reference not possible", "A reference is not possible here, because %s.%s", sc.closed, quotesHint(tr))
	case isObject && use != whole.use:
		_, kind, _ := strings.Cut(whole.one, " ")
		l.fault(tr.SourceRange(), capital(kind)+" not allowed here", "%s can only be the whole value of an argument that takes one, such as %s.", capital(whole.one), whole.in)
	case !slices.Contains(roots, root):
		l.unknownRoot(tr, root)
	case !ok:
		l.fault(at, "Incomplete reference", "Name one: %s.NAME, for example %[1]s.%s.", root, example(root, sc))
	case isObject && len(tr) > 2:
		l.fault(tr.SourceRange(), "Reference not possible", "%s is referred to as a whole: write %s.%s.", capital(whole.one), root, name)
	case known && val != cty.NilVal:
		return true
	case root == "env":
		l.noEnv(at, name, sc)
	case !l.mayStand(name):
		what := root
		if root == "var" {
			what = "variable"
		}
		names := sortedKeys(sc.values[root])
		help := offer(root+".", fleet.Nearest(name, names), names)
		if len(names) == 0 && root != "local" {
			help = fmt.Sprintf(" Declare it: %s %s { … }.", what, quoted(name))
		}
		l.fault(at, "Unknown "+what, "No %s is named %s.%s", what, quoted(name), help)
	}
	return false
}

// capital begins a sentence with a text.
func capital(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// split takes apart a reference such as var.runners or var["runners"].
func split(tr hcl.Traversal) (root, name string, ok bool) {
	root = tr.RootName()
	if len(tr) < 2 {
		return root, "", false
	}
	name, ok = stepName(tr[1])
	return root, name, ok
}

// stepName returns what a step of a reference names, by .name or ["name"].
func stepName(step hcl.Traverser) (string, bool) {
	switch s := step.(type) {
	case hcl.TraverseAttr:
		return s.Name, true
	case hcl.TraverseIndex:
		if s.Key.Type() == cty.String && s.Key.IsKnown() && !s.Key.IsNull() {
			return s.Key.AsString(), true
		}
	}
	return "", false
}

func (l *loader) unknownRoot(tr hcl.Traversal, root string) {
	suggestion := fleet.Nearest(root, roots)
	if i := slices.IndexFunc(roots, func(r string) bool { return strings.HasPrefix(root, r) }); suggestion == "" && i >= 0 {
		suggestion = roots[i]
	}
	help := didYouMean(suggestion)
	if suggestion == "" {
		help = " References begin with var, local, env, artifact or github_app." + quotesHint(tr)
	}
	l.fault(tr[:1].SourceRange(), "Unknown reference", "Nothing is named %s.%s", quoted(root), help)
}

// noEnv reports why env.name has no value.
func (l *loader) noEnv(at hcl.Range, name string, sc *scope) {
	attributes := []string{"name", "cluster_uid", "project_id"}
	switch {
	case !slices.Contains(attributes, name):
		l.fault(at, "Unknown attribute", "An environment has no attribute %s.%s", quoted(name), offer("env.", fleet.Nearest(name, attributes), attributes))
	case sc.values["env"] != nil:
		if _, set := sc.values["env"][name]; !set {
			l.fault(at, "Attribute not set", "The environment %q sets no %s. Set it there, or leave the reference out.", sc.chosen, name)
		}
	case !l.mayStand("environment"):
		l.fault(at, "No environment", "The configuration defines no environment, so env.%s has no value. Write an environment block, or the value itself.", name)
	}
}

// offer says what exists instead of a name that does not.
func offer(prefix, suggestion string, names []string) string {
	switch {
	case suggestion != "":
		return didYouMean(prefix + suggestion)
	case len(names) == 0:
		return " None is declared."
	}
	return " Known: " + listed(names) + "."
}

func example(root string, sc *scope) string {
	if names := sortedKeys(sc.values[root]); root != "env" && len(names) > 0 {
		return names[0]
	}
	return "name"
}

// quotesHint helps where a text was written without its quotes.
func quotesHint(tr hcl.Traversal) string {
	if len(tr) > 1 {
		return ""
	}
	return fmt.Sprintf(" If you mean the string %s, put it in quotes.", quoted(tr.RootName()))
}

// scope is what an expression may refer to.
type scope struct {
	// closed says why nothing may be referred to; "" = what follows may.
	closed string
	// values are those of each of roots, unknown where they are faulty; without
	// any environment there is no "env".
	values map[string]map[string]cty.Value
	chosen string // name of the environment; may be ""
}

// Reasons for a closed scope. Each completes "A reference is not possible here, because".
const (
	before  = "this is read before variables, locals and the environment have values. Write the value itself"
	outside = "this value comes from outside the configuration"
)

// purpose is what an expression's value is for.
type purpose int

const (
	plain      purpose = iota
	asSecret           // secret() may be called
	asKnown            // secret() may be called, and any text is fine too
	asArtifact         // artifact.NAME may be referred to
	asApp              // github_app.NAME may be referred to
)

// eval evaluates an expression. A fault is reported and gives an unknown value,
// as does a reference to an unknown one.
func (l *loader) eval(expr hclsyntax.Expression, sc *scope, use purpose) cty.Value {
	if !l.sound(expr, sc, use) {
		return cty.DynamicVal
	}
	// What it refers to, and no more.
	used := map[string]map[string]cty.Value{}
	for _, tr := range expr.Variables() {
		root, name, _ := split(tr)
		if used[root] == nil {
			used[root] = map[string]cty.Value{}
		}
		used[root][name] = sc.values[root][name]
	}
	ctx := &hcl.EvalContext{Functions: l.functions, Variables: map[string]cty.Value{}}
	for root, values := range used {
		ctx.Variables[root] = cty.ObjectVal(values)
	}
	val, diags, ok := l.evaluated(expr, ctx)
	if !ok {
		return cty.DynamicVal
	}
	l.take(diags, expr.Range())
	if diags.HasErrors() {
		return cty.DynamicVal
	}
	if tooLargeValue(val) {
		l.fault(expr.Range(), tooLarge, "The value of this expression is larger than %d bytes.", maxFile)
		return cty.DynamicVal
	}
	return val
}

// evaluated is the value of an expression, within the budget. Where there is none it says why
// and reports false.
func (l *loader) evaluated(expr hclsyntax.Expression, ctx *hcl.EvalContext) (val cty.Value, diags hcl.Diagnostics, ok bool) {
	l.budget.meter(expr)
	if l.opts.Evaluating != nil {
		l.opts.Evaluating(where(expr.Range()))
	}
	if l.budget.over == "" {
		ok = guarded(func() { val, diags = expr.Value(ctx) })
		l.budget.place(diags, expr.Range())
	}
	switch {
	case l.budget.over != "": // finish drops duplicates
		l.report(hcl.DiagError, l.budget.at, tooMuch, "%s", []any{l.budget.over})
		return cty.DynamicVal, nil, false
	case !ok:
		l.fault(expr.Range(), "Unusable expression", "This expression cannot be evaluated. Rewrite it.")
	}
	return val, diags, ok
}

// tooLargeValue reports whether the texts and elements of a value are more than
// maxFile, or a number has too many digits. Without a bound, locals that each double
// the one before would fill the memory.
func tooLargeValue(val cty.Value) bool {
	elements, text := sizeOf(val, maxFile)
	return plus(elements, text) > maxFile || val.Type() == cty.Number && text > maxDigits
}

// sound reports whether all that an expression refers to exists and has a
// value. It says what does not, once and with a suggestion, so that the
// evaluator never sees it.
func (l *loader) sound(expr hclsyntax.Expression, sc *scope, use purpose) bool {
	sound := true
	for _, tr := range expr.Variables() {
		sound = l.reference(tr, sc, use) && sound
	}
	return l.calls(expr, use) && sound
}

// guarded runs f and reports false when it panics: the HCL and cty libraries do
// so on some unusual input.
func guarded(f func()) (ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	f()
	return true
}
