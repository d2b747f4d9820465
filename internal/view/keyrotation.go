package view

import "github.com/macfleet/macfleet/plan"

// keyRotation shows how far a rotation of the fleet's SSH key is; nothing without one.
func (t *Text) keyRotation(p *plan.Plan) {
	r := p.KeyRotation
	if r == nil {
		return
	}
	t.sayf("SSH key rotation: %s.", r)
	t.behind("    next: ", r.Next)
}
