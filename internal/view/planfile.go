package view

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/macfleet/macfleet/plan"
)

// PlanFile shows a plan file: what it is, and then the plan as it was.
func (t *Text) PlanFile(f plan.PlanFile, now time.Time) {
	t.line(0, "", fmt.Sprintf("Made %s by %s with macfleet %s, %s.", moment(f.Made), f.Who, f.Version, good(f, now)))
	t.line(0, "", fmt.Sprintf("It approves %s; configuration %s%s.", count(len(f.Actions()), "action"), f.Configuration, limits(f)))
	t.blank()
	t.Plan(f.Plan)
}

// Kept says that a plan file was written, and what is done with it.
func (t *Text) Kept(name string, f plan.PlanFile) {
	t.line(0, "", fmt.Sprintf("Wrote %s: it approves %s until %s. macfleet apply %s does these and no others.", name, count(len(f.Actions()), "action"), moment(f.Expires), name))
}

// Approved says by whose approval an apply goes on, and what of it is no more to be
// done.
func (t *Text) Approved(name string, f plan.PlanFile, now *plan.Plan) {
	for _, line := range approved(name, f, now) {
		t.line(0, "", line)
	}
}

// Approved prints by whose approval an apply goes on.
func (s *Stream) Approved(name string, f plan.PlanFile, now *plan.Plan) {
	s.write(message{Level: "info", Type: "plan_file", Message: strings.Join(approved(name, f, now), " ")})
}

func approved(name string, f plan.PlanFile, now *plan.Plan) []string {
	out := []string{fmt.Sprintf("Applying %s, made %s by %s: it approves %s.", name, moment(f.Made), f.Who, count(len(f.Actions()), "action"))}
	var gone []string
	for _, a := range f.Gone(now) {
		gone = append(gone, strings.TrimPrefix(a.Address(), "host."))
	}
	if len(gone) > 0 {
		out = append(out, fmt.Sprintf("No more to be done, somebody has done it since: %s.", strings.Join(gone, ", ")))
	}
	return out
}

func good(f plan.PlanFile, now time.Time) string {
	if now.Before(f.Expires) {
		return "good until " + moment(f.Expires)
	}
	return "expired " + moment(f.Expires)
}

// limits says what the run of a plan file was limited to.
func limits(f plan.PlanFile) string {
	var parts []string
	for _, s := range f.On {
		parts = append(parts, "--on "+s)
	}
	for _, s := range f.Exclude {
		parts = append(parts, "--exclude "+s)
	}
	for _, id := range f.Plan.Steps {
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

// PlanFileDocument is a plan file as one JSON object: what it is, and its plan as
// plan --json has it.
type PlanFileDocument struct {
	FormatVersion   string    `json:"format_version"`
	MacfleetVersion string    `json:"macfleet_version"`
	Configuration   string    `json:"configuration"`
	Environment     string    `json:"environment"`
	Hash            string    `json:"configuration_hash"`
	MadeAt          time.Time `json:"made_at"`
	MadeBy          string    `json:"made_by"`
	ExpiresAt       time.Time `json:"expires_at"`
	Expired         bool      `json:"expired"`
	On              []string  `json:"on"`
	Exclude         []string  `json:"exclude"`
	Steps           []string  `json:"steps"`
	Rollback        bool      `json:"rollback"`
	Approves        []string  `json:"approves"` // addresses
	Plan            Document  `json:"plan"`
}

// WritePlanFile prints a plan file as one JSON object.
func WritePlanFile(out io.Writer, f plan.PlanFile, now time.Time) error {
	owner := f.Plan.Owner
	d := PlanFileDocument{FormatVersion: FormatVersion, MacfleetVersion: f.Version, Configuration: owner.Name, Environment: owner.Environment,
		Hash: f.Configuration, MadeAt: f.Made, MadeBy: f.Who, ExpiresAt: f.Expires, Expired: !now.Before(f.Expires),
		On: append([]string{}, f.On...), Exclude: append([]string{}, f.Exclude...), Steps: []string{}, Rollback: f.Rollback, Approves: []string{}, Plan: DocumentOf(f.Plan)}
	for _, id := range f.Plan.Steps {
		d.Steps = append(d.Steps, string(id))
	}
	for _, a := range f.Actions() {
		d.Approves = append(d.Approves, a.Address())
	}
	d.Plan.MacfleetVersion = f.Version
	return writeJSON(out, d)
}
