package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/internal/sandbox"
)

// TestCopiedWorld: a world copied with cp or tar is the same world. plan says of the copy what it says of the original: where
// nothing is left to do, in the middle of a roll, and with work on a host.
func TestCopiedWorld(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(t *testing.T, w *sandbox.World, dir string, place []string) (says string){
		"converged": func(*testing.T, *sandbox.World, string, []string) string { return "No changes." },
		"in the middle of a roll": func(t *testing.T, w *sandbox.World, dir string, place []string) string {
			fleets := filepath.Join(dir, "fleets.fleet.hcl")
			text, err := os.ReadFile(fleets)
			must(t, err)
			must(t, os.WriteFile(fleets, []byte(strings.ReplaceAll(string(text), "2.32.1", "2.34.0")), 0o644))
			runAt(t, 0, place, "artifacts", "lock", "--update")
			must(t, w.Inject(onlyOf(t, place, "runners"), "disk-full"))
			runAt(t, 3, place, "apply", "--auto-approve")
			return "Plan: "
		},
		"with work": func(t *testing.T, w *sandbox.World, _ string, place []string) string {
			host := onlyOf(t, place, "runners")
			must(t, w.RunPod(host, "default", "job"))
			m, err := w.Mac(host)
			must(t, err)
			must(t, m.StartVM("bake"))
			must(t, w.Inject(host, "sleep-enabled"))
			return "Plan: "
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, world := t.TempDir(), smallWorld(t, "canary")
			smallFleets(t, dir)
			at := func(world string) []string { return []string{"-C", dir, "-e", "canary", "--sandbox=" + world} }
			w, err := sandbox.Open(world, sandbox.Seed{})
			must(t, err)
			says := change(t, w, dir, at(world))
			must(t, w.Close())
			copies := map[string]string{"cp": filepath.Join(t.TempDir(), "cp"), "tar": filepath.Join(t.TempDir(), "tar")}
			must(t, os.Mkdir(copies["tar"], 0o700))
			for how, script := range map[string]string{"cp": `cp -a "$1" "$2"`, "tar": `tar -C "$1" -cf - . | tar -C "$2" -xf -`} {
				if out, err := exec.Command("sh", "-c", script, "sh", world, copies[how]).CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
			}
			want := runAt(t, 0, at(world), "plan")
			if !strings.Contains(want, says) {
				t.Fatalf("the original's plan does not say %q:\n%s", says, want)
			}
			for how, folder := range copies {
				equal(t, strings.ReplaceAll(runAt(t, 0, at(folder), "plan"), folder, world), want, "the copy of", how, "says")
			}
		})
	}
}

// onlyOf returns the name of a fleet's only host.
func onlyOf(t *testing.T, place []string, fleet string) string {
	t.Helper()
	return strings.TrimSpace(runAt(t, 0, place, "hosts", "-o", "name", "--on", "fleet="+fleet))
}
