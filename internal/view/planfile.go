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
	good := "good until "
	if !now.Before(f.ExpiresAt) {
		good = "expired "
	}
	limits := flags(f.On, f.Exclude, mapped(f.Steps, func(id plan.StepID) string { return string(id) }), f.Rollback)
	t.sayf("Made %s by %s with macfleet %s, %s.", moment(f.MadeAt), f.MadeBy, f.MacfleetVersion, good+moment(f.ExpiresAt))
	t.sayf("It approves %s; configuration %s%s.", count(len(f.Actions()), "action"), f.ConfigurationHash, given(limits != "", "; planned with%s", limits))
	t.blank()
	t.Plan(f.Plan)
}

// Kept says that a plan file was written, and what is done with it.
func (t *Text) Kept(name string, f wire.PlanFile) {
	t.sayf("Wrote %s: it approves %s until %s. macfleet apply %s does these and no others.", name, count(len(f.Actions()), "action"), moment(f.ExpiresAt), name)
}

// Approved says by whose approval an apply goes on, and what of it is no more to be
// done.
func (t *Text) Approved(name string, f wire.PlanFile, now *plan.Plan) {
	for _, line := range approved(name, f, now) {
		t.Say(line)
	}
}

func approved(name string, f wire.PlanFile, now *plan.Plan) []string {
	out := []string{fmt.Sprintf("Applying %s, made %s by %s: it approves %s.", name, moment(f.MadeAt), f.MadeBy, count(len(f.Actions()), "action"))}
	if gone := joined(f.Gone(now), func(a plan.Action) string { return strings.TrimPrefix(a.Address(), "host.") }); gone != "" {
		out = append(out, fmt.Sprintf("No more to be done, somebody has done it since: %s.", gone))
	}
	return out
}

// WritePlanFile prints a plan file as one JSON object.
func WritePlanFile(out io.Writer, f wire.PlanFile, now time.Time) error {
	return wire.Write(out, f.Shown(now))
}

// Recalled is a recorded observation that a plan is made from.
type Recalled struct {
	File  string
	Taken time.Time
	plan.Gaps
}

// Recalled says how old the observation is, and what it does not answer.
func (t *Text) Recalled(r Recalled) {
	missed := func(noun string, all []string) string {
		return given(len(all) > 0, "%s not asked (%s)", count(len(all), noun), some(all))
	}
	gaps := listed(", ", missed("host", r.Hosts), missed("question", r.Probes))
	t.sayf("From %s, observed %s.%s", r.File, r.Taken.UTC().Format("2006-01-02 15:04 UTC"), given(gaps != "",
		" It is older than the configuration, or was recorded for a selection: %s. Record another: macfleet plan --record FILE.", gaps))
}
