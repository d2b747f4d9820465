package view

import "github.com/macfleet/macfleet/plan"

// unasked shows groups that a run without secrets could compare with nothing.
func unasked(p *plan.Plan, fleet string) []block {
	var out []block
	for _, u := range p.Unasked {
		if u.Fleet == fleet {
			out = append(out, block{sign: signUnknown, hosts: []string{u.Fleet + "." + u.Group}, body: []row{{sign: signUnknown, text: u.String()}}})
		}
	}
	return out
}
