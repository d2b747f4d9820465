package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/plan"
)

// release enters the unfinished release of a host that is erased: it already has another key, or does not answer. Only apply helps then:
// forgetting a pin would end the release.
func (e *examination) release(p *plan.Plan, h plan.Host) {
	for _, a := range p.Actions {
		if a.ServerID == h.Server.ID {
			e.find(difference(subjectOf(a), a))
		}
	}
	for i := range e.checks {
		if c := &e.checks[i]; strings.Contains(c.Remedy, "forget-key") {
			c.Remedy = "macfleet apply (it continues the release)"
		}
	}
}

// advice enters what the plan has of a member: its differences, why they are refused, and its warnings. Code
// and remedy are those of the plan, so doctor never advises anything else than plan does.
func (e *examination) advice(p *plan.Plan, h plan.Host, all []plan.Step) {
	byStep := make(map[plan.StepID]plan.Action)
	for _, a := range p.Actions {
		switch {
		case a.ServerID != h.Server.ID:
		case a.Kind.OfStep():
			byStep[a.Step] = a
		default:
			e.find(difference(subjectOf(a), a))
		}
	}
	for _, s := range all {
		a := byStep[s.ID()]
		if slices.ContainsFunc(a.Changes, func(c plan.Change) bool { return c.GrantsRoot }) {
			e.find(difference("root", a))
		}
		e.step(s, h, a)
	}
	for _, w := range h.Warnings {
		if w.OfServer {
			continue // said with the inventory
		}
		name := "node"
		if w.Step != "" {
			name = stepName(w.Step)
		}
		e.find(Check{Name: name, State: Warning, Code: w.Code, Text: w.Text, Remedy: w.Remedy})
	}
	if r := h.Refused; r != nil && !e.names(r.Code) {
		e.find(Check{Name: "host", State: Problem, Code: r.Code, Text: r.Text, Remedy: r.Remedy})
	}
	for _, u := range p.Unread {
		e.find(Check{Name: "cluster", State: Unknown, Code: plan.CodeUnread, Text: "not compared: " + u.Probe + ": " + u.Why, Remedy: "macfleet plan (it says which right or object is missing)"})
	}
	if held := h.ActiveHold(); held != nil {
		t := held.Trouble(h.Name)
		e.checks = append(e.checks, Check{Name: "hold", State: OK, Text: t.Text})
	}
}

// names reports whether a check has this code already.
func (e *examination) names(code plan.Code) bool {
	return slices.ContainsFunc(e.checks, func(c Check) bool { return c.Code == code || c.Refused == code })
}

// find enters a finding. Where a check of that name reports the same already in different words, it gets
// the code and the remedy of the finding.
func (e *examination) find(c Check) {
	last := -1
	for i := range e.checks {
		if e.checks[i].Name == c.Name {
			last = i
		}
	}
	switch {
	case last < 0:
		e.checks = append(e.checks, c)
	case e.checks[last].State == Problem && e.checks[last].Code == (plan.Code{}):
		same := &e.checks[last]
		same.Code, same.Refused, same.Remedy = c.Code, c.Refused, c.Remedy
	default:
		e.checks = slices.Insert(e.checks, last+1, c)
	}
}

// subjectOf returns the name of the check that an action belongs to.
func subjectOf(a plan.Action) string {
	switch a.Kind {
	case plan.RenameServer, plan.ReinstallServer, plan.ReleaseServer:
		return "inventory"
	case plan.ReplaceServer: // its type or macOS is not what the group wants
		if slices.ContainsFunc(a.Fields, func(f plan.Field) bool { return f.Name == "os" }) {
			return "macos"
		}
		return "inventory"
	case plan.CreateMarker:
		return "marker"
	case plan.SetProviderID, plan.ReplaceNode, plan.DrainNode, plan.DeleteNode, plan.UncordonNode, plan.ReleasePods:
		return "node"
	}
	return string(a.Kind)
}

func stepName(id plan.StepID) string { return "step " + string(id) }

// difference is the finding of an action: what differs, with the code of the plan, and the fix.
func difference(name string, a plan.Action) Check {
	c := Check{Name: name, State: Problem, Code: a.Reason.Code, Text: moved(a), Remedy: "macfleet apply --on name=" + a.Host}
	if r := a.Refusal; r != nil {
		c.Remedy = r.Remedy
		if r.Code != c.Code {
			c.Refused = r.Code
		}
		if !strings.Contains(c.Text, r.Text) {
			c.Text += given(c.Refused != plan.Code{}, "; blocked, "+r.Code.String()) + given(c.Refused == plan.Code{}, "; blocked") + ": " + r.Text
		}
	}
	if a.AfterRoot {
		c.State, c.Text = Unknown, "not compared: "+a.Reason.Text
	}
	return c
}

// moved says what differs: the fields, and the reason where they do not say it.
func moved(a plan.Action) string {
	var fields []string
	text := a.Reason.Text
	for _, f := range a.Fields {
		fields = append(fields, fmt.Sprintf("%s: %s → %s", f.Name, cmp.Or(f.Before, "none"), cmp.Or(f.After, "none")))
		if strings.Contains(text, f.Name+": "+f.Before) {
			text = ""
		}
	}
	return strings.Join(slices.DeleteFunc([]string{text, strings.Join(fields, ", ")}, func(s string) bool { return s == "" }), "; ")
}

func given(is bool, text string) string {
	if is {
		return text
	}
	return ""
}

// step checks one step of a member: what could not be compared, what differs, or that it is in sync.
func (e *examination) step(s plan.Step, h plan.Host, a plan.Action) {
	probes, name := s.Probes(), stepName(s.ID())
	if len(probes) == 0 && a.Kind == "" {
		return // the configuration does not have it
	}
	if !h.Compared {
		e.bad(name, Unknown, cmp.Or(h.Refused, &plan.Trouble{}).Remedy, "not compared: the host is blocked")
		return
	}
	unread := s.Diff(h.View(s.ID())).Unread
	e.unread(name, unread)
	switch {
	case a.Kind != "" && !(a.AfterRoot && len(unread) > 0):
		e.checks = append(e.checks, difference(name, a))
	case len(unread) == 0:
		e.ok(name, "in sync (%s read)", count(len(probes), "answer"))
	}
}

// unread enters the answers that a step could not read.
func (e *examination) unread(name string, all []plan.Unread) {
	for _, u := range all {
		e.bad(name, Unknown, e.unreadRemedy(u), "not compared: %s: %s", u.Probe, u.Why)
		c := &e.checks[len(e.checks)-1]
		if c.Code = plan.CodeUnread; u.Bytes != "" {
			c.State, c.Bytes = Problem, u.Bytes
		}
	}
}

// spare checks that a step can read its answers on a server that is not a member.
func (e *examination) spare(s plan.Step) {
	if len(s.Probes()) == 0 {
		return
	}
	unread := s.Diff(e.of.View(s.ID())).Unread
	e.unread(stepName(s.ID()), unread)
	if len(unread) == 0 {
		e.ok(stepName(s.ID()), "%s read; not compared, the server is not a member", count(len(s.Probes()), "answer"))
	}
}
