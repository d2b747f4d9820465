package engine_test

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/macfleet/macfleet/internal/view"
	"github.com/macfleet/macfleet/internal/wire"
	"github.com/macfleet/macfleet/plan"
)

// shownAlike fails unless an approver reads in a plan file what the plan showed: as
// text, as Markdown and as JSON, byte for byte.
func shownAlike(t *testing.T, p *plan.Plan) {
	t.Helper()
	content, err := wire.NewPlanFile(p).Encode()
	if err != nil {
		t.Fatal(err)
	}
	f, err := wire.DecodePlanFile(content)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(shown(t, p), shown(t, f.Plan)); diff != "" {
		t.Errorf("the plan file shows another plan (-plan +file):\n%s", diff)
	}
	var b bytes.Buffer
	if err := wire.Write(&b, f.Shown(time.Now())); err != nil {
		t.Fatal(err)
	}
	var d struct {
		Plan json.RawMessage `json:"plan"`
	}
	if err := json.Unmarshal(b.Bytes(), &d); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(indented(t, document(t, p)), indented(t, d.Plan)); diff != "" {
		t.Errorf("show --json has another plan (-plan +file):\n%s", diff)
	}
}

// shown is a plan as a person and a program read it.
func shown(t *testing.T, p *plan.Plan) string {
	t.Helper()
	var b bytes.Buffer
	view.NewText(&b, 0, false).Plan(p, view.PlanForm{Full: true})
	view.NewText(&b, 0, false).Plan(p, view.PlanForm{})
	m, err := view.NewMarkdown(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Plan(&b, p); err != nil {
		t.Fatal(err)
	}
	return b.String() + string(document(t, p))
}

func document(t *testing.T, p *plan.Plan) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := wire.Write(&b, wire.PlanOf(p)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func indented(t *testing.T, content []byte) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Indent(&b, bytes.TrimSpace(content), "", " "); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
