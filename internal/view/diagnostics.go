package view

import (
	"fmt"
	"io"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/macfleet/macfleet/internal/wire"
)

// Faults are what is wrong with a configuration, and the texts it stands in.
type Faults struct {
	Files map[string]*hcl.File
	Diags hcl.Diagnostics
	Ends  map[string]hcl.Range // where ignore blocks say until when they hold, by their names
}

// Add enters an error that has no place in the texts.
func (f *Faults) Add(summary, detail string) {
	f.Diags = append(f.Diags, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: summary, Detail: detail})
}

// Warn enters a warning that has no place in the texts.
func (f *Faults) Warn(summary, detail string) {
	f.Diags = append(f.Diags, &hcl.Diagnostic{Severity: hcl.DiagWarning, Summary: summary, Detail: detail})
}

// WarnOfIgnore enters a warning about an ignore block.
func (f *Faults) WarnOfIgnore(name, summary, detail string) {
	f.Warn(summary, detail)
	if at, ok := f.Ends[name]; ok {
		f.Diags[len(f.Diags)-1].Subject = &at
	}
}

// Diagnostics shows the faults of a configuration, each with its place, the
// source line and what to do.
func (t *Text) Diagnostics(files map[string]*hcl.File, diags hcl.Diagnostics) error {
	var b strings.Builder
	coloured := t.strong.Render("x") != "x"
	w := hcl.NewDiagnosticTextWriter(&b, files, uint(max(t.width, 0)), coloured)
	if err := w.WriteDiagnostics(diags); err != nil {
		return fmt.Errorf("show diagnostics: %w", err)
	}
	if _, err := io.WriteString(t.out, harmless(b.String(), coloured)); err != nil {
		return fmt.Errorf("show diagnostics: %w", err)
	}
	if n := len(diags.Errs()); n > 0 {
		t.sayf("%s in the configuration.", count(n, "error"))
	}
	return nil
}

// harmless writes out what a terminal would obey: the lines of a configuration are
// somebody's, and a pull request's are a stranger's. Tabs are left, and the colours
// of the writer where there are any.
func harmless(text string, coloured bool) string {
	pieces := regexp.MustCompile(`\r?\n|\t|\x1b\[[0-9;]*m|[^\t\r\n\x1b]+|[\r\x1b]`)
	return pieces.ReplaceAllStringFunc(text, func(piece string) string {
		switch {
		case piece == "\r\n": // of a file with such line ends
			return "\n"
		case piece == "\n", piece == "\t", coloured && strings.HasPrefix(piece, "\x1b["):
			return piece
		}
		return printable(piece)
	})
}

// Valid says that a configuration has no fault.
func (t *Text) Valid(owner string, fleets, replicas int) {
	t.sayf("The configuration of %s is valid: %s, %s wanted.", owner, count(fleets, "fleet"), count(replicas, "host"))
}

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

// Version says which macfleet this is, as one JSON object.
type Version struct {
	wire.Head
	Go     string `json:"go"`
	OS     string `json:"os"`
	Arch   string `json:"arch"`
	Commit string `json:"commit,omitempty"` // of the source, where the build recorded it
}

// WriteVersion prints the version as one JSON object.
func WriteVersion(out io.Writer) error {
	v := Version{Head: wire.NewHead(), Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				v.Commit = s.Value
			}
		}
	}
	return wire.Write(out, v)
}
