package view

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/charmbracelet/lipgloss"

	"github.com/macfleet/macfleet/plan"
)

// Frames shows a text on a terminal that takes the place of the one before: what is drawn never
// leaves the screen, so nothing of it stays in the scrollback.
type Frames struct {
	out   io.Writer
	size  func() (columns, rows int)
	drawn int // lines on the screen
}

// NewFrames starts below what is on the screen.
func NewFrames(out io.Writer, size func() (columns, rows int)) *Frames {
	return &Frames{out: out, size: size}
}

// Draw replaces the frame, in one write. show writes for as many columns as the terminal has.
func (f *Frames) Draw(show func(out io.Writer, width int)) {
	columns, rows := f.size()
	var frame, b strings.Builder
	show(&frame, columns)
	lines := strings.Split(strings.TrimRight(frame.String(), "\n"), "\n")
	if most := rows - 1; rows > 1 && len(lines) > most {
		left := len(lines) - most + 1
		lines = append(lines[:most-1], fmt.Sprintf("… %d more lines: enlarge the terminal, or select hosts with --on", left))
	}
	if f.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", f.drawn)
	}
	for _, line := range lines {
		// Erased line by line: a terminal may move what it erases from the top of the screen into the scrollback.
		b.WriteString("\r\x1b[K" + lipgloss.NewStyle().MaxWidth(max(columns, 0)).Render(line) + "\n")
	}
	if f.drawn > len(lines) {
		b.WriteString("\x1b[J")
	}
	f.drawn = len(lines)
	_, _ = io.WriteString(f.out, b.String())
}

// HostChanges prints the rows of hosts that changed since it was called before, behind the time.
type HostChanges struct{ before map[string]string }

// Print prints all rows the first time.
func (c *HostChanges) Print(t *Text, p *plan.Plan, o HostsOptions) {
	rows := o.rows(p)
	table := t.hostTable(p, rows, p.Names(), o)
	at := o.Now.UTC().Format(time.RFC3339)
	out := [][]string{}
	if c.before == nil && !o.Bare {
		out = append(out, append([]string{"TIME"}, table[0]...))
	}
	now := make(map[string]string)
	for i, r := range rows {
		cells := append([]string{at}, table[i+1]...)
		now[r.Name] = strings.Join(table[i+1], "\x00")
		if now[r.Name] != c.before[r.Name] {
			out = append(out, cells)
		}
	}
	for name := range c.before {
		if _, there := now[name]; !there {
			out = append(out, []string{at, name, "is no longer a member"})
		}
	}
	c.before = now
	t.columns(0, out)
}
