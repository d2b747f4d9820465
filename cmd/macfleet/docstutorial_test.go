package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"
)

var updateDocs = flag.Bool("docs.update", false, "write what the tutorial's commands print into its excerpts")

// statement is a command of the tutorial with the exit code that its comment names.
type statement struct {
	text, place string
	exit        int
}

// statements are a block's commands, first to last.
func statements(t *testing.T, b fenced) (out []statement) {
	t.Helper()
	file, err := syntax.NewParser().Parse(strings.NewReader(b.text), b.place())
	must(t, err)
	for _, s := range file.Stmts {
		rest, _, _ := strings.Cut(b.text[s.End().Offset():], "\n")
		one := statement{text: b.text[s.Pos().Offset():s.End().Offset()], place: fmt.Sprintf("%s:%d", b.page, b.line+int(s.Pos().Line())-1)}
		if m := regexp.MustCompile(`^\s*# exit (\d+)$`).FindStringSubmatch(rest); m != nil {
			one.exit, _ = strconv.Atoi(m[1])
		}
		out = append(out, one)
	}
	return out
}

// TestFirstPages: README and the tutorial work in the order in which they are read, in one shell that has only the examples.
// The tutorial's commands have the documented exit codes and print what the page shows. .ci/demo checks the demo.
func TestFirstPages(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, os.CopyFS(filepath.Join(dir, "examples"), os.DirFS("../../examples")))
	for _, sub := range []string{"out", "bin"} {
		must(t, os.Mkdir(filepath.Join(dir, sub), 0o755))
	}
	self, err := os.Executable()
	must(t, err)
	must(t, os.Symlink(self, filepath.Join(dir, "bin", "macfleet")))
	var readme []string
	for _, b := range blocks(t, "README.md") {
		for _, s := range statements(t, b) {
			readme = append(readme, s.text)
		}
	}
	if !slices.Equal(readme, []string{"make demo", "make test"}) {
		t.Fatalf("README's commands are %q", readme)
	}
	script := "make() { [ \"$*\" = build ]; }\nout=$PWD/out\n" // macfleet is built already
	printed := 0
	excerpts := make(map[int]fenced) // by the number of the command that prints it
	for _, b := range blocks(t, "docs/tutorial.md") {
		if b.kind == "text" && strings.HasPrefix(b.spec, "<!-- output") {
			excerpts[printed] = b
		}
		if b.kind != "sh" {
			continue
		}
		for _, s := range statements(t, b) {
			printed++
			// On a loaded machine an observation takes so long that a young kubelet cannot be judged yet.
			tries := "1"
			if strings.Contains(s.text, " hosts") {
				tries = "1 2 3 4 5"
			}
			script += fmt.Sprintf("for try in %s; do { %s\n} >$out/%d 2>&1; code=$?; grep -q ' unknown ' $out/%[3]d || break; [ $try = %[6]d ] || sleep 3; done\n"+
				"[ $code = %[4]d ] || { echo '%s: exit' $code; cat $out/%[3]d; exit 1; }\n", tries, s.text, printed, s.exit, s.place, len(strings.Fields(tries)))
		}
	}
	sh := exec.CommandContext(t.Context(), "sh", "-c", script)
	sh.Dir = dir
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "MACFLEET_") && !strings.HasPrefix(e, "HOME=") {
			sh.Env = append(sh.Env, e)
		}
	}
	sh.Env = append(sh.Env, "HOME="+dir)
	if said, err := sh.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	output := func(name string) string {
		text, err := os.ReadFile(filepath.Join(dir, "out", name))
		must(t, err)
		return string(text)
	}
	for n := printed; n > 0; n-- { // backwards, so that rewriting one moves no other
		b, ok := excerpts[n]
		if !ok {
			continue
		}
		shown := regexp.MustCompile(`\b[\w.-]+@[\w.-]+`).ReplaceAllString(strings.ReplaceAll(output(strconv.Itoa(n)), dir+"/my-fleet/", ""), "sam@desk")
		want := excerpt(t, b, shown)
		if *updateDocs {
			rewrite(t, b, want)
		} else if lasting(b.text) != lasting(want) {
			t.Errorf("%s shows\n%s\nand the command prints (-docs.update writes it)\n%s", b.place(), b.text, want)
		}
	}
	left, err := filepath.Glob(filepath.Join(dir, "examples", "three-fleets", "*macfleet*"))
	if must(t, err); len(left) > 0 {
		t.Errorf("the tutorial left %q", left)
	}
}

// excerpt is the part of an output that a block shows: all of it, or its "first N" and "last N" lines.
func excerpt(t *testing.T, b fenced, text string) string {
	t.Helper()
	lines := strings.Split(strings.Trim(text, "\n"), "\n")
	count := func(which string) int {
		m := regexp.MustCompile(which + ` (\d+)`).FindStringSubmatch(b.spec)
		if m == nil {
			return 0
		}
		n, err := strconv.Atoi(m[1])
		must(t, err)
		return n
	}
	first, last := count("first"), count("last")
	if first+last == 0 || first+last >= len(lines) {
		return strings.Join(lines, "\n") + "\n"
	}
	var shown []string
	if shown = append(shown, lines[:first]...); first > 0 {
		shown = append(shown, "…")
	}
	return strings.Join(append(shown, lines[len(lines)-last:]...), "\n") + "\n"
}

// lasting removes from a text what differs between runs: figures, ids, keys and times.
func lasting(text string) string {
	text = regexp.MustCompile(`~\d+ (s|min|h)\b`).ReplaceAllString(text, "N") // a slow machine needs minutes
	text = regexp.MustCompile(`\S*\d\S*|\S+@\S+|\b[a-z]{10}\b`).ReplaceAllString(text, "N")
	return strings.TrimSpace(regexp.MustCompile(`\s+|[#.]{3,}`).ReplaceAllString(text, " "))
}

// rewrite puts a text into the block of a page. Blocks above it stay where they are.
func rewrite(t *testing.T, b fenced, text string) {
	t.Helper()
	name := filepath.Join("../..", b.page)
	page, err := os.ReadFile(name)
	must(t, err)
	lines := strings.SplitAfter(string(page), "\n")
	end := b.line - 1 + strings.Count(b.text, "\n")
	must(t, os.WriteFile(name, []byte(strings.Join(lines[:b.line-1], "")+text+strings.Join(lines[end:], "")), 0o644))
}
