package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/runlog"
	"github.com/macfleet/macfleet/internal/view"
)

// stopSignals are those that stop a run: Ctrl-C, the end of a job, a terminal that
// was closed. One that whoever started us had switched off, as nohup does, stays so.
func stopSignals() []os.Signal {
	var out []os.Signal
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) {
			out = append(out, s)
		}
	}
	return out
}

// leaveWithin is how long a command has to end after the second Ctrl-C. What hangs in
// a call that cannot be cancelled is left behind.
const leaveWithin = 3 * time.Second

// heed takes the signals of a command: the first lets what runs come to its end and
// starts nothing new, the second leaves at once. A terminal that was closed sends its
// signal more than once, by the kernel and by the shell, and means one. late then
// says that the command did not end in time.
func (env *Env) heed(signals <-chan os.Signal, notice *view.Text, interrupt func(), leave context.CancelCauseFunc, late *time.Timer) {
	for s := range signals {
		if env.stop.Err() == nil {
			text := "Interrupted."
			if env.acting.Load() {
				text = "Interrupted: finishing what runs, starting nothing new. Press Ctrl-C again to leave at once."
			}
			if env.live.Load() == nil {
				notice.Print("\n") // the terminal has shown ^C
			}
			env.announce(notice, text)
			interrupt()
			continue
		}
		if s == syscall.SIGHUP {
			continue
		}
		leave(errInterrupted)
		late.Reset(leaveWithin)
	}
}

// announce says something in the middle of a run.
func (env *Env) announce(notice *view.Text, text string) {
	if live := env.live.Load(); live != nil {
		live.Say(text)
		return
	}
	notice.Say(text)
}

// left says what a command leaves behind that ends at once.
func (env *Env) left() error {
	w := env.record.Load()
	switch {
	case w == nil && env.acting.Load():
		return errors.New("left at once: what was running may be half done; macfleet plan shows what is left")
	case w == nil:
		return errors.New("left at once; macfleet plan shows how things are")
	}
	if open := w.Open(); len(open) > 0 {
		return fmt.Errorf("left at once: nobody knows how these end: %s; macfleet plan shows what is left", opened(open))
	}
	return errors.New("left at once, between two actions; macfleet plan shows what is left")
}

// namedAtMost is how many actions a sentence names.
const namedAtMost = 8

// opened names actions that were begun.
func opened(open []runlog.Entry) string {
	var names []string
	for _, e := range open {
		name := e.Action.Label()
		if e.Host != "" {
			name = e.Host + ": " + name
		}
		names = append(names, name)
	}
	if more := len(names) - namedAtMost; more > 0 {
		names = append(names[:namedAtMost], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

// limit gives a run what stops it beside a person: a deadline, counted from the
// command's start, and halt.
func (s *session) limit(deadline time.Duration) {
	ctx, halt := context.WithCancelCause(s.env.stop)
	s.halt = halt
	s.closers = append(s.closers, func() { halt(nil) })
	if deadline > 0 {
		limited, cancel := context.WithDeadlineCause(ctx, s.started.Add(deadline), engine.ErrDeadline)
		ctx = limited
		s.closers = append(s.closers, cancel)
	}
	s.engine.Stop = ctx
}

// stopped says why a run starts nothing more.
func (s *session) stopped() string {
	cause := context.Cause(s.engine.Stop)
	switch {
	case cause == nil:
		return ""
	case s.env.stop.Err() != nil:
		return "interrupted"
	}
	return cause.Error()
}
