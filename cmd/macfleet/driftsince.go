package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/macfleet/macfleet/internal/drift"
	"github.com/macfleet/macfleet/internal/view"
)

// after compares a report with an earlier document of the same configuration.
func after(file string, r drift.Report) (drift.Report, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return r, fmt.Errorf("--since: %w; make one with macfleet drift --format json", err)
	}
	var d view.Document
	if err := json.Unmarshal(content, &d); err != nil {
		return r, fmt.Errorf("--since %s: it is no document of macfleet drift --format json: %w", file, err)
	}
	major, _, _ := strings.Cut(d.FormatVersion, ".")
	ours, _, _ := strings.Cut(view.FormatVersion, ".")
	switch {
	case major != ours:
		return r, fmt.Errorf("--since %s: it has format version %q, and this macfleet reads %s", file, d.FormatVersion, view.FormatVersion)
	case d.Drift == nil:
		return r, fmt.Errorf("--since %s: it tells of no drift; make one with macfleet drift --format json", file)
	case d.Configuration != r.Owner.Name || d.Environment != r.Owner.Environment:
		return r, fmt.Errorf("--since %s: it is of %s %s, and this is %s", file, d.Configuration, d.Environment, r.Owner)
	case d.Drift.Selected || r.Narrowed:
		return r, fmt.Errorf("--since %s: only looks at all hosts and steps can be compared; leave out --on, --exclude and --step", file)
	}
	return r.After(d.Drift.Known()), nil
}
