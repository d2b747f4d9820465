package conformance

import (
	"embed"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

//go:embed scripts/settings/*.sh scripts/shared/settings.sh
var settingsScripts embed.FS

// Experiment is a question to a Mac that may be disturbed: it changes something, looks, and takes it back. Its script
// prints lines "KEY: VALUE", which are judged, and whatever else is worth sending.
type Experiment struct {
	Name   string
	Expect []Expectation
}

// Expectation is what macfleet takes for true of one KEY.
type Expectation struct {
	Key      string
	Accepted []string // values; one that ends in * is a beginning
	Means    string   // what it rests on
	Else     string   // what another value means for macfleet
}

// Experiments are all of them, in the order in which they run.
func Experiments() []Experiment {
	either := "tell us: macfleet is written for this and may be wrong"
	return []Experiment{
		{"pf", []Expectation{
			{"counted", []string{"yes"}, "pf counts references, and gives ours back by its token", either},
			{"on afterwards", []string{"Enabled", "Disabled"}, "whether pf stays on when our reference is gone", either},
		}},
		{"swap", []Expectation{
			{"loaded", []string{"running"}, "a job of a small ad-hoc signed program runs", "nothing below says anything"},
			{"kickstart after a swap", []string{"killed", "exit 78", "other", "running"},
				"launchd pins a job's program: other bytes are killed by a kickstart (where it says running, they are not, and macfleet is right as well)", either},
			{"loaded anew", []string{"running"}, "a job that is loaded anew takes other bytes", either},
			{"kickstart of the same bytes", []string{"running"}, "a kickstart is enough where the bytes are the same", either},
		}},
		{"bundle", []Expectation{
			{"exit of mv", []string{"0"}, "a bundle that was launched can be moved aside over SSH", "an update of Tart needs full disk access for remote users"},
			{"exit of rm", []string{"0", "1"}, "what was moved aside can be deleted, or stays as a leftover with a warning", either},
		}},
		{"vm", []Expectation{
			{"during, points", []string{"4", "3"}, "vmnet adds its points to the live main ruleset", either},
			{"during, guest", []string{"reaches", "not known*"}, "a guest has a network", either},
			{"exit of the load", []string{"0"}, "the main ruleset can be loaded while a guest runs", either},
			{"after the load, guest", []string{"reaches", "does not reach", "no address", "not known*"}, "whether a full load cuts the guests' network: macfleet makes none then", either},
			{"after, points", []string{"0", "3", "4"}, "whether vmnet's points go with the last guest", either},
		}},
		{"loginwindow", []Expectation{
			{"exit of kickstart", []string{"0", "1", "150"}, "whether macOS lets root start loginwindow anew", either},
			{"another process", []string{"yes", "no"}, "whether it did; where not, macfleet takes the second way", either},
		}},
	}
}

// Script returns an experiment's script with what all begin with, or one of guard and restore.
func Script(name string) string {
	var parts []string
	for _, file := range []string{"shared/settings", "settings/" + name} {
		text, err := settingsScripts.ReadFile(path.Join("scripts", file+".sh"))
		if err != nil {
			panic(fmt.Sprintf("no experiment is called %q: %v", name, err)) // they are files of this package
		}
		parts = append(parts, string(text))
	}
	return strings.Join(parts, "")
}

// Values are the lines "KEY: VALUE" that a script printed.
func Values(stdout string) map[string]string {
	values := make(map[string]string)
	shown := false
	for line := range strings.Lines(stdout) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "---") {
			shown = line != "---" // between the two lies what was only shown
		}
		if key, value, is := strings.Cut(line, ": "); is && !shown {
			values[key] = value
		}
	}
	return values
}

// Verdict is what came of one expectation.
type Verdict struct {
	Experiment, Key, Value string
	Fits                   bool
	NotRun                 string
	Expectation
}

// JudgeExperiment compares what an experiment printed with what macfleet takes for true.
func JudgeExperiment(e Experiment, got Result) []Verdict {
	values := Values(got.Stdout)
	var out []Verdict
	for _, want := range e.Expect {
		v := Verdict{Experiment: e.Name, Key: want.Key, Value: values[want.Key], NotRun: values["skipped"], Expectation: want}
		v.Fits = slices.ContainsFunc(want.Accepted, func(a string) bool {
			start, some := strings.CutSuffix(a, "*")
			return v.Value != "" && (a == v.Value || some && strings.HasPrefix(v.Value, start))
		})
		out = append(out, v)
	}
	return out
}

// Settled is the table of verdicts as a person reads it.
func Settled(all []Verdict) string {
	var b strings.Builder
	for _, v := range all {
		switch {
		case v.NotRun != "":
			fmt.Fprintf(&b, "-   %-11s %-28s not run: %s\n", v.Experiment, v.Key, v.NotRun)
		case v.Fits:
			fmt.Fprintf(&b, "ok  %-11s %-28s %s\n", v.Experiment, v.Key, v.Value)
		default:
			fmt.Fprintf(&b, "!!  %-11s %-28s %s (expected %s)\n        %s\n        %s\n", v.Experiment, v.Key, orNothing(v.Value),
				strings.Join(v.Accepted, " or "), v.Means, v.Else)
		}
	}
	return b.String()
}

func orNothing(text string) string {
	if text == "" {
		return "nothing"
	}
	return text
}

// What is taken out of what is sent back. Addresses of private networks stay: they are the same everywhere.
var (
	ipv4     = regexp.MustCompile(`\b(?:\d{1,3}\.){3}\d{1,3}\b`)
	private  = regexp.MustCompile(`^(?:0\.|10\.|127\.|169\.254\.|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.)`)
	ipv6     = regexp.MustCompile(`\b[0-9a-fA-F]{1,4}(?::[0-9a-fA-F]{0,4}){3,7}\b`)
	uuid     = regexp.MustCompile(`(?i)\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`)
	longNum  = regexp.MustCompile(`\b\d{12,}\b`)
	mailLike = regexp.MustCompile(`[\w.+-]+@[\w-]+(?:\.[\w-]+)+`)
)

// ScrubReport takes addresses, identifiers and the given words out of what is sent back.
func ScrubReport(text string, words ...string) string {
	for _, word := range words {
		if len(word) > 1 {
			text = strings.ReplaceAll(text, word, "<name>")
		}
	}
	text = mailLike.ReplaceAllString(text, "<mail>")
	text = uuid.ReplaceAllString(text, "<id>")
	text = ipv6.ReplaceAllString(text, "<address>")
	text = ipv4.ReplaceAllStringFunc(text, func(address string) string {
		if private.MatchString(address) {
			return address
		}
		return "<address>"
	})
	return longNum.ReplaceAllString(text, "<number>")
}
