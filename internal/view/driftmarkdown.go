package view

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/macfleet/macfleet/internal/drift"
	"github.com/macfleet/macfleet/plan"
)

// mostMarkdown is how many bytes a drift has at most as Markdown: GitHub takes 65,536
// characters for the body of an issue, and who posts it adds some.
const mostMarkdown = 60_000

// mostCell is how many characters of a text stand in a table.
const mostCell = 200

// WriteDriftMarkdown prints a drift as the text of one issue: a title on the first
// line, tables, and the fingerprint in a comment that nobody sees.
func WriteDriftMarkdown(out io.Writer, r drift.Report) error {
	m := &markdown{}
	m.line("# %s", driftTitle(r))
	m.line("")
	m.line("<!-- macfleet-drift fingerprint=%s complete=%t -->", r.Fingerprint, r.Complete)
	if r.Blind != "" {
		m.line("\n**Nothing could be compared**: %s", cell(r.Blind))
	} else if !r.Complete {
		m.line("\n**Not everything could be compared**: where that is so, drift may be unseen.")
	}
	m.items("", r.Items)
	if r.Since != nil {
		m.items("Not known now, as it was before", r.Since.Kept)
		m.items("Recovered", r.Since.Recovered)
	}
	m.table("Not compared", "host | step | code | why", len(r.Unseen), func(n int) string {
		u := r.Unseen[n]
		return row4(u.Host, u.Step, u.Code.String(), u.Why)
	})
	m.table("Ignored for now; `macfleet apply` mends it all the same", "host | step | code | until, by whom", len(r.Ignored), func(n int) string {
		i := r.Ignored[n]
		return row4(i.Host, i.Step, i.Code.String(), fmt.Sprintf("%s, %s: %s", i.Until, i.Owner, i.Reason))
	})
	m.table("Notices", "code | what", len(r.Remarks), func(n int) string {
		return fmt.Sprintf("| %s | %s |", span(r.Remarks[n].Code.String()), cell(r.Remarks[n].Text))
	})
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
	hosts := make(map[string]bool)
	for _, i := range r.Items {
		hosts[i.Host] = true
	}
	switch worst, any := r.Worst(); {
	case any:
		return fmt.Sprintf("Drift of %s: %s on %s, %s", of, count(len(r.Items), "difference"), count(len(hosts), "host"), worst)
	case r.Since != nil && len(r.Since.Kept) > 0:
		return fmt.Sprintf("Drift of %s: %s not known now", of, count(len(r.Since.Kept), "difference"))
	case !r.Complete:
		return fmt.Sprintf("Drift of %s: not everything could be compared", of)
	}
	return fmt.Sprintf("No drift of %s", of)
}

// markdown collects lines as long as there is room.
type markdown struct {
	out  strings.Builder
	full bool
}

func (m *markdown) line(format string, args ...any) {
	m.fits(fmt.Sprintf(format, args...))
}

// tail is the room that is kept for saying what was left out.
const tail = 200

// fits adds a line where there is room for it.
func (m *markdown) fits(text string) bool {
	if m.full || m.out.Len()+len(text)+1 > mostMarkdown-tail {
		return false
	}
	m.out.WriteString(text + "\n")
	return true
}

func (m *markdown) items(title string, items []drift.Item) {
	m.table(title, "severity | host | step | code | what | fingerprint", len(items), func(n int) string {
		i := items[n]
		moved := mapped(i.Fields, func(f drift.Field) string { return movedRow(f, f.Before, f.After).text })
		what := cmp.Or(strings.Join(moved, "; "), i.Text)
		if i.Refused != (plan.Code{}) {
			what += "; apply does not mend it: " + i.Refused.String()
		}
		return fmt.Sprintf("| %s | %s | %s | %s | %s | %s |", i.Severity, span(i.Host), span(i.Step), span(i.Code.String()), cell(what), span(i.Fingerprint))
	})
}

// table adds a table with as many rows as fit, and says how many did not.
func (m *markdown) table(title, head string, n int, row func(int) string) {
	if n == 0 || m.full {
		return
	}
	text := "\n| " + head + " |\n|" + strings.Repeat(" --- |", strings.Count(head, "|")+1)
	if title != "" {
		text = "\n**" + title + "**\n" + text
	}
	if !m.fits(text) {
		m.full = true
		return
	}
	for i := range n {
		if !m.fits(row(i)) {
			m.full = true
			fmt.Fprintf(&m.out, "\nThe text is too long: %d more rows, and what follows, are left out. `macfleet drift` shows all.\n", n-i)
			return
		}
	}
}

func row4(a, b, c, d string) string {
	return fmt.Sprintf("| %s | %s | %s | %s |", span(a), span(b), span(c), cell(d))
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
	var b strings.Builder
	for _, r := range text {
		switch {
		case strings.ContainsRune("&<>", r):
			fmt.Fprintf(&b, "&#%d;", r)
		case strings.ContainsRune("\\`*_{}[]()#+!|~$", r):
			b.WriteString(`\` + string(r))
		case r == '@':
			b.WriteString("@\u2060") // a word joiner, which nobody sees: no name follows the sign
		case r == ':':
			b.WriteString("&#58;") // no address begins here
		default:
			b.WriteRune(r)
		}
	}
	return strings.ReplaceAll(b.String(), "www.", "www\u2060.")
}
