package wholefile

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// AbandonedError is returned when the context ended while a file was read.
type AbandonedError struct{ Path string }

// Error names the file. The text of a cancelled context would not.
func (e *AbandonedError) Error() string {
	return fmt.Sprintf("stopped waiting for the end of %s, which is not a regular file", e.Path)
}

// Read reads a file of at most a number of bytes. A pipe, such as the shell's <(command), is read
// until ctx ends, since one without a writer would block its reader for ever. An abandoned file stays
// open.
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
		err = &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("the file has more than %d bytes", most)}
	}
	return content, err
}
