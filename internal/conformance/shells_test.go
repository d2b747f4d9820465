package conformance_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/macfleet/macfleet/internal/conformance"
	"github.com/macfleet/macfleet/internal/scripttest"
)

// path is the search path of the rows, as on a Mac.
const path = "/usr/bin:/bin:/usr/sbin:/sbin"

// TestShells runs the rows for any POSIX system in real shells, with this machine's tools: in dash, and in bash in the mode of macOS's sh.
func TestShells(t *testing.T) {
	t.Parallel()
	scripttest.InShells(t, func(t *testing.T, argv []string) {
		scripttest.Need(t, "perl", "sudo")
		bin := scripttest.OpenDir(t)
		// The sh of the row, and of what it starts by name.
		scripttest.Write(t, filepath.Join(bin, "sh"), "#!/bin/sh\nexec "+strings.Join(argv, " ")+` "$@"`+"\n", 0o755)
		run := 0
		for _, row := range table(t) {
			if row.Needs != conformance.POSIX || row.Changes == conformance.Settings {
				continue
			}
			if row.Who == conformance.Root && os.Getuid() != 0 {
				continue // a person's machine; CI runs as root
			}
			o := local(t, bin, row)
			if o.NotRun == "" {
				run++
			}
			if o.NotRun == "" && !o.Same {
				t.Errorf("%s differs\n%s", strings.Join(argv, " "), o)
			}
		}
		if run < 200 {
			t.Errorf("only %d rows were run", run)
		}
	}, "dash", "bash --posix")
}

// local runs a row on this machine as the current user. bin holds sh.
func local(t *testing.T, bin string, row conformance.Row) conformance.Outcome {
	t.Helper()
	script, args := row.Command()
	script = strings.ReplaceAll(script, "/bin/sh -c", filepath.Join(bin, "sh")+" -c")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "sh"), append([]string{"-c", script, "sh"}, args...)...)
	cmd.Env = []string{"PATH=" + bin + ":" + path, "LC_ALL=C", "HOME=" + bin}
	cmd.WaitDelay = time.Second // a process left behind would keep the streams open
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s: %v", row.File, err)
	}
	return row.Judge(conformance.Result{Exit: cmd.ProcessState.ExitCode(), Stdout: stdout.String(), Stderr: stderr.String()})
}
