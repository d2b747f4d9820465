package engine

// scrubError removes secrets from an error's text, which may quote a host or a provider.
func (e *Engine) scrubError(err error) error {
	if err == nil || e.Scrub == nil {
		return err
	}
	if text := e.Scrub(err.Error()); text != err.Error() {
		return &scrubbedError{text, err}
	}
	return err
}

// scrubbedError is an error with its text replaced.
type scrubbedError struct {
	text  string
	cause error
}

// Error returns the text without secrets.
func (e *scrubbedError) Error() string { return e.text }

// Unwrap returns the original error, only for errors.Is and errors.As.
func (e *scrubbedError) Unwrap() error { return e.cause }
