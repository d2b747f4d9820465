package view

import (
	"fmt"

	"github.com/macfleet/macfleet/plan"
)

// Drift shows what changed behind our back. What the configuration wants and
// was never done is counted, not shown: that is no drift.
func (t *Text) Drift(p *plan.Plan) {
	s := p.Summarise()
	if s.Drift == 0 && s.Compared() {
		t.line(0, "", fmt.Sprintf("No drift. %s of %s compared.", all(p, s), ownerTitle(p)))
		t.pending(p, s)
		return
	}
	fmt.Fprintln(t.out, t.styles.strong.Render("Drift of "+ownerTitle(p)))
	t.cluster(p, func(a plan.Action) []row {
		if !a.Origin.Drift {
			return nil
		}
		return []row{{sign: signDrift, text: clusterSubject(a) + reason(plan.Host{}, a)}}
	})
	actions := byHost(p)
	t.fleets(p, func(fleet string) []block {
		var out []block
		for _, h := range p.Hosts {
			if h.Fleet == fleet && h.Member {
				out = append(out, driftBlocks(h, actions[h.Server.ID])...)
			}
		}
		for _, l := range p.Lost {
			if l.Fleet == fleet {
				out = append(out, block{sign: signRefused, hosts: []string{l.Name}, body: trouble("", l.Trouble)})
			}
		}
		return out
	})
	t.blank()
	text := fmt.Sprintf("Drift: %s", count(s.Drift, "difference"))
	if s.Drift == 0 {
		text = "No drift on the rest"
	}
	s.Refused = s.RefusedHosts // the others are about what is wanted
	if rest := incomplete(s); rest != "" {
		text += "; incomplete: " + rest
	}
	t.line(0, "", text+".")
	t.pending(p, s)
}

func driftBlocks(h plan.Host, actions []plan.Action) []block {
	b := ofHost(signDrift, h)
	drifted := false
	for _, a := range actions {
		if !a.Origin.Drift {
			continue
		}
		drifted = true
		b.body = append(b.body, driftRows(h, a)...)
	}
	b.body = append(b.body, troubles(h)...)
	if len(b.body) == 0 {
		return nil
	}
	if !drifted {
		b.sign = worst(h, signUnknown, nil)
	}
	return []block{b}
}

func driftRows(h plan.Host, a plan.Action) []row {
	rows := []row{{sign: signDrift, text: fmt.Sprintf("%s (%s)", label(a), a.Reason.Code)}}
	if !a.Kind.OfStep() {
		rows[0].text += ": " + general(h, a.Reason.Text)
		return rows
	}
	for _, f := range a.Fields {
		rows = append(rows, row{depth: 2, text: fmt.Sprintf("%s: %s (wanted: %s)", f.Name, value(h, f.Before), value(h, f.After))})
	}
	return append(rows, refusal(h, a)...)
}

func (t *Text) pending(p *plan.Plan, s plan.Summary) {
	t.only(p)
	t.held(p, nowhere)
	if s.Pending > 0 {
		t.line(0, "", fmt.Sprintf("Pending configuration, not drift: %s; macfleet plan shows them.", count(s.Pending, "difference")))
	}
	t.warnings(p)
}
