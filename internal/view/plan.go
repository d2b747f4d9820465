package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/lipgloss"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/wire"
	"github.com/macfleet/macfleet/plan"
)

// PlanForm says how a plan is shown.
type PlanForm struct {
	Full   bool          // every host, step and field
	Config *fleet.Config // whose lines are named; nil: none
}

// Plan shows what would change and why: the verdict, then a row for each set of hosts for which the
// same holds, what needs a person first. A plan without a difference is one line.
func (t *Text) Plan(p *plan.Plan, o PlanForm) {
	t.planned(p, o)
	t.whatIf(p)
}

func (t *Text) planned(p *plan.Plan, o PlanForm) {
	s := p.Summarise()
	if s.Finished() && s.Deferred == 0 {
		t.uncovered(p.Coverage())
		t.Say(noChanges(p, s))
		t.keyRotation(p)
		if rows := foldFindings(findingsOf(p, o.Config)); !o.Full && len(rows) > 0 {
			t.planRows(p, rows)
		} else if o.Full {
			t.orphans(p, anyOrphan) // allowed by a flag
			t.held(p, false)
			t.notes(p)
		}
		return
	}
	t.planHeading(p)
	t.keyRotation(p)
	if o.Full {
		t.fullPlan(p)
		return
	}
	if text := limit(p.Coverage()); text != "" {
		t.line(0, signUnknown, text)
	}
	t.blank()
	rows := foldFindings(findingsOf(p, o.Config))
	t.planRows(p, rows)
	t.rolloutRows(p)
	t.blank()
	t.sideBySide(planLine(p), "Details: macfleet plan --full, explain HOST"+given(slices.ContainsFunc(rows, func(g group) bool { return len(g.codes) > 0 }), "|CODE"))
}

// planHeading prints whose plan it is, and how its hosts are.
func (t *Text) planHeading(p *plan.Plan) {
	title := strings.ReplaceAll(ownerTitle(p), "/", " / ") + clusterTitle(p)
	t.sideBySideStyled(t.strong.Render(printable(title)), printable(tallyOf(p).String()))
}

// sideBySide prints two texts on one line where they fit, else on two.
func (t *Text) sideBySide(left, right string) { t.sideBySideStyled(printable(left), printable(right)) }

func (t *Text) sideBySideStyled(left, right string) {
	left, right = t.pasteable(left), t.pasteable(right)
	gap := 3
	if t.width > 0 {
		gap = t.width - lipgloss.Width(left) - lipgloss.Width(right)
		if gap < 3 {
			t.styled(0, "", left)
			t.styled(2, "", right)
			return
		}
	}
	fmt.Fprintln(t.out, left+strings.Repeat(" ", min(gap, widestGap))+right)
}

// widestGap limits the space between two texts on one line of a wide terminal.
const widestGap = 24

// The columns of rows.
const (
	rowIndent  = 2
	widestName = 24 // of the column of hosts
	leastText  = 30 // columns that the text needs next to the others
)

// rolloutRows prints the order of a rollout and what it costs, with the title once.
func (t *Text) rolloutRows(p *plan.Plan) {
	rows := rolloutRows(p)
	if len(rows) == 0 {
		return
	}
	t.blank()
	title, width := fmt.Sprintf("%-9s", rolloutTitle(p, rows[0])), 0
	for _, r := range rows {
		width = max(width, lipgloss.Width(r[0]))
	}
	for _, r := range rows {
		name := given(width > 0, "%-*s  ", width, printable(r[0]))
		t.behind(fmt.Sprintf("%*s%s%s", rowIndent, "", title, name), printable(r[1]))
		title = strings.Repeat(" ", len(title))
	}
}

// rolloutTitle is the title of a row of rolloutRows: the last one has no fleet, and may have only the expected time.
func rolloutTitle(p *plan.Plan, row []string) string {
	switch {
	case row[0] != "":
		return "Rollout"
	case costs(p) == "":
		return "Time"
	}
	return "Cost"
}

// planRows prints rows in three columns: the category once, whom it is about, and what.
func (t *Text) planRows(p *plan.Plan, all []group) {
	n := namesOf(p)
	catWidth, nameWidth := 0, 0
	for _, g := range all {
		catWidth = max(catWidth, len(g.category))
		nameWidth = max(nameWidth, lipgloss.Width(n.label(g)))
	}
	catWidth, nameWidth = catWidth+2, min(nameWidth, widestName)+2
	before := group{}
	for i, g := range all {
		cat := strings.Repeat(" ", catWidth)
		if i == 0 || g.category != before.category {
			cat = t.signs[g.sign()].Render(string(g.category)) + cat[len(g.category):]
		}
		name := n.label(g)
		if i > 0 && g.category == before.category && slices.Equal(g.hosts, before.hosts) && g.subject == before.subject {
			name = ""
		}
		before = g
		lead := strings.Repeat(" ", rowIndent) + cat + printable(name)
		pad := nameWidth - lipgloss.Width(printable(name))
		hang := rowIndent + catWidth + nameWidth
		switch {
		case t.width > 0 && t.width-hang < leastText: // the text has no room there
			fmt.Fprintln(t.out, strings.TrimRight(lead, " "))
			hang = rowIndent + 4
			lead = strings.Repeat(" ", hang)
		case pad < 2:
			fmt.Fprintln(t.out, strings.TrimRight(lead, " "))
			lead = strings.Repeat(" ", hang)
		default:
			lead += strings.Repeat(" ", pad)
		}
		t.behind(lead, g.said())
		if names := n.list(g); names != "" && name != "" { // the rows below it are of the same hosts
			t.line(hang, "", names)
		}
		if g.fix != "" && !(i+1 < len(all) && all[i+1].sameFix(g)) { // the fix is printed below the last row that it is for
			t.styled(hang, "", t.strong.Render("fix:")+" "+printable(n.fix(g)))
		}
	}
}

// sameFix reports whether a row has the hosts, the category and the fix of another.
func (g group) sameFix(of group) bool {
	return g.category == of.category && g.fix == of.fix && g.subject == of.subject && slices.Equal(g.hosts, of.hosts)
}

// said is what a row says: what differs, its codes, and the lines that want it.
func (g group) said() string {
	text := listed(": ", g.what, g.text) + given(len(g.codes) > 0, "  [%s]", strings.Join(g.codes, ", "))
	return printable(text + given(len(g.at) > 0, "  %s", placesText(g.at)))
}

// placesText names lines of the configuration, each once, as "main.fleet.hcl:4,9".
func placesText(at []fleet.Source) string {
	at = slices.Clone(at)
	slices.SortFunc(at, func(a, b fleet.Source) int { return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line)) })
	at = slices.CompactFunc(at, func(a, b fleet.Source) bool { return a.File == b.File && a.Line == b.Line })
	return strings.Join(mapped(grouped(at, func(s fleet.Source) string { return s.File }), func(of []fleet.Source) string {
		return of[0].File + ":" + strings.Join(mapped(of, func(s fleet.Source) string { return fmt.Sprint(s.Line) }), ",")
	}), ", ")
}

func ownerTitle(p *plan.Plan) string {
	return p.Owner.Name + given(p.Owner.Environment != "", "/%s", p.Owner.Environment)
}

// clusterTitle names the cluster that a plan is of, where it has one that is known.
func clusterTitle(p *plan.Plan) string {
	switch c := p.ClusterID; {
	case c == nil:
		return ""
	case c.Context == p.Owner.String():
		return " (" + c.Server + ")"
	default:
		return " in the cluster " + c.Name()
	}
}

func noChanges(p *plan.Plan, s plan.Summary) string {
	if p.Coverage().Limited() {
		return "No changes" + selected(p, s) + "."
	}
	if t := tallyOf(p); t.InSync < t.Hosts {
		return fmt.Sprintf("No changes. %d of %s of %s in sync; %s.", t.InSync, count(t.Hosts, "host"), ownerTitle(p), t.rest())
	}
	have := by(p.Hosts, func(h plan.Host) string { return h.Fleet })
	of := listed(", ", mapped(p.Fleets, func(f string) string { return given(len(have[f]) > 0, "%s %d", f, len(have[f])) })...)
	if of == "" {
		return fmt.Sprintf("No changes. %s has no hosts here.", ownerTitle(p))
	}
	return fmt.Sprintf("No changes. %s of %s in sync (%s).", all(s), ownerTitle(p), of)
}

// all names the hosts that a statement is about.
func all(s plan.Summary) string {
	if s.Hosts == 1 {
		return "The 1 host"
	}
	return "All " + count(s.Hosts, "host")
}

// PlanFile shows a plan file: what it is, and then the plan as it was.
func (t *Text) PlanFile(f wire.PlanFile, o PlanForm, now time.Time) {
	good := "good until "
	if !now.Before(f.ExpiresAt) {
		good = "expired "
	}
	limits := flags(f.On, f.Exclude, words(f.Steps), f.Plan.Decisions)
	t.sayf("Made %s by %s with macfleet %s, %s.", moment(f.MadeAt), f.MadeBy, f.MacfleetVersion, good+moment(f.ExpiresAt))
	t.sayf("It approves %s; configuration %s%s.", count(len(f.Actions()), "action"), f.ConfigurationHash, given(limits != "", "; planned with%s", limits))
	t.blank()
	t.Plan(f.Plan, o)
}

// Kept says that a plan file was written, and what is done with it.
func (t *Text) Kept(name string, f wire.PlanFile) {
	t.sayf("Wrote %s: it approves %s until %s. To perform exactly that: macfleet apply %s", name, count(len(f.Actions()), "action"), moment(f.ExpiresAt), name)
}

// Approved says whose approval an apply uses, and which of its actions are done already. doneBy returns the run from here that
// did one, if any.
func (t *Text) Approved(name string, f wire.PlanFile, now *plan.Plan, doneBy func(plan.Action) string) {
	for _, line := range approved(name, f, now, doneBy) {
		t.Say(line)
	}
}

func approved(name string, f wire.PlanFile, now *plan.Plan, doneBy func(plan.Action) string) []string {
	out := []string{fmt.Sprintf("Applying %s, made %s by %s: it approves %s.", name, moment(f.MadeAt), f.MadeBy, count(len(f.Actions()), "action"))}
	for _, same := range grouped(f.Gone(now), doneBy) {
		actions := joinedUpTo(mapped(same, func(a plan.Action) string { return strings.TrimPrefix(a.Address(), "host.") }), 8)
		if run := doneBy(same[0]); run != "" {
			out = append(out, fmt.Sprintf("Already done by run %s: %s.", run, actions))
		} else {
			out = append(out, fmt.Sprintf("No longer needed, and not done by a run recorded here: %s.", actions))
		}
	}
	return out
}

// Recalled says of a recorded observation how old it is, and what it does not answer.
func (t *Text) Recalled(file string, taken time.Time, gaps plan.Gaps) {
	missed := func(noun string, all []string) string {
		return given(len(all) > 0, "%s not recorded (%s)", count(len(all), noun), firstOf(all))
	}
	text := listed(", ", missed("host", gaps.Hosts), missed("question", gaps.Probes))
	t.sayf("From %s, observed %s.%s", file, taken.UTC().Format("2006-01-02 15:04 UTC"), given(text != "",
		" It is older than the configuration, or was recorded for a selection: %s. Record another: macfleet plan --record FILE.", text))
}
