package view

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/charmbracelet/lipgloss"

	"github.com/macfleet/macfleet/hosts"
	"github.com/macfleet/macfleet/internal/doctor"
	"github.com/macfleet/macfleet/internal/wire"
	"github.com/macfleet/macfleet/plan"
)

// Explain shows one host with every value, where it was written, what was seen,
// what would be done and why. With a step it shows that step alone.
func (t *Text) Explain(x doctor.Explanation, only plan.StepID) {
	h := x.Host
	standing := "to be claimed from the pool as a member"
	if h.Member {
		standing = "a member"
	}
	t.styled(0, "", t.strong.Render(h.Name)+printable(fmt.Sprintf(", %s of fleet %s, group %s", standing, h.Fleet, h.Group)))
	if only == "" {
		t.machine(x)
		if h.Unknown != nil || h.Refused != nil {
			for _, r := range troubles(h) {
				t.line(2+2*r.depth, r.sign, ofHost("", h).exact(r))
			}
		}
		for _, a := range x.Actions {
			t.blank()
			t.action(h, a)
		}
	}
	for _, s := range x.Steps {
		if only == "" || s.ID == only {
			t.blank()
			t.step(h, s)
		}
	}
}

// machine shows what the provider and the host say of the machine.
func (t *Text) machine(x doctor.Explanation) {
	h := x.Host
	for _, v := range []doctor.Effective{x.Type, x.OS} {
		t.said(v.Path, fmt.Sprintf("%s, written in %s", v.Text, listed(" ", string(v.Level), place(v))))
	}
	t.said("server", fmt.Sprintf("%s, type %s in %s, status %s%s", h.Server.ID, h.Server.Type, h.Server.Zone, h.Server.Status,
		given(h.Server.Name != h.Name, ", now called %s", h.Server.Name)))
	if h.Unknown != nil {
		t.said("address", h.Server.Address)
		return
	}
	t.said("address", h.Server.Address+given(h.Seen.Path != "", ", reached by %s", h.Seen.Path))
	pinned := "not pinned"
	if h.Seen.Pinned {
		pinned = "pinned"
	}
	t.said("host key", h.Seen.Fingerprint+", "+pinned)
	os, _ := h.Seen.OSVersion.Get()
	serial, _ := h.Seen.Serial.Get()
	t.said("macOS", cmp.Or(os, "not known")+", serial number "+cmp.Or(serial, "not known"))
	marker := "none"
	if m, ok := h.Seen.Marker.Get(); ok {
		marker = fmt.Sprintf("of %s, written by macfleet %s", m.Owner(), m.Version)
	} else if h.Seen.Marker.IsUnread() {
		marker = "not read: " + h.Seen.Marker.Why()
	}
	t.said("marker", marker)
}

// said prints a word of the machine, and detail one of a step.
func (t *Text) said(word, text string) { t.pair(2, 9, word, text) }

func (t *Text) detail(word, text string) { t.pair(4, 7, word, text) }

// details prints lines of a step, the word at the first.
func (t *Text) details(word string, lines []string) {
	for _, line := range lines {
		t.detail(word, line)
		word = ""
	}
}

func (t *Text) action(h plan.Host, a plan.Action) {
	t.line(0, string(a.Kind.Sign()), label(a))
	for _, f := range a.Fields {
		t.detail("differs", differs(f))
	}
	t.detail("why", fmt.Sprintf("%s: %s", a.Reason.Code, a.Reason.Text))
	t.refused(a.Refusal)
}

func (t *Text) refused(x *plan.Trouble) {
	if x == nil {
		return
	}
	t.detail("refused", x.Code.String()+": "+x.Text)
	if x.Remedy != "" {
		t.detail("to do", x.Remedy)
	}
}

func (t *Text) step(h plan.Host, s doctor.StepExplanation) {
	sign, state := verdict(h, s)
	t.line(0, sign, string(s.ID)+": "+state)
	var rows [][]string
	for _, v := range s.Values {
		name, text := strings.TrimPrefix(v.Path, string(s.ID)+"."), v.Text
		if v.Text == "" {
			name, text = v.Path, "{}"
		}
		rows = append(rows, []string{name, text, string(v.Source.Level), place(v)})
	}
	t.columns(4, rows)
	if s.Finding.Facts != "" {
		t.details("seen", strings.Split(strings.TrimSuffix(s.Finding.Facts, "\n"), "\n"))
	}
	for _, u := range s.Finding.Unread {
		t.detail("unread", u.Probe+": "+u.Why)
		if u.Bytes != "" {
			t.detail("", fmt.Sprintf("it printed %q", wire.Shortened(u.Bytes)))
		}
	}
	for _, w := range s.Finding.Warnings {
		t.detail("warning", w.Code.String()+": "+w.Text)
	}
	var changed []string
	for _, c := range s.Finding.Changes {
		changed = append(changed, mapped(c.Fields, differs)...)
	}
	t.details("differs", changed)
	if s.Action != nil {
		t.details("would", mapped(s.Action.Changes, func(c plan.Change) string {
			return fmt.Sprintf("run %s as %s (%s)", c.Command.Name, asWhom(h, c.Command), c.Reason.Code)
		}))
		t.detail("why", s.Action.Reason.Code.String()+": "+s.Action.Reason.Text)
		t.detail("harm", s.Action.Disruption.String())
		if text := s.Action.Undo(); text != "" {
			t.detail("undo", text)
		}
		t.refused(s.Action.Refusal)
	}
	if h.Unknown == nil && (s.Wanted || s.Proof != nil) {
		t.detail("proof", proof(s))
	}
}

func differs(f plan.Field) string {
	return fmt.Sprintf("%s: %s → %s", f.Name, cmp.Or(f.Before, "not set"), cmp.Or(f.After, "not set"))
}

// asWhom names the user that a script runs as.
func asWhom(h plan.Host, c plan.Command) string {
	if c.As == plan.Login {
		return h.Spec.User
	}
	return string(c.As)
}

// verdict says how a step stands.
func verdict(h plan.Host, s doctor.StepExplanation) (sign, state string) {
	switch {
	case len(s.Finding.Unread) > 0:
		return signUnknown, "not compared"
	case s.Action != nil:
		return string(s.Action.Kind.Sign()), "differs"
	case !s.Wanted:
		return "", "not in the configuration"
	case !s.Compared():
		return signUnknown, "not compared"
	}
	return "=", "matches"
}

// proof says what the marker holds of a step, and what moved since.
func proof(s doctor.StepExplanation) string {
	if s.Proof == nil {
		return "none yet"
	}
	text := "at a time that was not noted"
	if !s.Proof.At.IsZero() {
		text = moment(s.Proof.At)
	}
	moved := listed(" and ", given(s.Proof.HostMoved, "the host"), given(s.Proof.ConfigurationMoved, "the configuration"))
	switch {
	case !s.Compared():
		return text
	case moved == "":
		return text + "; nothing moved since"
	}
	return text + "; since then " + moved + " moved"
}

// place returns "file:line", or nothing for a value that nobody wrote.
func place(v doctor.Effective) string {
	return given(v.Source.File != "", "%s", v.Source)
}

// Scripts prints the exact scripts that an explanation's actions would run, as
// one text of comments and shell. Lines are never broken: it is a script. With
// a step it prints that step's alone.
func (t *Text) Scripts(x doctor.Explanation, only plan.StepID) {
	for _, s := range x.Steps {
		switch {
		case only != "" && s.ID != only:
		case s.Wanted && !s.Compared():
			t.comment(fmt.Sprintf("%s: could not be compared, so nothing would run", s.ID))
		case s.Action == nil:
			t.comment(fmt.Sprintf("%s: no difference, so nothing would run", s.ID))
		default:
			if r := s.Action.Refusal; r != nil {
				t.comment(fmt.Sprintf("%s: refused (%s), so nothing would run; without that:", s.ID, r.Code))
			}
			t.commands(x.Host, s.Action.Changes)
		}
	}
}

func (t *Text) commands(h plan.Host, changes []plan.Change) {
	for _, c := range changes {
		t.comment(fmt.Sprintf("%s, as %s on %s", c.Command.Name, asWhom(h, c.Command), h.Name))
		for i, arg := range c.Command.Args {
			t.comment(fmt.Sprintf("$%d is %q", i+1, arg))
		}
		t.Print(script(c.Command))
		t.blank()
	}
}

func (t *Text) comment(text string) { fmt.Fprintln(t.out, "# "+printable(text)) }

func script(c plan.Command) string {
	return strings.TrimRight(hosts.ScriptText(c), "\n") + "\n"
}

// use is a script that would run on a host.
type use struct {
	name, as, text string
	runs           string // where, and with which arguments
}

// PlanScripts prints every script that a plan's steps would run, once, with the
// hosts and the arguments that it would get. Claims and markers are macfleet's
// own files under /etc/macfleet and no step's.
func (t *Text) PlanScripts(p *plan.Plan) {
	uses := scriptsOf(p)
	if len(uses) == 0 {
		return
	}
	t.section("Scripts")
	for _, u := range uses {
		t.blank()
		t.comment(u[0].name + ", as " + u[0].as)
		for _, on := range u {
			t.comment("  " + on.runs)
		}
		t.Print(u[0].text)
	}
}

// scriptsOf gathers a plan's scripts in the order of their first use.
func scriptsOf(p *plan.Plan) [][]use {
	var all []use
	hosts := make(map[string]plan.Host, len(p.Hosts))
	for _, h := range p.Hosts {
		hosts[h.Server.ID] = h
	}
	for _, a := range p.Actions {
		if a.Refusal != nil {
			continue
		}
		h := hosts[a.ServerID]
		for _, c := range a.Changes {
			all = append(all, use{c.Command.Name, asWhom(h, c.Command), script(c.Command), "on " + h.Name + arguments(c.Command)})
		}
	}
	return grouped(all, func(u use) use { return use{name: u.name, as: u.as, text: u.text} })
}

func arguments(c plan.Command) string {
	return given(len(c.Args) > 0, " with %s", strings.Join(mapped(c.Args, strconv.Quote), " "))
}

// ExplainDocument is an explanation of one host as one JSON object.
type ExplainDocument struct {
	wire.OwnedHead
	Host    ExplainedHost      `json:"host"`
	Unknown *wire.TroubledHost `json:"unknown,omitempty"`
	Refused *wire.TroubledHost `json:"refused,omitempty"`
	Actions []wire.Action      `json:"actions"` // beside the steps
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
	Seen   string            `json:"seen"` // the facts in normal form; "" when not compared
	Want   string            `json:"want"` // the wish in the same form
	Unread []wire.UnreadStep `json:"unread"`
	Change *wire.Action      `json:"change,omitempty"`
	Proof  *doctor.Proof     `json:"proof,omitempty"`
}

// WriteExplanation prints an explanation as one JSON object, of one step when only is not
// empty.
func WriteExplanation(out io.Writer, x doctor.Explanation, only plan.StepID) error {
	h := x.Host
	os, _ := h.Seen.OSVersion.Get()
	serial, _ := h.Seen.Serial.Get()
	against := func(x *plan.Trouble) *wire.TroubledHost {
		if x == nil {
			return nil
		}
		t := wire.Troubled(h.Name, h.Fleet, *x)
		return &t
	}
	d := ExplainDocument{OwnedHead: wire.HeadOf(x.Owner), Unknown: against(h.Unknown), Refused: against(h.Refused), Actions: []wire.Action{}, Steps: []ExplainedStep{},
		Host: ExplainedHost{Name: h.Name, Fleet: h.Fleet, Group: h.Group, Member: h.Member, ServerID: h.Server.ID,
			ServerName: h.Server.Name, Type: h.Server.Type, Zone: h.Server.Zone, Status: h.Server.Status, Address: h.Server.Address,
			Path: h.Seen.Path, HostKey: h.Seen.Fingerprint, Pinned: h.Seen.Pinned, OSVersion: os, Serial: serial,
			WantedType: x.Type, WantedOS: x.OS, Convergence: string(h.Converged)}}
	d.Actions = append(d.Actions, mapped(x.Actions, wire.ActionOf)...)
	for _, s := range x.Steps {
		if only == "" || s.ID == only {
			d.Steps = append(d.Steps, explainedStep(h, s))
		}
	}
	return wire.Write(out, d)
}

func explainedStep(h plan.Host, s doctor.StepExplanation) ExplainedStep {
	e := ExplainedStep{StepExplanation: s, Seen: s.Finding.Facts, Want: s.Want, Unread: []wire.UnreadStep{}, Proof: s.Proof}
	for _, u := range s.Finding.Unread {
		e.Unread = append(e.Unread, wire.UnreadOf(h, plan.StepUnread{Step: s.ID, Unread: u}))
	}
	if s.Action != nil {
		c := wire.ActionOf(*s.Action)
		e.Change = &c
	}
	return e
}

// Checkup prints the check list of one host: what is ok, what is a problem and
// what to do, and what nobody knows.
func (t *Text) Checkup(c doctor.Checkup) {
	t.styled(0, "", t.strong.Render(printable(c.Name))+printable(given(c.Name != c.Server, "  (server %s)", c.Server)))
	t.blank()
	column := 0
	for _, check := range c.Checks {
		column = max(column, lipgloss.Width(check.Name))
	}
	for i, check := range c.Checks {
		if i+1 < len(c.Checks) && c.Checks[i+1].Remedy == check.Remedy {
			check.Remedy = "" // it stands once, below the last that it is for
		}
		t.check(check, column)
	}
	t.blank()
	t.sayf("%s: %d ok, %s, %d unknown.", count(len(c.Checks), "check"), c.Count(doctor.OK),
		count(c.Count(doctor.Problem), "problem"), c.Count(doctor.Unknown))
}

// check prints one check behind its state and its name, which is column wide.
func (t *Text) check(c doctor.Check, column int) {
	sign := map[doctor.State]string{doctor.OK: signOK, doctor.Problem: signRefused, doctor.Unknown: signUnknown}[c.State]
	state := t.signs[sign].Render(fmt.Sprintf("%-7s", c.State))
	lead := "  " + state + "  " + c.Name + strings.Repeat(" ", column-lipgloss.Width(c.Name)) + "  "
	texts := []string{c.Text}
	if c.Bytes != "" {
		texts = append(texts, "it printed: "+fmt.Sprintf("%q", wire.Shortened(c.Bytes)))
	}
	if c.Remedy != "" {
		texts = append(texts, "do: "+c.Remedy)
	}
	for _, text := range texts {
		t.behind(lead, printable(text))
		lead = strings.Repeat(" ", lipgloss.Width(lead))
	}
}

// CheckupDocument is a checkup as one JSON object.
type CheckupDocument struct {
	wire.Head
	doctor.Checkup
}

// WriteCheckup prints a checkup as one JSON document. Of what a step could not read it has
// no more than a person is shown.
func WriteCheckup(w io.Writer, c doctor.Checkup) error {
	c.Checks = slices.Clone(c.Checks)
	for i := range c.Checks {
		c.Checks[i].Bytes = wire.Shortened(c.Checks[i].Bytes)
	}
	return wire.Write(w, CheckupDocument{wire.NewHead(), c})
}
