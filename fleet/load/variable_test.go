package load

import (
	"fmt"
	"testing"
)

// TestPrecedence shows a variable's value through the user that it is put into.
func TestPrecedence(t *testing.T) {
	t.Parallel()
	const declared = `
variable "who" {
  type    = string
  default = "default"
}
environment "production" {
  variables = { who = "environment" }
}
environment "staging" {}
`
	file := func(value string) VarFile { return VarFile{"x.vars", []byte(fmt.Sprintf("who = %q", value))} }
	tests := []struct {
		name string
		opts Options
		want string
	}{
		{"default", Options{Environment: "staging"}, "default"},
		{"environment", Options{Environment: "production"}, "environment"},
		{"env", Options{Environment: "production", Env: map[string]string{"who": "env"}}, "env"},
		{"file", Options{Environment: "production", Env: map[string]string{"who": "env"}, VarFiles: []VarFile{file("file")}}, "file"},
		{"later file", Options{Environment: "staging", VarFiles: []VarFile{file("file"), {"y.vars", []byte(`who = "later"`)}}}, "later"},
		{"same file name", Options{Environment: "staging", VarFiles: []VarFile{file("a"), file("b")}}, "b"},
		{"var", Options{Environment: "staging", VarFiles: []VarFile{file("file")}, Vars: []string{"who=var"}}, "var"},
		{"later var", Options{Environment: "staging", Vars: []string{"who=var", "who=later"}}, "later"},
		{"raw text", Options{Environment: "staging", Vars: []string{"who=local.x"}}, "local.x"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			content := base[:len(base)-2] + "  user = var.who\n}\n" + declared
			if got := mustLoad(t, one(content), tt.opts).Config.SSH.User; got != tt.want {
				t.Errorf("user = %q, want %q", got, tt.want)
			}
		})
	}
}

func TestVariableTypes(t *testing.T) {
	t.Parallel()
	tests := []struct{ typ, given, use, want string }{
		{"number", "3", "var.v == 3", "true"},
		{"number", `"3"`, "var.v == 3", "true"},
		{"bool", "true", "var.v", "true"},
		{"list(string)", `["a", "b"]`, `var.v[1] == "b"`, "true"},
		{"set(number)", `[1, 1]`, "length(var.v) == 1", "true"},
		{"map(number)", `{ a = 1 }`, `var.v["a"] == 1`, "true"},
		{"object({ a = number, b = optional(string, \"x\") })", `{ a = 1 }`, `var.v.b == "x"`, "true"},
		{"tuple([string, number])", `["a", 1]`, "var.v[1] == 1", "true"},
		{"any", `{ a = [1, "x"] }`, `var.v.a[1] == "x"`, "true"},
		{"string", "1", `var.v == "1"`, "true"},
		{"string", "", `var.v == ""`, "true"},
	}
	for _, tt := range tests {
		t.Run(tt.typ+" "+tt.given, func(t *testing.T) {
			t.Parallel()
			content := base[:len(base)-2] + fmt.Sprintf("  user = %s ? \"true\" : \"false\"\n}\nvariable \"v\" {\n  type = %s\n}\n", tt.use, tt.typ)
			for _, opts := range []Options{{Vars: []string{"v=" + tt.given}}, {Env: map[string]string{"v": tt.given}}} {
				if got := mustLoad(t, one(content), opts).Config.SSH.User; got != tt.want {
					t.Errorf("user = %q, want %q", got, tt.want)
				}
			}
		})
	}
}
