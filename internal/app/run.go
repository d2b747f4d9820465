package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/runlog"
	"github.com/macfleet/macfleet/internal/view"
	"github.com/macfleet/macfleet/internal/wholefile"
)

// The exit codes of macfleet.
const (
	ExitDone       = 0
	ExitError      = 1
	ExitDifferent  = 2 // changes, drift
	ExitIncomplete = 3 // something refused, unknown, failed or not converged
	ExitLeft       = 130
)

// exit ends a command with a code after everything was printed.
type exit int

// Error is never shown.
func (e exit) Error() string { return fmt.Sprintf("exit %d", int(e)) }

// result returns the exit code of a comparison: a difference beats incompleteness.
func result(different, complete bool) error {
	switch {
	case different:
		return exit(ExitDifferent)
	case !complete:
		return exit(ExitIncomplete)
	}
	return nil
}

// summed prints the line that ends a small command: what happened to how many things. err is the command's result.
func (env *Env) summed(noun string, done view.Counts, err error) error {
	var code exit
	errors.As(err, &code)
	env.outText().Summed(noun, done, int(code))
	return err
}

var errInterrupted = errors.New("interrupted")

// Run executes a command line and returns its exit code. Only here an error becomes one.
func Run(ctx context.Context, s Streams, line []string, execute func(context.Context, *Env) error) int {
	quietLibraries()
	ctx, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	stop, interrupt := context.WithCancel(ctx)
	defer interrupt()
	// A reader that went away must not kill an apply in the middle of an action:
	// later writes fail, and the run continues to its end.
	// (Notify and not Ignore, which programs that are started would inherit.)
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, stopSignals()...)
	defer signal.Stop(signals)
	if s.Now == nil {
		s.Now = time.Now
	}
	env := &Env{Streams: s, Call: Call{Line: line}, stop: stop, output: output{to: s.Out}, this: newRun(time.Now())}
	// It is separate from env, whose flags may be read at the same time.
	notice := (&Env{Streams: s}).errText()
	ended := make(chan int, 1)
	go func() { ended <- env.code(ctx, explained(execute(ctx, env))) }()
	return env.until(ended, signals, notice, interrupt, func() { leave(errInterrupted) })
}

// until returns the exit code of a command that ended, or of one that a person left. The first signal interrupts it,
// the second leaves it, and so does the time since then; a third waits for nothing.
func (env *Env) until(ended <-chan int, signals <-chan os.Signal, notice *view.Text, interrupt, leave func()) int {
	var late <-chan time.Time // set by the second Ctrl-C, and by no later one
	for {
		select {
		case code := <-ended:
			return code
		case <-late:
			env.eraseLive()
			notice.Error(env.left())
			return ExitLeft
		case s := <-signals:
			switch {
			case env.stop.Err() == nil: // running actions finish
				env.sayInterrupted(notice)
				interrupt()
			case s == syscall.SIGHUP: // a closed terminal sends it more than once, and means one
			case late == nil:
				leave()
				late = time.After(leaveWithin)
			default: // a third
				env.eraseLive()
				notice.Error(env.left())
				return ExitLeft
			}
		}
	}
}

// eraseLive removes the live lines from the terminal before the process exits.
func (env *Env) eraseLive() {
	if live := env.live.Load(); live != nil {
		live.Close()
	}
}

// leaveWithin is how long a command has to end after the second Ctrl-C; a call that cannot be cancelled is left. A third
// Ctrl-C does not wait.
const leaveWithin = 3 * time.Second

// stopSignals are those that stop a run: Ctrl-C, the end of a job, a terminal that
// was closed. One that the parent process ignores, as nohup does, stays ignored.
func stopSignals() []os.Signal {
	return slices.DeleteFunc([]os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP}, signal.Ignored)
}

func (env *Env) sayInterrupted(notice *view.Text) {
	text := "Interrupted."
	if env.acting.Load() {
		text = "Interrupted: finishing what runs, starting nothing new. Press Ctrl-C again to abort."
	}
	if env.live.Load() == nil {
		notice.Print("\n") // the terminal has shown ^C
	}
	env.announce(notice, text)
}

// code shows an error and returns its exit code.
func (env *Env) code(ctx context.Context, err error) int {
	code, shown := env.verdict(ctx, err)
	if shown != nil {
		env.fail(shown)
	}
	env.endLog(code, code == ExitError && !errors.Is(err, errCancelled) || code == ExitLeft || code == ExitIncomplete && env.record.Load() != nil)
	env.conclude(code, shown)
	env.into.close()
	return code
}

// verdict returns the exit code of what a command came to, and the error that is still to be shown.
func (env *Env) verdict(ctx context.Context, err error) (int, error) {
	var quiet exit
	var abandoned *wholefile.AbandonedError
	switch {
	case errors.Is(context.Cause(ctx), errInterrupted):
		return ExitLeft, env.left()
	case env.stop.Err() != nil && errors.As(err, &abandoned):
		return ExitError, fmt.Errorf("interrupted while waiting for the end of %s; nothing was changed", abandoned.Path)
	case env.stop.Err() != nil && errors.Is(err, context.Canceled):
		return ExitError, errors.New("interrupted before anything was changed")
	case env.stop.Err() != nil && err != nil && !errors.As(err, &quiet):
		return ExitError, fmt.Errorf("interrupted: %w", err)
	}
	if lost := env.unwritten(); lost != nil && (err == nil || errors.As(err, &quiet)) {
		err = lost
	}
	switch {
	case err == nil:
		return ExitDone, nil
	case errors.As(err, &quiet):
		return int(quiet), nil
	}
	return ExitError, err
}

// fail shows the error that ends the command: to a program as its stream's last line, to others as text. A missing
// approval is not shown as an error.
func (env *Env) fail(err error) {
	if text := env.secrets.Scrub(err.Error()); text != err.Error() {
		err = errors.New(text)
	}
	env.logged(slog.LevelError, "error", "error", err)
	env.stream.Error(err)
	switch {
	case env.mute:
	case errors.Is(err, errCancelled):
		env.errText().Cancelled(err)
	default:
		env.errText().Error(err)
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

// left says what an aborted command leaves behind.
func (env *Env) left() error {
	what := ": no action was running"
	if w := env.record.Load(); w != nil {
		if open := w.Open(); len(open) > 0 {
			what = ": these actions may be half done: " + opened(open)
		}
	} else if !env.acting.Load() {
		return errors.New("aborted" + env.stillLocked() + "; macfleet plan shows the current state")
	} else {
		what = ": running actions may be half done"
	}
	return errors.New("aborted" + what + env.stillLocked() + "; macfleet plan shows what is left")
}

// stillLocked says until when an aborted command keeps the lock, and how to release it before.
func (env *Env) stillLocked() string {
	l := env.held.Load()
	if l == nil || l.Check() != nil {
		return ""
	}
	return fmt.Sprintf("; its lock expires at %s, and the next apply waits for that (to release it now: macfleet lock release --force %s)",
		l.Until().UTC().Format("15:04:05 UTC"), l.Run().ID)
}

// namedAtMost is how many actions a sentence names.
const namedAtMost = 8

// opened names actions that were started.
func opened(open []runlog.Entry) string {
	names := mapped(open, func(e runlog.Entry) string {
		if e.Host == "" {
			return e.Action.Label()
		}
		return e.Host + ": " + e.Action.Label()
	})
	if more := len(names) - namedAtMost; more > 0 {
		names = append(names[:namedAtMost], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

// limit gives a run what stops it besides a person: a deadline from the command's start, and halt.
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
