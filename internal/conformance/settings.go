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

// Experiment tests a Mac that may be disrupted: it changes something, records the effect, and reverts
// it. Its script prints lines "KEY: VALUE", which are judged, and other output for the report.
type Experiment struct {
	Name   string
	Expect []Expectation
}

// Expectation is the value of one KEY that macfleet relies on.
type Expectation struct {
	Key      string
	Accepted []string // accepted values; one that ends in * is a prefix
	SameAs   string   // another KEY, whose value is the accepted one
	Means    string   // what macfleet relies on
	Else     string   // what any other value means for macfleet
}

// Experiments returns all experiments in the order in which they run.
func Experiments() []Experiment {
	either := "please report this: macfleet relies on it"
	return []Experiment{
		{"pf", []Expectation{
			{Key: "counted", Accepted: []string{"yes"},
				Means: "pf counts references, and a token releases its own", Else: either},
			{Key: "the last reference gone", Accepted: []string{"Disabled", "not known*"},
				Means: "releasing the last reference disables pf, even if it was enabled without one", Else: either},
			{Key: "on afterwards", SameAs: "on before",
				Means: "pf has its former state",
				Else:  "pf does not have its former state: `sudo pfctl -e` enables it, `sudo pfctl -d` disables it"},
		}},
		{"swap", []Expectation{
			{Key: "loaded", Accepted: []string{"running"},
				Means: "a job with a small ad-hoc signed program runs", Else: "the rows below mean nothing"},
			{Key: "kickstart after a swap", Accepted: []string{"killed", "exit 78", "running"},
				Means: "launchd pins a job's program: a kickstart kills other bytes (macfleet also works if they run)", Else: either},
			{Key: "loaded again", Accepted: []string{"running"},
				Means: "a job that is loaded again accepts other bytes", Else: either},
			{Key: "kickstart of the same bytes", Accepted: []string{"running"},
				Means: "a kickstart is enough if the bytes are the same", Else: either},
		}},
		{"bundle", []Expectation{
			{Key: "exit of mv", Accepted: []string{"0"},
				Means: "a bundle that was launched can be moved aside over SSH",
				Else:  "an update of Tart needs full disk access for remote users"},
			{Key: "exit of rm", Accepted: []string{"0", "1"},
				Means: "the moved bundle can be deleted, or remains with a warning", Else: either},
		}},
		{"vm", []Expectation{
			{Key: "during, points", Accepted: []string{"4", "3"},
				Means: "vmnet adds its anchors to the live main ruleset", Else: either},
			{Key: "during, guest", Accepted: []string{"reaches", "not known*"}, Means: "a guest has a network", Else: either},
			{Key: "exit of the load", Accepted: []string{"0"},
				Means: "the main ruleset can be loaded while a guest runs", Else: either},
			{Key: "after the load, guest", Accepted: []string{"reaches", "does not reach", "no address", "not known*"},
				Means: "whether a full load cuts the guests' network: if so, macfleet avoids it", Else: either},
			{Key: "after, points", Accepted: []string{"0", "3", "4"},
				Means: "whether vmnet's anchors are removed with the last guest", Else: either},
		}},
		{"loginwindow", []Expectation{
			{Key: "exit of kickstart", Accepted: []string{"0", "1", "150"},
				Means: "whether macOS lets root restart loginwindow", Else: either},
			{Key: "another process", Accepted: []string{"yes", "no"},
				Means: "whether it restarted; if not, macfleet uses the other method", Else: either},
		}},
	}
}

// Script returns the script of an experiment, of guard or of restore, with the part that all share.
func Script(name string) string {
	var parts []string
	for _, file := range []string{"shared/settings", "settings/" + name} {
		text, err := settingsScripts.ReadFile(path.Join("scripts", file+".sh"))
		if err != nil {
			panic(fmt.Sprintf("unknown experiment %q: %v", name, err)) // the names are constants of this package
		}
		parts = append(parts, string(text))
	}
	return strings.Join(parts, "")
}

// Values returns the lines "KEY: VALUE" of a script's output.
func Values(stdout string) map[string]string {
	values := make(map[string]string)
	shown := false
	for line := range strings.Lines(stdout) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "---") {
			shown = line != "---" // lines between two "---" are only for the report
		}
		if key, value, is := strings.Cut(line, ": "); is && !shown {
			values[key] = value
		}
	}
	return values
}

// Verdict is the result of one expectation.
type Verdict struct {
	Experiment, Key, Value string
	Fits                   bool
	NotRun                 string
	Expectation
}

// JudgeExperiment compares an experiment's output with its expectations.
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

// Settled formats verdicts as a table for a person.
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

// Scrubbed patterns. Addresses of private networks stay: they are the same everywhere.
var (
	ipv4     = regexp.MustCompile(`\b(?:\d{1,3}\.){3}\d{1,3}\b`)
	private  = regexp.MustCompile(`^(?:0\.|10\.|127\.|169\.254\.|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.)`)
	ipv6     = regexp.MustCompile(`\b[0-9a-fA-F]{1,4}(?::[0-9a-fA-F]{0,4}){3,7}\b`)
	uuid     = regexp.MustCompile(`(?i)\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`)
	longNum  = regexp.MustCompile(`\b\d{12,}\b`)
	mailLike = regexp.MustCompile(`[\w.+-]+@[\w-]+(?:\.[\w-]+)+`)
)

// ScrubReport removes addresses, identifiers and the given words from a report.
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
