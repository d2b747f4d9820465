package load

import (
	"strconv"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/macfleet/macfleet/fleet"
)

func TestRequiredVersion(t *testing.T) {
	t.Parallel()
	tests := []struct {
		constraint, own string
		ok              bool
	}{
		{">= 0.1.0", "0.1.0", true},
		{">= 0.1.0", "0.2.0-rc.1", true},
		{">= 0.1.0", "0.1.0-dev", true},
		{">= 0.1.0", "0.1.0-dev+abc", true},
		{">= 0.2.0-rc.1", "0.2.0-rc.2", true},
		{"< 0.2.0", "0.2.0-rc.1", false},
		{">= 0.2.0", "0.1.9", false},
		{"~> 0.1", "0.1.5", true},
		{">= 0.1.0, < 0.3.0", "0.2.9", true},
		{"= 1.2.3", "", true},
		{">= 0.1.0", "unversioned", false},
		{"latest", "0.1.0", false},
		{"", "0.1.0", false},
	}
	for _, tt := range tests {
		content := strings.Replace(small, "macfleet {", "macfleet {\n  required_version = \""+tt.constraint+"\"", 1)
		if r, diags := Dir(one(content), Options{Version: tt.own}); diags.HasErrors() == tt.ok {
			t.Errorf("%s by %s: ok = %t:\n%s", tt.constraint, tt.own, !tt.ok, rendered(r, diags))
		}
	}
}

func TestAPIServer(t *testing.T) {
	t.Parallel()
	good := []string{"https://api.acme.dev:6443", "https://10.0.0.1", "https://[fd00::1]:6443/", "https://localhosts.acme.dev", "https://acme"}
	bad := []string{
		"", "api.acme.dev", "http://api.acme.dev", "https://", "https://:6443", "https://localhost:6443", "https://LOCALHOST.",
		"https://a.localhost", "https://localhost.localdomain", "https://127.0.0.1", "https://127.9.9.9", "https://127.1", "https://0",
		"https://0x7f000001", "https://2130706433", "https://0.0.0.0", "https://[::1]:6443", "https://[::]", "https://[::ffff:127.0.0.1]",
		"https://user:pass@api.acme.dev", "https://api.acme.dev?x=1", "https://a b", "https://[::1", "\x00",
	}
	for _, text := range good {
		if why := apiServerFault(text); why != "" {
			t.Errorf("%q: %s", text, why)
		}
	}
	for _, text := range bad {
		if apiServerFault(text) == "" {
			t.Errorf("%q is accepted", text)
		}
	}
}

func TestParseShare(t *testing.T) {
	t.Parallel()
	tests := map[cty.Value]fleet.Share{ // the zero share: refused
		cty.NumberIntVal(1): {Count: 1}, cty.StringVal("3"): {Count: 3}, cty.StringVal("1%"): {Percent: 1}, cty.StringVal("100%"): {Percent: 100},
		cty.NumberIntVal(0): {}, cty.NumberIntVal(-1): {}, cty.NumberFloatVal(1.5): {}, cty.MustParseNumberVal("1e400"): {}, cty.PositiveInfinity: {}, cty.True: {},
	}
	for _, text := range []string{"101%", "0%", "%", "+5%", "05", "1001", ""} {
		tests[cty.StringVal(text)] = fleet.Share{}
	}
	for val, want := range tests {
		if got, ok := parseShare(val); ok != (want != fleet.Share{}) || ok && got != want {
			t.Errorf("parseShare(%#v) = %v, %t", val, got, ok)
		}
	}
}

func TestHasWord(t *testing.T) {
	t.Parallel()
	tests := []struct {
		text, word string
		want       bool
	}{
		{`variable "runners" {`, "runners", true},
		{"runners", "runners", true},
		{"local.runners2 + runners", "runners", true},
		{"runners2", "runners", false},
		{"my-runners", "runners", false},
		{"anything", "", false},
		{"", "x", false},
	}
	for _, tt := range tests {
		if got := hasWord([]byte(tt.text), tt.word); got != tt.want {
			t.Errorf("hasWord(%q, %q) = %t", tt.text, tt.word, got)
		}
	}
	if !hasWord(nil, "x") {
		t.Error("an unreadable text may have every word")
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	deep := func(open, closing string, n int) string {
		return "x = " + strings.Repeat(open, n) + "1" + strings.Repeat(closing, n)
	}
	tests := map[string]string{
		"size":      "# " + strings.Repeat("x", maxFile),
		"brackets":  deep("[", "]", 20_000),
		"unclosed":  deep("[", "", 20_000),
		"parens":    deep("(", ")", 20_000),
		"objects":   deep("{ a = ", "}", 12_000),
		"templates": deep(`"${`, `}"`, 12_000),
		"blocks":    strings.Repeat("a {\n", 20_000),
		"bangs":     deep("!", "", 20_000),
		"minus":     deep("-", "", 20_000),
		"sums":      deep("1+", "", 20_000),
		"choices":   deep("true ? 1 : ", "", 12_000),
		"indexes":   deep("", "[0]", 20_000),
		"splats":    deep("", "[*]", 20_000),
		"ifs":       "x = \"" + strings.Repeat("%{ if true }", 12_000) + "\"",
		"exponent":  "x = 1e99999",
		"negative":  "x = 1e-99999",
	}
	for name, content := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, diags := Dir(one(content), Options{})
			if len(diags) != 1 || diags[0].Summary != tooLarge {
				t.Errorf("%d diagnostics, the first %v", len(diags), diags[0])
			}
			if _, diags := Dir(one(small+"variable \"x\" {}\n"), Options{Vars: []string{content}, Env: map[string]string{"x": content}}); !diags.HasErrors() {
				t.Error("accepted as a variable")
			}
		})
	}
}

// Locals that double each other reach 1 GB in thirty lines.
func TestLocalsStaySmall(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(small + "locals {\n  l0 = \"xxxxxxxx\"\n")
	for i := 1; i < 40; i++ {
		b.WriteString("  l" + strconv.Itoa(i) + " = \"${local.l" + strconv.Itoa(i-1) + "}${local.l" + strconv.Itoa(i-1) + "}\"\n")
	}
	b.WriteString("}\n")
	_, diags := Dir(one(b.String()), Options{})
	if len(diags) != 1 || diags[0].Summary != tooLarge {
		t.Errorf("%d diagnostics: %v", len(diags), diags)
	}
}
