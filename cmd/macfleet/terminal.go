package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/view"
)

// outText returns the writer of text for people on standard output.
func (a *app) outText() *view.Text { return a.text(a.out) }

// errText returns the one on standard error.
func (a *app) errText() *view.Text { return a.text(a.err) }

func (a *app) text(w io.Writer) *view.Text {
	width := 0
	if fd, ok := terminal(w); ok {
		if columns, _, err := term.GetSize(fd); err == nil {
			width = columns
		}
	}
	_, tty := terminal(w)
	return view.NewText(a.sink(w), width, tty && !a.noColor && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb")
}

// output remembers the first thing that could not be written: a plan that nobody
// could see must not end as a success, or go on to an apply.
type output struct {
	to  io.Writer
	mu  sync.Mutex
	err error
}

// Write writes to the stream itself.
func (o *output) Write(p []byte) (int, error) {
	n, err := o.to.Write(p)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		o.err = err
	}
	return n, err
}

// sink returns what to write to instead of a stream: for standard output, what
// remembers faults.
func (a *app) sink(w io.Writer) io.Writer {
	if w != a.out || a.output.to == nil {
		return w
	}
	return &a.output
}

// unwritten returns why standard output did not take everything. A reader that
// went away (head, less) has seen what it wanted and is no fault.
func (a *app) unwritten() error {
	a.output.mu.Lock()
	defer a.output.mu.Unlock()
	if a.output.err == nil || errors.Is(a.output.err, syscall.EPIPE) {
		return nil
	}
	return fmt.Errorf("write to standard output: %w", a.output.err)
}

// size returns the size of the terminal behind standard error, or zeros.
func (a *app) size() (columns, rows int) {
	if fd, ok := terminal(a.err); ok {
		columns, rows, _ = term.GetSize(fd) // zeros when it is not known
	}
	return columns, rows
}

// terminal returns the file descriptor of a stream that is a terminal.
func terminal(stream any) (int, bool) {
	f, ok := stream.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0, false
	}
	return int(f.Fd()), true
}

// interactive reports whether a person can be asked.
func (a *app) interactive() bool {
	_, ok := terminal(a.in)
	return ok && os.Getenv("CI") == ""
}

// heartbeat is how long a run stays silent at most where there is no terminal.
const heartbeat = 10 * time.Second

// progress shows a run's events until done is called. On a terminal that is a
// line per host; elsewhere what lines shows, on the given stream.
func (a *app) progress(lines io.Writer) (show func(engine.Event), done func()) {
	_, shown := terminal(lines)
	if _, ok := terminal(a.err); ok && shown && os.Getenv("CI") == "" && os.Getenv("TERM") != "dumb" {
		live := view.NewLive(a.err, a.size, time.Now)
		a.live.Store(live)
		return live.Event, func() {
			a.live.Store(nil)
			live.Close()
		}
	}
	return a.plain(lines)
}

// plain shows events as lines, with a heartbeat.
func (a *app) plain(w io.Writer) (show func(engine.Event), done func()) {
	l := view.NewLines(a.text(w), heartbeat)
	events, ticks := make(chan engine.Event), time.NewTicker(time.Second)
	quit, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case e := <-events:
				l.Event(e)
			case now := <-ticks.C:
				l.Tick(now)
			case <-quit:
				return
			}
		}
	}()
	return func(e engine.Event) { events <- e }, func() {
		ticks.Stop()
		close(quit)
		<-ended
	}
}
