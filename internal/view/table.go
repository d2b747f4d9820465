package view

import (
	"fmt"
	"slices"
	"strings"

	"github.com/charmbracelet/lipgloss"
)

// lastColumn is how many columns of the terminal the last cell of a row needs at least, where its text is as wide.
const lastColumn = 24

// narrowest is how narrow the last column may become before rows are wrapped as a whole.
const narrowest = 12

// Table prints rows in columns, the first of them the heads. Where they do not fit, the columns with the heads of drop go, in
// that order; then the last column is wrapped below itself.
func (t *Text) Table(rows [][]string, drop ...string) {
	for _, head := range drop {
		if t.fits(0, rows) {
			break
		}
		rows = without(rows, slices.Index(rows[0], head))
	}
	t.printRows(0, rows, true)
}

// without returns rows without one column; -1: with all.
func without(rows [][]string, column int) [][]string {
	if column < 0 {
		return rows
	}
	return mapped(rows, func(r []string) []string { return slices.Delete(slices.Clone(r), column, column+1) })
}

// columns prints rows in columns without a head.
func (t *Text) columns(indent int, rows [][]string) { t.printRows(indent, rows, false) }

// fits reports whether rows fit, the last column at least in part.
func (t *Text) fits(indent int, rows [][]string) bool {
	widths := columnWidths(rows)
	if t.width == 0 || len(widths) == 0 {
		return true
	}
	lead, last := indent+before(widths), widths[len(widths)-1]
	return lead+min(last, lastColumn) <= t.width
}

// before returns the width of the columns before the last.
func before(widths []int) int {
	lead := 0
	for _, w := range widths[:len(widths)-1] {
		lead += w + 2
	}
	return lead
}

// printRows prints rows in columns. What is too wide for its last column is wrapped there, or, where there is no room, as a whole.
func (t *Text) printRows(indent int, rows [][]string, head bool) {
	rows = mapped(rows, func(r []string) []string { return mapped(r, t.plain) })
	widths := columnWidths(rows)
	fits := t.width == 0 || len(widths) == 0 || indent+before(widths)+narrowest <= t.width
	for i, r := range rows {
		var lead strings.Builder
		lead.WriteString(strings.Repeat(" ", indent))
		for column, c := range r[:max(len(r)-1, 0)] {
			c = printable(c)
			lead.WriteString(c + strings.Repeat(" ", widths[column]-lipgloss.Width(c)+2))
		}
		last := printable(strings.Join(r[max(len(r)-1, 0):], ""))
		switch {
		case head && i == 0:
			for _, line := range wrapUnless(fits, strings.TrimRight(lead.String()+last, " "), t.width) {
				fmt.Fprintln(t.out, t.faint.Render(line))
			}
		case fits:
			t.behind(lead.String(), last)
		default:
			t.behind(strings.Repeat(" ", indent), strings.TrimSpace(lead.String()+last))
		}
	}
}

// wrapUnless wraps what does not fit.
func wrapUnless(fits bool, text string, width int) []string {
	if fits {
		width = 0
	}
	return wrap(text, width)
}

// columnWidths returns how wide the widest cell of each column is.
func columnWidths(rows [][]string) []int {
	var widths []int
	for _, r := range rows {
		for i, c := range r {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], lipgloss.Width(printable(c)))
		}
	}
	return widths
}
