package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
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

// smallWorld makes the world of an environment of the small fleets in a new folder: prepared, applied once and converged.
func smallWorld(t *testing.T, environment, to string) {
	t.Helper()
	must(t, prepared.copy("small fleets, "+environment, to, func(world string) error {
		dir := t.TempDir()
		smallFleets(t, dir)
		for _, args := range [][]string{{"init", "cluster"}, {"apply"}} {
			if got, said := ranAt(t, []string{"--auto-approve", "-C", dir, "-e", environment, "--sandbox=" + world}, args...); got != 0 {
				return fmt.Errorf("macfleet %s: exit %d\n%s", strings.Join(args, " "), got, said)
			}
		}
		return nil
	}))
}
