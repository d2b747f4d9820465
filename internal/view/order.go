package view

import (
	"fmt"
	"slices"

	"github.com/macfleet/macfleet/plan"
)

// OrderApproval returns what a person types to approve a plan, and what the prompt says of the servers that it orders:
// the name of one, or how many there are. Without an order it is "yes".
func OrderApproval(p *plan.Plan) (answer, text string) {
	all := p.Purchases()
	switch len(all) {
	case 0:
		return "yes", ""
	case 1:
		return all[0].Name, " It orders a server, which costs money: " + purchaseText(all[0]) + "."
	}
	return fmt.Sprintf("order %d", len(all)), fmt.Sprintf(" It orders %d servers, which costs money: %s.", len(all),
		listed("; ", mapped(all, purchaseText)...))
}

// purchaseText says what is ordered, and what is known of it.
func purchaseText(b plan.Purchase) string {
	return fmt.Sprintf("%s, %s in %s with %s (%s)", b.Name, b.Type, b.Zone, b.System, b.Facts())
}

// orders adds the servers that a run may order.
func (f *findings) orders() {
	for i := range f.plan.Actions {
		a := &f.plan.Actions[i]
		if a.Kind != plan.OrderServer {
			continue
		}
		subject, text := a.Fleet+"."+a.Group, "order "+purchaseText(*a.Purchase)
		if a.Refusal != nil {
			x := *a.Refusal
			x.Text = text + ": " + x.Text
			f.trouble(catBlocked, nil, subject, "", &x)
			continue
		}
		f.add(finding{category: catNew, subject: subject, text: text, codes: []string{a.Reason.Code.String()}})
	}
}

// orderBlocks shows the servers that a run may order for a fleet.
func orderBlocks(p *plan.Plan, fleet string) []block {
	var out []block
	for _, a := range p.Actions {
		if a.Kind == plan.OrderServer && a.Fleet == fleet {
			out = append(out, block{sign: string(plan.Create), hosts: []string{"order " + purchaseText(*a.Purchase)},
				title: reason(a), body: trouble(signRefused, 1, a.Refusal)})
		}
	}
	return out
}

// onCluster reports whether an action changes the cluster or the provider's project, and no host.
func onCluster(a plan.Action) bool { return a.OfCluster() && a.Kind != plan.OrderServer }

// newShortages shows what a run leaves its groups lacking and the plan before it did not say, such as servers that it
// ordered.
func (t *Text) newShortages(before, after *plan.Plan) {
	for _, s := range after.Shortages {
		if slices.ContainsFunc(before.Shortages, func(b plan.Shortage) bool {
			return b.Fleet == s.Fleet && b.Group == s.Group && b.Code == s.Code && b.Text == s.Text
		}) {
			continue
		}
		t.line(2, markWaiting, fmt.Sprintf("%s.%s  %s missing: %s  [%s]", s.Fleet, s.Group, count(s.Missing, "server"), s.Text, s.Code))
		t.below("fix", s.Remedy)
	}
}
