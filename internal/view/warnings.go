package view

import (
	"fmt"

	"github.com/macfleet/macfleet/plan"
)

// warnings shows what steps say without a difference: the same on many hosts
// once.
func (t *Text) warnings(p *plan.Plan) {
	var blocks []block
	for _, w := range p.Warnings {
		blocks = append(blocks, block{sign: signDrift, hosts: []string{clusterName}, name: clusterName, body: trouble(signDrift, w)})
	}
	for _, h := range p.Hosts {
		for _, w := range h.Warnings {
			body := trouble(signDrift, generalTrouble(h, w.Trouble))
			if w.Step != "" {
				body[0].text = fmt.Sprintf("%s (%s): %s", w.Step, w.Trouble.Code, general(h, w.Trouble.Text))
			}
			blocks = append(blocks, block{sign: signDrift, hosts: []string{h.Name}, name: h.Name, body: body})
		}
	}
	if len(blocks) == 0 {
		return
	}
	t.blank()
	fmt.Fprintln(t.out, t.styles.strong.Render("Warnings"))
	for _, b := range fold(blocks) {
		t.block(b)
	}
}
