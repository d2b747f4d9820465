package view

import (
	"fmt"

	"github.com/macfleet/macfleet/plan"
)

// unasked shows groups that a run without secrets could compare with nothing.
func unasked(p *plan.Plan, fleet string) []block {
	var out []block
	for _, u := range p.Unasked {
		if u.Fleet == fleet {
			out = append(out, block{sign: signUnknown, hosts: []string{u.Fleet + "." + u.Group}, body: []row{{sign: signUnknown, text: unaskedText(u)}}})
		}
	}
	return out
}

func unaskedText(u plan.Unasked) string {
	return fmt.Sprintf("not compared: %s of type %s with macOS %s wanted; without secrets nobody was asked", count(u.Replicas, "host"), u.Type, u.OS)
}

// unaskedSteps are such groups in a document.
func unaskedSteps(p *plan.Plan) []UnreadStep {
	var out []UnreadStep
	for _, u := range p.Unasked {
		out = append(out, UnreadStep{Address: "fleet." + u.Fleet + "." + u.Group, Probe: "hosts", Why: unaskedText(u)})
	}
	return out
}
