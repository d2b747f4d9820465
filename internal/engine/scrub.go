package engine

import "github.com/macfleet/macfleet/plan"

// scrub returns what takes secrets out of everything that comes from outside. It
// runs before anything is computed or kept: the digests in a marker, a plan and
// a recorded plan are then all about the same text.
func (e *Engine) scrub() plan.Scrub {
	if e.Scrub == nil {
		return func(text string) string { return text }
	}
	return e.Scrub
}

// scrubError takes secrets out of an error's text: a host's last words and a
// provider's answer stand in it.
func (e *Engine) scrubError(err error) error {
	if err == nil {
		return nil
	}
	if text := e.scrub()(err.Error()); text != err.Error() {
		return &scrubbedError{text, err}
	}
	return err
}

// scrubbedError is an error under another text. Its cause is what it was.
type scrubbedError struct {
	text  string
	cause error
}

// Error returns the text without secrets.
func (e *scrubbedError) Error() string { return e.text }

// Unwrap returns the error itself, for errors.Is and errors.As alone.
func (e *scrubbedError) Unwrap() error { return e.cause }
