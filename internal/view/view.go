// Package view shows plans, runs and faults to people and programs. Nothing
// else prints.
package view

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/lipgloss"
	"github.com/muesli/termenv"
)

// Text writes for people.
type Text struct {
	out   io.Writer
	width int // columns; 0 = no limit
	// The few ways in which text differs. Without colour all are plain.
	signs         map[string]lipgloss.Style
	strong, faint lipgloss.Style
	ascii         bool                     // nothing but ASCII is shown
	github        bool                     // GitHub Actions folds groups of lines
	repeat        func(text string) string // writes the reader's own flags into commands; nil: there are none
}

// ASCII lets the text do without any other character.
func (t *Text) ASCII() { t.ascii = true }

// GitHub lets parts of the text be groups that GitHub Actions folds.
func (t *Text) GitHub() { t.github = true }

// Group prints something as a group with a title, where the reader knows groups.
func (t *Text) Group(title string, show func()) {
	if t.github {
		fmt.Fprintln(t.out, "::group::"+printable(title))
		defer fmt.Fprintln(t.out, "::endgroup::")
	}
	show()
}

var toASCII = strings.NewReplacer("→", "->", "…", "...", "·", "-", "—", "-", markDone, "+", markFailed, "x", markAtWork, "*")

// plain is a text with the characters that can be shown, and with commands that can be pasted.
func (t *Text) plain(text string) string {
	text = t.pasteable(text)
	if t.ascii {
		return toASCII.Replace(text)
	}
	return text
}

// NewText returns a writer of text for people. Width 0 is a pipe, where no line is broken.
func NewText(out io.Writer, width int, colour bool) *Text {
	profile := termenv.Ascii
	if colour {
		profile = termenv.ANSI
	}
	r := lipgloss.NewRenderer(out, termenv.WithProfile(profile))
	r.SetColorProfile(profile)
	fg := func(c string) lipgloss.Style { return r.NewStyle().Foreground(lipgloss.Color(c)) }
	return &Text{out: out, width: width, strong: r.NewStyle().Bold(true), faint: r.NewStyle().Faint(true),
		signs: map[string]lipgloss.Style{signOK: fg("2"), signUpdate: fg("3"), "-": fg("1"), "-/+": fg("1"), signRefused: fg("1"), signUnknown: fg("5"), signDrift: fg("6"),
			markDone: fg("2"), markFailed: fg("1"), markAtWork: fg("6")}}
}

// The symbols of what is well and of what changes, and those besides the actions' own.
const (
	signOK      = "+"
	signUpdate  = "~"
	signUnknown = "?" // the host could not be read
	signDrift   = "!" // it changed outside macfleet
	signRefused = "x" // blocked
)

// The marks of hosts in a run.
const (
	markDone    = "✓"
	markFailed  = "✗"
	markAtWork  = "●"
	markWaiting = "·"
)

// line prints text behind a sign.
func (t *Text) line(indent int, sign, text string) { t.styled(indent, sign, printable(text)) }

// styled prints text that may hold our own escape codes.
func (t *Text) styled(indent int, sign, text string) {
	lead := strings.Repeat(" ", indent)
	if sign != "" {
		lead += t.signs[sign].Render(sign) + " "
	}
	t.behind(lead, text)
}

// behind prints text behind a lead. What is wrapped begins under the text.
func (t *Text) behind(lead, text string) {
	lead, text = t.plain(lead), t.plain(text)
	hang := lipgloss.Width(lead)
	for _, part := range wrap(text, t.width-hang) {
		if word := strings.TrimSpace(lead); word != "" && t.width > 0 && len(word) > len(signOK) && hang+lipgloss.Width(part) > t.width {
			fmt.Fprintln(t.out, strings.TrimRight(lead, " ")) // a command that is too wide gets a separate line
			lead = strings.Repeat(" ", hang)
		}
		fmt.Fprintln(t.out, strings.TrimRight(lead+part, " "))
		lead = strings.Repeat(" ", hang)
	}
}

// Say prints a line, wrapped.
func (t *Text) Say(text string) { t.line(0, "", text) }

func (t *Text) sayf(format string, args ...any) { t.Say(fmt.Sprintf(format, args...)) }

// pair prints a word in a column and its text, if there is any.
func (t *Text) pair(indent, column int, word, text string) {
	if text != "" {
		t.line(indent, fmt.Sprintf("%-*s", column, word), text)
	}
}

func (t *Text) heading(text string) { t.styled(0, "", t.strong.Render(printable(text))) }

// section prints a title below an empty line.
func (t *Text) section(title string) {
	t.blank()
	t.heading(title)
}

// Print prints plain text as it is.
func (t *Text) Print(text string) { fmt.Fprint(t.out, text) }

// Error shows an error that ended a command.
func (t *Text) Error(err error) {
	first, rest, _ := strings.Cut(strings.TrimSpace(err.Error()), "\n")
	t.styled(0, "", t.signs[signRefused].Render("Error:")+" "+printable(first))
	for line := range strings.Lines(rest) {
		t.line(2, "", strings.TrimSpace(line))
	}
}

// Warn shows what does not end the command.
func (t *Text) Warn(text string) {
	t.styled(0, "", t.signs[signUpdate].Render("Warning:")+" "+printable(text))
}

// printable makes invisible characters visible, such as control characters and bytes that
// are no UTF-8: what a host says must neither move the cursor nor rearrange the line.
func printable(text string) string {
	hidden := func(r rune) bool { return !unicode.IsPrint(r) }
	if utf8.ValidString(text) && !strings.ContainsFunc(text, hidden) {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		piece := text[:size]
		if hidden(r) || r == utf8.RuneError && size == 1 {
			piece = strings.Trim(strconv.Quote(piece), `"`)
		}
		b.WriteString(piece)
		text = text[size:]
	}
	return b.String()
}

func (t *Text) blank() { fmt.Fprintln(t.out) }

// count returns "1 host" or "3 hosts".
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// some says how many there are of something, where there are any.
func some(n int, what string) string { return given(n > 0, "%d %s", n, what) }

// listed joins the parts that say something.
func listed(sep string, parts ...string) string {
	return strings.Join(nonempty(parts...), sep)
}

// nonempty returns the texts that say something.
func nonempty(all ...string) []string {
	return slices.DeleteFunc(all, func(text string) bool { return text == "" })
}

// given says something where it is so.
func given(so bool, format string, args ...any) string {
	if !so {
		return ""
	}
	return fmt.Sprintf(format, args...)
}

// firstOf joins at most three names.
func firstOf(names []string) string {
	if len(names) > 3 {
		return strings.Join(names[:3], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}

// moment writes a time for a person, in a form that is the same everywhere.
func moment(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 MST") }

// mapped returns what f makes of each.
func mapped[T, U any](all []T, f func(T) U) []U {
	var out []U
	for _, x := range all {
		out = append(out, f(x))
	}
	return out
}

func joined[T any](all []T, text func(T) string) string { return strings.Join(mapped(all, text), ", ") }

func words[S ~string](all []S) []string { return mapped(all, func(s S) string { return string(s) }) }

// by finds things by a key of theirs.
func by[T any, K comparable](all []T, key func(T) K) map[K][]T {
	out := make(map[K][]T)
	for _, x := range all {
		out[key(x)] = append(out[key(x)], x)
	}
	return out
}

// grouped puts together what has the same key, at the place of the first.
func grouped[T any, K comparable](all []T, key func(T) K) [][]T {
	var out [][]T
	at := make(map[K]int)
	for _, x := range all {
		k := key(x)
		if _, ok := at[k]; !ok {
			at[k] = len(out)
			out = append(out, nil)
		}
		out[at[k]] = append(out[at[k]], x)
	}
	return out
}

func ones(is bool) int {
	if is {
		return 1
	}
	return 0
}
