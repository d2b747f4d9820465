package view

import (
	"cmp"
	"fmt"
	"html"
	"io"
	"strings"

	"github.com/macfleet/macfleet/internal/wire"
	"github.com/macfleet/macfleet/plan"
)

// LeastMarkdown is the smallest limit of a Markdown document in bytes: its heading must fit, and what says that the rest did not.
const LeastMarkdown = 2000

// Markdown writes plans for a comment on a change, up to a limit in bytes.
type Markdown int

// NewMarkdown returns a writer of documents of at most limit bytes.
func NewMarkdown(limit int) (Markdown, error) {
	if limit < LeastMarkdown {
		return 0, fmt.Errorf("a limit of %d bytes is too small for a document; it must be at least %d", limit, LeastMarkdown)
	}
	return Markdown(limit), nil
}

// Plan prints a plan: the verdict, a table of what the short plan shows, the rollout, and below it every host, folded away.
// Rows that do not fit are left out and counted. Text of a host or a file opens no markup, and is in a fence that it cannot end.
func (m Markdown) Plan(out io.Writer, p *plan.Plan) error { return m.write(out, p, "") }

// PlanFile prints a plan file.
func (m Markdown) PlanFile(out io.Writer, f wire.PlanFile) error {
	return m.write(out, f.Plan, fmt.Sprintf("Made %s by %s, good until %s; it approves %s.\n\n",
		moment(f.MadeAt), code(f.MadeBy), moment(f.ExpiresAt), count(len(f.Actions()), "action")))
}

func (m Markdown) write(out io.Writer, p *plan.Plan, made string) error {
	s := p.Summarise()
	done := s.Finished() && s.Deferred == 0
	head := fmt.Sprintf("### macfleet plan: %s: %s\n\n%s", ownerTitle(p), tallyOf(p), made)
	if p.ClusterID != nil {
		head += fmt.Sprintf("Cluster: %s, uid %s.\n\n", code(p.ClusterID.Name()), code(p.ClusterID.UID))
	}
	if text := limit(p.Coverage()); text != "" {
		head += cellEscapes.Replace(printable(text)) + "\n\n"
	}
	head += markdownWhatIf(p)
	end := fmt.Sprintf("**%s**\n", planLine(p))
	if done {
		end = noChanges(p, s) + "\n"
	}
	left := int(m) - len(head) - len(end) - len(leftOut(99_999, 99_999))
	table, rows := planTable(p, left)
	rollout := markdownRollout(p)
	if left -= len(table); len(rollout) > left {
		rollout = ""
	}
	left -= len(rollout)
	full, lines := "", 0
	if !done || s.Orphans > 0 {
		full, lines = fullMarkdown(p, left)
	}
	if _, err := io.WriteString(out, head+table+rollout+end+full+leftOut(rows, lines)); err != nil {
		return fmt.Errorf("write Markdown: %w", err)
	}
	return nil
}

// leftOut says how much of a plan is not shown.
func leftOut(rows, lines int) string {
	what := listed(" and ", given(rows > 0, "%s of the table", count(rows, "row")), given(lines > 0, "%s of the details", count(lines, "line")))
	return given(what != "", "\n_Not shown, because the size is limited: %s. `macfleet plan --full` shows everything._\n", what)
}

// planTable is the rows of the short plan as a table of at most room bytes, and how many rows are left out.
func planTable(p *plan.Plan, room int) (table string, rest int) {
	rows := foldFindings(findingsOf(p, nil))
	if len(rows) == 0 {
		return "", 0
	}
	const head = "| | hosts | what | fix |\n| --- | --- | --- | --- |\n"
	var b strings.Builder
	b.WriteString(head)
	n := namesOf(p)
	for i, g := range rows {
		who := span(cmp.Or(n.label(g), clusterName)) + given(n.list(g) != "", " %s", cell(n.list(g)))
		what := cell(listed(": ", g.what, g.text)) + given(len(g.codes) > 0, " %s", joined(g.codes, span))
		row := fmt.Sprintf("| %s | %s | %s | %s |\n", g.category, who, what, fixCell(n.fix(g)))
		if b.Len()+len(row)+1 > room {
			rest = len(rows) - i
			break
		}
		b.WriteString(row)
	}
	if rest == len(rows) {
		return "", rest
	}
	return b.String() + "\n", rest
}

// fixCell writes a fix into a table: a command as it is copied, and words as words.
func fixCell(fix string) string {
	for _, program := range []string{"macfleet ", "kubectl ", "ssh ", "sudo "} {
		if strings.HasPrefix(fix, program) && !strings.ContainsAny(fix, ";,()") {
			return span(fix)
		}
	}
	return cellEscapes.Replace(printable(fix))
}

// markdownRollout is the order of a rollout and what it costs, an item each.
func markdownRollout(p *plan.Plan) string {
	var b strings.Builder
	for _, r := range rolloutRows(p) {
		fmt.Fprintf(&b, "- %s: %s\n", listed(" ", rolloutTitle(p, r), r[0]), cellEscapes.Replace(printable(r[1])))
	}
	return b.String() + given(b.Len() > 0, "\n")
}

// fullMarkdown is every host, step and field of a plan in at most room bytes, folded away, and how many lines of it are left out.
func fullMarkdown(p *plan.Plan, room int) (text string, rest int) {
	var b strings.Builder
	NewText(&b, 0, false).fullPlan(p)
	body := strings.Trim(b.String(), "\n") + "\n"
	fence := "```"
	for strings.Contains(body, fence) { // a line of the body would end it
		fence += "`"
	}
	before := "\n<details><summary>Every host, step and field</summary>\n\n" + fence + "text\n"
	after := fence + "\n\n</details>\n"
	room -= len(before) + len(after)
	if len(body) > room {
		end := strings.LastIndexByte(body[:max(0, room)], '\n') + 1
		body, rest = body[:end], strings.Count(body[end:], "\n")
	}
	if body == "" {
		return "", rest
	}
	return before + body + after, rest
}

// code returns a text as it is, without markup and without a mention of a user.
func code(text string) string { return "<code>" + html.EscapeString(printable(text)) + "</code>" }
