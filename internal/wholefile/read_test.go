package wholefile_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/macfleet/macfleet/internal/wholefile"
)

func TestRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, pipe := filepath.Join(dir, "file"), filepath.Join(dir, "pipe")
	if err := errors.Join(os.WriteFile(file, []byte("text"), 0o600), unix.Mkfifo(pipe, 0o600)); err != nil {
		t.Fatal(err)
	}
	if text, err := wholefile.Read(t.Context(), file, 4); string(text) != "text" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := wholefile.Read(t.Context(), file, 3); err == nil || !strings.Contains(err.Error(), "more than 3 bytes") {
		t.Errorf("a file that is too large: %v", err)
	}
	if _, err := wholefile.Read(t.Context(), "/dev/zero", 1<<16); err == nil || !strings.Contains(err.Error(), "more than 65536 bytes") {
		t.Errorf("a file without an end: %v", err)
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	var abandoned *wholefile.AbandonedError
	if _, err := wholefile.Read(stopped, pipe, 4); !errors.As(err, &abandoned) || abandoned.Path != pipe {
		t.Errorf("a pipe without a writer: %v", err)
	}
	// The abandoned reader may take some of the text and its end, so the pipe is written to until the second one has read.
	var writer sync.WaitGroup
	defer writer.Wait()
	read, end := context.WithCancel(t.Context())
	defer end()
	writer.Go(func() {
		for read.Err() == nil {
			if to, err := os.OpenFile(pipe, os.O_WRONLY|unix.O_NONBLOCK, 0); err == nil { // someone reads
				_, _ = to.WriteString("text")
				_ = to.Close()
			}
			runtime.Gosched()
		}
	})
	if text, err := wholefile.Read(t.Context(), pipe, 1<<20); err != nil {
		t.Errorf("a pipe: %q, %v", text, err)
	}
}
