package view

import (
	"cmp"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/drift"
	"github.com/macfleet/macfleet/plan"
)

// How much GitHub shows.
const (
	mostNotes    = 10     // of one level, from a step of a job
	mostCell     = 200    // characters of a text in a table
	mostMarkdown = 60_000 // bytes of a drift: an issue takes 65,536 characters, and the workflow that posts it adds some
	tail         = 200    // of these, for saying what was left out
)

// note is a GitHub annotation of a line of a file, or of no file.
type note struct {
	level string // error, warning, notice
	file  string
	line  int
	text  string
}

// writeNotes prints notes, level by level. If there are more than GitHub takes, the last one says how many are left out, in the
// words of more.
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

// What would end a text in a command to GitHub's runner.
var (
	commandText = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	property    = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

// GitHubFaults prints the errors of a configuration as annotations of their lines.
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

// GitHubLayout prints annotations of files that fmt would change, named as the repository has them.
func GitHubLayout(out io.Writer, names []string) error {
	return writeNotes(out, mapped(names, func(name string) note {
		return note{"error", name, 1, "The file is not formatted. fix: macfleet fmt"}
	}), " And %d more files.")
}

// GitHubAnnotations prints what a plan would do as annotations of the lines of the configuration that want it: the line of the
// value, else of its block. What is the same of several hosts is one note; a default has no line, and no note.
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
	})...), "; and %d more notes, which only the plan shows")
}

// annotations returns the notes of one action, one for each line that wants something of it.
func annotations(a plan.Action, cfg *fleet.Config) []note {
	sources := cfg.SourcesOf(a.Host, a.Fleet, a.Group)
	level, behind := "notice", given(a.Disruption > plan.NoDisruption, " (%s)", a.Disruption)
	if a.Refusal != nil {
		behind = "; blocked: " + a.Refusal.Code.String()
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
	case a.Kind == plan.ClaimServer, a.Kind == plan.ReinstallServer, a.Kind == plan.ReplaceServer:
		add(sources.Of("type"), fmt.Sprintf("%s (%s)", label(a), a.Reason.Code))
	}
	return out
}

// WriteDriftMarkdown prints a drift report as the text of one issue; its first line is the title.
func WriteDriftMarkdown(out io.Writer, r drift.Report) error {
	m := &markdown{}
	m.line("# %s\n\n<!-- macfleet-drift fingerprint=%s complete=%t -->", driftTitle(r), r.Fingerprint, r.Complete)
	if r.Blind != "" {
		m.line("\n**Nothing was compared**: %s", cell(r.Blind))
	} else if !r.Complete {
		m.line("\n**Some of it could not be compared**, so there may be drift that is not listed:")
	}
	m.uncovered(r)
	m.items("", r.Items)
	if r.Since != nil {
		m.items("Not compared this time; reported before", r.Since.Kept)
		m.items("Recovered", r.Since.Recovered)
	}
	m.table("Not compared", "host | step | code | why", mapped(r.Unseen, func(u drift.Unseen) []string {
		return []string{span(u.Host), span(u.Step), span(u.Code.String()), cell(u.Why)}
	}))
	ignored := mapped(r.Ignored, func(i drift.Ignored) []string {
		return []string{span(i.Host), span(i.Step), span(i.Code.String()), cell(fmt.Sprintf("%s, %s: %s", i.Until, i.Owner, i.Reason))}
	})
	m.table("Ignored for now; `macfleet apply` fixes it anyway", "host | step | code | until, by whom", ignored)
	m.table("Notices", "code | what", mapped(r.Remarks, func(x drift.Remark) []string {
		return []string{span(x.Code.String()), cell(x.Text)}
	}))
	if r.Pending > 0 {
		m.line("\nConfiguration that was never applied (not drift): %s. `macfleet plan` shows them.", count(r.Pending, "difference"))
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
		return fmt.Sprintf("Drift of %s: %s reported before, not compared now", of, count(len(r.Since.Kept), "difference"))
	case !r.Complete:
		return fmt.Sprintf("Drift of %s: some of it could not be compared", of)
	}
	c := r.Coverage
	return fmt.Sprintf("No drift of %s", of) + given(c.LeftOut > 0, " on %d of %s", c.Hosts, count(c.LeftOut+c.Hosts, "host")) +
		given(len(c.Steps) > 0, " in %s", stepsText(c.Steps, c.AdoptOnly))
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

// markdown collects lines while there is room.
type markdown struct {
	out  strings.Builder
	full bool
}

// line adds a line if there is room; after the first that does not fit, nothing is added.
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
			what = cmp.Or(i.Text, what) // the text says who, and since when
		}
		what += given(i.Refused != (plan.Code{}), "; apply does not fix it: %s", i.Refused)
		return []string{string(i.Severity), span(i.Host), span(i.Step), span(i.Code.String()), cell(what), span(i.Fingerprint)}
	}))
}

// table adds a table with as many rows as fit, and says how many do not.
func (m *markdown) table(title, head string, rows [][]string) {
	title, line := given(title != "", "\n**%s**\n", title), strings.Repeat(" --- |", strings.Count(head, "|")+1)
	if len(rows) == 0 || !m.line("%s\n| %s |\n|%s", title, head, line) {
		return
	}
	for i, row := range rows {
		if !m.line("| %s |", strings.Join(row, " | ")) {
			const more = "\n_Not shown, because the size is limited: %d rows, and everything below. `macfleet drift` shows everything._\n"
			fmt.Fprintf(&m.out, more, len(rows)-i)
			return
		}
	}
}

// span writes a text so that nothing in it is read as Markdown.
func span(text string) string {
	text = strings.NewReplacer("`", "'", "|", `\|`).Replace(printable(text))
	if text == "" {
		return " "
	}
	return "`" + text + "`"
}

// cell writes text of a host or a provider into a table: it starts no markup, mentions no user, links to no issue and ends no
// comment.
func cell(text string) string {
	text = printable(text)
	if runes := []rune(text); len(runes) > mostCell {
		text = string(runes[:mostCell]) + "…"
	}
	return cellEscapes.Replace(text)
}

// cellEscapes put an invisible word joiner where a mention or an address would begin.
var cellEscapes = strings.NewReplacer("@", "@\u2060", "www.", "www\u2060.", "&", "&#38;", "<", "&#60;", ">", "&#62;",
	":", "&#58;", `\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "{", `\{`, "}", `\}`, "[", `\[`, "]", `\]`, "(", `\(`, ")", `\)`,
	"#", `\#`, "+", `\+`, "!", `\!`, "|", `\|`, "~", `\~`, "$", `\$`)
