// Package drift makes of a plan what alarms go by: one item for each thing that
// moved behind our back, how bad it is, what is ignored for now, what nobody knows,
// and fingerprints that stay equal as long as the drift does. It does no I/O and
// takes no clock: what day it is, it is told.
package drift

import (
	"cmp"

	"github.com/macfleet/macfleet/plan"
)

// severityOf returns how bad it is that a code is met among drift, or among what keeps
// macfleet from seeing any.
func severityOf(c plan.Code) plan.Severity { return cmp.Or(c.Severity(), plan.Warning) }

// codes returns the names that an item of drift may bear, sorted.
func codes() []string {
	var out []string
	for _, c := range plan.Codes() {
		if c.Severity() != plan.NotDrift {
			out = append(out, c.String())
		}
	}
	return out
}
