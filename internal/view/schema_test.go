package view_test

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"testing"

	"github.com/macfleet/macfleet/internal/runlog"
	"github.com/macfleet/macfleet/internal/schematest"
	"github.com/macfleet/macfleet/internal/view"
)

// TestSchemas compares every schema of a document with the type that is written.
func TestSchemas(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]reflect.Type{
		"plan":      reflect.TypeFor[view.Document](),
		"hosts":     reflect.TypeFor[view.HostsDocument](),
		"stream":    reflect.TypeFor[view.Message](),
		"version":   reflect.TypeFor[view.Version](),
		"validate":  reflect.TypeFor[view.Validation](),
		"doctor":    reflect.TypeFor[view.CheckupDocument](),
		"explain":   reflect.TypeFor[view.ExplainDocument](),
		"artifacts": reflect.TypeFor[view.ArtifactsDocument](),
		"ready":     reflect.TypeFor[view.ReadyDocument](),
		"runs":      reflect.TypeFor[view.RunsDocument](),
		"run":       reflect.TypeFor[view.RunDocument](),
		"record":    reflect.TypeFor[runlog.Entry](),
		"showplan":  reflect.TypeFor[view.PlanFileDocument](),
	} {
		for _, fault := range schematest.Describe(name, of) {
			t.Errorf("docs/schemas/%s.schema.json: %s", name, fault)
		}
	}
}

// TestGoldensFollowTheirSchemas looks at the very bytes that are kept.
func TestGoldensFollowTheirSchemas(t *testing.T) {
	t.Parallel()
	read := func(name string) []byte {
		text, err := os.ReadFile("testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	for name, schema := range map[string]string{"plan.json": "plan", "joining.json": "plan", "joininghosts.json": "hosts", "doctor.json": "doctor"} {
		if err := schematest.Validate(schema, read(name)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, document := range documents(t, read("explain.jsonl")) {
		if err := schematest.Validate("explain", document); err != nil {
			t.Errorf("explain.jsonl: %v", err)
		}
	}
	if err := schematest.ValidateLines("stream", read("stream.jsonl")); err != nil {
		t.Errorf("stream.jsonl: %v", err)
	}
}

// documents returns the JSON values that stand one after the other in a text.
func documents(t *testing.T, text []byte) [][]byte {
	t.Helper()
	var out [][]byte
	for dec := json.NewDecoder(bytes.NewReader(text)); dec.More(); {
		var one json.RawMessage
		if err := dec.Decode(&one); err != nil {
			t.Fatal(err)
		}
		out = append(out, one)
	}
	return out
}
