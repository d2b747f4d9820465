package main

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/macfleet/macfleet/internal/view"
	"github.com/macfleet/macfleet/plan"
)

// jsonIntoFlag adds the flag by which a person reads text while a program reads
// JSON.
func (a *app) jsonIntoFlag(c *cobra.Command) {
	c.Flags().StringVar(&a.jsonInto, "json-into", "", "beside the text, write one JSON object a line into a `FILE`, as apply --json prints them")
}

// errTwoJSON ends a command that was to write JSON twice.
var errTwoJSON = errors.New("--json and --json-into exclude each other: with --json-into standard output is text")

// openInto begins the file of --json-into. A pipe will do.
func (a *app) openInto() error {
	if a.jsonInto == "" {
		return nil
	}
	f, err := os.OpenFile(a.jsonInto, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("--json-into: %w", err)
	}
	a.written.to = f
	a.into = view.NewStream(&a.written, time.Now)
	return a.notInto()
}

// notInto returns why the file of --json-into does not hold everything. A reader
// that went away is no fault.
func (a *app) notInto() error {
	a.written.mu.Lock()
	defer a.written.mu.Unlock()
	if a.written.err == nil || errors.Is(a.written.err, syscall.EPIPE) {
		return nil
	}
	return fmt.Errorf("--json-into: write to %s: %w", a.jsonInto, a.written.err)
}

func (a *app) planInto(p *plan.Plan) {
	if a.into != nil {
		a.into.Plan(p)
	}
}

// warn says what does not end the command: to a person, and to programs that read a
// stream.
func (a *app) warn(text string) {
	text = a.secrets.Scrub(text)
	line := []view.Diagnostic{{Severity: "warning", Summary: text}}
	if a.into != nil {
		a.into.Diagnostics(line)
	}
	if a.stream != nil {
		a.stream.Diagnostics(line)
		return
	}
	a.errText().Warn(text)
}
