package load

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/macfleet/macfleet/fleet"
)

// faulty are the files of testdata/faults.
func faulty(f *testing.F) (texts []string) {
	f.Helper()
	names, _ := filepath.Glob("testdata/faults/*.txtar")
	for _, name := range names {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range archive.Files {
			texts = append(texts, string(file.Data))
		}
	}
	return texts
}

// FuzzDir looks for a text that ends the process, for a configuration that is
// returned in spite of errors, and for a diagnostic without a place or a text.
func FuzzDir(f *testing.F) {
	hostile := []string{
		full, small,
		"x = " + strings.Repeat("[", 200) + strings.Repeat("]", 200),
		"locals {\n  a = 1e400\n  b = -0\n  c = null\n  d = 0x\n  e = 1e9999 * 1e9999\n  f = 1 / 0\n  g = -1 / 0 * 0\n}\n",
		"locals {\n  a = { for k, v in secret(\"env://A\") : k => v }\n  b = [for s in [secret(\"env://A\")] : s]\n  c = null[0]\n  d = null.a\n}\n",
		"locals {\n  a = foo::bar(1)\n  b = upper(null...)\n  c = [1]...\n  d = \"${\"${\"${1}\"}\"}\"\n  e = <<-EOT\n    ${local.a}\n  EOT\n}\n",
		"fleet \"\" {\n  group \"\\u0000\" {\n    type = \"\\uFFFF\"\n    replicas = 1e400\n  }\n}\nfleet \"ünïcode\" {}\n",
		"macfleet {\n  name = null\n  required_version = null\n}\nscaleway {\n  zones = null\n  pool_prefix = null\n}\nssh {\n  private_key = null\n  via = [null]\n}\n",
		"environment \"a\" {\n  variables = null\n}\nenvironment \"b\" {\n  variables = { (null) = 1, for = 2 }\n}\nvariable \"x\" {\n  type = object({ a = optional(list(map(any)), null) })\n  default = {}\n}\n",
		"locals {\n  a = local.*.b\n  b = var[*]\n  c = local[local.a]\n  d = [for a in local.c : a if a]\n  e = format(\"%s\", [])\n  f = jsondecode(\"[[[[\")\n  g = range(1e9)\n  h = regex(\"(a*)*\", \"aaaa\")\n}\n",
		nodes,
		small + "artifact \"\" {\n  version = null\n  source = \"https://a:b@c/\\u0000?#\"\n  size = 1e400\n}\nlocals {\n  a = artifact\n  b = artifact.a.b[*]\n}\n" +
			"fleet \"a\" {\n  tart {\n    artifact = [for a in artifact : a]\n  }\n  tart_kubelet {\n    artifact = \"${artifact[null]}\"\n    labels = { (null) = 1, a = artifact.a }\n  }\n}\n",
		small + hostBlocks,
		"host \"\" {}\nhost \"-\" {\n  server_id = null\n  group = null\n  environment = null\n}\nhost \"acme---00000\" {\n  group = fleet[*].group\n}\n",
		"host \"a\" {\n  group = fleet[\"a\"].group[0]\n}\nhost \"b\" {\n  group = \"${null}\"\n}\nhost \"c\" {\n  group = fleet.0.group.1\n  environment = \"${1/0}\"\n}\n",
		"\xef\xbb\xbfmacfleet {}\n", "\x00", "a \"b\" \"c\" {", "/*", "<<X", "x = 'a'", "\"", "}", "a = 1 b = 2",
	}
	for _, content := range hostile {
		f.Add(content, content, "production", "x="+content)
	}
	for _, text := range faulty(f) {
		f.Add(text, small, "", "runners=1")
	}
	f.Fuzz(func(t *testing.T, a, b, env, v string) {
		dir := directory(map[string]string{"a.fleet.hcl": a, "b.fleet.hcl": b})
		names := Outline(dir)
		r, diags := Dir(dir, Options{
			Environment: env, Vars: []string{v}, Env: map[string]string{"x": v}, VarFiles: []VarFile{{"v", []byte(v)}}, Version: "0.1.0",
		})
		if (r.Config == nil) != diags.HasErrors() {
			t.Errorf("config = %v with %v", r.Config, diags)
		}
		if r.Config != nil {
			checkConfig(t, r.Config, names)
		}
		for _, d := range diags {
			if d.Summary == "" || d.Detail == "" || d.Subject != nil && d.Subject.Filename == "" {
				t.Errorf("diagnostic = %v", d)
			}
			if d.Summary == "Value not known" {
				t.Errorf("an unknown value without a reason")
			}
		}
	})
}

// checkConfig holds what is true of every configuration without a fault.
func checkConfig(t *testing.T, cfg *fleet.Config, names Names) {
	t.Helper()
	for _, f := range cfg.Fleets {
		if !slices.Contains(names.Fleets, f.Name) {
			t.Errorf("the outline lacks the fleet %q", f.Name)
		}
	}
	for _, h := range cfg.Hosts {
		_, g, ok := cfg.Group(h.Fleet, h.Group)
		if !ok || len(h.Name) > fleet.MaxName || strings.HasPrefix(h.Name, cfg.Scaleway.PoolPrefix) || !slices.Contains(names.Hosts, h.Name) {
			t.Errorf("host = %+v", h)
		}
		if at, owned := cfg.Parse(h.Name); owned && (at.Fleet != h.Fleet || at.Group != h.Group) || !owned && h.ServerID == "" {
			t.Errorf("host = %+v, but its name says %+v", h, at)
		}
		for path := range g.Sources {
			if h.Sources[path] == (fleet.Source{}) {
				t.Errorf("%s has no source of %s, which its group has", h.Name, path)
			}
		}
	}
}
