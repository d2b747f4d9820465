package view

import (
	"cmp"
	"fmt"
	"html"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/drift"
	"github.com/macfleet/macfleet/internal/wire"
	"github.com/macfleet/macfleet/plan"
)

// What fits where it is shown. LeastMarkdown is the smallest limit of a Markdown document:
// its head must fit, and what says that the rest did not.
const (
	LeastMarkdown = 2000   // bytes
	mostNotes     = 10     // of one level, from a step of a job
	mostTitles    = 5      // parts of a title
	mostCell      = 200    // characters of a text in a table
	mostMarkdown  = 60_000 // bytes of a drift: an issue takes 65,536 characters, and who posts it adds some
	tail          = 200    // of these, for saying what was left out
	cutNote       = "\n_Cut here: the rest is too long._\n"
)

// note is a note of GitHub's on a line of a file; one without a file has no place.
type note struct {
	level string // error, warning, notice
	file  string
	line  int
	text  string
}

// writeNotes prints notes, level by level. Of more than GitHub takes the last one says how
// many there are, in the words of more.
func writeNotes(out io.Writer, all []note, more string) error {
	var b strings.Builder
	for _, level := range []string{"error", "warning", "notice"} {
		of := slices.DeleteFunc(slices.Clone(all), func(n note) bool { return n.level != level })
		for i, n := range of[:min(len(of), mostNotes)] {
			if rest := len(of) - mostNotes; i == mostNotes-1 && rest > 0 {
				n.text += fmt.Sprintf(more, rest)
			}
			place := given(n.file != "", "file=%s,line=%d,", property.Replace(printable(n.file)), n.line)
			fmt.Fprintf(&b, "::%s %stitle=macfleet::%s\n", level, place, commandText.Replace(printable(n.text)))
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// What would end a text's place in a command to GitHub's runner.
var (
	commandText = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	property    = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

// GitHubFaults prints the faults of a configuration as notes of GitHub's on their lines.
// dir is the configuration's folder as the repository has it.
func GitHubFaults(out io.Writer, diags hcl.Diagnostics, dir string) error {
	return writeNotes(out, mapped(diags, func(d *hcl.Diagnostic) note {
		n := note{level: severity(d), text: d.Summary + ": " + d.Detail}
		if r := d.Subject; r != nil {
			n.file, n.line = path.Join(dir, r.Filename), r.Start.Line
		}
		return n
	}), " And %d more, which macfleet validate lists.")
}

// GitHubLayout prints notes of GitHub's on files that fmt would change, named as the
// repository has them.
func GitHubLayout(out io.Writer, names []string) error {
	return writeNotes(out, mapped(names, func(name string) note {
		return note{"error", name, 1, "It is not laid out in the canonical way; run macfleet fmt."}
	}), " And %d more files.")
}

// GitHubAnnotations prints what a plan would do as notes of GitHub's on the lines of
// the configuration that want it: the value's own, else its block's. What is the same of
// several hosts is one note; a value that nobody wrote has no line, and none.
func GitHubAnnotations(out io.Writer, p *plan.Plan, cfg *fleet.Config, dir string) error {
	var all []note
	hosts := make(map[note][]string)
	for _, a := range p.Actions {
		for _, n := range annotations(a, cfg) {
			if hosts[n] == nil {
				all = append(all, n)
			}
			hosts[n] = append(hosts[n], a.Host)
		}
	}
	slices.SortStableFunc(all, func(a, b note) int { return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.line, b.line)) })
	missing := mapped(uncovered(p.Coverage()), func(text string) note { return note{level: "warning", text: text} })
	return writeNotes(out, append(missing, mapped(all, func(n note) note {
		names := hosts[n]
		who := strings.Join(names[:min(len(names), 3)], ", ") + given(len(names) > 3, ", and %d more", len(names)-3)
		return note{n.level, path.Join(dir, n.file), n.line, n.text + ": " + who}
	})...), "; and %d more such notes, which stand in the plan alone")
}

// annotations returns the notes of one action, one for each line that wants something of it.
func annotations(a plan.Action, cfg *fleet.Config) []note {
	sources := cfg.SourcesOf(a.Host, a.Fleet, a.Group)
	level, behind := "notice", given(a.Disruption > plan.NoDisruption, " (%s)", a.Disruption)
	if a.Refusal != nil {
		behind = "; not done: " + a.Refusal.Code.String()
	} else if a.Deferral != nil {
		behind = "; deferred to a later run: " + a.Deferral.Code.String()
	}
	if a.Refusal != nil || a.Disruption > plan.Restart {
		level = "warning"
	}
	var out []note
	add := func(at fleet.Source, what string) {
		if at.File != "" {
			out = append(out, note{level, at.File, at.Line, what + behind})
		}
	}
	switch {
	case a.Kind.OfStep():
		own := func(value string) string { return cmp.Or(strings.ReplaceAll(value, a.Host, ownName), "not set") }
		block := sources.Of(string(a.Step))
		for _, f := range a.Fields {
			at := sources.Of(string(a.Step) + "." + strings.ReplaceAll(f.Name, " ", "_"))
			if at.File == "" {
				at = block
			}
			add(at, fmt.Sprintf("%s: %s: %s → %s", a.Step, f.Name, own(f.Before), own(f.After)))
		}
		if len(a.Fields) == 0 {
			add(block, fmt.Sprintf("%s (%s)", a.Step, a.Reason.Code))
		}
	case a.Kind == plan.ClaimServer, a.Kind == plan.ReleaseServer, a.Kind == plan.ReplaceServer:
		add(sources.Of("type"), fmt.Sprintf("%s (%s)", label(a), a.Reason.Code))
	}
	return out
}

// Markdown writes plans for a comment on a change, in so many bytes.
type Markdown int

// NewMarkdown returns a writer of documents of at most so many bytes.
func NewMarkdown(limit int) (Markdown, error) {
	if limit < LeastMarkdown {
		return 0, fmt.Errorf("a limit of %d bytes is too small for a document; it must be at least %d", limit, LeastMarkdown)
	}
	return Markdown(limit), nil
}

// Plan prints a plan: a head that stands for itself, and below it the hosts, folded away.
// What does not fit is counted; what a host or a file says is in fences that it cannot end.
func (m Markdown) Plan(out io.Writer, p *plan.Plan) error { return m.write(out, p, "") }

// PlanFile prints a plan file.
func (m Markdown) PlanFile(out io.Writer, f wire.PlanFile) error {
	return m.write(out, f.Plan, fmt.Sprintf("Made %s by %s, good until %s; it approves %s.\n\n",
		moment(f.MadeAt), code(f.MadeBy), moment(f.ExpiresAt), count(len(f.Actions()), "action")))
}

func (m Markdown) write(out io.Writer, p *plan.Plan, made string) error {
	s := p.Summarise()
	var b strings.Builder
	fmt.Fprintf(&b, "### macfleet plan: %s\n\n%s", ownerTitle(p), made)
	if p.ClusterID != nil {
		fmt.Fprintf(&b, "Cluster: %s, uid %s.\n\n", code(p.ClusterID.Name()), code(p.ClusterID.UID))
	}
	for _, text := range uncovered(p.Coverage()) {
		fmt.Fprintf(&b, "- %s\n", text)
	}
	if len(uncovered(p.Coverage())) > 0 {
		b.WriteString("\n")
	}
	if s.Finished() && s.Deferred == 0 {
		fmt.Fprintf(&b, "%s\n", noChanges(p, s))
	} else {
		b.WriteString(strings.TrimSpace("**"+planLine(p)+"** "+cost(p)) + "\n")
		for _, line := range inThisRun(p) {
			fmt.Fprintf(&b, "\n%s\n", line)
		}
	}
	folded := markdownParts(p)
	rest := func(n int) string {
		return fmt.Sprintf("\n_Not shown, as this is as long as it may be: %s of the plan. `macfleet plan` shows all._\n", count(n, "part"))
	}
	room := int(m) - b.Len() - len(rest(len(folded)))
	for i, f := range folded {
		text := f.text(room)
		if text == "" {
			b.WriteString(rest(len(folded) - i))
			break
		}
		room -= len(text)
		b.WriteString(text)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// part is what is folded away together.
type part struct {
	heading string // above it; empty: that of the part before
	title   string
	body    string // lines
}

// text is a part in at most room bytes: whole, cut between two lines, or "".
func (f part) text(room int) string {
	body, note := f.body, ""
	for {
		fence := "```"
		for strings.Contains(body, fence) { // a line of the body would end it
			fence += "`"
		}
		out := given(f.heading != "", "\n#### %s\n", f.heading) +
			fmt.Sprintf("\n<details><summary>%s</summary>\n\n%stext\n%s%s\n%s\n</details>\n", code(f.title), fence, body, fence, note)
		if len(out) <= room {
			return out
		}
		over := len(out) - room
		end := strings.LastIndexByte(body[:max(0, len(body)-over-len(cutNote))], '\n')
		if end <= 0 || note != "" {
			return ""
		}
		body, note = body[:end+1], cutNote
	}
}

// code is a text that stands for nothing but itself, and calls nobody by name.
func code(text string) string { return "<code>" + html.EscapeString(printable(text)) + "</code>" }

func markdownParts(p *plan.Plan) []part {
	var out []part
	add := func(heading, title string, print func(*Text)) {
		var b strings.Builder
		print(NewText(&b, 0, false))
		if body := strings.Trim(b.String(), "\n"); body != "" {
			out = append(out, part{heading, title, body + "\n"})
		}
	}
	add("", "Cluster", func(t *Text) { t.cluster(p, objectRows) })
	actions := byHost(p)
	for _, f := range p.Fleets {
		heading := "Fleet " + f
		for _, b := range fold(fleetBlocks(p, f, actions)) {
			add(heading, title(b), func(t *Text) { t.block(b) })
			heading = ""
		}
	}
	add("", "Orphaned members", func(t *Text) { t.orphans(p, anyOrphan) })
	add("", "In doubt", func(t *Text) { t.doubts(p) })
	add("", "Not taken from the pool", func(t *Text) { t.rejected(p) })
	add("", "Notes", func(t *Text) {
		t.held(p, true)
		t.notes(p)
	})
	return out
}

// title says in short what a block holds.
func title(b block) string {
	who := count(len(b.hosts), "host")
	if len(b.hosts) == 1 {
		who, _, _ = strings.Cut(b.hosts[0], "  ")
	}
	var what []string
	for _, r := range b.body {
		if r.depth > 0 || len(what) > mostTitles {
			continue
		}
		label, _, _ := strings.Cut(strings.ReplaceAll(r.text, ": ", " ("), " (")
		what = append(what, strings.TrimSpace(r.sign+" "+label))
	}
	if len(what) > mostTitles {
		what[mostTitles] = "…"
	}
	return b.sign + " " + listed(": ", who, strings.Join(what, ", "))
}

// WriteDriftMarkdown prints a drift as the text of one issue, whose title is the first line.
func WriteDriftMarkdown(out io.Writer, r drift.Report) error {
	m := &markdown{}
	m.line("# %s\n\n<!-- macfleet-drift fingerprint=%s complete=%t -->", driftTitle(r), r.Fingerprint, r.Complete)
	if r.Blind != "" {
		m.line("\n**Nothing could be compared**: %s", cell(r.Blind))
	} else if !r.Complete {
		m.line("\n**Not everything could be compared**, and drift may be unseen there:")
	}
	m.uncovered(r)
	m.items("", r.Items)
	if r.Since != nil {
		m.items("Not known now, as it was before", r.Since.Kept)
		m.items("Recovered", r.Since.Recovered)
	}
	m.table("Not compared", "host | step | code | why", mapped(r.Unseen, func(u drift.Unseen) []string {
		return []string{span(u.Host), span(u.Step), span(u.Code.String()), cell(u.Why)}
	}))
	ignored := mapped(r.Ignored, func(i drift.Ignored) []string {
		return []string{span(i.Host), span(i.Step), span(i.Code.String()), cell(fmt.Sprintf("%s, %s: %s", i.Until, i.Owner, i.Reason))}
	})
	m.table("Ignored for now; `macfleet apply` mends it all the same", "host | step | code | until, by whom", ignored)
	m.table("Notices", "code | what", mapped(r.Remarks, func(x drift.Remark) []string {
		return []string{span(x.Code.String()), cell(x.Text)}
	}))
	if r.Pending > 0 {
		m.line("\nPending configuration, which is no drift: %s. `macfleet plan` shows them.", count(r.Pending, "difference"))
	}
	if _, err := io.WriteString(out, m.out.String()); err != nil {
		return fmt.Errorf("write Markdown: %w", err)
	}
	return nil
}

func driftTitle(r drift.Report) string {
	of := printable(r.Owner.String())
	hosts := grouped(r.Items, func(i drift.Item) string { return i.Host })
	switch worst, any := r.Worst(); {
	case any:
		return fmt.Sprintf("Drift of %s: %s on %s, %s", of, count(len(r.Items), "difference"), count(len(hosts), "host"), worst)
	case r.Since != nil && len(r.Since.Kept) > 0:
		return fmt.Sprintf("Drift of %s: %s not known now", of, count(len(r.Since.Kept), "difference"))
	case !r.Complete:
		return fmt.Sprintf("Drift of %s: not everything could be compared", of)
	}
	c := r.Coverage
	return fmt.Sprintf("No drift of %s", of) + given(c.LeftOut > 0, " on %d of %s", c.Hosts, count(c.LeftOut+c.Hosts, "host")) +
		given(len(c.Steps) > 0, " in %s", strings.Join(words(c.Steps), ", "))
}

// uncovered lists what a drift does not cover.
func (m *markdown) uncovered(r drift.Report) {
	texts := uncovered(r.Coverage)
	if steps := unseenSteps(r); steps != "" {
		texts = append(texts, steps+".")
	}
	for i, text := range texts {
		m.line("%s- %s", given(i == 0, "\n"), cell(text))
	}
}

// markdown collects lines as long as there is room.
type markdown struct {
	out  strings.Builder
	full bool
}

// line adds a line where there is room; after the first that is left out there is none.
func (m *markdown) line(format string, args ...any) bool {
	text := fmt.Sprintf(format, args...) + "\n"
	m.full = m.full || m.out.Len()+len(text) > mostMarkdown-tail
	if !m.full {
		m.out.WriteString(text)
	}
	return !m.full
}

func (m *markdown) items(title string, items []drift.Item) {
	m.table(title, "severity | host | step | code | what | fingerprint", mapped(items, func(i drift.Item) []string {
		moved := mapped(i.Fields, func(f drift.Field) string { return movedRow(f, f.Before, f.After).text })
		what := cmp.Or(strings.Join(moved, "; "), i.Text)
		if i.Step == string(plan.ReplaceNode) || i.Step == "server" {
			what = cmp.Or(i.Text, what) // it says who, and since when
		}
		what += given(i.Refused != (plan.Code{}), "; apply does not mend it: %s", i.Refused)
		return []string{string(i.Severity), span(i.Host), span(i.Step), span(i.Code.String()), cell(what), span(i.Fingerprint)}
	}))
}

// table adds a table with as many rows as fit, and says how many did not.
func (m *markdown) table(title, head string, rows [][]string) {
	title, line := given(title != "", "\n**%s**\n", title), strings.Repeat(" --- |", strings.Count(head, "|")+1)
	if len(rows) == 0 || !m.line("%s\n| %s |\n|%s", title, head, line) {
		return
	}
	for i, row := range rows {
		if !m.line("| %s |", strings.Join(row, " | ")) {
			const more = "\nThe text is too long: %d more rows, and what follows, are left out. `macfleet drift` shows all.\n"
			fmt.Fprintf(&m.out, more, len(rows)-i)
			return
		}
	}
}

// span writes a name so that nothing in it is read as Markdown.
func span(text string) string {
	text = strings.NewReplacer("`", "'", "|", `\|`).Replace(printable(text))
	if text == "" {
		return " "
	}
	return "`" + text + "`"
}

// cell writes text that a host or a provider said into a table: it starts no
// markup, calls nobody by name, links to no issue and ends no comment.
func cell(text string) string {
	text = printable(text)
	if runes := []rune(text); len(runes) > mostCell {
		text = string(runes[:mostCell]) + "…"
	}
	return cellEscapes.Replace(text)
}

// cellEscapes hold a word joiner, which nobody sees, where a name or an address would begin.
var cellEscapes = strings.NewReplacer("@", "@\u2060", "www.", "www\u2060.", "&", "&#38;", "<", "&#60;", ">", "&#62;",
	":", "&#58;", `\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "{", `\{`, "}", `\}`, "[", `\[`, "]", `\]`, "(", `\(`, ")", `\)`,
	"#", `\#`, "+", `\+`, "!", `\!`, "|", `\|`, "~", `\~`, "$", `\$`)
