package engine

import (
	"context"
	"errors"
)

// ErrDeadline is the cause of Engine.Stop when a run had only so long.
var ErrDeadline = errors.New("the deadline passed")

// UnrecordedError is the cause of Engine.Stop when a run can no longer be recorded.
// No action begins that stands in no record.
type UnrecordedError struct{ Err error }

// Error names the cause.
func (e *UnrecordedError) Error() string {
	return "the run record cannot be written, so nothing more is started: " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *UnrecordedError) Unwrap() error { return e.Err }

// unrecorded returns why an action that was just told of does not begin, or nil.
func (e *Engine) unrecorded() error {
	var lost *UnrecordedError
	if errors.As(context.Cause(e.Stop), &lost) {
		return lost
	}
	return nil
}
