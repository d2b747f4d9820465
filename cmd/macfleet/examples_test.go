package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/internal/app"
)

// TestExamples tries each example as a person would, in its first environment: a plan has
// changes, and after an apply the next plan has none.
func TestExamples(t *testing.T) {
	t.Parallel()
	dirs, err := filepath.Glob("../../examples/*/*.fleet.hcl")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	text := make(map[string]string) // of each folder
	for _, name := range dirs {
		file, err := os.ReadFile(name)
		must(t, err)
		text[filepath.Dir(name)] += string(file)
	}
	for dir, text := range text {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			place := []string{"-C", dir, "--sandbox=" + filepath.Join(t.TempDir(), "world")}
			if of := regexp.MustCompile(`(?m)^environment "(\w+)"`).FindStringSubmatch(text); of != nil {
				place = append(place, "-e", of[1])
			}
			expect := func(wanted int, args ...string) {
				var said bytes.Buffer
				if got := run(t.Context(), append(args, place...), app.Streams{In: strings.NewReader(""), Out: &said, Err: &said}); got != wanted {
					t.Fatalf("macfleet %s: exit %d, wanted %d\n%s", strings.Join(args, " "), got, wanted, said.String())
				}
			}
			if regexp.MustCompile(`(?m)^kubernetes \{`).MatchString(text) {
				expect(0, "init", "cluster", "--auto-approve")
			}
			expect(2, "plan", "--detailed-exitcode")
			expect(0, "apply", "--auto-approve")
			expect(0, "plan", "--detailed-exitcode")
		})
	}
}
