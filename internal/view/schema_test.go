package view_test

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/doctor"
	"github.com/macfleet/macfleet/internal/rollout"
	"github.com/macfleet/macfleet/internal/runlog"
	"github.com/macfleet/macfleet/internal/schematest"
	"github.com/macfleet/macfleet/internal/view"
	"github.com/macfleet/macfleet/internal/wire"
	"github.com/macfleet/macfleet/plan"
)

// TestSchemas makes every schema from the type of its document; -update writes them.
func TestSchemas(t *testing.T) {
	t.Parallel()
	text := map[string]any{"oneOf": []map[string]any{{"type": "string"}, {"type": "object", "description": "bytes that are no UTF-8",
		"additionalProperties": false, "required": []string{"base64"}, "properties": map[string]any{"base64": map[string]any{"type": "string"}}}}}
	answer := map[string]any{"type": "object", "additionalProperties": false, "required": []string{"exit", "stdout", "stderr"},
		"properties": map[string]any{"exit": map[string]any{"type": "integer"}, "stdout": text, "stderr": text}}
	files, err := schematest.Generate([]schematest.Document{
		{Name: "plan", Title: "macfleet plan --json, macfleet drift --json", Of: reflect.TypeFor[view.DriftDocument](), Version: "1"},
		{Name: "planfile", Title: "macfleet plan --out FILE", Of: reflect.TypeFor[wire.PlanFile](), Version: "2"},
		{Name: "showplan", Title: "macfleet show FILE --json", Of: reflect.TypeFor[wire.PlanFile](), Version: "1"},
		{Name: "snapshot", Title: "macfleet plan --record FILE", Of: reflect.TypeFor[wire.Record](), Version: "2"},
		{Name: "hosts", Title: "macfleet hosts -o json", Of: reflect.TypeFor[view.HostsDocument](), Version: "1"},
		{Name: "ready", Title: "macfleet hosts --wait ready --json", Of: reflect.TypeFor[view.ReadyDocument](), Version: "1"},
		{Name: "stream", Title: "macfleet apply --json: each line", Of: reflect.TypeFor[view.Message]()},
		{Name: "explain", Title: "macfleet explain HOST --json", Of: reflect.TypeFor[view.ExplainDocument](), Version: "1"},
		{Name: "doctor", Title: "macfleet doctor HOST --json", Of: reflect.TypeFor[view.CheckupDocument](), Version: "1"},
		{Name: "account", Title: "macfleet doctor account --json", Of: reflect.TypeFor[view.AccountDocument](), Version: "1"},
		{Name: "github", Title: "macfleet doctor github --json", Of: reflect.TypeFor[view.ServicesDocument](), Version: "1"},
		{Name: "artifacts", Title: "macfleet artifacts status --json", Of: reflect.TypeFor[view.ArtifactsDocument](), Version: "1"},
		{Name: "validate", Title: "macfleet validate --json", Of: reflect.TypeFor[view.Validation](), Version: "1"},
		{Name: "version", Title: "macfleet version --json", Of: reflect.TypeFor[view.Version](), Version: "1"},
		{Name: "runs", Title: "macfleet runs --json", Of: reflect.TypeFor[view.RunsDocument](), Version: "1"},
		{Name: "run", Title: "macfleet show RUN --json", Of: reflect.TypeFor[view.RunDocument](), Version: "1"},
		{Name: "record", Title: "The record of a run: each line", Of: reflect.TypeFor[runlog.Entry]()},
	}, map[reflect.Type]map[string]any{reflect.TypeFor[plan.Answer](): answer},
		reflect.TypeFor[runlog.Type](), reflect.TypeFor[inventory.Readiness](), reflect.TypeFor[inventory.ObjectState](), reflect.TypeFor[inventory.Gate](),
		reflect.TypeFor[inventory.Made](), reflect.TypeFor[inventory.Stock](), reflect.TypeFor[fleet.PriceClass](),
		reflect.TypeFor[fleet.Level](), reflect.TypeFor[doctor.State](), reflect.TypeFor[rollout.Reason]())
	must(t, err)
	const folder = "../../docs/schemas/"
	for name, want := range files {
		if *update {
			must(t, os.WriteFile(folder+name, want, 0o644))
		}
		if got, err := os.ReadFile(folder + name); err != nil || !bytes.Equal(got, want) {
			t.Errorf("docs/schemas/%s (run with -update to write it): %v\n%s", name, err, cmp.Diff(string(got), string(want)))
		}
	}
	kept, err := os.ReadDir(folder)
	must(t, err)
	for _, f := range kept {
		if _, ok := files[f.Name()]; !ok && f.Name() != "schemas.go" {
			t.Errorf("docs/schemas/%s belongs to no document", f.Name())
		}
	}
}

// TestGoldensFollowTheirSchemas checks the goldens as they are stored.
func TestGoldensFollowTheirSchemas(t *testing.T) {
	t.Parallel()
	read := func(name string) []byte {
		text, err := os.ReadFile("testdata/" + name)
		must(t, err)
		return text
	}
	for name, schema := range map[string]string{"joininghosts.json": "hosts", "doctor.json": "doctor"} {
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

// without takes a key out of a JSON object, and returns the rest and the value of the
// key, both laid out.
func without(t *testing.T, document []byte, key string) (rest, value string) {
	t.Helper()
	var object map[string]any
	must(t, json.Unmarshal(document, &object))
	taken := object[key]
	delete(object, key)
	return laidOut(t, object), laidOut(t, taken)
}

// laidOut is a JSON value with sorted keys.
func laidOut(t *testing.T, value any) string {
	t.Helper()
	raw, err := json.MarshalIndent(value, "", "  ")
	must(t, err)
	return string(raw) + "\n"
}

// document is what plan --json prints of a plan, laid out.
func document(t *testing.T, p *plan.Plan) string {
	t.Helper()
	var b bytes.Buffer
	must(t, wire.Write(&b, wire.PlanOf(p)))
	whole, _ := without(t, b.Bytes(), "")
	return whole
}

// documents returns the JSON values that stand one after the other in a text.
func documents(t *testing.T, text []byte) [][]byte {
	t.Helper()
	var out [][]byte
	for dec := json.NewDecoder(bytes.NewReader(text)); dec.More(); {
		var one json.RawMessage
		must(t, dec.Decode(&one))
		out = append(out, one)
	}
	return out
}
