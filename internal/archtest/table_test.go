package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/internal/gosource"
)

var inBackticks = regexp.MustCompile("`([^`]+)`")

// documented reads the table of packages in docs/architecture.md: which of macfleet's packages
// each may import.
func documented(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs", "architecture.md"))
	must(t, err)
	_, table, _ := strings.Cut(string(text), "\n| package | holds | may import |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	out := make(map[string][]string)
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 3 {
			t.Fatalf("docs/architecture.md: a row with %d cells: %s", len(cells), line)
		}
		imports := quotedIn(cells[2])
		if len(imports) == 0 && !strings.HasPrefix(cells[0], "---") && strings.TrimSpace(cells[2]) != "nothing" {
			t.Errorf("docs/architecture.md: the imports of %s are neither packages nor \"nothing\"", cells[0])
		}
		for _, pkg := range quotedIn(cells[0]) {
			if _, twice := out[pkg]; twice {
				t.Errorf("docs/architecture.md has two rows for %s", pkg)
			}
			out[pkg] = imports
		}
	}
	return out
}

// quotedIn returns the words in backticks, sorted.
func quotedIn(cell string) []string {
	var out []string
	for _, m := range inBackticks.FindAllStringSubmatch(cell, -1) {
		out = append(out, m[1])
	}
	slices.Sort(out)
	return out
}

// TestArchitectureTable finds rows of docs/architecture.md without a package.
func TestArchitectureTable(t *testing.T) {
	t.Parallel()
	all := sources(t)
	for pkg := range documented(t) {
		if !slices.ContainsFunc(all, func(s gosource.File) bool { return covers([]string{pkg}, s.Pkg) }) {
			t.Errorf("docs/architecture.md has a row for %s, which is not a package", pkg)
		}
	}
}

// must ends the test at the first error.
func must(t testing.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}
