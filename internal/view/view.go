// Package view shows plans, runs and faults to people and programs. Nothing
// else prints.
package view

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/lipgloss"
	"github.com/muesli/termenv"
)

// Text writes for people.
type Text struct {
	out    io.Writer
	width  int // columns; 0 = no limit
	styles styles
}

// styles are the few ways in which text differs. Without colour all are plain.
type styles struct {
	create, update, remove, unknown, drift, strong, faint lipgloss.Style
}

// NewText returns a writer of text for people. Width 0 stands for a pipe, where
// no line is broken.
func NewText(out io.Writer, width int, colour bool) *Text {
	profile := termenv.Ascii
	if colour {
		profile = termenv.ANSI
	}
	r := lipgloss.NewRenderer(out, termenv.WithProfile(profile))
	r.SetColorProfile(profile)
	fg := func(c string) lipgloss.Style { return r.NewStyle().Foreground(lipgloss.Color(c)) }
	return &Text{out: out, width: width, styles: styles{
		create: fg("2"), update: fg("3"), remove: fg("1"), unknown: fg("5"), drift: fg("6"),
		strong: r.NewStyle().Bold(true), faint: r.NewStyle().Faint(true)}}
}

// sign renders a symbol in its colour.
func (t *Text) sign(s string) string {
	switch s {
	case "+":
		return t.styles.create.Render(s)
	case "~":
		return t.styles.update.Render(s)
	case "-", "-/+":
		return t.styles.remove.Render(s)
	case signUnknown:
		return t.styles.unknown.Render(s)
	case signDrift:
		return t.styles.drift.Render(s)
	case signRefused:
		return t.styles.remove.Render(s)
	}
	return s
}

// The symbols beside those of the actions.
const (
	signUnknown = "?" // the host could not be asked
	signDrift   = "!" // it moved behind our back
	signRefused = "x" // it is wanted and is not done
)

// line prints text behind a head, wrapped so that all further lines begin under
// the text.
func (t *Text) line(indent int, sign, text string) {
	t.styled(indent, sign, printable(text))
}

// styled prints text that may hold our own escape codes.
func (t *Text) styled(indent int, sign, text string) {
	lead := strings.Repeat(" ", indent)
	if sign != "" {
		lead += sign + " "
	}
	hang := len(lead)
	for i, part := range wrap(text, t.width-hang) {
		if i == 0 {
			head := strings.Repeat(" ", indent)
			if sign != "" {
				head += t.sign(sign) + " "
			}
			fmt.Fprintln(t.out, strings.TrimRight(head+part, " "))
			continue
		}
		fmt.Fprintln(t.out, strings.Repeat(" ", hang)+part)
	}
}

// printable makes visible what is not to be seen: control characters, those that
// turn the direction of writing or have no width, spaces other than the ordinary
// one, and bytes that are no UTF-8. What a host says must neither move the cursor
// of whoever looks at it nor rearrange the line.
func printable(text string) string {
	hidden := func(r rune) bool { return !unicode.IsPrint(r) }
	if utf8.ValidString(text) && !strings.ContainsFunc(text, hidden) {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[0])
		case hidden(r):
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		default:
			b.WriteRune(r)
		}
		text = text[size:]
	}
	return b.String()
}

// blank prints an empty line.
func (t *Text) blank() { fmt.Fprintln(t.out) }

// wrap breaks text at spaces into lines of at most width columns; a word that
// is wider is cut. A width of 0 or less breaks nothing.
func wrap(text string, width int) []string {
	if width <= 0 {
		return []string{text}
	}
	width = max(width, 10)
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && lipgloss.Width(line)+1+lipgloss.Width(word) <= width {
			line += " " + word
			continue
		}
		if line != "" {
			lines = append(lines, line)
		}
		for lipgloss.Width(word) > width {
			cut := []rune(word)
			lines = append(lines, string(cut[:width]))
			word = string(cut[width:])
		}
		line = word
	}
	return append(lines, line)
}

// count returns "1 host" or "3 hosts".
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
