package main

import (
	"bytes"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/internal/app"
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
			place := exampleWorld(t, dir, filepath.Join(t.TempDir(), "world"))
			if got, said := ranAt(t, place, "plan", "--detailed-exitcode"); got != 0 {
				t.Errorf("after an apply: exit %d\n%s", got, said)
			}
		})
	}
}

// exampleWorld makes a world to which an example's first environment was applied, in a new folder, and returns the flags that
// choose both.
func exampleWorld(t *testing.T, dir, to string) []string {
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
	must(t, prepared.copy("example "+dir, to, func(world string) error {
		place := append(place[:len(place):len(place)], "--sandbox="+world)
		commands := [][]string{{"0", "init", "cluster", "--auto-approve"}, {"2", "plan", "--detailed-exitcode"}, {"0", "apply", "--auto-approve"}}
		if !bytes.Contains(text, []byte("\nkubernetes {")) {
			commands = commands[1:]
		}
		for _, c := range commands {
			if got, said := ranAt(t, place, c[1:]...); strconv.Itoa(got) != c[0] {
				return fmt.Errorf("macfleet %s: exit %d, wanted %s\n%s", strings.Join(c[1:], " "), got, c[0], said)
			}
		}
		return nil
	}))
	return append(place, "--sandbox="+to)
}

// ranAt runs macfleet with flags that choose its configuration and world. It returns the exit code and what is printed.
func ranAt(t *testing.T, place []string, args ...string) (exit int, said string) {
	t.Helper()
	var out bytes.Buffer
	exit = run(t.Context(), append(args, place...), app.Streams{In: strings.NewReader(""), Out: &out, Err: &out})
	return exit, out.String()
}

// TestPicture: README's picture shows what macfleet plan prints today in the world of docs/images/plan.sh.
func TestPicture(t *testing.T) {
	t.Parallel()
	script, err := os.ReadFile("../../docs/images/plan.sh")
	must(t, err)
	dir := t.TempDir()
	place := exampleWorld(t, "../../examples/three-fleets", filepath.Join(dir, "world"))
	must(t, os.CopyFS(filepath.Join(dir, "fleets"), os.DirFS(place[1])))
	place[1] = filepath.Join(dir, "fleets")
	runs := func(args ...string) string {
		got, said := ranAt(t, place, args...)
		if got != 0 {
			t.Fatalf("macfleet %q: exit %d\n%s", args, got, said)
		}
		return said
	}
	injected := regexp.MustCompile(`sandbox inject (\S+) (\S+)`).FindAllStringSubmatch(string(script), -1)
	for _, m := range injected {
		runs("sandbox", "inject", m[1], m[2])
	}
	edit := regexp.MustCompile(`'s/(\d+)\\.(\d+)\\.(\d+)/([\d.]+)/'`).FindStringSubmatch(string(script))
	if len(injected) != 4 || edit == nil {
		t.Fatalf("plan.sh injects %q and edits %q", injected, edit)
	}
	file := filepath.Join(place[1], "fleets.fleet.hcl")
	text, err := os.ReadFile(file)
	must(t, err)
	must(t, os.WriteFile(file, bytes.ReplaceAll(text, []byte(strings.Join(edit[1:4], ".")), []byte(edit[4])), 0o644))
	runs("artifacts", "lock", "--update")
	svg, err := os.ReadFile("../../docs/images/plan.svg")
	must(t, err)
	drawn := ""
	for _, m := range regexp.MustCompile(`<text[^>]*>([^<]*)</text>`).FindAllSubmatch(svg, -1) {
		drawn += " " + html.UnescapeString(string(m[1]))
	}
	plan := strings.ReplaceAll("$ macfleet plan "+runs("plan"), " "+strings.Join(place, " "), "") // of the commands it prints
	if want, got := lasting(plan), lasting(drawn); got != want {
		t.Errorf("docs/images/plan.svg shows\n%s\nand macfleet prints (make pictures draws it)\n%s", got, want)
	}
}
