package main

import (
	"bytes"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/internal/worldtest"
)

// TestExamples tries each example as a person would, in its first environment: a plan has
// changes, and after an apply the next plan has none.
func TestExamples(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../examples/*/*.fleet.hcl")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	dirs := make(map[string]bool)
	for _, name := range files {
		dirs[filepath.Dir(name)] = true
	}
	for dir := range dirs {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			runAt(t, 0, exampleWorld(t, dir), "plan", "--detailed-exitcode")
		})
	}
}

// exampleWorld makes a world to which an example's first environment was applied, and returns the flags that choose both.
func exampleWorld(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.fleet.hcl"))
	must(t, err)
	var text []byte
	for _, name := range files {
		file, err := os.ReadFile(name)
		must(t, err)
		text = append(text, file...)
	}
	place := []string{"-C", dir}
	if of := regexp.MustCompile(`(?m)^environment "(\w+)"`).FindSubmatch(text); of != nil {
		place = append(place, "-e", string(of[1]))
	}
	return append(place, "--sandbox="+worldtest.Prepared(t, "example "+dir, func(world string) {
		place := append(slices.Clone(place), "--sandbox="+world)
		if bytes.Contains(text, []byte("\nkubernetes {")) {
			runAt(t, 0, place, "init", "cluster", "--auto-approve")
		}
		runAt(t, 2, place, "plan", "--detailed-exitcode")
		convergeAt(t, place)
	}))
}

// TestPicture: README's picture shows what macfleet plan prints today in the world of docs/images/plan.sh.
func TestPicture(t *testing.T) {
	t.Parallel()
	script, err := os.ReadFile("../../docs/images/plan.sh")
	must(t, err)
	dir := t.TempDir()
	place := exampleWorld(t, "../../examples/three-fleets")
	must(t, os.CopyFS(dir, os.DirFS(place[1])))
	place[1] = dir
	injected := regexp.MustCompile(`sandbox inject (\S+) (\S+)`).FindAllStringSubmatch(string(script), -1)
	for _, m := range injected {
		runAt(t, 0, place, "sandbox", "inject", m[1], m[2])
	}
	edit := regexp.MustCompile(`'s/(\d+)\\.(\d+)\\.(\d+)/([\d.]+)/'`).FindStringSubmatch(string(script))
	if len(injected) != 4 || edit == nil {
		t.Fatalf("plan.sh injects %q and edits %q", injected, edit)
	}
	file := filepath.Join(dir, "fleets.fleet.hcl")
	text, err := os.ReadFile(file)
	must(t, err)
	must(t, os.WriteFile(file, bytes.ReplaceAll(text, []byte(strings.Join(edit[1:4], ".")), []byte(edit[4])), 0o644))
	runAt(t, 0, place, "artifacts", "lock", "--update")
	svg, err := os.ReadFile("../../docs/images/plan.svg")
	must(t, err)
	drawn := ""
	for _, m := range regexp.MustCompile(`<text[^>]*>([^<]*)</text>`).FindAllSubmatch(svg, -1) {
		drawn += " " + html.UnescapeString(string(m[1]))
	}
	plan := strings.ReplaceAll("$ macfleet plan "+runAt(t, 0, place, "plan"), " "+strings.Join(place, " "), "") // of the commands it prints
	if want, got := lasting(plan), lasting(drawn); got != want {
		t.Errorf("docs/images/plan.svg shows\n%s\nand macfleet prints (make pictures draws it)\n%s", got, want)
	}
}
