package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"

	"github.com/macfleet/macfleet/fleet/load"
	"github.com/macfleet/macfleet/internal/sandbox"
)

// fenced is a block of a page between two lines of backticks.
type fenced struct {
	page, kind, text string
	line             int // of its first line
	spec             string
}

// place names the block for a message.
func (f fenced) place() string { return fmt.Sprintf("%s:%d", f.page, f.line) }

// pages are the documentation's files, from the root of the repository.
func pages(t *testing.T) []string {
	t.Helper()
	all := []string{"README.md", "examples/ci/README.md"}
	for _, pattern := range []string{"docs/*.md", "docs/*/*.md"} {
		found, err := filepath.Glob(filepath.Join("../..", pattern))
		must(t, err)
		for _, name := range found {
			all = append(all, strings.TrimPrefix(filepath.ToSlash(name), "../../"))
		}
	}
	return all
}

// blocks returns the fenced blocks of a page. A block in a list is indented with it.
func blocks(t *testing.T, page string) (out []fenced) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../..", page))
	must(t, err)
	var open *fenced
	indent, before := "", ""
	for i, line := range strings.Split(string(text), "\n") {
		trimmed := strings.TrimSpace(line)
		switch {
		case open == nil && strings.HasPrefix(trimmed, "```"):
			indent, _, _ = strings.Cut(line, "`")
			open = &fenced{page: page, kind: strings.TrimPrefix(trimmed, "```"), line: i + 2, spec: before}
		case open != nil && trimmed == "```":
			out = append(out, *open)
			open = nil
		case open != nil:
			open.text += strings.TrimPrefix(line, indent) + "\n"
		}
		before = trimmed
	}
	if open != nil {
		t.Errorf("%s: a block has no end", open.place())
	}
	return out
}

// TestDocsCommands: macfleet accepts every command in the pages, with its flags.
func TestDocsCommands(t *testing.T) {
	t.Parallel()
	read := 0
	for _, page := range pages(t) {
		for _, b := range blocks(t, page) {
			switch b.kind {
			case "sh":
			case "hcl", "text", "go", "json", "promql":
				continue
			default:
				t.Errorf("%s: a block is sh, hcl, text, go, json or promql, not %q", b.place(), b.kind)
				continue
			}
			for _, words := range commandLines(t, b) {
				read++
				equal(t, unparsed(words), "", b.place(), "macfleet", strings.Join(words, " "))
			}
		}
	}
	if read < 100 {
		t.Errorf("only %d commands were read", read)
	}
}

// commandLines are the arguments of each macfleet that a block runs.
func commandLines(t *testing.T, b fenced) (out [][]string) {
	t.Helper()
	file, err := syntax.NewParser().Parse(strings.NewReader(b.text), b.place())
	if err != nil {
		t.Errorf("%s: %v", b.place(), err)
		return nil
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		call, ok := n.(*syntax.CallExpr)
		if !ok || len(call.Args) == 0 {
			return true
		}
		words := make([]string, len(call.Args))
		for i, w := range call.Args {
			words[i] = plainWord(w)
		}
		if words[0] == "macfleet" || words[0] == "bin/macfleet" {
			out = append(out, words[1:])
		}
		return true
	})
	return out
}

// plainWord is a word of a shell without its quotes.
func plainWord(w *syntax.Word) (text string) {
	for _, part := range w.Parts {
		switch part := part.(type) {
		case *syntax.Lit:
			text += part.Value
		case *syntax.SglQuoted:
			text += part.Value
		case *syntax.DblQuoted:
			text += plainWord(&syntax.Word{Parts: part.Parts})
		}
	}
	return text
}

// TestRunbook: in each situation that can be practised, the runbook's first command works and names the code.
func TestRunbook(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/runbook.md")
	must(t, err)
	here := map[string]string{sandbox.GitHubAccount: sandbox.GitHubAccount} // by the page's names
	w := newDocWorld(t)
	for example, fleet := range map[string]string{"00c3b": "runners", "6cb81": "builders"} {
		name := strings.TrimSpace(w.runs(0, "hosts", "-o", "name", "--on", "fleet="+fleet))
		here[example] = name[len(name)-5:]
	}
	practised := 0
	for _, section := range strings.Split(string(text), "\n### ")[1:] {
		title, _, _ := strings.Cut(section, "\n")
		practise := regexp.MustCompile("(?m)^Practise: `sandbox inject (\\S+) (\\S+)`$").FindStringSubmatch(section)
		command := regexp.MustCompile("```sh\nmacfleet ([^\n]*)\n").FindStringSubmatch(section)
		code := regexp.MustCompile("`([a-z-]+)`").FindStringSubmatch(title)
		if practise != nil && code == nil {
			code = practise[1:] // a situation with many causes: the incident is one
		}
		for _, part := range []string{"**Means:**", "**Do:**", "**Call someone"} {
			has(t, section, part, title)
		}
		if practise == nil {
			continue
		}
		practised++
		w, on := newDocWorld(t), here[practise[1]]
		w.runs(0, "sandbox", "inject", on, practise[2])
		if said := w.runs(3, strings.Fields(strings.ReplaceAll(command[1], practise[1], on))...); !strings.Contains(said, code[1]) {
			t.Errorf("%s: macfleet %s does not name the code:\n%s", title, command[1], said)
		}
	}
	if practised < 12 {
		t.Errorf("only %d situations can be practised", practised)
	}
}

// docWorld is a simulated world in which pages are tried.
type docWorld struct {
	t     *testing.T
	dir   string
	place []string
}

// newDocWorld copies the small fleets' converged canary environment, whose hosts may be drained at any time.
func newDocWorld(t *testing.T) *docWorld {
	dir := t.TempDir()
	smallFleets(t, filepath.Join(dir, "fleets"))
	return &docWorld{t: t, dir: dir, place: []string{"-C", filepath.Join(dir, "fleets"), "-e", "canary", "--sandbox=" + smallWorld(t, "canary")}}
}

// runs runs macfleet and returns what it prints.
func (w *docWorld) runs(exit int, args ...string) string {
	w.t.Helper()
	return runAt(w.t, exit, w.place, args...)
}

// TestReadme: README counts the steps and links every example.
func TestReadme(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../README.md")
	must(t, err)
	steps := make(map[string]bool)
	for _, top := range load.Schema().Blocks {
		for _, b := range top.Blocks {
			if b.Step {
				steps[b.Name] = true
			}
		}
	}
	words := []string{10: "ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty"}
	if want := "It keeps " + words[len(steps)] + " concerns on a host"; !strings.Contains(string(text), want) {
		t.Errorf("README does not say %q", want)
	}
	examples, err := os.ReadDir("../../examples")
	must(t, err)
	for _, e := range examples {
		if link := "](examples/" + e.Name() + ")"; e.IsDir() && !strings.Contains(string(text), link) {
			t.Errorf("README has no link %s", link)
		}
	}
}
