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
	SameAs   string   // another KEY, whose value is the accepted one
	Means    string   // what it rests on
	Else     string   // what another value means for macfleet
}

// Experiments are all of them, in the order in which they run.
func Experiments() []Experiment {
	either := "tell us: macfleet is written for this and may be wrong"
	return []Experiment{
		{"pf", []Expectation{
			{Key: "counted", Accepted: []string{"yes"},
				Means: "pf counts references, and gives ours back by its token", Else: either},
			{Key: "the last reference gone", Accepted: []string{"Disabled", "not known*"},
				Means: "pf stops with the last reference, also where it was enabled without one", Else: either},
			{Key: "on afterwards", SameAs: "on before",
				Means: "pf is as it was before",
				Else:  "pf is not as it was: `sudo pfctl -e` enables it, `sudo pfctl -d` disables it"},
		}},
		{"swap", []Expectation{
			{Key: "loaded", Accepted: []string{"running"},
				Means: "a job of a small ad-hoc signed program runs", Else: "nothing below says anything"},
			{Key: "kickstart after a swap", Accepted: []string{"killed", "exit 78", "running"},
				Means: "launchd pins a job's program: other bytes are killed by a kickstart (where it says running, they are not, and macfleet is right as well)", Else: either},
			{Key: "loaded anew", Accepted: []string{"running"},
				Means: "a job that is loaded anew takes other bytes", Else: either},
			{Key: "kickstart of the same bytes", Accepted: []string{"running"},
				Means: "a kickstart is enough where the bytes are the same", Else: either},
		}},
		{"bundle", []Expectation{
			{Key: "exit of mv", Accepted: []string{"0"},
				Means: "a bundle that was launched can be moved aside over SSH",
				Else:  "an update of Tart needs full disk access for remote users"},
			{Key: "exit of rm", Accepted: []string{"0", "1"},
				Means: "what was moved aside can be deleted, or stays as a leftover with a warning", Else: either},
		}},
		{"vm", []Expectation{
			{Key: "during, points", Accepted: []string{"4", "3"},
				Means: "vmnet adds its points to the live main ruleset", Else: either},
			{Key: "during, guest", Accepted: []string{"reaches", "not known*"}, Means: "a guest has a network", Else: either},
			{Key: "exit of the load", Accepted: []string{"0"},
				Means: "the main ruleset can be loaded while a guest runs", Else: either},
			{Key: "after the load, guest", Accepted: []string{"reaches", "does not reach", "no address", "not known*"},
				Means: "whether a full load cuts the guests' network: macfleet makes none then", Else: either},
			{Key: "after, points", Accepted: []string{"0", "3", "4"},
				Means: "whether vmnet's points go with the last guest", Else: either},
		}},
		{"loginwindow", []Expectation{
			{Key: "exit of kickstart", Accepted: []string{"0", "1", "150"},
				Means: "whether macOS lets root start loginwindow anew", Else: either},
			{Key: "another process", Accepted: []string{"yes", "no"},
				Means: "whether it did; where not, macfleet takes the second way", Else: either},
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
		if want.SameAs != "" && values[want.SameAs] != "" {
			want.Accepted = []string{values[want.SameAs]}
		}
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
