package view

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/wire"
	"github.com/macfleet/macfleet/plan"
)

// fullPlan shows every host, step and field of a plan.
func (t *Text) fullPlan(p *plan.Plan) {
	t.uncovered(p.Coverage())
	t.differences(p)
	t.rejected(p)
	t.blank()
	t.held(p, true)
	if text := cost(p); text != "" {
		t.Say(text)
	}
	for _, line := range inThisRun(p) {
		t.Say(line)
	}
	t.notes(p)
	t.Say(actionLine(p))
	t.Say(planLine(p))
}

func (t *Text) differences(p *plan.Plan) {
	t.cluster(p, objectRows)
	actions := byHost(p)
	t.fleets(p, func(fleet string) []block { return fleetBlocks(p, fleet, actions) })
	t.orphans(p, anyOrphan)
	t.doubts(p)
}

func anyOrphan(plan.Orphan) bool { return true }

// fleetBlocks shows a fleet: its hosts, the missing servers, those that vanished, and the
// groups that a run without secrets could not compare.
func fleetBlocks(p *plan.Plan, fleet string, actions map[string][]plan.Action) []block {
	var out []block
	for _, h := range p.Hosts {
		if h.Fleet == fleet {
			out = append(out, planBlocks(h, actions[h.Server.ID])...)
		}
	}
	for _, s := range p.Shortages {
		if s.Fleet == fleet {
			out = append(out, troubled(fmt.Sprintf("%s missing in %s.%s", count(s.Missing, "server"), s.Fleet, s.Group), s.Trouble))
		}
	}
	out = append(out, lost(p, fleet)...)
	for _, u := range p.NotContacted {
		if u.Fleet == fleet {
			out = append(out, block{sign: signUnknown, hosts: []string{u.Fleet + "." + u.Group}, body: []row{{sign: signUnknown, text: u.String()}}})
		}
	}
	return out
}

// lost shows the servers of a fleet that vanished.
func lost(p *plan.Plan, fleet string) []block {
	var out []block
	for _, l := range p.Lost {
		if l.Fleet == fleet {
			out = append(out, troubled(l.Name, l.Trouble))
		}
	}
	return out
}

// orphans shows the hosts that have no place in the configuration, and what they still do.
func (t *Text) orphans(p *plan.Plan, shown func(plan.Orphan) bool) {
	var all []block
	for _, o := range p.Orphans {
		if !shown(o) {
			continue
		}
		b := troubled(o.Name+given(o.Runs() != "", "  %s", o.Runs()), o.Trouble)
		b.sign = signDrift
		all = append(all, b)
	}
	t.blocks("Orphaned members: managed, not in the configuration, never changed", all)
}

// doubts shows what cannot be known of the configuration as a whole.
func (t *Text) doubts(p *plan.Plan) {
	t.blocks("In doubt", mapped(p.Doubts, func(x plan.Trouble) block {
		return block{sign: signUnknown, hosts: []string{ownerTitle(p)}, body: trouble(signUnknown, 0, &x)}
	}))
}

func (t *Text) rejected(p *plan.Plan) {
	t.blocks("Not taken from the pool", mapped(grouped(p.Rejected, func(r plan.Rejected) string { return r.Server.ID }), func(same []plan.Rejected) block {
		b := troubled(same[0].Server.Name, same[0].Trouble)
		b.sign = signUnknown
		return b
	}))
}

// byHost finds a plan's actions by server id.
func byHost(p *plan.Plan) map[string][]plan.Action {
	return by(p.Actions, func(a plan.Action) string { return a.ServerID })
}

// planBlocks shows one host: what will be done, and what can't be.
func planBlocks(h plan.Host, actions []plan.Action) []block {
	b := ofHost(string(plan.Update), h)
	var before *plan.Trouble
	for _, a := range actions {
		if a.Kind != plan.ClaimServer {
			rows := actionRows(h, a)
			if a.Refusal != nil && before != nil && *a.Refusal == *before { // the same is printed above
				rows = rows[:len(rows)-len(refusal(h, a))]
			}
			before = a.Refusal
			b.body = append(b.body, rows...)
			continue
		}
		b.sign = string(plan.Create)
		b.title = "from the pool" + reason(a)
		b.hosts = []string{fmt.Sprintf("%s  from %s, %s in %s, host key %s not pinned",
			h.Name, h.Server.Name, h.Server.Type, h.Server.Zone, h.Seen.Fingerprint)}
	}
	b.body = slices.Concat(b.body, holdRows(h, actions), serverRows(h, actions), deferralRows(actions), troubles(h))
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

// troubles returns the reasons that block a host, and what could not be read.
func troubles(h plan.Host) []row {
	out := append(trouble(signUnknown, 0, h.Unknown), trouble(signRefused, 0, h.Refused)...)
	for _, u := range h.Unread {
		out = append(out, row{sign: signUnknown, text: fmt.Sprintf("%s not compared: %s: %s", u.Step, u.Probe, u.Why)})
		if u.Bytes != "" {
			out = append(out, row{depth: 1, text: fmt.Sprintf("it printed %q", wire.Shortened(u.Bytes))})
		}
	}
	return out
}

// actionRows shows one action: its sign, what it is about, why, and the fields. A
// server that stays as it is has only the reason.
func actionRows(h plan.Host, a plan.Action) []row {
	rows := []row{{sign: string(a.Kind.Sign()), text: label(a) + reason(a)}}
	detail := func(text string) {
		if text != "" {
			rows = append(rows, row{depth: 2, text: text})
		}
	}
	if a.Disruption < plan.Wipe || a.Refusal == nil || byHold(a) {
		for _, f := range a.Fields {
			detail(fmt.Sprintf("%s: %s → %s", f.Name, value(f.Before), value(f.After)))
		}
		detail(idleText(a))
		detail(given(a.Undo() != "", "undo: %s", a.Undo()))
		rows = append(rows, deliveries(a)...)
	}
	return append(rows, refusal(h, a)...)
}

// idleText says what is done about the work on a host before an action that would hurt it.
func idleText(a plan.Action) string {
	switch {
	case !a.Runs() || a.Disruption < plan.Drain:
		return ""
	case a.Forced && len(a.Busy) > 0:
		return "by force, while there is " + plan.TaskTexts(a.Busy)
	case a.Forced:
		return "by force: work on the host is not checked"
	case a.Kind == plan.RetirePeer:
		return "waits until no job runs on the host" + given(len(a.Busy) > 0, "; running now: %s", plan.TaskTexts(a.Busy))
	case a.Drains:
		work := slices.DeleteFunc(slices.Clone(a.Busy), func(t plan.Task) bool { return t.VM != "" }) // these end with their Pods
		return "drains the host first: " + given(a.Evicts > 0, "%s", count(a.Evicts, "Pod")) + given(a.Evicts == 0, "no Pod at present") +
			given(len(work) > 0, "; waits for %s", plan.TaskTexts(work))
	}
	return "only while nothing uses the host's virtual machines"
}

// refusal says why an action will not run, unless nothing runs on the host.
func refusal(h plan.Host, a plan.Action) []row {
	if h.Refused != nil || h.Unknown != nil || byHold(a) || byServer(h, a) != nil {
		return nil
	}
	return trouble(signRefused, 1, a.Refusal)
}

// label names what an action is about.
func label(a plan.Action) string {
	switch {
	case a.Kind.OfStep():
		return string(a.Step)
	case a.Kind.OfObject():
		return a.Object.String()
	case a.Kind == plan.ForgetPeer:
		return a.About + " that is gone"
	}
	return cmp.Or(a.About, labels[a.Kind], string(a.Kind))
}

// labels name what actions are about, where that is not their kind.
var labels = map[plan.Kind]string{
	plan.CreateMarker: "marker", plan.PinHost: "host key", plan.RenameServer: "server name", plan.RevokeHost: "identity in the cluster",
	plan.RenewToken: "token", plan.RetireTokens: "older tokens", plan.ReplaceNode: "Node", plan.DrainNode: "drain", plan.ReinstallServer: "erase the server", plan.ReleaseServer: "back to the pool", plan.DeleteNode: "Node", plan.AwaitNode: "Node",
	plan.SetProviderID: "provider id of its Node", plan.UncordonNode: "cordon of its Node", plan.RebootServer: "reboot", plan.TaintNode: "taint of its Node", plan.ReleasePods: "Pods",
	plan.RegisterKey: "fleet's SSH key in the provider's project", plan.AuthorizeKey: "new SSH key", plan.RetireKey: "previous SSH key",
}

// reason returns " (code): text" to stand behind what an action is about. A
// step's fields say more than its text, so the text is left out there.
func reason(a plan.Action) string {
	if !a.Kind.OfStep() && a.Reason.Text != "" {
		return fmt.Sprintf(" (%s): %s", a.Reason.Code, a.Reason.Text)
	}
	origin := ""
	if a.Kind.OfStep() && a.Reason.Code != plan.CodeFirstSetup && !a.AfterRoot {
		origin = listed(", and ", given(a.Origin.Drift, "drift"), given(a.Origin.Pending && a.Reason.Code != plan.CodeTokenRotation, "the configuration changed"),
			given(a.Origin.NotKnown, "last verified state lost"))
	}
	return fmt.Sprintf(" (%s)", listed(", ", a.Reason.Code.String(), origin))
}

// value is one side of a field.
func value(v string) string { return cmp.Or(v, "not set") }

// actionLine counts what a plan does by its actions.
func actionLine(p *plan.Plan) string {
	s := p.Summarise()
	return "Actions: " + listed("; ", fmt.Sprintf("%d to add, %d to change, %d to remove", s.Add, s.Change, s.Remove), deferred(s), refusals(s)) + "."
}

// refusals counts the blocked actions, without the hosts that were not compared, and the
// orphaned members.
func refusals(s plan.Summary) string {
	return listed(", ", some(s.Refused+s.Unknown-s.NotCompared, "blocked"), given(s.Orphans > 0, "%s", count(s.Orphans, "orphaned member")))
}

// notes prints what is worth knowing and is not a difference.
func (t *Text) notes(p *plan.Plan) {
	if len(p.Strays) > 0 {
		t.sayf("Strays, in no pool and no fleet, never touched: %s.", joined(p.Strays, func(s inventory.Server) string { return s.Name }))
	}
	if unpinned := engine.Unpinned(p); len(unpinned) > 0 {
		t.sayf("Host keys of %s are not pinned yet; apply pins them:", count(len(unpinned), "member"))
		for _, h := range unpinned {
			t.line(4, "", h.Name+"  "+h.Seen.Fingerprint)
		}
	}
	t.warnings(p, true)
}

// held lists the hosts that a person holds, those together that are held alike, without
// those of which a plan's blocks say so already.
func (t *Text) held(p *plan.Plan, inBlocks bool) {
	actions := byHost(p)
	held := slices.DeleteFunc(slices.Clone(p.Hosts), func(h plan.Host) bool {
		return h.ActiveHold() == nil || inBlocks && len(holdRows(h, actions[h.Server.ID])) > 0
	})
	for _, same := range grouped(held, func(h plan.Host) string { return h.ActiveHold().String() }) {
		t.sayf("Held %s: %s.", same[0].ActiveHold(), joined(same, func(h plan.Host) string { return h.Name }))
	}
}

func byHold(a plan.Action) bool { return a.Refusal != nil && a.Refusal.Code == plan.CodeHeld }

// holdRows say once in a host's block who holds it, if the hold blocks its actions.
func holdRows(h plan.Host, actions []plan.Action) []row {
	if h.ActiveHold() == nil || !slices.ContainsFunc(actions, byHold) || h.Refused != nil || h.Unknown != nil {
		return nil
	}
	return trouble(signRefused, 0, h.ActiveHold().Trouble(h.Name))
}

// byServer returns what the provider says of the host's server, where that refuses an action.
func byServer(h plan.Host, a plan.Action) *plan.Trouble {
	for _, w := range h.Warnings {
		if w.OfServer && a.Refusal != nil && *a.Refusal == w.Trouble {
			return &w.Trouble
		}
	}
	return nil
}

// serverRows say once in a host's block that its actions wait for the provider, which is changing its server.
func serverRows(h plan.Host, actions []plan.Action) []row {
	for _, a := range actions {
		if t := byServer(h, a); t != nil && h.Refused == nil && h.Unknown == nil {
			return trouble(signRefused, 0, t)
		}
	}
	return nil
}

// warnings shows what steps report without a difference, and, with drifted, the drift that is
// left to a person.
func (t *Text) warnings(p *plan.Plan, drifted bool) {
	var blocks []block
	for _, w := range p.Warnings {
		blocks = append(blocks, block{sign: signDrift, hosts: []string{clusterName}, body: trouble(signDrift, 0, &w)})
	}
	for _, s := range p.Services {
		blocks = append(blocks, block{sign: signDrift, hosts: []string{s.About()}, body: trouble(signDrift, 0, &s.Trouble)})
	}
	for _, h := range p.Hosts {
		for _, w := range h.Warnings {
			if w.Drift && !drifted {
				continue
			}
			b := ofHost(signDrift, h)
			b.body = trouble(signDrift, 0, &w.Trouble)
			if w.Step != "" {
				b.body[0].text = fmt.Sprintf("%s (%s): %s", w.Step, w.Trouble.Code, w.Trouble.Text)
			}
			blocks = append(blocks, b)
		}
	}
	t.blocks("Warnings", blocks)
}
