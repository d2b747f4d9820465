package app

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A file that may not be written is named and left, although a rename in its
// directory would be allowed.
func TestFormatLeavesWhatIsProtected(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, errors.Join(os.Chmod(filepath.Dir(dir), 0o755), os.Chmod(dir, 0o777)))
	name := filepath.Join(dir, "a.fleet.hcl")
	const crooked = "a   {\nb=1\n}\n"
	must(t, os.WriteFile(name, []byte(crooked), 0o444))
	var out, problems bytes.Buffer
	env := &Env{Streams: Streams{In: strings.NewReader(""), Out: &out, Err: &problems}, stop: t.Context(), Call: Call{Args: []string{name}}}
	var err error
	unprivileged(t, func() { err = Format(env, FormatOptions{}) })
	if err != exit(ExitError) {
		t.Errorf("error = %v", err)
	}
	if !strings.Contains(problems.String(), "write "+name) || out.Len() > 0 {
		t.Errorf("said %q and %q", out.String(), problems.String())
	}
	if text, err := os.ReadFile(name); err != nil || string(text) != crooked {
		t.Errorf("file = %q, %v", text, err)
	}
}
