package view

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/macfleet/macfleet/hosts"
	"github.com/macfleet/macfleet/internal/doctor"
	"github.com/macfleet/macfleet/internal/wire"
	"github.com/macfleet/macfleet/plan"
)

// Explain shows one host: the verdict, what differs and what apply would do about it, then every value with the
// place that set it, and the machine. With a step it shows only that step, in full.
func (t *Text) Explain(x doctor.Explanation, only plan.StepID) {
	h := x.Host
	member := given(!h.Member, "to be claimed from the pool as ") + "a member"
	t.styled(0, "", t.strong.Render(h.Name)+printable(fmt.Sprintf(", %s of fleet %s, group %s", member, h.Fleet, h.Group)))
	if only != "" {
		for _, s := range x.Steps {
			if s.ID == only {
				t.blank()
				t.step(h, s)
			}
		}
		return
	}
	t.verdictOf(x)
	for _, w := range h.Warnings {
		if w.Step == "" && !w.OfServer { // those of a step and of the server are shown with them
			t.trouble(signDrift, "warning", &w.Trouble)
		}
	}
	for _, a := range x.Actions {
		t.blank()
		t.line(0, string(a.Kind.Sign()), label(a))
		t.detail("differs", mapped(a.Fields, differs)...)
		t.why(a)
	}
	var settled []doctor.StepExplanation
	var absent []string
	for _, s := range x.Steps {
		switch {
		case s.Action != nil || len(s.Finding.Unread) > 0 || len(s.Finding.Warnings) > 0:
			t.blank()
			t.step(h, s)
		case s.Wanted:
			settled = append(settled, s)
		default:
			absent = append(absent, string(s.ID))
		}
	}
	for _, s := range settled {
		t.blank()
		sign, state := verdict(s)
		t.line(0, sign, string(s.ID)+": "+state)
		t.values(s)
		t.detail("verified", lastVerified(h, s))
	}
	if len(absent) > 0 {
		t.blank()
		t.line(0, "", "Not configured: "+strings.Join(absent, ", "))
	}
	t.machine(x)
}

// verdictOf says first what an explanation comes to, and what to do about it.
func (t *Text) verdictOf(x doctor.Explanation) {
	h := x.Host
	var differ, open []string
	var refusals []plan.Trouble
	compared, runs := 0, 0
	for _, a := range x.Actions {
		runs += ones(a.Refusal == nil)
	}
	for _, s := range x.Steps {
		_, state := verdict(s)
		switch {
		case s.Action != nil:
			differ = append(differ, fmt.Sprintf("%s (%s)", s.ID, state))
			if runs += ones(s.Action.Refusal == nil); s.Action.Refusal != nil {
				refusals = append(refusals, *s.Action.Refusal)
			}
		case s.Wanted && !s.Compared():
			open = append(open, string(s.ID))
		}
		if s.Wanted && s.Compared() {
			compared++
		}
	}
	if h.Leaves && len(x.Actions) > 0 {
		t.line(2, signRefused, "leaves its group: "+x.Actions[0].Reason.Text)
	}
	others := mapped(x.Actions, func(a plan.Action) string { return label(a) })
	switch {
	case h.Unknown != nil:
		t.trouble(signUnknown, "not compared", h.Unknown)
		return
	case h.Refused != nil:
		t.trouble(signRefused, "blocked", h.Refused)
	case len(differ)+len(others) > 0:
		t.line(2, signUpdate, listed("; ", given(len(differ) > 0, "%d of %s: %s", len(differ), count(compared, "step"), strings.Join(differ, ", ")), strings.Join(others, ", ")))
		if runs > 0 {
			t.line(4, "", "fix: macfleet apply --on name="+h.Name)
		}
		for _, same := range grouped(refusals, func(x plan.Trouble) plan.Trouble { return x }) {
			t.trouble(signRefused, "blocked", &same[0])
		}
	case len(open) == 0:
		t.line(2, "=", "in sync: "+count(compared, "step")+" compared, nothing to do")
	}
	if len(open) > 0 {
		t.line(2, signUnknown, "not compared: "+strings.Join(open, ", "))
	}
}

// trouble shows why a host could not be compared, or must not be changed.
func (t *Text) trouble(sign, state string, x *plan.Trouble) {
	t.line(2, sign, state+": "+x.Text+" ["+x.Code.String()+"]")
	t.pair(4, 5, "fix:", x.Remedy)
}

func (t *Text) machine(x doctor.Explanation) {
	h := x.Host
	t.section("Host")
	said := func(word, text string) { t.pair(2, 9, word, text) }
	for _, v := range []doctor.Effective{x.Type, x.OS} {
		said(v.Path, fmt.Sprintf("%s, set in %s", v.Text, listed(" ", string(v.Level), place(v))))
	}
	said("server", fmt.Sprintf("%s, type %s in %s, status %s%s", h.Server.ID, h.Server.Type, h.Server.Zone, h.Server.Status,
		given(h.Server.Name != h.Name, ", currently named %s", h.Server.Name)))
	for _, w := range h.Warnings {
		if w.OfServer {
			said("warning", w.Text+" ["+w.Code.String()+"]")
		}
	}
	said("address", h.Server.Address+given(h.Unknown == nil && h.Seen.Path != "", ", reached by %s", h.Seen.Path))
	if h.Unknown != nil {
		return
	}
	said("host key", h.Seen.Fingerprint+", "+given(!h.Seen.Pinned, "not ")+"pinned")
	os, _ := h.Seen.OSVersion.Get()
	serial, _ := h.Seen.Serial.Get()
	said("macOS", cmp.Or(os, "unknown")+", serial number "+cmp.Or(serial, "unknown"))
	m, marked := h.Seen.Marker.Get()
	said("marker", cmp.Or(given(marked, "owner %s, written by macfleet %s", m.Owner(), m.Version),
		given(h.Seen.Marker.IsUnread(), "not read: %s", h.Seen.Marker.Why()), "none"))
}

// detail prints lines about a step or an action, behind a word.
func (t *Text) detail(word string, lines ...string) {
	for _, line := range lines {
		if line != "" {
			t.pair(4, 9, word, line)
			word = ""
		}
	}
}

// why says what an action is for, and, where it is blocked, why it does not run and what to do.
func (t *Text) why(a plan.Action) {
	x := a.Refusal
	if x == nil || x.Text != a.Reason.Text {
		t.detail("why", a.Reason.Text+" ["+a.Reason.Code.String()+"]")
	}
	if x != nil {
		t.detail("blocked", x.Text+" ["+x.Code.String()+"]")
		t.detail("fix:", x.Remedy)
	}
}

// does says what apply runs for an action. Of one that is blocked there is nothing to say.
func (t *Text) does(h plan.Host, a plan.Action) {
	if a.Refusal != nil {
		return
	}
	t.detail("apply", mapped(a.Changes, func(c plan.Change) string {
		return fmt.Sprintf("runs %s as %s", c.Command.Name, asWhom(h, c.Command)) + given(c.Reason.Code != a.Reason.Code, " [%s]", c.Reason.Code)
	})...)
	t.detail("impact", given(a.Disruption > plan.NoDisruption, "%s", a.Disruption))
	t.detail("undo", a.Undo())
}

// step shows a step in full: differences first, then values, then what was observed.
func (t *Text) step(h plan.Host, s doctor.StepExplanation) {
	sign, state := verdict(s)
	t.line(0, sign, string(s.ID)+": "+state)
	for _, u := range s.Finding.Unread {
		t.detail("unread", u.Probe+": "+u.Why, given(u.Bytes != "", "it printed %q", wire.Shortened(u.Bytes)))
	}
	for _, w := range s.Finding.Warnings {
		t.detail("warning", w.Text+" ["+w.Code.String()+"]")
	}
	var changed []string
	for _, c := range s.Finding.Changes {
		changed = append(changed, mapped(c.Fields, func(f plan.Field) string { return differs(f) + setAt(s, f) })...)
	}
	t.detail("differs", changed...)
	if a := s.Action; a != nil {
		t.why(*a)
		t.does(h, *a)
	}
	t.values(s)
	t.detail("observed", strings.Split(s.Finding.Facts, "\n")...)
	t.detail("verified", lastVerified(h, s))
}

// values shows each value of a step with the level, the file and the line that set it.
func (t *Text) values(s doctor.StepExplanation) {
	t.columns(4, mapped(s.Values, func(v doctor.Effective) []string {
		if v.Text == "" {
			return []string{v.Path, "{}", string(v.Level), place(v)}
		}
		return []string{strings.TrimPrefix(v.Path, string(s.ID)+"."), v.Text, string(v.Level), place(v)}
	}))
}

// setAt says where the value was set that a field should have: "  (host hosts.fleet.hcl:3)". A field that no
// attribute is named like comes from the block.
func setAt(s doctor.StepExplanation, f plan.Field) string {
	if len(s.Values) == 0 {
		return ""
	}
	at := s.Values[0]
	for _, v := range s.Values {
		if v.Path == string(s.ID)+"."+strings.ReplaceAll(f.Name, " ", "_") {
			at = v
		}
	}
	return "  (" + listed(" ", string(at.Level), place(at)) + ")"
}

func differs(f plan.Field) string {
	return fmt.Sprintf("%s: %s → %s", f.Name, cmp.Or(f.Before, "not set"), cmp.Or(f.After, "not set"))
}

func asWhom(h plan.Host, c plan.Command) string {
	if c.As == plan.Login {
		return h.Spec.User
	}
	return string(c.As)
}

// verdict is the state of a step in one word or two.
func verdict(s doctor.StepExplanation) (sign, state string) {
	switch {
	case len(s.Finding.Unread) > 0:
		return signUnknown, "not compared"
	case s.Action != nil:
		state = cmp.Or(listed(" and ", given(s.Action.Origin.Drift, "drifted"), given(s.Action.Origin.Pending, "to update")), "differs")
		return string(s.Action.Kind.Sign()), state + given(s.Action.Refusal != nil, ", blocked")
	case !s.Wanted:
		return "", "not configured"
	case !s.Compared():
		return signUnknown, "not compared"
	}
	return "=", "in sync"
}

// lastVerified says when a step was last verified by the host's marker, and what changed since.
func lastVerified(h plan.Host, s doctor.StepExplanation) string {
	switch {
	case h.Unknown != nil || !s.Wanted && s.Proof == nil:
		return ""
	case s.Proof == nil:
		return "never"
	}
	text := "at an unknown time"
	if !s.Proof.At.IsZero() {
		text = moment(s.Proof.At)
	}
	changed := listed(" and ", given(s.Proof.HostMoved, "the host"), given(s.Proof.ConfigurationMoved, "the configuration"))
	switch {
	case !s.Compared():
		return text
	case changed == "":
		return text + ", nothing changed since"
	}
	return text + "; " + changed + given(s.Proof.HostMoved && s.Proof.ConfigurationMoved, " have") + given(s.Proof.HostMoved != s.Proof.ConfigurationMoved, " has") + " changed since"
}

// place returns "file:line", or nothing for a default.
func place(v doctor.Effective) string { return given(v.File != "", "%s", v.Source) }

// Scripts prints the exact scripts that an explanation's actions would run, of one step
// when only is not empty. Lines are never broken: it is a script.
func (t *Text) Scripts(x doctor.Explanation, only plan.StepID) {
	for _, s := range x.Steps {
		switch {
		case only != "" && s.ID != only:
		case s.Wanted && !s.Compared():
			t.comment(fmt.Sprintf("%s: not compared, so nothing would run", s.ID))
		case s.Action == nil:
			t.comment(fmt.Sprintf("%s: no difference, so nothing would run", s.ID))
		default:
			if r := s.Action.Refusal; r != nil {
				t.comment(fmt.Sprintf("%s: blocked (%s), so nothing would run now. It would be:", s.ID, r.Code))
			}
			for _, c := range s.Action.Changes {
				t.comment(fmt.Sprintf("%s, as %s on %s", c.Command.Name, asWhom(x.Host, c.Command), x.Host.Name))
				for i, arg := range c.Command.Args {
					t.comment(fmt.Sprintf("$%d is %q", i+1, arg))
				}
				t.Print(script(c.Command) + "\n")
			}
		}
	}
}

func (t *Text) comment(text string) { fmt.Fprintln(t.out, "# "+printable(text)) }

func script(c plan.Command) string { return strings.TrimRight(hosts.ScriptText(c), "\n") + "\n" }

// use is a script that would run on a host.
type use struct {
	name, as, text string
	runs           string // where, and with which arguments
}

// PlanScripts prints every script that a plan's steps would run, once, in the order of
// their first use, with the hosts and the arguments that it would get. Claims and markers
// are macfleet's own files under /etc/macfleet and no step's.
func (t *Text) PlanScripts(p *plan.Plan) {
	var all []use
	for _, a := range p.Actions {
		if !a.Runs() {
			continue
		}
		h, _ := p.HostByServer(a.ServerID)
		for _, c := range a.Changes {
			args := strings.Join(mapped(c.Command.Args, strconv.Quote), " ")
			runs := "on " + h.Name + given(args != "", " with %s", args)
			all = append(all, use{c.Command.Name, asWhom(h, c.Command), script(c.Command), runs})
		}
	}
	if len(all) > 0 {
		t.section("Scripts")
	}
	for _, same := range grouped(all, func(u use) use { return use{name: u.name, as: u.as, text: u.text} }) {
		t.blank()
		t.comment(same[0].name + ", as " + same[0].as)
		for _, on := range same {
			t.comment("  " + on.runs)
		}
		t.Print(same[0].text)
	}
}

// ExplainDocument is an explanation of one host as one JSON object.
type ExplainDocument struct {
	wire.OwnedHead
	Host    ExplainedHost      `json:"host"`
	Unknown *wire.TroubledHost `json:"unknown,omitempty"`
	Refused *wire.TroubledHost `json:"refused,omitempty"`
	Actions []wire.Action      `json:"actions"` // besides the steps
	Steps   []ExplainedStep    `json:"steps"`
}

// ExplainedHost is the machine.
type ExplainedHost struct {
	Name        string           `json:"name"`
	Fleet       string           `json:"fleet"`
	Group       string           `json:"group"`
	Member      bool             `json:"member"` // false: a claim would make it one
	ServerID    string           `json:"server_id"`
	ServerName  string           `json:"server_name"` // as the provider calls it now
	Type        string           `json:"type"`
	Zone        string           `json:"zone"`
	Status      string           `json:"status"`
	Address     string           `json:"address"`
	Path        string           `json:"path"` // how it was reached
	HostKey     string           `json:"host_key"`
	Pinned      bool             `json:"pinned"`
	OSVersion   string           `json:"os_version"` // "" = not known
	Serial      string           `json:"serial"`     // "" = not known
	WantedType  doctor.Effective `json:"wanted_type"`
	WantedOS    doctor.Effective `json:"wanted_os"`
	Convergence string           `json:"converged"` // yes, no, unknown
}

// ExplainedStep is one step.
type ExplainedStep struct {
	doctor.StepExplanation
	Seen   string               `json:"seen"` // the facts in normal form; "" when not compared
	Want   string               `json:"want"` // the configured facts in the same form
	Unread []wire.UnreadStep    `json:"unread"`
	Change *wire.Action         `json:"change,omitempty"`
	Proof  *doctor.Verification `json:"proof,omitempty"`
}

// WriteExplanation prints an explanation as one JSON object, with a step only of that step.
func WriteExplanation(out io.Writer, x doctor.Explanation, only plan.StepID) error {
	h := x.Host
	os, _ := h.Seen.OSVersion.Get()
	serial, _ := h.Seen.Serial.Get()
	d := ExplainDocument{OwnedHead: wire.HeadOf(x.Owner), Actions: wire.Each(x.Actions, wire.ActionOf), Steps: []ExplainedStep{},
		Unknown: wire.Troubled(h.Name, h.Fleet, h.Unknown), Refused: wire.Troubled(h.Name, h.Fleet, h.Refused),
		Host: ExplainedHost{Name: h.Name, Fleet: h.Fleet, Group: h.Group, Member: h.Member, ServerID: h.Server.ID,
			ServerName: h.Server.Name, Type: h.Server.Type, Zone: h.Server.Zone, Status: h.Server.Status, Address: h.Server.Address,
			Path: h.Seen.Path, HostKey: h.Seen.Fingerprint, Pinned: h.Seen.Pinned, OSVersion: os, Serial: serial,
			WantedType: x.Type, WantedOS: x.OS, Convergence: string(h.Converged)}}
	for _, s := range x.Steps {
		if only != "" && s.ID != only {
			continue
		}
		unread := func(u plan.Unread) wire.UnreadStep { return wire.UnreadOf(h, plan.StepUnread{Step: s.ID, Unread: u}) }
		e := ExplainedStep{StepExplanation: s, Seen: s.Finding.Facts, Want: s.Want, Proof: s.Proof}
		e.Unread = wire.Each(s.Finding.Unread, unread)
		if s.Action != nil {
			e.Change = new(wire.ActionOf(*s.Action))
		}
		d.Steps = append(d.Steps, e)
	}
	return wire.Write(out, d)
}
