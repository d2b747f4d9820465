package main

import (
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// completes WORDS ARGS... checks the completions of a command line, and that nothing
// else is printed.
func completes(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: completes WORDS ARGS...")
	}
	ts.Check(ts.Exec("macfleet", append([]string{"__complete"}, args[1:]...)...))
	var words []string
	for line := range strings.Lines(ts.ReadFile("stdout")) {
		if word := strings.TrimSpace(line); !strings.HasPrefix(word, ":") {
			words = append(words, word)
		}
	}
	if got := strings.Join(words, " "); got != args[0] {
		ts.Fatalf("%s: offered %q, wanted %q", strings.Join(args[1:], " "), got, args[0])
	}
	if said := ts.ReadFile("stderr"); !strings.HasPrefix(said, "Completion ended") || strings.Count(said, "\n") > 1 {
		ts.Fatalf("it said: %s", said)
	}
}
