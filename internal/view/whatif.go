package view

import (
	"fmt"

	"github.com/macfleet/macfleet/plan"
)

// whatIfLines says what other numbers of servers than configured would need: a heading for each group, and its facts.
// A further budget of the configuration gets a separate line here.
func whatIfLines(w plan.WhatIf) (head string, facts []string) {
	head = fmt.Sprintf("What if %s.%s had %s (configured: %d)", w.Fleet, w.Group, count(w.Replicas, "host"), w.Configured)
	hosts := fmt.Sprintf("hosts: %d now, %d from the pool, %d to order", w.Members, w.Claims, w.ToOrder)
	if w.Leaving > 0 {
		hosts = fmt.Sprintf("hosts: %d now, %d leave", w.Members, w.Leaving)
	}
	facts = append(facts, hosts, fmt.Sprintf("pool after that: %s of the group's type and macOS", count(w.Free, "free server")))
	for _, o := range w.Offers {
		facts = append(facts, fmt.Sprintf("%s in %s: %s", o.Type, o.Zone, o.Facts()))
	}
	switch {
	case w.Later > 0:
		facts = append(facts, fmt.Sprintf("limits: %d of %s in the first run, the others in later runs [%s]", w.Claims-w.Later, count(w.Claims, "claim"), w.Limit))
	case w.Claims > 0:
		facts = append(facts, "limits: one run may do all claims")
	}
	return head, facts
}

// whatIf prints what other numbers of servers would need.
func (t *Text) whatIf(p *plan.Plan) {
	for _, w := range p.WhatIf {
		head, facts := whatIfLines(w)
		t.blank()
		t.line(0, "", head)
		for _, f := range facts {
			t.line(2, "", f)
		}
	}
	if len(p.WhatIf) > 0 {
		t.blank()
		t.Say("No file was changed, and this plan cannot be applied. To keep it, change replicas in the configuration.")
	}
}

// markdownWhatIf is the same as Markdown.
func markdownWhatIf(p *plan.Plan) string {
	out := ""
	for _, w := range p.WhatIf {
		head, facts := whatIfLines(w)
		out += cellEscapes.Replace(printable(head)) + ":\n\n"
		for _, f := range facts {
			out += "- " + cellEscapes.Replace(printable(f)) + "\n"
		}
		out += "\n"
	}
	return out
}
