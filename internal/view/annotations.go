package view

import (
	"cmp"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/plan"
)

// mostAnnotations is how many notes of one level GitHub takes from a step of a job.
const mostAnnotations = 10

// annotation is a note on a line of the configuration.
type annotation struct {
	level string // notice, warning
	at    fleet.Source
	what  string   // the same of all hosts
	hosts []string // of whom
}

// GitHubAnnotations prints what a plan would do as notes of GitHub's on the lines of
// the configuration that want it: the value's own, else its block's. dir stands in
// front of the files' names: the configuration's folder as the repository has it. A
// value that nobody wrote has no line, and no note; of more notes than GitHub takes
// the last one says how many there are.
func GitHubAnnotations(out io.Writer, p *plan.Plan, cfg *fleet.Config, dir string) error {
	var all []annotation
	at := make(map[string]int)
	for i := range p.Actions {
		for _, a := range annotationsOf(p.Actions[i], cfg) {
			key := a.level + a.at.String() + a.what
			if j, ok := at[key]; ok {
				all[j].hosts = append(all[j].hosts, a.hosts...)
				continue
			}
			at[key] = len(all)
			all = append(all, a)
		}
	}
	slices.SortStableFunc(all, func(a, b annotation) int {
		return cmp.Or(cmp.Compare(a.at.File, b.at.File), cmp.Compare(a.at.Line, b.at.Line))
	})
	var b strings.Builder
	for _, level := range []string{"warning", "notice"} {
		of := slices.DeleteFunc(slices.Clone(all), func(a annotation) bool { return a.level != level })
		for i, a := range of {
			text := fmt.Sprintf("%s: %s", a.what, someHosts(a.hosts))
			if more := len(of) - i - 1; i == mostAnnotations-1 && more > 0 {
				text += fmt.Sprintf("; and %d more such notes, which stand in the plan alone", more)
			}
			if i < mostAnnotations {
				fmt.Fprintf(&b, "::%s file=%s,line=%d,title=macfleet::%s\n", level, property(path.Join(dir, a.at.File)), a.at.Line, commandText(printable(text)))
			}
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// annotationsOf returns the notes of one action: one for each line that wants
// something of it.
func annotationsOf(a plan.Action, cfg *fleet.Config) []annotation {
	sources := cfg.SourcesOf(a.Host, a.Fleet, a.Group)
	level, refused := "notice", ""
	if a.Refusal != nil {
		level, refused = "warning", "; not done: "+a.Refusal.Code.String()
	}
	if a.Disruption > plan.Restart {
		level = "warning"
	}
	note := func(at fleet.Source, what string) annotation {
		if a.Disruption > plan.NoDisruption && a.Refusal == nil {
			what += " (" + a.Disruption.String() + ")"
		}
		return annotation{level: level, at: at, what: what + refused, hosts: []string{a.Host}}
	}
	var out []annotation
	switch {
	case a.Kind.OfStep():
		for _, f := range a.Fields {
			at := sources.Of(string(a.Step) + "." + strings.ReplaceAll(f.Name, " ", "_"))
			if at.File == "" {
				at = sources.Of(string(a.Step))
			}
			out = append(out, note(at, fmt.Sprintf("%s: %s: %s → %s", a.Step, f.Name, or(general(plan.Host{Name: a.Host}, f.Before), "not set"), or(general(plan.Host{Name: a.Host}, f.After), "not set"))))
		}
		if len(a.Fields) == 0 {
			out = append(out, note(sources.Of(string(a.Step)), fmt.Sprintf("%s (%s)", a.Step, a.Reason.Code)))
		}
	case a.Kind == plan.ClaimServer, a.Kind == plan.ReleaseServer, a.Kind == plan.ReplaceServer:
		out = append(out, note(sources.Of("type"), fmt.Sprintf("%s (%s)", label(a), a.Reason.Code)))
	}
	return slices.DeleteFunc(out, func(x annotation) bool { return x.at.File == "" })
}

// someHosts names a few hosts, and counts the others.
func someHosts(names []string) string {
	if len(names) > 3 {
		return fmt.Sprintf("%s, and %d more", strings.Join(names[:3], ", "), len(names)-3)
	}
	return strings.Join(names, ", ")
}

// commandText and property write a text so that it stays within its place in a
// command to GitHub's runner.
func commandText(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(s)
}

func property(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C").Replace(s)
}
