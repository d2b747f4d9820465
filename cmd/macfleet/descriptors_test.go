package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const bareConfiguration = `
macfleet {
  name = "acme"
}
scaleway {
  zones       = ["fr-par-1"]
  pool_prefix = "pool-"
}
ssh {
  user = "m1"
}
`

// TestFewDescriptors: with too few file descriptors a command reports an error of this machine. With a few more it works
// on fewer hosts at once, and computes the same plan.
func TestFewDescriptors(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	must(t, err)
	dir := t.TempDir()
	configuration := bareConfiguration + "fleet \"builders\" {\n  os = \"Tahoe\"\n  group \"m2\" {\n    type     = \"M2-L\"\n    replicas = 3\n  }\n  hostname {}\n}\n"
	must(t, os.WriteFile(filepath.Join(dir, "main.fleet.hcl"), []byte(configuration), 0o600))
	command := func(limit string, words ...string) (string, int) {
		cmd := exec.Command("sh", append([]string{"-c", `ulimit -n "$1" && shift && exec "$@"`, "sh", limit}, words...)...)
		cmd.Env = append(os.Environ(), "HOME="+dir)
		out, err := cmd.CombinedOutput()
		var failed *exec.ExitError
		if err != nil && !errors.As(err, &failed) {
			t.Fatal(err)
		}
		return string(out), cmd.ProcessState.ExitCode()
	}
	// Under this name the test binary is macfleet.
	name := filepath.Join(t.TempDir(), "macfleet")
	must(t, os.Symlink(self, name))
	line := []string{name, "-C", dir, "--sandbox=" + filepath.Join(dir, "world"), "--sandbox-hosts", "6", "plan"}
	whole, code := command("4096", line...)
	if code != 0 || !strings.Contains(whole, "Plan: ") {
		t.Fatalf("4096 descriptors: exit %d\n%s", code, whole)
	}
	if out, code := command("64", line...); code != 0 || out != whole {
		t.Errorf("64 descriptors: exit %d\n%s\nwant\n%s", code, out, whole)
	}
	for _, limit := range []string{"16", "24", "32"} {
		out, code := command(limit, line...)
		if code != 1 || !strings.Contains(out, "too few file descriptors") || !strings.Contains(out, "may have "+limit+" files") ||
			!strings.Contains(out, "ulimit -n 4096") || strings.Contains(out, "Plan") || strings.Contains(out, "MaxStartups") {
			t.Errorf("%s descriptors: exit %d\n%s", limit, code, out)
		}
	}
}
