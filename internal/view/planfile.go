package view

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/macfleet/macfleet/internal/wire"
	"github.com/macfleet/macfleet/plan"
)

// PlanFile shows a plan file: what it is, and then the plan as it was.
func (t *Text) PlanFile(f wire.PlanFile, now time.Time) {
	t.line(0, "", fmt.Sprintf("Made %s by %s with macfleet %s, %s.", moment(f.MadeAt), f.MadeBy, f.MacfleetVersion, good(f, now)))
	t.line(0, "", fmt.Sprintf("It approves %s; configuration %s%s.", count(len(f.Actions()), "action"), f.ConfigurationHash, limits(f)))
	t.blank()
	t.Plan(f.Plan)
}

// Kept says that a plan file was written, and what is done with it.
func (t *Text) Kept(name string, f wire.PlanFile) {
	t.line(0, "", fmt.Sprintf("Wrote %s: it approves %s until %s. macfleet apply %s does these and no others.", name, count(len(f.Actions()), "action"), moment(f.ExpiresAt), name))
}

// Approved says by whose approval an apply goes on, and what of it is no more to be
// done.
func (t *Text) Approved(name string, f wire.PlanFile, now *plan.Plan) {
	for _, line := range approved(name, f, now) {
		t.line(0, "", line)
	}
}

// Approved prints by whose approval an apply goes on.
func (s *Stream) Approved(name string, f wire.PlanFile, now *plan.Plan) {
	s.write(message{Level: "info", Type: "plan_file", Message: strings.Join(approved(name, f, now), " ")})
}

func approved(name string, f wire.PlanFile, now *plan.Plan) []string {
	out := []string{fmt.Sprintf("Applying %s, made %s by %s: it approves %s.", name, moment(f.MadeAt), f.MadeBy, count(len(f.Actions()), "action"))}
	var gone []string
	for _, a := range f.Gone(now) {
		gone = append(gone, strings.TrimPrefix(a.Address(), "host."))
	}
	if len(gone) > 0 {
		out = append(out, fmt.Sprintf("No more to be done, somebody has done it since: %s.", strings.Join(gone, ", ")))
	}
	return out
}

func good(f wire.PlanFile, now time.Time) string {
	if now.Before(f.ExpiresAt) {
		return "good until " + moment(f.ExpiresAt)
	}
	return "expired " + moment(f.ExpiresAt)
}

// limits says what the run of a plan file was limited to.
func limits(f wire.PlanFile) string {
	var parts []string
	for _, s := range f.On {
		parts = append(parts, "--on "+s)
	}
	for _, s := range f.Exclude {
		parts = append(parts, "--exclude "+s)
	}
	for _, id := range f.Steps {
		parts = append(parts, "--step "+string(id))
	}
	if f.Rollback {
		parts = append(parts, "--rollback")
	}
	if len(parts) == 0 {
		return ""
	}
	return "; planned with " + strings.Join(parts, " ")
}

// WritePlanFile prints a plan file as one JSON object.
func WritePlanFile(out io.Writer, f wire.PlanFile, now time.Time) error {
	return wire.Write(out, f.Shown(now))
}
