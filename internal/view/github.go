package view

import (
	"cmp"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/plan"
)

// mostNotes is how many notes of one level GitHub takes from a step of a job.
const mostNotes = 10

// note is a note of GitHub's on a line of a file; one without a file has no place.
type note struct {
	file string
	line int
	text string
}

// notes writes notes of one level. Of more than GitHub takes the last one says how many
// there are, in the words of more.
func notes(level string, all []note, more string) string {
	var b strings.Builder
	for i, n := range all[:min(len(all), mostNotes)] {
		if rest := len(all) - mostNotes; i == mostNotes-1 && rest > 0 {
			n.text += fmt.Sprintf(more, rest)
		}
		place := ""
		if n.file != "" {
			place = fmt.Sprintf("file=%s,line=%d,", property(printable(n.file)), n.line)
		}
		fmt.Fprintf(&b, "::%s %stitle=macfleet::%s\n", level, place, commandText(printable(n.text)))
	}
	return b.String()
}

// commandText and property write a text so that it stays within its place in a
// command to GitHub's runner.
func commandText(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(s)
}

func property(s string) string {
	return strings.NewReplacer(":", "%3A", ",", "%2C").Replace(commandText(s))
}

// GitHubFaults prints the faults of a configuration as notes of GitHub's on their
// lines, errors first. dir stands in front of the files' names: the configuration's
// folder as the repository has it.
func GitHubFaults(out io.Writer, diags hcl.Diagnostics, dir string) error {
	of := make(map[hcl.DiagnosticSeverity][]note)
	for _, d := range diags {
		n := note{text: d.Summary + ": " + d.Detail}
		if r := d.Subject; r != nil {
			n.file, n.line = path.Join(dir, r.Filename), r.Start.Line
		}
		of[d.Severity] = append(of[d.Severity], n)
	}
	const more = " And %d more, which macfleet validate lists."
	_, err := io.WriteString(out, notes("error", of[hcl.DiagError], more)+notes("warning", of[hcl.DiagWarning], more))
	return err
}

// GitHubLayout prints notes of GitHub's on files that fmt would change, named as the
// repository has them.
func GitHubLayout(out io.Writer, names []string) error {
	all := mapped(names, func(name string) note {
		return note{name, 1, "It is not laid out in the canonical way; run macfleet fmt."}
	})
	_, err := io.WriteString(out, notes("error", all, " And %d more files."))
	return err
}

// annotation is what is noted on a line of the configuration: the same of all its hosts.
type annotation struct {
	level string // notice, warning
	at    fleet.Source
	what  string
}

// annotated is a host with what is noted of it.
type annotated struct {
	annotation
	host string
}

// GitHubAnnotations prints what a plan would do as notes of GitHub's on the lines of
// the configuration that want it: the value's own, else its block's. dir stands in
// front of the files' names: the configuration's folder as the repository has it. A
// value that nobody wrote has no line, and no note.
func GitHubAnnotations(out io.Writer, p *plan.Plan, cfg *fleet.Config, dir string) error {
	var all []annotated
	for _, a := range p.Actions {
		all = append(all, annotationsOf(a, cfg)...)
	}
	same := grouped(all, func(a annotated) annotation { return a.annotation })
	slices.SortStableFunc(same, func(a, b []annotated) int {
		return cmp.Or(cmp.Compare(a[0].at.File, b[0].at.File), cmp.Compare(a[0].at.Line, b[0].at.Line))
	})
	of := make(map[string][]note) // by level
	for _, g := range same {
		names := mapped(g, func(a annotated) string { return a.host })
		who := strings.Join(names[:min(len(names), 3)], ", ")
		if more := len(names) - 3; more > 0 {
			who += fmt.Sprintf(", and %d more", more)
		}
		of[g[0].level] = append(of[g[0].level], note{path.Join(dir, g[0].at.File), g[0].at.Line, g[0].what + ": " + who})
	}
	const more = "; and %d more such notes, which stand in the plan alone"
	_, err := io.WriteString(out, notes("warning", of["warning"], more)+notes("notice", of["notice"], more))
	return err
}

// annotationsOf returns the notes of one action: one for each line that wants
// something of it.
func annotationsOf(a plan.Action, cfg *fleet.Config) []annotated {
	sources := cfg.SourcesOf(a.Host, a.Fleet, a.Group)
	level, behind := "notice", ""
	if a.Disruption > plan.NoDisruption {
		behind = " (" + a.Disruption.String() + ")"
	}
	if a.Refusal != nil {
		behind = "; not done: " + a.Refusal.Code.String()
	}
	if a.Refusal != nil || a.Disruption > plan.Restart {
		level = "warning"
	}
	var out []annotated
	add := func(at fleet.Source, what string) {
		if at.File != "" {
			out = append(out, annotated{annotation{level, at, what + behind}, a.Host})
		}
	}
	switch {
	case a.Kind.OfStep():
		own := func(value string) string { return cmp.Or(strings.ReplaceAll(value, a.Host, ownName), "not set") }
		block := sources.Of(string(a.Step))
		for _, f := range a.Fields {
			at := sources.Of(string(a.Step) + "." + strings.ReplaceAll(f.Name, " ", "_"))
			if at.File == "" {
				at = block
			}
			add(at, fmt.Sprintf("%s: %s: %s → %s", a.Step, f.Name, own(f.Before), own(f.After)))
		}
		if len(a.Fields) == 0 {
			add(block, fmt.Sprintf("%s (%s)", a.Step, a.Reason.Code))
		}
	case a.Kind == plan.ClaimServer, a.Kind == plan.ReleaseServer, a.Kind == plan.ReplaceServer:
		add(sources.Of("type"), fmt.Sprintf("%s (%s)", label(a), a.Reason.Code))
	}
	return out
}
