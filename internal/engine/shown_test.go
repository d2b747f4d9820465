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
	must(t, err)
	f, err := wire.DecodePlanFile(content)
	must(t, err)
	if diff := cmp.Diff(shown(t, p), shown(t, f.Plan)); diff != "" {
		t.Errorf("the plan file shows another plan (-plan +file):\n%s", diff)
	}
	var d struct {
		Plan json.RawMessage `json:"plan"`
	}
	must(t, json.Unmarshal(document(t, f.Shown(time.Now())), &d))
	if diff := cmp.Diff(indented(t, document(t, wire.PlanOf(p))), indented(t, d.Plan)); diff != "" {
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
	must(t, err)
	must(t, m.Plan(&b, p))
	return b.String() + string(document(t, wire.PlanOf(p)))
}

func document(t *testing.T, v any) []byte {
	t.Helper()
	var b bytes.Buffer
	must(t, wire.Write(&b, v))
	return b.Bytes()
}

func indented(t *testing.T, content []byte) string {
	t.Helper()
	var b bytes.Buffer
	must(t, json.Indent(&b, bytes.TrimSpace(content), "", " "))
	return b.String()
}
