package view

import (
	"fmt"
	"strings"
	"time"

	"github.com/macfleet/macfleet/plan"
)

// Recalled is a recorded observation that a plan is made from.
type Recalled struct {
	File  string
	Taken time.Time
	plan.Gaps
}

// Recalled says how old the observation is, and what it does not answer.
func (t *Text) Recalled(r Recalled) {
	text := fmt.Sprintf("From %s, observed %s.", r.File, r.Taken.UTC().Format("2006-01-02 15:04 UTC"))
	var parts []string
	if n := len(r.Hosts); n > 0 {
		parts = append(parts, fmt.Sprintf("%s not asked (%s)", count(n, "host"), some(r.Hosts)))
	}
	if n := len(r.Probes); n > 0 {
		parts = append(parts, fmt.Sprintf("%s not asked (%s)", count(n, "question"), some(r.Probes)))
	}
	if len(parts) > 0 {
		text += " It is older than the configuration, or was recorded for a selection: " + strings.Join(parts, ", ") +
			". Record another: macfleet plan --record FILE."
	}
	t.line(0, "", text)
}

// some joins at most three names.
func some(names []string) string {
	if len(names) > 3 {
		return strings.Join(names[:3], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}
