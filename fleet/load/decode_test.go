package load

import (
	"reflect"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/secret"
)

// aStep has a field of every kind that a step of the future may have.
type aStep struct {
	Text    *string           `hcl:"text,optional"`
	Number  *int              `hcl:"number,optional" max:"10"`
	Plain   int64             `hcl:"plain"`
	Flag    *bool             `hcl:"flag,optional"`
	List    []string          `hcl:"list,optional"`
	Numbers []int             `hcl:"numbers,optional"`
	Map     map[string]string `hcl:"map,optional"`
	Key     *secret.Ref       `hcl:"key,optional"`
	Reserve *struct {
		Memory *string `hcl:"memory,optional"`
		CPU    *int    `hcl:"cpu,optional"`
	} `hcl:"reserve,block"`
	Rules []struct {
		Name string `hcl:"name,label"`
		Port int    `hcl:"port"`
	} `hcl:"rule,block"`
}

// decodeStep reads a step, and returns the lines where its values are, too.
func decodeStep(t *testing.T, content string) (aStep, map[string]int, hcl.Diagnostics) {
	t.Helper()
	file, diags := hclsyntax.ParseConfig([]byte(content), "x", hcl.InitialPos)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	l := &loader{files: map[string]*hcl.File{"x": file}, functions: new(budget).functions(), maybe: map[string]bool{}, args: map[hcl.Range]argument{}}
	var got aStep
	lines := map[string]int{}
	for path, at := range l.decode(file.Body.(*hclsyntax.Body).Blocks[0], &scope{}, reflect.ValueOf(&got).Elem(), nil).names {
		lines[path] = at.Start.Line
	}
	return got, lines, l.finish()
}

func TestDecodeAnyStep(t *testing.T) {
	t.Parallel()
	got, lines, diags := decodeStep(t, `
s {
  text    = "t"
  number  = 10
  plain   = 0
  flag    = false
  list    = concat(["a"], ["b"])
  numbers = [1, 2]
  map     = { a = "b" }
  key     = secret("op://vault/item/field")
  reserve {
    memory = "2Gi"
  }
  rule "a" {
    port = 1
  }
  rule "b" {
    port = 2
  }
}`)
	if len(diags) > 0 {
		t.Fatal(diags)
	}
	if *got.Text != "t" || *got.Number != 10 || *got.Flag || got.Map["a"] != "b" || got.Key.Path != "vault/item/field" ||
		*got.Reserve.Memory != "2Gi" || got.Reserve.CPU != nil || len(got.Rules) != 2 || got.Rules[1].Port != 2 || got.Rules[0].Name != "a" {
		t.Errorf("step = %+v", got)
	}
	equal(t, "list", []string{"a", "b"}, got.List)
	equal(t, "numbers", []int{1, 2}, got.Numbers)
	equal(t, "lines", map[string]int{"text": 3, "number": 4, "plain": 5, "flag": 6, "list": 7, "numbers": 8, "map": 9, "key": 10, "reserve": 11, "reserve.memory": 12, "rule": 17}, lines)
}

func TestDecodeFaults(t *testing.T) {
	t.Parallel()
	got, _, diags := decodeStep(t, `
s {
  text    = ["t"]
  number  = 11
  flag    = "yes"
  list    = { a = 1 }
  numbers = ["x"]
  map     = { a = 1 }
  key     = "op://vault/item/field"
  reserve {
    cpus = 2
  }
  rule {
    port = 1
  }
}`)
	if len(diags) != 10 {
		t.Errorf("%d diagnostics", len(diags))
		for _, d := range diags {
			t.Log(d)
		}
	}
	if got.Text != nil || got.Number != nil || got.Key != nil || got.Rules != nil {
		t.Errorf("step = %+v", got)
	}
}

// Merging is by reflection: any struct of pointers, lists and maps will do.
func TestOverlay(t *testing.T) {
	t.Parallel()
	lower, _, _ := decodeStep(t, "s {\n  plain = 1\n  text = \"low\"\n  list = [\"a\"]\n  map = { a = \"b\" }\n  reserve {\n    memory = \"2Gi\"\n    cpu = 2\n  }\n}")
	upper, _, _ := decodeStep(t, "s {\n  plain = 0\n  text = \"\"\n  list = []\n  flag = false\n  reserve {\n    cpu = 0\n  }\n}")
	var got aStep
	overlay(reflect.ValueOf(&got).Elem(), reflect.ValueOf(lower))
	overlay(reflect.ValueOf(&got).Elem(), reflect.ValueOf(upper))
	if *got.Text != "" || *got.Flag || got.List == nil || len(got.List) != 0 || got.Map["a"] != "b" || *got.Reserve.Memory != "2Gi" || *got.Reserve.CPU != 0 {
		t.Errorf("merged = %+v", got)
	}
	*got.Reserve.Memory, got.Map["a"] = "changed", "changed"
	if *lower.Reserve.Memory != "2Gi" || lower.Map["a"] != "b" || *lower.Reserve.CPU != 2 {
		t.Errorf("merging changed what it merged: %+v", lower)
	}
}

// Every step of fleet.Spec can be written, and can be left out again.
func TestStepsOfSpec(t *testing.T) {
	t.Parallel()
	for _, name := range stepNames() {
		if !hasStep(everyStep(), name) || hasStep(fleet.Spec{}, name) || hasStep(without(everyStep(), []string{name}), name) {
			t.Errorf("%s is not found by its name", name)
		}
	}
}

func everyStep() fleet.Spec {
	var spec fleet.Spec
	v := reflect.ValueOf(&spec).Elem()
	for i := range v.NumField() {
		v.Field(i).Set(reflect.New(v.Field(i).Type().Elem()))
	}
	return spec
}
