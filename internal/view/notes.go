package view

import (
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/hashicorp/hcl/v2"
)

// GitHubFaults prints the faults of a configuration as notes of GitHub's on their
// lines, errors first. dir stands in front of the files' names: the configuration's
// folder as the repository has it. Of more than GitHub takes the last one says how
// many there are.
func GitHubFaults(out io.Writer, diags hcl.Diagnostics, dir string) error {
	of := make(map[hcl.DiagnosticSeverity]hcl.Diagnostics)
	for _, d := range diags {
		of[d.Severity] = append(of[d.Severity], d)
	}
	_, err := io.WriteString(out, faultNotes("error", of[hcl.DiagError], dir)+faultNotes("warning", of[hcl.DiagWarning], dir))
	return err
}

func faultNotes(level string, of hcl.Diagnostics, dir string) string {
	var b strings.Builder
	for i, d := range of[:min(len(of), mostAnnotations)] {
		place, text := "", d.Summary+": "+d.Detail
		if r := d.Subject; r != nil {
			place = fmt.Sprintf("file=%s,line=%d,", property(printable(path.Join(dir, r.Filename))), r.Start.Line)
		}
		if more := len(of) - i - 1; i == mostAnnotations-1 && more > 0 {
			text += fmt.Sprintf(" And %d more, which macfleet validate lists.", more)
		}
		fmt.Fprintf(&b, "::%s %stitle=macfleet::%s\n", level, place, commandText(printable(text)))
	}
	return b.String()
}

// GitHubLayout prints notes of GitHub's on files that fmt would change, named as the
// repository has them.
func GitHubLayout(out io.Writer, names []string) error {
	var b strings.Builder
	for i, name := range names[:min(len(names), mostAnnotations)] {
		text := "It is not laid out in the canonical way; run macfleet fmt."
		if more := len(names) - i - 1; i == mostAnnotations-1 && more > 0 {
			text += fmt.Sprintf(" And %d more files.", more)
		}
		fmt.Fprintf(&b, "::error file=%s,line=1,title=macfleet::%s\n", property(printable(name)), text)
	}
	_, err := io.WriteString(out, b.String())
	return err
}
