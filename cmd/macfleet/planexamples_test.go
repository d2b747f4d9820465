package main

import (
	"encoding/json"
	"path/filepath"
	"strings"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"
)

// shows EXAMPLE saves the plan of an example in a file, and checks that the file shows
// the same as the plan.
func shows(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: shows EXAMPLE")
	}
	ts.Setenv("MACFLEET_DIRECTORY", filepath.Join(ts.Getenv("EXAMPLES"), args[0]))
	ts.Setenv("MACFLEET_SANDBOX", ts.MkAbs("world-"+args[0]))
	plan := func(more ...string) string { return done(ts, append([]string{"plan"}, more...)...) }
	text := plan("--record", "observed.json", "--out", "kept.json")
	if !strings.Contains(text, "\nPlan: ") {
		ts.Fatalf("nothing is planned:\n%s", text)
	}
	same := func(kind, of, file string) {
		if diff := cmp.Diff(of, file); diff != "" {
			ts.Fatalf("%s of the plan and of the file (-plan +file):\n%s", kind, diff)
		}
	}
	_, _, file := cutHead(done(ts, "show", "kept.json"))
	same("text", text, file)
	title, _, body := cutHead(done(ts, "show", "kept.json", "--format", "markdown"))
	same("Markdown", plan("--snapshot", "observed.json", "--format", "markdown"), title+"\n\n"+body)
	var whole struct{ Plan any }
	ts.Check(json.Unmarshal([]byte(done(ts, "show", "kept.json", "--json")), &whole))
	var live any
	ts.Check(json.Unmarshal([]byte(plan("--snapshot", "observed.json", "--json")), &live))
	if diff := cmp.Diff(live, whole.Plan); diff != "" {
		ts.Fatalf("JSON of the plan and of the file (-plan +file):\n%s", diff)
	}
}

// cutHead splits the output of show: its first line, the file's data, and the plan.
func cutHead(text string) (first, head, rest string) {
	first, rest, _ = strings.Cut(text, "\n")
	if strings.HasPrefix(first, "Made ") {
		head, rest, _ = strings.Cut(rest, "\n\n")
		return first, head, rest
	}
	head, rest, _ = strings.Cut(strings.TrimPrefix(rest, "\n"), "\n\n")
	return first, head, rest
}
