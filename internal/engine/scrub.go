package engine

// scrubError takes secrets out of an error's text: a host's last words and a
// provider's answer stand in it.
func (e *Engine) scrubError(err error) error {
	if err == nil || e.Scrub == nil {
		return err
	}
	if text := e.Scrub(err.Error()); text != err.Error() {
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
