package view

import (
	"fmt"
	"strings"

	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/wire"
	"github.com/macfleet/macfleet/plan"
)

// Plan shows what would change and why. A plan without a difference is one
// line.
func (t *Text) Plan(p *plan.Plan) {
	s := p.Summarise()
	if s.Changes() == 0 && s.Complete() {
		t.line(0, "", noChanges(p, s))
		t.held(p, nowhere)
		t.notes(p)
		return
	}
	fmt.Fprintln(t.out, t.styles.strong.Render("Plan for "+ownerTitle(p)))
	t.differences(p)
	t.rejected(p)
	t.blank()
	t.held(p, inBlock(p))
	t.line(0, "", summary(s))
	if text := cost(p); text != "" {
		t.line(0, "", text)
	}
	t.notes(p)
}

// differences shows what differs in the cluster and on hosts.
func (t *Text) differences(p *plan.Plan) {
	t.cluster(p, objectRows)
	actions := byHost(p)
	t.fleets(p, func(fleet string) []block { return fleetBlocks(p, fleet, actions) })
}

// fleetBlocks shows a fleet: its hosts, and what it lacks.
func fleetBlocks(p *plan.Plan, fleet string, actions map[string][]plan.Action) []block {
	var out []block
	for _, h := range p.Hosts {
		if h.Fleet == fleet {
			out = append(out, planBlocks(h, actions[h.Server.ID])...)
		}
	}
	return append(append(out, missing(p, fleet)...), unasked(p, fleet)...)
}

func ownerTitle(p *plan.Plan) string {
	if p.Owner.Environment == "" {
		return p.Owner.Name
	}
	return p.Owner.Name + ", environment " + p.Owner.Environment
}

func noChanges(p *plan.Plan, s plan.Summary) string {
	var parts []string
	for _, f := range p.Fleets {
		n := 0
		for _, h := range p.Hosts {
			if h.Fleet == f {
				n++
			}
		}
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", f, n))
		}
	}
	if len(parts) == 0 {
		return fmt.Sprintf("No changes. %s has no hosts here.", ownerTitle(p))
	}
	return fmt.Sprintf("No changes. %s of %s converged (%s).", all(p, s), ownerTitle(p), strings.Join(parts, ", "))
}

// all names the hosts that a statement is about.
func all(p *plan.Plan, s plan.Summary) string {
	noun := "host"
	if p.Narrowed {
		noun = "selected host"
	}
	if s.Hosts == 1 {
		return "The 1 " + noun
	}
	return "All " + count(s.Hosts, noun)
}

// byHost groups a plan's actions by server id.
func byHost(p *plan.Plan) map[string][]plan.Action {
	out := make(map[string][]plan.Action)
	for _, a := range p.Actions {
		out[a.ServerID] = append(out[a.ServerID], a)
	}
	return out
}

// planBlocks shows one host: what will be done, and what can't be.
func planBlocks(h plan.Host, actions []plan.Action) []block {
	b := ofHost(string(plan.Update), h)
	for _, a := range actions {
		switch {
		case a.Kind == plan.ClaimServer:
			b.sign = string(plan.Create)
			b.title = "from the pool" + reason(h, a)
			b.hosts = []string{fmt.Sprintf("%s  from %s, %s in %s, host key %s not pinned",
				h.Name, h.Server.Name, h.Server.Type, h.Server.Zone, h.Seen.Fingerprint)}
		case a.Disruption == plan.Wipe && a.Refusal != nil && !byHold(a):
			b.body = append(b.body, row{sign: string(a.Kind.Sign()), text: label(a) + reason(h, a)})
			for _, r := range trouble(signRefused, generalTrouble(h, *a.Refusal)) {
				r.depth++
				b.body = append(b.body, r)
			}
		default:
			b.body = append(b.body, actionRows(h, a)...)
		}
	}
	b.body = append(append(b.body, holdRows(h, actions)...), troubles(h)...)
	if len(b.body) == 0 && b.sign != string(plan.Create) {
		return nil
	}
	b.sign = worst(h, b.sign, actions)
	return []block{b}
}

// worst returns the sign of a host's block.
func worst(h plan.Host, sign string, actions []plan.Action) string {
	switch {
	case h.Unknown != nil:
		return signUnknown
	case h.Refused != nil:
		return signRefused
	case len(actions) == 0 && len(h.Unread) > 0:
		return signUnknown
	case len(actions) > 0 && actions[0].Disruption == plan.Wipe:
		return string(actions[0].Kind.Sign())
	}
	return sign
}

// troubles returns what stands against a host, and what could not be read.
func troubles(h plan.Host) []row {
	var out []row
	if h.Unknown != nil {
		out = append(out, trouble(signUnknown, generalTrouble(h, *h.Unknown))...)
	}
	if h.Refused != nil {
		out = append(out, trouble(signRefused, generalTrouble(h, *h.Refused))...)
	}
	for _, u := range h.Unread {
		out = append(out, row{sign: signUnknown, text: fmt.Sprintf("%s not compared: %s: %s", u.Step, u.Probe, u.Why)})
		if u.Bytes != "" {
			out = append(out, row{depth: 1, text: fmt.Sprintf("it printed %q", wire.Shortened(u.Bytes))})
		}
	}
	return out
}

// actionRows shows one action: its sign, what it is about, why, and the fields.
func actionRows(h plan.Host, a plan.Action) []row {
	rows := []row{{sign: string(a.Kind.Sign()), text: label(a) + reason(h, a)}}
	for _, f := range a.Fields {
		rows = append(rows, row{depth: 2, text: fmt.Sprintf("%s: %s → %s", f.Name, value(h, f.Before), value(h, f.After))})
	}
	if text := idleText(a); text != "" {
		rows = append(rows, row{depth: 2, text: text})
	}
	if text := a.Undo(); text != "" {
		rows = append(rows, row{depth: 2, text: "undo: " + text})
	}
	return append(append(rows, deliveries(a)...), refusal(h, a)...)
}

// refusal says why an action will not run, unless nothing runs on the host.
func refusal(h plan.Host, a plan.Action) []row {
	if a.Refusal == nil || h.Refused != nil || h.Unknown != nil || byHold(a) {
		return nil
	}
	rows := trouble(signRefused, generalTrouble(h, *a.Refusal))
	for i := range rows {
		rows[i].depth++
	}
	return rows
}

// label names what an action is about.
func label(a plan.Action) string {
	switch a.Kind {
	case plan.RunStep, plan.RemoveStep:
		return string(a.Step)
	case plan.CreateMarker:
		return "marker"
	case plan.RenameServer:
		return "server name"
	case plan.RevokeHost:
		return "identity in the cluster"
	case plan.ReplaceNode, plan.DeleteNode, plan.AwaitNode:
		return "Node"
	case plan.SetProviderID:
		return "provider id of its Node"
	case plan.UncordonNode:
		return "cordon of its Node"
	case plan.ReleasePods:
		return "Pods"
	case plan.KeepObject:
		return a.Object.String()
	}
	return string(a.Kind)
}

// reason returns " (code): text" to stand behind what an action is about. A
// step's fields say more than its text, so the text is left out there.
func reason(h plan.Host, a plan.Action) string {
	if !a.Kind.OfStep() && a.Reason.Text != "" {
		return fmt.Sprintf(" (%s): %s", a.Reason.Code, general(h, a.Reason.Text))
	}
	if o := origin(a.Origin); a.Kind.OfStep() && o != "" && a.Reason.Code != plan.CodeFirstSetup && !a.Deferred {
		return fmt.Sprintf(" (%s, %s)", a.Reason.Code, o)
	}
	return fmt.Sprintf(" (%s)", a.Reason.Code)
}

func origin(o plan.Origin) string {
	switch {
	case o.Drift && o.Pending:
		return "drift, and the configuration changed"
	case o.Drift:
		return "drift"
	case o.Pending:
		return "the configuration changed"
	}
	return ""
}

func value(h plan.Host, v string) string {
	switch v {
	case "":
		return "not set"
	case h.Name:
		return ownName
	case h.Server.ProviderID():
		return ownID
	}
	return v
}

// missing shows what a fleet wants and nobody can give, and what vanished.
func missing(p *plan.Plan, fleet string) []block {
	var out []block
	for _, s := range p.Shortages {
		if s.Fleet == fleet {
			out = append(out, block{sign: signRefused, hosts: []string{fmt.Sprintf("%s missing in %s.%s", count(s.Missing, "server"), s.Fleet, s.Group)},
				body: trouble("", s.Trouble)})
		}
	}
	for _, l := range p.Lost {
		if l.Fleet == fleet {
			out = append(out, block{sign: signRefused, hosts: []string{l.Name}, body: trouble("", l.Trouble)})
		}
	}
	return out
}

// rejected names the pool servers that were looked at and not taken.
func (t *Text) rejected(p *plan.Plan) {
	if len(p.Rejected) == 0 {
		return
	}
	t.blank()
	fmt.Fprintln(t.out, t.styles.strong.Render("Not taken from the pool"))
	seen := make(map[string]bool)
	var blocks []block
	for _, r := range p.Rejected {
		if !seen[r.Server.ID] {
			seen[r.Server.ID] = true
			blocks = append(blocks, block{sign: signUnknown, hosts: []string{r.Server.Name}, body: trouble("", r.Trouble)})
		}
	}
	for _, b := range fold(blocks) {
		t.block(b)
	}
}

func summary(s plan.Summary) string {
	text := fmt.Sprintf("Plan: %d to add, %d to change, %d to remove", s.Add, s.Change, s.Remove)
	if rest := incomplete(s); rest != "" {
		text += "; " + rest
	}
	return text + "."
}

// incomplete says what keeps a comparison from being complete.
func incomplete(s plan.Summary) string {
	var parts []string
	add := func(n int, what string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, what))
		}
	}
	add(s.Refused, "refused")
	add(s.Unknown, "unknown")
	add(s.Unread, "not compared")
	return strings.Join(parts, ", ")
}

// notes prints what is worth knowing and no difference.
func (t *Text) notes(p *plan.Plan) {
	t.only(p)
	if len(p.Strays) > 0 {
		names := make([]string, 0, len(p.Strays))
		for _, s := range p.Strays {
			names = append(names, s.Name)
		}
		t.line(0, "", fmt.Sprintf("Strays, in no pool and no fleet, never touched: %s.", strings.Join(names, ", ")))
	}
	t.unpinned(p)
	t.warnings(p)
}

func (t *Text) unpinned(p *plan.Plan) {
	unpinned := engine.Unpinned(p)
	if len(unpinned) == 0 {
		return
	}
	t.line(0, "", fmt.Sprintf("Host keys of %s are not pinned yet; apply pins them:", count(len(unpinned), "member")))
	for _, h := range unpinned {
		t.line(4, "", h.Name+"  "+h.Seen.Fingerprint)
	}
}

// only says what was left out of a run that was limited to some steps: it must
// not look like a clean fleet.
func (t *Text) only(p *plan.Plan) {
	if len(p.Steps) == 0 {
		return
	}
	ids := make([]string, 0, len(p.Steps))
	for _, id := range p.Steps {
		ids = append(ids, string(id))
	}
	t.line(0, "", fmt.Sprintf("Compared: %s alone, no other step, no server's name, no replicas.", strings.Join(ids, ", ")))
}
