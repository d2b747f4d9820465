package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// The exit codes of macfleet.
const (
	ExitDone       = 0
	ExitError      = 1
	ExitDifferent  = 2 // changes, drift
	ExitIncomplete = 3 // something refused, unknown, failed or not converged
	ExitLeft       = 130
)

// exit ends a command with a code after everything was said.
type exit int

// Error is never shown.
func (e exit) Error() string { return fmt.Sprintf("exit %d", int(e)) }

// result returns the exit code of a comparison: a difference beats
// incompleteness, which is said elsewhere.
func result(different, complete bool) error {
	switch {
	case different:
		return exit(ExitDifferent)
	case !complete:
		return exit(ExitIncomplete)
	}
	return nil
}

var errInterrupted = errors.New("interrupted")

// Run executes a command line and returns its exit code. Only here an error becomes one.
func Run(ctx context.Context, s Streams, line []string, execute func(context.Context, *Env) error) int {
	ctx, leave := context.WithCancelCause(ctx)
	stop, interrupt := context.WithCancel(ctx)
	// A reader that went away must not kill an apply in the middle of an action:
	// what is written after it fails, and the run goes on to its end.
	// (Notify and not Ignore, which programs that are started would inherit.)
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, stopSignals()...)
	env := &Env{Streams: s, Call: Call{Line: line}, stop: stop, now: clockOf(ctx), output: output{to: s.Out}, this: newRun(time.Now())}
	// It stands beside the Env, whose flags are being read while this may speak.
	notice := (&Env{Streams: s}).errText()
	late := time.NewTimer(time.Hour)
	late.Stop() // until the second Ctrl-C
	over := make(chan struct{})
	go func() {
		defer close(over)
		env.heed(signals, notice, interrupt, leave, late)
	}()
	defer func() {
		signal.Stop(signals)
		close(signals)
		<-over
		interrupt()
		leave(nil)
	}()
	ended := make(chan int, 1)
	go func() { ended <- env.code(ctx, execute(ctx, env)) }()
	select {
	case code := <-ended:
		return code
	case <-late.C:
		notice.Error(env.left())
		return ExitLeft
	}
}

// code shows an error and returns its exit code.
func (env *Env) code(ctx context.Context, err error) int {
	code, shown := env.verdict(ctx, err)
	if shown != nil {
		env.fail(shown)
	}
	env.endLog(code, code == ExitError || code == ExitLeft || code == ExitIncomplete && env.record.Load() != nil)
	return code
}

// verdict returns the exit code of what a command came to, and the error that is
// still to be shown.
func (env *Env) verdict(ctx context.Context, err error) (int, error) {
	var quiet exit
	switch {
	case errors.Is(context.Cause(ctx), errInterrupted):
		return ExitLeft, env.left()
	case env.stop.Err() != nil && errors.Is(err, context.Canceled):
		return ExitError, errors.New("interrupted before anything was done")
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

// fail shows the error that ends the command: to a program that reads a stream
// as its last line, to everybody else as text.
func (env *Env) fail(err error) {
	if text := env.secrets.Scrub(err.Error()); text != err.Error() {
		err = errors.New(text)
	}
	env.logged(slog.LevelError, "error", "error", err)
	if env.stream != nil {
		env.stream.Error(err)
	}
	if !env.mute {
		env.errText().Error(err)
	}
}
