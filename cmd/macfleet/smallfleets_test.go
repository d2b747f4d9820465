package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/internal/app"
	"github.com/macfleet/macfleet/internal/worldtest"
)

// smallFleets copies the example of three fleets to a folder, with one host for each fleet.
func smallFleets(t *testing.T, dir string) {
	t.Helper()
	must(t, os.CopyFS(dir, os.DirFS("../../examples/three-fleets")))
	changed := 0
	for name, edits := range map[string][]string{
		"fleets.fleet.hcl": {"replicas = 2\n", "replicas = 1\n"},
		"main.fleet.hcl":   {"runners = 2 ", "runners = 1 ", "= 9\n", "= 1\n"},
	} {
		path := filepath.Join(dir, name)
		text, err := os.ReadFile(path)
		must(t, err)
		for i := 0; i < len(edits); i += 2 {
			changed += strings.Count(string(text), edits[i])
			text = bytes.ReplaceAll(text, []byte(edits[i]), []byte(edits[i+1]))
		}
		must(t, os.WriteFile(path, text, 0o644))
	}
	if changed != 4 {
		t.Fatalf("%d numbers of hosts were changed in the example, not 4", changed)
	}
}

// smallWorld returns the folder of a world of the small fleets: an environment's cluster was prepared and its fleets were applied.
func smallWorld(t *testing.T, environment string) string {
	t.Helper()
	return worldtest.Prepared(t, "small fleets, "+environment, func(world string) {
		dir := t.TempDir()
		smallFleets(t, dir)
		place := []string{"-C", dir, "-e", environment, "--sandbox=" + world}
		runAt(t, 0, place, "init", "cluster", "--auto-approve")
		convergeAt(t, place)
	})
}

// convergeAt runs an apply that must converge. On a loaded machine a kubelet may have started too recently to be judged; then it
// runs the remedy that macfleet prints for this, and applies again. Where there are Nodes, all have reported afterwards.
func convergeAt(t *testing.T, place []string) {
	t.Helper()
	got, said := ranAt(t, place, "apply", "--auto-approve")
	if strings.Contains(said, "Nodes Ready") || strings.Contains(said, "[node-not-judged]") {
		runAt(t, 0, place, "hosts", "--wait", "ready")
	}
	if got == 3 && strings.Contains(said, "[node-not-judged]") {
		got, said = ranAt(t, place, "apply", "--auto-approve")
	}
	if got != 0 {
		t.Fatalf("macfleet apply: exit %d\n%s", got, said)
	}
}

// runAt runs macfleet with flags that choose its configuration and world, checks the exit code, and returns what is printed.
func runAt(t *testing.T, exit int, place []string, args ...string) string {
	t.Helper()
	got, said := ranAt(t, place, args...)
	if got != exit {
		t.Fatalf("macfleet %s: exit %d, wanted %d\n%s", strings.Join(args, " "), got, exit, said)
	}
	return said
}

// ranAt returns the exit code too.
func ranAt(t *testing.T, place []string, args ...string) (exit int, said string) {
	t.Helper()
	var out bytes.Buffer
	exit = run(t.Context(), append(slices.Clone(args), place...), app.Streams{In: strings.NewReader(""), Out: &out, Err: &out})
	return exit, out.String()
}
