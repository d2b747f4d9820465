package view

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/lipgloss"

	"github.com/macfleet/macfleet/internal/engine"
)

// Live shows a run on a terminal: a line for every host at work, which goes
// away when the run ends, and above it a line for every action that ended.
type Live struct {
	program *tea.Program
	ended   chan struct{}
}

// NewLive starts to show. It reads no input and handles no signal: Ctrl-C stays
// with the command.
func NewLive(out io.Writer) *Live {
	l := &Live{ended: make(chan struct{})}
	l.program = tea.NewProgram(screen{active: map[string]work{}}, tea.WithOutput(out), tea.WithInput(nil), tea.WithoutSignalHandler())
	go func() {
		defer close(l.ended)
		_, _ = l.program.Run() // a terminal that went away ends the show, not the run
	}()
	return l
}

// Event shows an event.
func (l *Live) Event(e engine.Event) { l.program.Send(e) }

// Close removes the lines at work and waits until the terminal is free.
func (l *Live) Close() {
	l.program.Send(quit{})
	<-l.ended
}

type quit struct{}

type tick time.Time

// frame is how often the seconds are drawn anew.
const frame = 200 * time.Millisecond

func ticking() tea.Cmd { return tea.Tick(frame, func(t time.Time) tea.Msg { return tick(t) }) }

// work is a host that something is being done on.
type work struct {
	what  string
	since time.Time
}

// screen is what is shown now.
type screen struct {
	active        map[string]work
	asked, answer int // hosts being asked, and those that answered
	ended         int // actions
	began         time.Time
	width, height int
	over          bool
}

// Init starts the clock.
func (s screen) Init() tea.Cmd { return ticking() }

// Update takes in one message.
func (s screen) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch m := msg.(type) {
	case quit:
		s.over = true
		return s, tea.Quit
	case tick:
		return s, ticking()
	case tea.WindowSizeMsg:
		s.width, s.height = m.Width, m.Height
	case engine.Event:
		return s.event(m)
	}
	return s, nil
}

func (s screen) event(e engine.Event) (tea.Model, tea.Cmd) {
	if s.began.IsZero() {
		s.began = e.Time
	}
	switch e.Type {
	case engine.Observing:
		s.asked += e.Count
	case engine.Observed:
		s.answer++
	case engine.Started:
		s.asked, s.answer = 0, 0
		s.active[e.Host] = work{EventLine(e), e.Time}
	case engine.Done, engine.Failed:
		delete(s.active, e.Host)
		s.ended++
		return s, tea.Println(s.cut(EventLine(e)))
	}
	return s, nil
}

// View draws the hosts at work, as many as fit.
func (s screen) View() string {
	if s.over {
		return ""
	}
	now := time.Now()
	var lines []string
	names := make([]string, 0, len(s.active))
	for name := range s.active {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		w := s.active[name]
		lines = append(lines, s.cut(fmt.Sprintf("  %s  %.0f s", w.what, max(0, now.Sub(w.since).Seconds()))))
	}
	if room := s.height - 2; s.height > 2 && len(lines) > room {
		lines = append(lines[:room-1], fmt.Sprintf("  and %d more", len(names)-room+1))
	}
	switch {
	case s.ended > 0 || len(s.active) > 0:
		lines = append(lines, fmt.Sprintf("%s done, %s at work", count(s.ended, "action"), count(len(s.active), "host")))
	case s.asked > 0:
		lines = append(lines, fmt.Sprintf("Asking %s, %d answered, %.0f s", count(s.asked, "host"), s.answer, max(0, now.Sub(s.began).Seconds())))
	default:
		lines = append(lines, "Reading the inventory")
	}
	return strings.Join(lines, "\n") + "\n"
}

// cut keeps a line within the terminal.
func (s screen) cut(text string) string {
	text = printable(text)
	if s.width <= 0 {
		return text
	}
	return lipgloss.NewStyle().MaxWidth(s.width).Render(text)
}
