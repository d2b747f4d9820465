package wholefile

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// AbandonedError says that a file was waited for until the reader was told to stop.
type AbandonedError struct{ Path string }

// Error names the file. It says nothing of a cancelled context, whose words tell nobody which file it was.
func (e *AbandonedError) Error() string {
	return fmt.Sprintf("stopped waiting for %s: it is not a regular file, and its end was not reached", e.Path)
}

// Read reads a file of at most so many bytes. A pipe, such as the shell's <(command), is read until ctx ends:
// without a writer it would keep its reader waiting for ever. What was waited for is then left open.
func Read(ctx context.Context, path string, most int64) ([]byte, error) {
	if info, err := os.Stat(path); err != nil || info.Mode().IsRegular() {
		return readAll(path, most)
	}
	type answer struct {
		content []byte
		err     error
	}
	done := make(chan answer, 1)
	go func() {
		content, err := readAll(path, most)
		done <- answer{content, err}
	}()
	select {
	case a := <-done:
		return a.content, a.err
	case <-ctx.Done():
		return nil, &AbandonedError{path}
	}
}

func readAll(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(content)) > most {
		err = &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("it has more than %d bytes", most)}
	}
	return content, err
}
