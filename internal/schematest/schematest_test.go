package schematest_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/schematest"
	"github.com/macfleet/macfleet/plan"
)

const version = `{"format_version":"1.0","macfleet_version":"0.1.0","go":"go1.26","os":"linux","arch":"amd64"}`

func TestValidate(t *testing.T) {
	t.Parallel()
	names, err := schematest.Names()
	if err != nil || !slices.Contains(names, "plan") {
		t.Fatalf("names %v, %v", names, err)
	}
	for _, name := range names {
		if err := schematest.Validate(name, []byte(`{"unknown":"key"}`)); err == nil || strings.Contains(err.Error(), "schema "+name) {
			t.Errorf("%s: an object of unknown keys: %v", name, err)
		}
	}
	for _, text := range []string{"", "[]", version + version, strings.Replace(version, `"linux"`, `1`, 1),
		strings.Replace(version, "1.0", "2.0", 1), strings.Replace(version, "{", `{"more":1,`, 1)} {
		if err := schematest.Validate("version", []byte(text)); err == nil {
			t.Errorf("%q is valid", text)
		}
	}
	if err := schematest.ValidateLines("version", []byte(version+"\n"+version)); err != nil {
		t.Error(err)
	}
	if err := schematest.ValidateLines("version", nil); err == nil {
		t.Error("no line is valid")
	}
}

type inner struct {
	Kind  plan.Kind `json:"kind"`
	Twice int       `json:"twice"`
}

type document struct {
	Head  string `json:"format_version"`
	Twice string `json:"twice"`
	inner
	Secret string                               `json:"-"`
	Class  plan.Disruption                      `json:"class,omitempty"`
	State  inventory.ObjectState                `json:"state"`
	Seen   inventory.Seen[[]inventory.Capacity] `json:"seen"`
	Own    map[string]*plan.Answer              `json:"own,omitempty"`
	At     time.Time                            `json:"at,omitzero"`
}

// TestGenerate describes a type with a field of each kind.
func TestGenerate(t *testing.T) {
	t.Parallel()
	docs := []schematest.Document{{Name: "x", Title: "it", Of: reflect.TypeFor[document](), Version: "3"}}
	answer := map[reflect.Type]map[string]any{reflect.TypeFor[plan.Answer](): {"type": "object"}}
	files, err := schematest.Generate(docs, answer, reflect.TypeFor[inventory.ObjectState]())
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"$ref": "defs.schema.json#/$defs/schematest_test.document"`, `"format_version": {"pattern":"^3\\.[0-9]+$"}`} {
		if text := string(files["x.schema.json"]); !strings.Contains(text, part) {
			t.Errorf("x lacks %s:\n%s", part, text)
		}
	}
	text := string(files["defs.schema.json"])
	for _, part := range []string{`"required": ["format_version","twice","state","seen","kind"]`, `"additionalProperties": false`, `"twice": {"type":"string"}`, `"state": {"type":"string"}`,
		`"class": {"enum":["none","restart","drain","reboot","wipe"],"type":"string"}`, `"kind": {"enum":["pin","claim",`, `"at": {"format":"date-time","type":"string"}`,
		`{"additionalProperties":false,"properties":{"state":{"const":"present"},"value":{"items":{"$ref":"defs.schema.json#/$defs/inventory.Capacity"},"type":"array"}},"required":["state","value"],"type":"object"}`,
		`"own": {"additionalProperties":{"$ref":"defs.schema.json#/$defs/plan.Answer"},"type":"object"}`, `"memory": {"description":"bytes","type":"integer"}`} {
		if !strings.Contains(text, part) {
			t.Errorf("the definitions lack %s:\n%s", part, text)
		}
	}
	if strings.Contains(text, "Secret") || strings.Count(text, `"twice"`) != 2 {
		t.Errorf("too much is described:\n%s", text)
	}
	if _, err := schematest.Generate(docs, nil); err == nil || !strings.Contains(err.Error(), "plan.Answer writes its own JSON") {
		t.Errorf("a type that writes its own JSON: %v", err)
	}
}
