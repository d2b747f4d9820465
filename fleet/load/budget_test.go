package load

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"
)

// TestHostileExpressions: a short text that would make gigabytes is refused with its line before it has made them.
func TestHostileExpressions(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("X", 400_000)
	// A list that holds another one eight times, nested that deep.
	laughs := func(levels int) string {
		text := "1"
		for i := range levels {
			text = fmt.Sprintf("[for x%[1]d in [%[2]s] : [%[3]s]]", i, text, strings.Repeat(fmt.Sprintf("x%d, ", i), 8))
		}
		return text
	}
	tests := map[string]struct {
		text string // of local.u, in line 3 of the locals
		says string
	}{
		"replace":          {`replace(local.t, "X", local.t)`, "this call of replace()"},
		"replace empty":    {`replace(local.t, "", local.t)`, "this call of replace()"},
		"join":             {`join(local.t, range(1000))`, "this call of join()"},
		"format":           {`format("` + strings.Repeat("%[1]s", 2000) + `", local.t)`, "this call of format()"},
		"formatlist":       {`formatlist("%s", [for i in range(1000) : local.t])`, "this "},
		"jsonencode":       {`jsonencode([` + strings.Repeat("local.t, ", 2000) + `])`, "this argument of jsonencode()"},
		"for":              {`[for a in range(1000) : [for b in range(1000) : [for c in range(1000) : c]]]`, "this for"},
		"condition":        {`[for a in range(1000) : 1 if length([for b in range(1000) : 1 if length([for c in range(1000) : 1 if false]) > 0]) > 0]`, "this for"},
		"objects":          {`{ for a in range(1000) : a => { for b in range(1000) : "${a}${b}" => b } }`, "this "},
		"keys":             {`{ for a in range(1000) : "${a}${local.t}" => a }`, "this "},
		"rows":             {`[for a in range(1000) : [` + strings.Repeat("1, ", 2000) + `]]`, "this for"},
		"template":         {`"` + strings.Repeat("${local.t}", 2000) + `"`, "this text"},
		"template's for":   {`"%{ for a in range(1000) }${local.t}%{ endfor }"`, "this for"},
		"literal's for":    {`"%{ for a in range(1000) }` + big + `%{ endfor }"`, "this for"},
		"split":            {`[for a in range(1000) : split("", local.t)]`, "this call of split()"},
		"concat":           {`concat(` + strings.Repeat("split(\"\", local.t), ", 9) + `[])`, "this call of "},
		"regexall":         {`regexall("` + strings.Repeat("(", 100) + "X" + strings.Repeat(")", 100) + `", local.t)`, "this call of regexall()"},
		"jsondecode":       {`[for i in range(1000) : jsondecode("[` + strings.Repeat("1,", 100_000) + `1]")]`, "this call of jsondecode()"},
		"upper":            {`[for a in range(1000) : upper(local.t)]`, "this "},
		"laughs encoded":   {`jsonencode(` + laughs(12) + `)`, "this argument of jsonencode()"},
		"laughs flat":      {`flatten(` + laughs(12) + `)`, "this argument of flatten()"},
		"laughs in length": {`length(` + laughs(12) + `)`, "this argument of length()"},
		"distinct":         {`distinct(split("", local.t))`, "this call of "},
		"laughs":           {laughs(12), "larger than"},
		"a number":         {`1e999 * 1e999 * 1e999 * 1e999`, "digits"},
		"a number's text":  {`"x${"1e99999999" * 1}"`, "digits"},
		"only a number":    {`"1e99999999" * 1`, "larger than"},
		"a pattern":        {`regex("` + strings.Repeat("X", 2000) + `", local.t)`, "at most 1000 bytes"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lines := small + "locals {\n  t = \"" + big + "\"\n  u = " + tt.text + "\n  v = local.u\n  w = upper(local.t)\n}\n"
			_, diags := Dir(one(lines), Options{})
			want := strings.Count(small, "\n") + 3
			if len(diags) != 1 || !strings.Contains(diags[0].Detail, tt.says) || diags[0].Subject.Start.Line != want {
				t.Errorf("%d diagnostics: %.300v", len(diags), diags)
			}
		})
	}
}

// TestManySmallExpressions: each expression is within the budget, and all together exceed it.
func TestManySmallExpressions(t *testing.T) {
	t.Parallel()
	lines := small + "locals {\n  t = \"" + strings.Repeat("X", 300_000) + "\"\n"
	for i := range 1000 {
		lines += fmt.Sprintf("  l%d = upper(local.t)\n", i)
	}
	_, diags := Dir(one(lines+"}\n"), Options{})
	if len(diags) != 1 || diags[0].Summary != tooMuch || !strings.Contains(diags[0].Detail, "upper()") {
		t.Errorf("%d diagnostics: %.300v", len(diags), diags)
	}
}

// TestLargeFleet: far more than any real configuration makes stays within the budget.
func TestLargeFleet(t *testing.T) {
	t.Parallel()
	var places []string
	mustLoad(t, one(small+`
locals {
  hosts  = [for i in range(300) : { name = format("mac-%04d", i), zone = i % 2 == 0 ? "fr-par-1" : "fr-par-2" }]
  labels = { for h in local.hosts : h.name => merge({ rack = "r${h.zone}", team = upper("ci") }, { name = h.name }) }
  known  = [for h in local.hosts : h.name if contains(keys(local.labels), h.name)]
  text   = join("\n", [for k, v in local.labels : "${k}: ${jsonencode(v)}"])
  share  = format("%d of 100%%2000", 1)
  split  = [for line in split("\n", local.text) : regexall("[a-z]+", replace(line, "mac", "host"))]
}
`), Options{Evaluating: func(place string) { places = append(places, place) }})
	if first := strings.Count(small, "\n") + 3; !slices.Contains(places, fmt.Sprintf("main.fleet.hcl line %d", first)) {
		t.Errorf("reported at %q", places)
	}
}

// TestCosts: what a function is charged is never less than what it makes.
func TestCosts(t *testing.T) {
	t.Parallel()
	text := func(s string) cty.Value { return cty.StringVal(s) }
	list := cty.ListVal([]cty.Value{text("a<b"), text("c")})
	numbers := cty.TupleVal([]cty.Value{cty.NumberIntVal(1), cty.MustParseNumberVal("1e300"), cty.NullVal(cty.String), cty.True})
	all := new(budget).functions()
	for name, args := range map[string][]cty.Value{
		"replace":    {text("aXbX"), text("X"), text("12345")},
		"join":       {text(", "), list, list},
		"split":      {text(""), text("añb")},
		"format":     {text("%[1]s %[1]s %5d %v %999s"), text("abc"), cty.NumberIntVal(7), numbers, text("x")},
		"formatlist": {text("%s-%v-%s"), list, numbers.Index(cty.NumberIntVal(1)), list},
		"jsonencode": {cty.ObjectVal(map[string]cty.Value{"a<": numbers, "b": list})},
		"jsondecode": {text(`{"a":[1,2,{"b":[]}],"c":[[],[]]}`)},
		"regexall":   {text("(a)(b)?"), text("abaab")},
		"flatten":    {cty.TupleVal([]cty.Value{list, numbers, list})},
		"setunion":   {cty.SetVal([]cty.Value{text("a")}), cty.SetVal([]cty.Value{text("b")})},
		"merge":      {cty.MapVal(map[string]cty.Value{"a": text("b")}), cty.MapVal(map[string]cty.Value{"c": text("d")})},
		"tolist":     {list},
	} {
		made, err := all[name].Call(args)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		elements, size := sizeOf(made, maxElements)
		if name == "jsondecode" {
			size = 0 // numbers count more than they were written with
		}
		heldElements, heldText := sizeOf(cty.TupleVal(args), maxElements)
		if more, text := costs(name, args); heldElements+more < elements || heldText+text < size {
			t.Errorf("%s: %d elements and %d bytes are made, %d and %d charged", name, elements, size, heldElements+more, heldText+text)
		}
	}
}

// TestHostileNames: what is evaluated apart from the other expressions has bounds too.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	loops := `"%{ for a in [` + strings.Repeat("1,", 3000) + `] }%{ for b in [` + strings.Repeat("1,", 3000) + `] }` + strings.Repeat("x", 1000) +
		`%{ endfor }%{ endfor }"`
	for name, text := range map[string]string{
		"a variable of an environment": "environment \"a\" {\n  variables = { (" + loops + ") = 1 }\n}\n",
		"a group":                      "host \"a\" {\n  group = " + loops + "\n}\n",
		"a type":                       "variable \"a\" {\n  type = object({ a = optional(string, " + loops + ") })\n}\n",
	} {
		dir := one(small + text)
		if _, diags := Dir(dir, Options{}); len(diags) == 0 {
			t.Errorf("%s: no fault", name)
		}
		Outline(dir)
	}
}
