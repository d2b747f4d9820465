package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/macfleet/macfleet/internal/drift"
	"github.com/macfleet/macfleet/internal/view"
	"github.com/macfleet/macfleet/internal/wire"
	"github.com/macfleet/macfleet/plan"
)

// compared compares a report with the look before, where one is named.
func (o DriftOptions) compared(r drift.Report) (drift.Report, error) {
	if o.Since != "" {
		return after("--since", o.Since, r)
	}
	if o.Remember == "" {
		return r, nil
	}
	if r.Narrowed {
		return r, errors.New("--remember: only looks at all hosts and steps can be compared; leave out --on, --exclude and --step")
	}
	info, err := os.Stat(o.Remember)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return r, nil // the first look
	case err == nil && !info.Mode().IsRegular():
		return r, fmt.Errorf("--remember %s: it is no regular file, and this look could not take its place", o.Remember)
	}
	return after("--remember", o.Remember, r)
}

// remembered keeps the look for the next one. It is written after it was shown: of
// what nobody was told, the next look tells.
func (o DriftOptions) remembered(p *plan.Plan, r drift.Report) error {
	if o.Remember == "" {
		return nil
	}
	if err := replaceFile(o.Remember, func(w io.Writer) error { return view.WriteDrift(w, p, r) }); err != nil {
		return fmt.Errorf("--remember %s: %w", o.Remember, err)
	}
	return nil
}

// anew says how to go on without an earlier look.
func anew(flag string) string {
	if flag == "--remember" {
		return "remove it to begin anew"
	}
	return "make one with macfleet drift --format json"
}

// after compares a report with an earlier document of the same configuration.
func after(flag, file string, r drift.Report) (drift.Report, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return r, fmt.Errorf("%s: %w; make one with macfleet drift --format json", flag, err)
	}
	var d struct { // of the document, what counts for the next look
		wire.OwnedHead
		Drift *drift.Report `json:"drift"`
	}
	if err := json.Unmarshal(content, &d); err != nil {
		return r, fmt.Errorf("%s %s: it is no document of macfleet drift --format json: %w; %s", flag, file, err, anew(flag))
	}
	major, _, _ := strings.Cut(d.FormatVersion, ".")
	ours, _, _ := strings.Cut(wire.Format, ".")
	switch {
	case d.Drift == nil:
		return r, fmt.Errorf("%s %s: it tells of no drift; make one with macfleet drift --format json", flag, file)
	case major != ours:
		return r, fmt.Errorf("%s %s: it has format version %q, and this macfleet reads %s", flag, file, d.FormatVersion, wire.Format)
	case d.Configuration != r.Owner.Name || d.Environment != r.Owner.Environment:
		return r, fmt.Errorf("%s %s: it is of %s %s, and this is %s", flag, file, d.Configuration, d.Environment, r.Owner)
	case d.Drift.Narrowed || r.Narrowed:
		return r, fmt.Errorf("%s %s: only looks at all hosts and steps can be compared; leave out --on, --exclude and --step", flag, file)
	}
	return r.After(d.Drift.Known()), nil
}
