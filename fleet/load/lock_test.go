package load

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestLock(t *testing.T) {
	t.Parallel()
	pins := map[string]Pin{"tart": {digest, 60_000_000}, "kubelet": {digest, 7}, "absent": {digest, 1}}
	tests := map[string]struct{ src, want string }{
		"new, changed and unchanged": {`# The hypervisor.
artifact "tart" { # pinned by hand
  version = "2.32.1"
  source  = "https://releases.acme.dev/tart.tar.gz" # the whole bundle
}

artifact "kubelet" {
  sha256  = "0000" # of the build of today
  version = "0.4.0"
  source  = "dist/tart-kubelet"
  size    = 1
}

artifact "other" {
  version = "1"
  source  = "other"
}

fleet "a" {
  artifact = "tart"
}
`, ""},
		"another layout stays": {"artifact \"kubelet\" {\n\tversion=\"1\"\n\tsource =   \"x\"\n\tsha256 = \"0\"\n}\nlocals {\n      a=1\n}\n",
			"artifact \"kubelet\" {\n\tversion=\"1\"\n\tsource =   \"x\"\n\tsha256 = \"" + digest + "\"\n\tsize = 7\n}\nlocals {\n      a=1\n}\n"},
		"line ends stay": {"artifact \"kubelet\" {\r\n  version = \"1\"\r\n}\r\n",
			"artifact \"kubelet\" {\r\n  version = \"1\"\r\n  sha256  = \"" + digest + "\"\r\n  size    = 7\r\n}\r\n"},
		"no artifact": {"locals {a=1}\n", "locals {a=1}\n"},
	}
	all := tests["new, changed and unchanged"]
	all.want = strings.NewReplacer("# the whole bundle\n", "# the whole bundle\n  sha256  = \""+digest+"\"\n  size    = 60000000\n",
		`"0000"`, `"`+digest+`"`, "= 1\n}", "= 7\n}").Replace(all.src)
	tests["new, changed and unchanged"] = all
	for name, tt := range tests {
		got, err := Lock("a.fleet.hcl", []byte(tt.src), pins)
		if diff := cmp.Diff(tt.want, string(got)); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
		again, err := Lock("a.fleet.hcl", got, pins)
		if err != nil || string(again) != string(got) {
			t.Errorf("%s: a second time changes something: %v\n%s", name, err, again)
		}
	}
}

func TestLockRefuses(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"var.digest", `"${var.digest}"`, `lower("A")`, `true ? "a" : "b"`} {
		src := "artifact \"tart\" {\n  sha256 = " + value + "\n}\n"
		if _, err := Lock("a.fleet.hcl", []byte(src), map[string]Pin{"tart": {digest, 1}}); err == nil || !strings.Contains(err.Error(), `a.fleet.hcl: sha256 of artifact "tart" is not a literal value`) {
			t.Errorf("%s: %v", value, err)
		}
	}
	if _, err := Lock("a.fleet.hcl", []byte("artifact {"), nil); err == nil {
		t.Error("a syntax error is ignored")
	}
}

// TestLockedLoads: what was written is read, and nothing else has changed.
func TestLockedLoads(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		pins := map[string]Pin{}
		for _, name := range rapid.SliceOfDistinct(rapid.SampledFrom([]string{"tart", "kubelet", "kubelet_next", "unlocked"}), rapid.ID).Draw(t, "names") {
			pins[name] = Pin{strings.Repeat("0f", 32), rapid.Int64Range(1, 1e12).Draw(t, "size")}
		}
		before := mustLoad(t, one(nodes), Options{})
		text, err := Lock("a.fleet.hcl", []byte(nodes), pins)
		if err != nil {
			t.Fatal(err)
		}
		after := mustLoad(t, one(string(text)), Options{})
		for i, a := range before.Config.Artifacts {
			if p, ok := pins[a.Name]; ok {
				a.SHA256, a.Size = p.SHA256, p.Size
			}
			if a != after.Config.Artifacts[i] {
				t.Fatalf("%+v became %+v", a, after.Config.Artifacts[i])
			}
		}
	})
}

// FuzzLock: whatever the text is, what comes out of it still parses, holds the pins, and stays as it is a second time.
func FuzzLock(f *testing.F) {
	for _, src := range []string{nodes, "artifact \"tart\" {\n}", "artifact \"tart\" { a = 1 }\nb = 2\n", "artifact \"tart\" {\r\n a = <<X\r\nX\r\n}\r\n",
		"artifact \"tart\" {\n  sha256 = \"\"\n size = 1.5e3 // x\n}", "artifact tart {\n  sha256 = \"${1}\" # }\n}\nartifact \"tart\" {\n  /* a\n */ x = [\n1] /* b\n */\n}\n"} {
		f.Add(src)
	}
	pins := map[string]Pin{"tart": {digest, 7}}
	f.Fuzz(func(t *testing.T, src string) {
		if excess("a.fleet.hcl", []byte(src)) != nil {
			return
		}
		once, err := Lock("a.fleet.hcl", []byte(src), pins)
		if err != nil {
			return
		}
		again, err := Lock("a.fleet.hcl", once, pins)
		if err != nil || string(again) != string(once) {
			t.Fatalf("%q became %q, and then %q, %v", src, once, again, err)
		}
	})
}
