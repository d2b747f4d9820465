package view

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/charmbracelet/lipgloss"

	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/plan"
)

// Live shows a run on a terminal: a line for every host at work, which goes
// away when the run ends, and above it a line for every action that ended. It
// asks the terminal nothing, so one that never answers cannot hang it.
type Live struct {
	out  io.Writer
	size func() (columns, rows int)
	now  func() time.Time

	mu    sync.Mutex
	show  progress
	drawn int // lines that are on the terminal now
	quit  chan struct{}
	clock sync.WaitGroup
}

// NewLive starts to show. size returns the terminal's size, zeros where it is not known.
func NewLive(out io.Writer, size func() (columns, rows int), now func() time.Time) *Live {
	l := &Live{out: out, size: size, now: now, show: progress{active: make(map[string]work)}, quit: make(chan struct{})}
	l.clock.Go(func() {
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-l.quit:
				return
			case <-tick.C:
				l.Say("") // the seconds went on
			}
		}
	})
	return l
}

// Event shows an event.
func (l *Live) Event(e engine.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.draw(l.show.event(e))
}

// Say prints a text above the lines at work, where it stays: what others write to
// the terminal meanwhile is cleared with them.
func (l *Live) Say(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	columns, _ := l.size()
	for _, line := range wrap(printable(text), columns) {
		l.draw(line)
	}
}

// Close removes the lines at work and leaves the terminal to others.
func (l *Live) Close() {
	close(l.quit)
	l.clock.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.show.over = true
	l.draw("")
}

// draw replaces the lines at work, below a line that stays, in one write.
func (l *Live) draw(stays string) {
	columns, rows := l.size()
	var b strings.Builder
	if l.drawn > 0 {
		fmt.Fprintf(&b, "\r\x1b[%dA\x1b[J", l.drawn) // to the first of them, and clear what is below; ^C may stand behind them
	}
	lines := l.show.lines(l.now(), rows)
	l.drawn = len(lines)
	if stays != "" {
		lines = append([]string{stays}, lines...)
	}
	for _, line := range lines {
		b.WriteString(cut(line, columns) + "\n")
	}
	_, _ = io.WriteString(l.out, b.String()) // a terminal that went away ends the show, not the run
}

// cut keeps a line within the terminal, where its width is known: a broken one would spoil
// the count of lines to clear.
func cut(text string, columns int) string {
	return lipgloss.NewStyle().MaxWidth(max(columns, 0)).Render(printable(text))
}

type work struct {
	what  string
	since time.Time
}

type progress struct {
	active        map[string]work
	asked, answer int // hosts being asked, and those that answered
	ended         int // actions
	began         time.Time
	over          bool
}

// event takes in an event, and returns the line that stays of it, if one does.
func (p *progress) event(e engine.Event) string {
	if p.began.IsZero() {
		p.began = e.Time
	}
	switch e.Type {
	case engine.Observing:
		p.asked += e.Count
	case engine.Observed:
		p.answer++
	case engine.Started, engine.Waiting:
		p.asked, p.answer = 0, 0
		p.active[e.Host] = work{EventLine(e), e.Time}
	case engine.Sending:
		if w, at := p.active[e.Host]; at {
			p.active[e.Host] = work{EventLine(e), w.since}
		}
	case engine.Soaking, engine.Closing, engine.Evicting, engine.Opened, engine.Deferred:
		return EventLine(e)
	case engine.HostBegun:
		if e.Wave > 0 {
			return EventLine(e)
		}
	case engine.Done, engine.Failed, engine.NodeReady:
		delete(p.active, e.Host)
		if e.Action == nil || e.Action.Kind != plan.AwaitNode {
			p.ended++
		}
		return EventLine(e)
	}
	return ""
}

// lines returns the hosts at work, as many as fit, and a line that sums up.
func (p *progress) lines(now time.Time, rows int) []string {
	if p.over {
		return nil
	}
	out := mapped(slices.Sorted(maps.Keys(p.active)), func(name string) string {
		return fmt.Sprintf("  %s  %.0f s", p.active[name].what, max(0, now.Sub(p.active[name].since).Seconds()))
	})
	if room := rows - 2; rows > 2 && len(out) > room {
		out = append(out[:room-1], fmt.Sprintf("  and %d more", len(p.active)-room+1))
	}
	switch {
	case len(p.active) > 0 || p.ended > 0 && p.asked == 0:
		return append(out, fmt.Sprintf("%s done, %s at work", count(p.ended, "action"), count(len(p.active), "host")))
	case p.asked > 0 && p.ended > 0:
		return append(out, fmt.Sprintf("%s done; looking again: %d of %s answered", count(p.ended, "action"), p.answer, count(p.asked, "host")))
	case p.asked > 0:
		return append(out, fmt.Sprintf("Asking %s, %d answered, %.0f s", count(p.asked, "host"), p.answer, max(0, now.Sub(p.began).Seconds())))
	}
	return append(out, "Reading the inventory")
}

// Lines shows a run's events as plain lines, for a log or a pipe.
type Lines struct {
	text *Text
	beat time.Duration
	last time.Time // when something was printed
	show progress
}

// NewLines returns a printer of events with a heartbeat after so long a silence.
func NewLines(t *Text, beat time.Duration) *Lines {
	return &Lines{text: t, beat: beat, show: progress{active: make(map[string]work)}}
}

// Event prints what a person wants to see of an event.
func (l *Lines) Event(e engine.Event) {
	if l.last.IsZero() {
		l.last = e.Time
	}
	if line := l.show.event(e); line != "" {
		l.text.Say(line)
		l.last = e.Time
	}
}

// Tick prints a heartbeat when it is due. It is never called at the same time as Event.
func (l *Lines) Tick(now time.Time) {
	if l.last.IsZero() || now.Sub(l.last) < l.beat {
		return
	}
	names := joined(slices.Sorted(maps.Keys(l.show.active)), subject)
	l.text.sayf("Still working, %s so far%s", now.Sub(l.show.began).Round(time.Second), given(names != "", ": %s", names))
	l.last = now
}

// EventLine returns one event in one line.
func EventLine(e engine.Event) string {
	who, took := subject(e.Host)+": ", fmt.Sprintf("(%.1f s)", e.Seconds)
	what := ""
	if e.Action != nil {
		what = string(e.Action.Kind.Sign()) + " " + label(*e.Action)
	}
	seen := "seen " + took
	if e.Trouble != nil {
		seen = e.Trouble.Code.String() + ": " + e.Trouble.Text
	}
	text, known := map[engine.EventType]string{
		engine.Done:      what + " done " + took,
		engine.Failed:    fmt.Sprintf("%s failed %s: %v", what, took, e.Err),
		engine.Started:   what,
		engine.Skipped:   what + " not started",
		engine.Observed:  seen,
		engine.Waiting:   "waiting until its Node is Ready",
		engine.NodeReady: "its Node is Ready " + took,
		engine.Sending:   fmt.Sprintf("%s sent, %s of %s", e.Artifact, bytes(e.Bytes), bytes(e.Size)),
		engine.Deferred:  what + " deferred to a later run: " + seen,
		engine.HostBegun: fmt.Sprintf("begins (%s, %s%s)", e.Lane, e.Worst, given(e.Wave > 0, ", wave %d", e.Wave)),
		engine.HostEnded: "ended",
		engine.Closing:   "its Node takes no new Pods",
		engine.Opened:    "its Node takes Pods again",
		engine.Evicting:  fmt.Sprintf("Pod %s %s%s", e.Pod, e.What, given(e.Text != "", ": %s", e.Text)),
	}[e.Type]
	switch {
	case known:
		return who + text
	case e.Type == engine.Soaking:
		return fmt.Sprintf("%s: the canary is Ready and watched until %s; then the others start", e.Fleet, e.Until.UTC().Format("15:04:05 UTC"))
	}
	return fmt.Sprintf("asking %s", count(e.Count, "host"))
}
