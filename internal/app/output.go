package app

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
func (env *Env) outText() *view.Text { return env.text(env.Out) }

// errText returns the one on standard error.
func (env *Env) errText() *view.Text { return env.text(env.Err) }

func (env *Env) text(w io.Writer) *view.Text {
	width := 0
	if fd, ok := terminal(w); ok {
		if columns, _, err := term.GetSize(fd); err == nil {
			width = columns
		}
	}
	_, tty := terminal(w)
	return view.NewText(env.sink(w), width, tty && !env.NoColor && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb")
}

// output remembers the first thing that could not be written: a plan that nobody
// could see must not end as a success, or go on to an apply.
type output struct {
	to   io.Writer
	name string // of a file
	mu   sync.Mutex
	err  error
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
func (env *Env) sink(w io.Writer) io.Writer {
	if w != env.Out || env.output.to == nil {
		return w
	}
	return &env.output
}

// lost returns why a stream did not take everything. A reader that went away (head, less)
// has seen what it wanted and is no fault.
func (o *output) lost(what string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil || errors.Is(o.err, syscall.EPIPE) {
		return nil
	}
	return fmt.Errorf("%s: %w", what, o.err)
}

// unwritten returns why standard output, or the file of --json-into, did not take
// everything.
func (env *Env) unwritten() error {
	return errors.Join(env.output.lost("write to standard output"), env.into.lost("--json-into: write to "+env.into.name))
}

// size returns the size of the terminal behind standard error, or zeros.
func (env *Env) size() (columns, rows int) {
	if fd, ok := terminal(env.Err); ok {
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
func (env *Env) interactive() bool {
	_, ok := terminal(env.In)
	return ok && os.Getenv("CI") == ""
}

// heartbeat is how long a run stays silent at most where there is no terminal.
const heartbeat = 10 * time.Second

// progress shows a run's events until done is called. On a terminal that is a
// line per host; elsewhere what lines shows, on the given stream.
func (env *Env) progress(lines io.Writer) (show func(engine.Event), done func()) {
	_, shown := terminal(lines)
	if _, ok := terminal(env.Err); ok && shown && os.Getenv("CI") == "" && os.Getenv("TERM") != "dumb" {
		live := view.NewLive(env.Err, env.size, time.Now)
		env.live.Store(live)
		return live.Event, func() {
			env.live.Store(nil)
			live.Close()
		}
	}
	return env.plain(lines)
}

// plain shows events as lines, with a heartbeat.
func (env *Env) plain(w io.Writer) (show func(engine.Event), done func()) {
	l := view.NewLines(env.text(w), heartbeat)
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
