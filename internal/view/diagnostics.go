package view

import (
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/hashicorp/hcl/v2"
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
	coloured := t.styles.create.Render("x") != "x"
	w := hcl.NewDiagnosticTextWriter(&b, files, uint(max(t.width, 0)), coloured)
	if err := w.WriteDiagnostics(diags); err != nil {
		return fmt.Errorf("show diagnostics: %w", err)
	}
	if _, err := io.WriteString(t.out, harmless(b.String(), coloured)); err != nil {
		return fmt.Errorf("show diagnostics: %w", err)
	}
	if n := len(diags.Errs()); n > 0 {
		t.line(0, "", fmt.Sprintf("%s in the configuration.", count(n, "error")))
	}
	return nil
}

// harmless writes out what a terminal would obey: the lines of a configuration are
// somebody's, and a pull request's are a stranger's. Tabs are left, and the colours
// of the writer where there are any.
func harmless(text string, coloured bool) string {
	colours := regexp.MustCompile(`\x1b\[[0-9;]*m`)
	var b strings.Builder
	for i, line := range strings.Split(text, "\n") {
		if i > 0 {
			b.WriteByte('\n')
		}
		line = strings.TrimSuffix(line, "\r") // of a file with such line ends
		for line != "" {
			from, to := len(line), len(line)
			if j := strings.IndexByte(line, '\t'); j >= 0 {
				from, to = j, j+1
			}
			if at := colours.FindStringIndex(line); coloured && at != nil && at[0] < from {
				from, to = at[0], at[1]
			}
			b.WriteString(printable(line[:from]) + line[from:to])
			line = line[to:]
		}
	}
	return b.String()
}

// Error shows an error that ended a command.
func (t *Text) Error(err error) {
	for i, text := range strings.Split(strings.TrimSpace(err.Error()), "\n") {
		if i == 0 {
			t.styled(0, "", t.styles.remove.Render("Error:")+" "+printable(text))
			continue
		}
		t.line(2, "", strings.TrimSpace(text))
	}
}

// Warn shows what does not end the command.
func (t *Text) Warn(text string) {
	t.styled(0, "", t.styles.update.Render("Warning:")+" "+printable(text))
}

// Valid says that a configuration has no fault.
func (t *Text) Valid(owner string, fleets, replicas int) {
	t.line(0, "", fmt.Sprintf("The configuration of %s is valid: %s, %s wanted.", owner, count(fleets, "fleet"), count(replicas, "host")))
}

// Print prints plain text as it is.
func (t *Text) Print(text string) { fmt.Fprint(t.out, text) }

// Say prints a line, wrapped.
func (t *Text) Say(text string) { t.line(0, "", text) }

// Table prints rows of columns, the first of them the heads.
func (t *Text) Table(rows [][]string) { t.table(rows) }
