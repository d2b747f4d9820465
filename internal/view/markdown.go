package view

import (
	"fmt"
	"html"
	"io"
	"strings"

	"github.com/macfleet/macfleet/internal/wire"
	"github.com/macfleet/macfleet/plan"
)

// LeastMarkdown is the smallest limit of a Markdown document, in bytes: its head
// must fit, and what says that the rest did not.
const LeastMarkdown = 2000

// Markdown writes plans for a comment on a change.
type Markdown struct {
	limit int // bytes
}

// NewMarkdown returns a writer of documents of at most so many bytes. The error says
// what the least is.
func NewMarkdown(limit int) (Markdown, error) {
	if limit < LeastMarkdown {
		return Markdown{}, fmt.Errorf("a limit of %d bytes is too small for a document; it must be at least %d", limit, LeastMarkdown)
	}
	return Markdown{limit}, nil
}

// Plan prints a plan: a head that stands for itself, and below it the hosts, those
// alike as one, each folded away. What does not fit is counted. What a host or a
// file says stands in fences that it cannot end.
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
	if s.Changes() == 0 && s.Complete() {
		fmt.Fprintf(&b, "%s\n", noChanges(p, s))
	} else {
		b.WriteString(strings.TrimSpace("**"+summary(s)+"** "+cost(p)) + "\n")
	}
	folded := markdownParts(p)
	rest := func(n int) string {
		return fmt.Sprintf("\n_Not shown, as this is as long as it may be: %s of the plan. `macfleet plan` shows all._\n", count(n, "part"))
	}
	room := m.limit - b.Len() - len(rest(len(folded)))
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

// text is a part in at most room bytes: whole, or cut between two lines. It is ""
// where not even a few lines fit.
func (f part) text(room int) string {
	body, note := f.body, ""
	for {
		fence := fenceFor(body)
		out := fmt.Sprintf("\n<details><summary>%s</summary>\n\n%stext\n%s%s\n%s\n</details>\n", code(f.title), fence, body, fence, note)
		if f.heading != "" {
			out = "\n#### " + f.heading + "\n" + out
		}
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

const cutNote = "\n_Cut here: the rest is too long._\n"

// fenceFor returns a fence that no line of a text ends.
func fenceFor(text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence
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
	add("", "Not taken from the pool", func(t *Text) { t.rejected(p) })
	add("", "Notes", func(t *Text) {
		t.held(p, inBlock(p))
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
	if len(what) == 0 {
		return b.sign + " " + who
	}
	return b.sign + " " + who + ": " + strings.Join(what, ", ")
}

const mostTitles = 5
