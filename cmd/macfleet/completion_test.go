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
	a := macfleet(ts, append([]string{"__complete"}, args[1:]...)...)
	if a.Code != 0 {
		ts.Fatalf("%s: exit %d", strings.Join(args[1:], " "), a.Code)
	}
	var words []string
	for line := range strings.Lines(a.Out) {
		if word := strings.TrimSpace(line); !strings.HasPrefix(word, ":") {
			words = append(words, word)
		}
	}
	if got := strings.Join(words, " "); got != args[0] {
		ts.Fatalf("%s: offered %q, wanted %q", strings.Join(args[1:], " "), got, args[0])
	}
	if said := a.Err; !strings.HasPrefix(said, "Completion ended") || strings.Count(said, "\n") > 1 {
		ts.Fatalf("it said: %s", said)
	}
}
