package view

import (
	"io"

	"github.com/hashicorp/hcl/v2"

	"github.com/macfleet/macfleet/internal/wire"
)

// Validation is what a check of a configuration came to, as one JSON object.
type Validation struct {
	wire.Head
	Valid        bool         `json:"valid"`
	ErrorCount   int          `json:"error_count"`
	WarningCount int          `json:"warning_count"`
	Diagnostics  []Diagnostic `json:"diagnostics"`
}

// Diagnostic is a fault of the configuration, or any other error that ended a
// command.
type Diagnostic struct {
	Severity string `json:"severity"` // error or warning
	Summary  string `json:"summary"`
	Detail   string `json:"detail"`
	Range    *Range `json:"range,omitempty"` // absent: the fault has no place
}

// Range is a place in a file, from its first character to behind its last.
type Range struct {
	Filename string   `json:"filename"`
	Start    Position `json:"start"`
	End      Position `json:"end"`
}

// Position is a place between two characters.
type Position struct {
	Line   int `json:"line"`   // counted from 1
	Column int `json:"column"` // in characters, counted from 1
	Byte   int `json:"byte"`   // from the beginning of the file, counted from 0
}

// DiagnosticsOf returns a configuration's faults for programs.
func DiagnosticsOf(diags hcl.Diagnostics) []Diagnostic {
	out := []Diagnostic{}
	for _, d := range diags {
		one := Diagnostic{Severity: "error", Summary: d.Summary, Detail: d.Detail}
		if d.Severity == hcl.DiagWarning {
			one.Severity = "warning"
		}
		if r := d.Subject; r != nil {
			one.Range = &Range{Filename: r.Filename, Start: Position(r.Start), End: Position(r.End)}
		}
		out = append(out, one)
	}
	return out
}

// WriteValidation prints the faults of a configuration as one JSON object.
func WriteValidation(out io.Writer, all []Diagnostic) error {
	v := Validation{Head: wire.NewHead(), Diagnostics: all}
	for _, d := range all {
		if d.Severity == "error" {
			v.ErrorCount++
		} else {
			v.WarningCount++
		}
	}
	v.Valid = v.ErrorCount == 0
	return wire.Write(out, v)
}
