package view

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/charmbracelet/lipgloss"

	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/plan"
)

// Live shows a run on a terminal: counters, a line for every host in progress and what the others wait for. These are redrawn in
// place and erased at the end; what stays above them is a line for every host that ended. It asks the terminal nothing, so one
// that never answers cannot hang it.
type Live struct {
	text    *Text
	size    func() (columns, rows int)
	now     func() time.Time
	verbose bool

	mu       sync.Mutex
	progress *progress
	drawn    []int // how wide the lines are that are on the terminal now
	over     bool
	quit     chan struct{}
	clock    sync.WaitGroup
}

// NewLive starts to show a run in which p is applied, nil where hosts are only asked. size returns the terminal's size, zeros
// where it is not known. verbose shows every action that begins or ends.
func NewLive(t *Text, p *plan.Plan, size func() (columns, rows int), now func() time.Time, verbose bool) *Live {
	l := &Live{text: t, size: size, now: now, verbose: verbose, progress: newProgress(p), quit: make(chan struct{})}
	l.clock.Go(func() {
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-l.quit:
				return
			case <-tick.C:
				l.stays() // the seconds have moved on
			}
		}
	})
	return l
}

// Event shows an event.
func (l *Live) Event(e engine.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var above []string
	columns, _ := l.size()
	if l.verbose && telling[e.Type] {
		above = append(above, cut(EventLine(e), columns))
	}
	if w := l.progress.event(e); w != nil {
		above = append(above, l.host(w, l.progress.columns(), columns))
	}
	l.draw(above...)
}

// Say prints a text above the live lines, where it stays.
func (l *Live) Say(text string) {
	columns, _ := l.size()
	l.stays(wrap(printable(text), columns)...)
}

func (l *Live) stays(lines ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.draw(lines...)
}

// Close erases the live lines and leaves the terminal to others. To close it again does nothing.
func (l *Live) Close() {
	l.mu.Lock()
	already := l.over
	l.over = true
	if !already {
		close(l.quit)
		l.draw()
	}
	l.mu.Unlock()
	l.clock.Wait()
}

// draw replaces the live lines, below lines that stay, in one write. A terminal that became narrower has broken those that were
// drawn before. Each row is erased by itself: tmux keeps a screen that is erased whole in its scrollback.
func (l *Live) draw(above ...string) {
	columns, rows := l.size()
	var b strings.Builder
	up := min(rowsOf(l.drawn, columns), max(rows-1, len(l.drawn)))
	if up > 0 {
		fmt.Fprintf(&b, "\r\x1b[%dA", up) // to the first of them; ^C may be behind them
	}
	var lines []string
	if !l.over {
		lines = l.lines(columns, rows)
	}
	all := append(above, lines...)
	for _, line := range all {
		b.WriteString("\x1b[K" + line + "\n") // before the line: behind a full one the cursor is still on its last column
	}
	if less := up - rowsOf(mapped(all, lipgloss.Width), columns); less > 0 {
		b.WriteString(strings.Repeat("\x1b[K\n", less) + fmt.Sprintf("\x1b[%dA", less))
	}
	l.drawn = mapped(lines, lipgloss.Width)
	_, _ = io.WriteString(l.text.out, b.String()) // a terminal that went away ends the show, not the run
}

// rowsOf returns how many rows of a terminal lines of these widths fill.
func rowsOf(widths []int, columns int) int {
	n := len(widths)
	for _, w := range widths {
		if columns > 0 {
			n += max(w-1, 0) / columns
		}
	}
	return n
}

// cut keeps a line within the terminal, where its width is known.
func cut(text string, columns int) string {
	text = printable(text)
	if columns <= 0 || lipgloss.Width(text) <= columns {
		return text
	}
	return lipgloss.NewStyle().MaxWidth(max(columns-1, 1)).Render(text) + "…"
}

// lines returns the live lines, as many as fit.
func (l *Live) lines(columns, rows int) []string {
	t, now := l.progress, l.now()
	if asking := t.asking(now); asking != "" {
		return []string{l.text.plain(cut(asking, columns))}
	}
	work, waits := t.atWork(), t.waiting(now)
	out := []string{l.header(columns)}
	room := len(work) + len(waits)
	if rows > 0 { // half of the screen: a terminal that becomes half as wide makes two lines of each
		room = min(room, max((rows-2)/2-1, 1))
	}
	if len(work)+len(waits) > room {
		waits = nil
	}
	more := len(work) + len(waits) - room
	of := t.columns()
	for _, w := range work {
		if more > 0 && len(out) == room {
			out = append(out, l.text.plain(cut(fmt.Sprintf("  and %s more running", count(len(work)-room+1, "host")), columns)))
			break
		}
		out = append(out, l.host(w, of, columns))
	}
	for _, text := range waits {
		out = append(out, l.text.plain(cut("  · "+text, columns)))
	}
	return out
}

// header is the line of counters, with a bar where there is room for it.
func (l *Live) header(columns int) string {
	title := "Applying " + ownerPath(l.progress.plan)
	counts := l.progress.counts(l.now())
	bar := ""
	if room := min(columns-lipgloss.Width(title)-lipgloss.Width(counts)-6, 21); room >= 5 {
		done := int(l.progress.share() * float64(room))
		bar = "[" + strings.Repeat("#", done) + strings.Repeat(".", room-done) + "] "
	}
	return l.text.plain(cut(title+"  "+bar+counts, columns))
}

// ownerPath names whose hosts a plan is about, as in acme/production.
func ownerPath(p *plan.Plan) string {
	return listed("/", p.Owner.Name, p.Owner.Environment)
}

// hostColumns are the widths of what the lines of hosts have in common: names, counts, and the mark of a canary.
type hostColumns struct{ name, count, canary int }

// longestState is how wide the state of a host is made at most, so that the times behind stand in one column.
const longestState = 60

// columns returns the widths that the lines of all hosts have in common.
func (t *progress) columns() hostColumns {
	var c hostColumns
	for _, w := range t.hosts {
		if w.canary {
			c.canary = len(canaryMark)
		}
		c.name, c.count = max(c.name, len(t.name(w))), max(c.count, 2*len(fmt.Sprint(w.total))+1)
	}
	return c
}

func (t *progress) name(w *hostWork) string { return subject(t.names.Short(w.host)) }

func (w *hostWork) steps() string { return fmt.Sprintf("%d/%d", w.done, w.total) }

// host is one host's line.
func (l *Live) host(w *hostWork, of hostColumns, columns int) string {
	mark, text, until := w.state(l.now())
	lead := fmt.Sprintf("%-*s  %*s  ", of.name, l.progress.name(w), of.count, w.steps())
	tail := fmt.Sprintf("%7s%s", clock(until.Sub(w.began)), given(w.canary, canaryMark))
	if room := columns - 4 - lipgloss.Width(lead) - 7 - of.canary; room > 0 {
		if mark == markDone {
			text = lastOf(w.trail, room)
		}
		text = cut(text, room)
		text += strings.Repeat(" ", max(0, min(room, longestState)-lipgloss.Width(text)))
	}
	line := lead + printable(text) + tail
	if columns > 4 {
		line = cut(line, columns-4)
	}
	return "  " + l.text.plain(l.text.signs[mark].Render(mark)+" "+line)
}

const canaryMark = "  (canary)"

// state is how a host is: a mark, what it does or did, and until when its time counts.
func (w *hostWork) state(now time.Time) (mark, text string, until time.Time) {
	switch {
	case w.failed:
		return markFailed, w.trouble, w.ended
	case !w.ended.IsZero() && w.trouble != "":
		return markWaiting, w.trouble, w.ended
	case !w.ended.IsZero() && w.done < w.total:
		return markWaiting, "stopped before " + w.next, w.ended
	case !w.ended.IsZero():
		return markDone, trailed(w.trail), w.ended
	}
	return markAtWork, w.doing(now), now
}

// doing is what is going on with a host, and how long that wait has taken.
func (w *hostWork) doing(now time.Time) string {
	if w.waits == "" || w.waits != w.now {
		return w.now
	}
	return w.now + ", " + clock(now.Sub(w.since))
}

// trailed joins what was done.
func trailed(all []string) string {
	return strings.Join(mapped(all, func(what string) string { return what + " ✓" }), " ")
}

// lastOf joins what was done at last, as much as has room.
func lastOf(all []string, room int) string {
	text := trailed(all)
	for skip := 1; lipgloss.Width(text) > room && skip < len(all); skip++ {
		text = "… " + trailed(all[skip:])
	}
	return text
}
