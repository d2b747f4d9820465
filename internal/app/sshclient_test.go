package app

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestNoSSH: on a machine without ssh its files have no effect, which is reported; a file that is named is not ignored.
func TestNoSSH(t *testing.T) {
	home := t.TempDir()
	file := filepath.Join(home, ".ssh", "config")
	must(t, os.MkdirAll(filepath.Dir(file), 0o700))
	must(t, os.WriteFile(file, []byte("Port 23\n"), 0o600))
	t.Setenv("HOME", home)
	t.Setenv("PATH", t.TempDir())
	var said bytes.Buffer
	env := &Env{Streams: Streams{In: strings.NewReader(""), Out: &said, Err: &said}}
	if c, err := env.readSSHConfig(); c != nil || err != nil {
		t.Errorf("config = %v, %v", c, err)
	}
	if text := strings.Join(strings.Fields(said.String()), " "); !strings.Contains(text, "ssh is not installed, so ") || !strings.Contains(text, ".ssh/config has no effect; install OpenSSH's client") {
		t.Errorf("said %q", text)
	}
	env.SSHConfig = file
	if _, err := env.readSSHConfig(); err == nil || !strings.Contains(err.Error(), "ssh is not installed") {
		t.Errorf("a named file: error = %v", err)
	}
}
