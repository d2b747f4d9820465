package view

import (
	"cmp"

	"github.com/macfleet/macfleet/plan"
)

// Code shows what a reason code means, and how it is fixed.
func (t *Text) Code(c plan.Code) {
	t.heading(c.String() + "  (" + cmp.Or(string(c.Severity()), "never drift") + ")")
	t.line(2, "", c.Meaning())
	t.line(2, "", "fix: "+cmp.Or(c.Remedy(), "macfleet apply"))
}
