package artifact_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/internal/artifact"
)

// goCommand puts a go command on the PATH that writes down how it is called, and builds files with these arguments in them.
func goCommand(t *testing.T, script string) (log string) {
	t.Helper()
	dir := t.TempDir()
	log = filepath.Join(dir, "log")
	text := "#!/bin/sh\necho \"$GOOS/$GOARCH/$CGO_ENABLED $*\" >>" + log + "\n" + script
	if err := os.WriteFile(filepath.Join(dir, "go"), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":/usr/bin:/bin")
	return log
}

const compiles = `[ "$1" != build ] || { mkdir -p out; echo one >out/tailscale; echo two >out/tailscaled; }
`

// TestBuild: the same sources give the same bytes, for the hosts' system, with the version stamped, and both programs at the archive's top.
func TestBuild(t *testing.T) {
	log := goCommand(t, compiles)
	var all []artifact.Built
	for range 2 {
		b, err := artifact.Build(t.Context(), "tailscale", "1.102.5", t.TempDir(), func(string) {})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b)
	}
	if all[0].SHA256 != all[1].SHA256 || filepath.Base(all[0].Path) != "tailscale-1.102.5-darwin-arm64.tar.gz" {
		t.Errorf("built %+v", all)
	}
	if info, err := os.Stat(all[0].Path); err != nil || info.Size() != all[0].Size {
		t.Errorf("%v, %v", info, err)
	}
	names, err := exec.CommandContext(t.Context(), "tar", "-tzf", all[0].Path).Output()
	if string(names) != "tailscale\ntailscaled\n" || err != nil {
		t.Errorf("the archive has %s, %v", names, err)
	}
	calls, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"darwin/arm64/0 get tailscale.com/cmd/tailscale@v1.102.5 tailscale.com/cmd/tailscaled@v1.102.5", "-trimpath",
		"-X tailscale.com/version.longStamp=1.102.5-macfleet -X tailscale.com/version.shortStamp=1.102.5"} {
		if !strings.Contains(string(calls), want) {
			t.Errorf("go was not called with %q:\n%s", want, calls)
		}
	}
}

// TestBuildFails says what failed, with the compiler's last words, and writes nothing.
func TestBuildFails(t *testing.T) {
	for name, tt := range map[string]struct{ script, artifact, version, want string }{
		"unknown program":  {compiles, "emacs", "1.0.0", "it builds tailscale"},
		"no version":       {compiles, "tailscale", "newest", "is not a version"},
		"no such version":  {"[ \"$1\" != get ] || { echo 'unknown revision v9.9.9' >&2; exit 1; }\n", "tailscale", "9.9.9", "unknown revision v9.9.9"},
		"does not compile": {"[ \"$1\" != build ] || { echo 'undefined: x' >&2; exit 2; }\n", "tailscale", "1.102.5", "undefined: x"},
		"builds nothing":   {"", "tailscale", "1.102.5", "made no tailscale"},
	} {
		t.Run(name, func(t *testing.T) {
			goCommand(t, tt.script)
			dir := t.TempDir()
			_, err := artifact.Build(t.Context(), tt.artifact, tt.version, dir, func(string) {})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
			if left, _ := os.ReadDir(dir); len(left) > 0 {
				t.Errorf("left %v", left)
			}
		})
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := artifact.Build(t.Context(), "tailscale", "1.102.5", t.TempDir(), func(string) {}); err == nil || !strings.Contains(err.Error(), "install Go") {
		t.Errorf("without go: %v", err)
	}
}
