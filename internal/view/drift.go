package view

import (
	"fmt"
	"io"

	"github.com/macfleet/macfleet/internal/drift"
	"github.com/macfleet/macfleet/internal/wire"
	"github.com/macfleet/macfleet/plan"
)

// Drift shows what changed behind our back. What the configuration wants and
// was never done is counted, not shown: that is no drift. What is ignored is shown
// apart.
func (t *Text) Drift(p *plan.Plan, r drift.Report) {
	s := p.Summarise()
	s.Refused = s.RefusedHosts // the others are about what is wanted
	for _, u := range r.Unseen {
		if ofDifference(u) {
			s.Unread++
		}
	}
	switch {
	case r.Blind != "":
		t.line(0, signUnknown, fmt.Sprintf("Nothing of %s could be compared: %s", ownerTitle(p), r.Blind))
	case len(r.Items) == 0 && r.Complete:
		t.sayf("No drift. %s of %s compared.", all(p, s), ownerTitle(p))
	default:
		t.drifted(p, r)
		t.blank()
		text := fmt.Sprintf("Drift: %s%s", count(len(r.Items), "difference"), severities(r.Items))
		if len(r.Items) == 0 {
			text = "No drift on the rest"
		}
		rest := incomplete(s)
		t.Say(text + given(rest != "", "; incomplete: %s", rest) + ".")
	}
	t.since(r)
	t.ignored(r)
	t.pending(p, s)
	t.remarks(r)
}

func severities(items []drift.Item) string {
	of := make(map[plan.Severity]int)
	for _, i := range items {
		of[i.Severity]++
	}
	text := tally(mapped(plan.Severities(), func(s plan.Severity) amount { return amount{of[s], string(s)} })...)
	return given(text != "", " (%s)", text)
}

// driftIndex finds the items that an action made, by host and step.
type driftIndex map[[2]string][]drift.Item

func (x driftIndex) of(a plan.Action) []drift.Item {
	if !a.Origin.Drift {
		return nil
	}
	host, step := drift.Subject(a)
	return x[[2]string{host, step}]
}

// drifted shows each host that drifted, or that could not be compared.
func (t *Text) drifted(p *plan.Plan, r drift.Report) {
	index := make(driftIndex)
	for _, i := range r.Items {
		index[[2]string{i.Host, i.Step}] = append(index[[2]string{i.Host, i.Step}], i)
	}
	t.heading("Drift of " + ownerTitle(p))
	t.cluster(p, func(a plan.Action) []row {
		if len(index.of(a)) == 0 {
			return nil
		}
		return []row{{sign: signDrift, text: clusterSubject(a) + reason(plan.Host{}, a)}}
	})
	actions := byHost(p)
	unseen := make(map[string][]drift.Unseen) // by host
	for _, u := range r.Unseen {
		if ofDifference(u) {
			unseen[u.Host] = append(unseen[u.Host], u)
		}
	}
	t.fleets(p, func(fleet string) []block {
		var out []block
		for _, h := range p.Hosts {
			if h.Fleet == fleet && h.Member {
				out = append(out, driftBlocks(h, actions[h.Server.ID], index, unseen[h.Name])...)
			}
		}
		return append(out, lost(p, fleet)...)
	})
}

// ofDifference reports whether a plan has an action for what was not compared: it shows
// as no trouble of its host.
func ofDifference(u drift.Unseen) bool {
	return u.Host != "" && u.Step != "" && u.Code != drift.CodeUnread && u.Code != drift.CodeClusterUnread
}

func driftBlocks(h plan.Host, actions []plan.Action, index driftIndex, unseen []drift.Unseen) []block {
	b := ofHost(signDrift, h)
	drifted := false
	for _, a := range actions {
		if items := index.of(a); len(items) > 0 {
			drifted = true
			b.body = append(b.body, driftRows(h, a, items)...)
		}
	}
	for _, u := range unseen {
		b.body = append(b.body, row{sign: signUnknown, text: fmt.Sprintf("%s not compared (%s)", u.Step, u.Code)})
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

func driftRows(h plan.Host, a plan.Action, items []drift.Item) []row {
	var rows []row
	for _, i := range items {
		text := fmt.Sprintf("%s (%s)", label(a), i.Code)
		if !a.Kind.OfStep() {
			text += ": " + general(h, i.Text)
		}
		rows = append(rows, row{sign: signDrift, text: text})
		if a.Kind.OfStep() {
			rows = append(rows, mapped(i.Fields, func(f drift.Field) row { return movedRow(f, value(h, f.Before), value(h, f.After)) })...)
		}
	}
	if !a.Kind.OfStep() {
		return rows
	}
	return append(rows, refusal(h, a)...)
}

// movedRow says of a value that moved what was seen and what is wanted.
func movedRow(f drift.Field, seen, wanted string) row {
	return row{depth: 2, text: fmt.Sprintf("%s: %s (wanted: %s)", f.Name, seen, wanted)}
}

// since says what is different from an earlier look.
func (t *Text) since(r drift.Report) {
	if r.Since == nil {
		return
	}
	c := r.Since
	t.sayf("Since the look before: %d new, %d as before, %d recovered, %d not known now.", len(c.New), len(c.Stays), len(c.Recovered), len(c.Kept))
	each := func(what string, items []drift.Item) {
		for _, i := range items {
			t.line(4, "", fmt.Sprintf("%s: %s %s (%s)", what, i.Host, i.Step, i.Code))
		}
	}
	each("new", c.New)
	each("recovered", c.Recovered)
	each("not known now", c.Kept)
}

// ignored shows drift that raises no alarm.
func (t *Text) ignored(r drift.Report) {
	if len(r.Ignored) == 0 {
		return
	}
	t.blocks("Ignored, and no alarm; macfleet apply mends it all the same", mapped(r.Ignored, func(i drift.Ignored) block {
		body := []row{{text: fmt.Sprintf("%s (%s)", i.Step, i.Code)},
			{depth: 1, text: fmt.Sprintf("ignore %q until %s, %s: %s", i.Ignore, i.Until, i.Owner, i.Reason)}}
		for _, f := range i.Fields {
			body = append(body, movedRow(f, f.Before, f.After))
		}
		return block{hosts: []string{i.Host}, body: body}
	}))
	t.blank()
}

func (t *Text) pending(p *plan.Plan, s plan.Summary) {
	t.only(p)
	t.held(p, nowhere)
	if s.Pending > 0 {
		t.sayf("Pending configuration, not drift: %s; macfleet plan shows them.", count(s.Pending, "difference"))
	}
	t.warnings(p)
}

// remarks says what is to be done about ignore blocks, and whatever else is worth
// knowing.
func (t *Text) remarks(r drift.Report) {
	for _, x := range r.Remarks {
		if x.Code == plan.CodeApplyInProgress {
			continue // it stands among the warnings
		}
		sign := ""
		if x.Severity == plan.Warning {
			sign = signDrift
		}
		t.line(0, sign, fmt.Sprintf("%s: %s", x.Code, x.Text))
	}
}

// DriftDocument is a plan with the drift in it, as one JSON object.
type DriftDocument struct {
	wire.Plan
	Drift *drift.Report `json:"drift,omitempty"` // what alarms go by; of drift alone
}

// WriteDrift prints a drift as one JSON object: the plan, and the report on it.
func WriteDrift(out io.Writer, p *plan.Plan, r drift.Report) error {
	d := DriftDocument{Plan: wire.PlanOf(p), Drift: &r}
	if r.Blind != "" {
		d.Complete, d.Summary.Unread = false, 1
		d.Unread = []wire.UnreadStep{{Address: "inventory", StepUnread: plan.StepUnread{Unread: plan.Unread{Probe: "inventory", Why: r.Blind}}}}
	}
	return wire.Write(out, d)
}
