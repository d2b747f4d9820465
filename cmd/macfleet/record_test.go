package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/macfleet/macfleet/internal/schematest"
)

// schema NAME FILE checks a document, or every line of a stream, against its schema.
func schema(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: schema NAME FILE")
	}
	follows(ts, args[0], ts.ReadFile(args[1]))
}

// follows checks a text against the schema NAME.
func follows(ts *testscript.TestScript, name, text string) {
	validate := schematest.Validate
	if name == "stream" || name == "record" {
		validate = schematest.ValidateLines
	}
	if err := validate(name, []byte(text)); err != nil {
		ts.Fatalf("schema %s: %v\n%s", name, err, text)
	}
}

// recorded observes the world, saves the observation, removes the world, and checks that
// the file gives the same bytes and exit codes. recorded all does so for all commands.
func recorded(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 1 {
		ts.Fatalf("usage: recorded [all]")
	}
	world := ts.Getenv("MACFLEET_SANDBOX")
	gone := world + "-gone"
	file := ts.MkAbs("recorded.json")
	ways := [][]string{{"plan", "--detailed-exitcode"}, {"plan", "--json"}}
	if len(args) == 1 {
		ways = append(ways, []string{"drift"}, []string{"drift", "--json"}, []string{"hosts", "-o", "wide"}, []string{"hosts", "-o", "json"})
	}
	codes, texts := make([]int, len(ways)), make([]string, len(ways))
	for i, way := range ways {
		a := macfleet(ts, append(way, "--record", file)...)
		codes[i], texts[i] = a.Code, a.Out
	}
	follows(ts, "snapshot", ts.ReadFile(file))
	ts.Check(os.Rename(world, gone))
	ts.Setenv("MACFLEET_SANDBOX", "")
	for i, way := range ways {
		a := macfleet(ts, append(way, "--snapshot", file)...)
		if a.Code != codes[i] || untimed(a.Out) != untimed(texts[i]) {
			ts.Fatalf("%s: exit %d and from the file %d:\n%s\n%s", strings.Join(way, " "), codes[i], a.Code, texts[i], a.Out)
		}
		// The first line has a second sentence if the record lacks something.
		if first, _, _ := strings.Cut(a.Err, "\n"); !strings.HasPrefix(first, "From "+file+", observed ") || !strings.HasSuffix(first, " UTC.") {
			ts.Fatalf("%s: stderr starts with: %s", strings.Join(way, " "), first)
		}
		switch strings.Join(way, " ") {
		case "plan --json", "drift --json":
			follows(ts, "plan", a.Out)
		case "hosts -o json":
			follows(ts, "hosts", a.Out)
		}
	}
	ts.Setenv("MACFLEET_SANDBOX", world)
	if _, err := os.Stat(world); err == nil {
		ts.Fatalf("a plan from a file made a world")
	}
	ts.Check(os.Rename(gone, world))
}

// untimed returns a plan without its expected time: that depends on the records of runs, which the world takes along.
func untimed(text string) string {
	return regexp.MustCompile(`~\d+ \w+|"expected_seconds": \d+|"recorded_runs": \d+|"defaults": \w+`).ReplaceAllString(text, "")
}

// absent TEXT FILE... checks that no file, and no file below a folder, contains a text.
func absent(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: absent TEXT FILE...")
	}
	for _, name := range args[1:] {
		if name == "stdout" || name == "stderr" {
			if text := ts.ReadFile(name); strings.Contains(text, args[0]) {
				ts.Fatalf("%q is in %s:\n%s", args[0], name, text)
			}
			continue
		}
		ts.Check(filepath.WalkDir(ts.MkAbs(name), func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			if err == nil && strings.Contains(string(text), args[0]) {
				ts.Fatalf("%q is in %s", args[0], path)
			}
			return err
		}))
	}
}

// replace OLD NEW FILE replaces a text, which must exist.
func replaceText(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: replace OLD NEW FILE")
	}
	text := ts.ReadFile(args[2])
	if !strings.Contains(text, args[0]) {
		ts.Fatalf("%s does not hold %q:\n%s", args[2], args[0], text)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), []byte(strings.ReplaceAll(text, args[0], args[1])), 0o644))
}
