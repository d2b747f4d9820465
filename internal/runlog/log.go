package runlog

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// LogSize is how long a log may grow, in bytes. At that length it becomes FILE.old, in the
// place of an earlier one, and starts again: no run fills a disk.
const LogSize = 8 << 20

// LogsKept is how many logs of each command are kept.
const LogsKept = 20

// LogName returns the name of a command's log.
func LogName(started time.Time, command, id string) string {
	return started.UTC().Format(stamp) + "-" + command + "-" + id + logSuffix
}

const (
	logSuffix = ".log"
	oldSuffix = ".old"
)

// Log is a file with a command's requests, without secrets, created with the first line. It is
// safe for concurrent use.
type Log struct {
	path  string
	scrub func(string) string

	mu      sync.Mutex
	file    *os.File
	written int64
	turns   bool // it is a file, and not a pipe
	err     error
}

// NewLog returns a log that will be in a file; the file's folder is made when missing.
func NewLog(path string, scrub func(string) string) *Log {
	return &Log{path: path, scrub: scrub}
}

// Logger returns what writes into the log, from a level on.
func (l *Log) Logger(level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: level, ReplaceAttr: l.replace}))
}

// replace removes secrets from a text before it is quoted.
func (l *Log) replace(_ []string, a slog.Attr) slog.Attr {
	switch a.Value.Kind() {
	case slog.KindTime:
		return slog.Time(a.Key, a.Value.Time().UTC())
	case slog.KindString:
		return slog.String(a.Key, l.scrub(a.Value.String()))
	case slog.KindAny:
		if err, ok := a.Value.Any().(error); ok {
			return slog.String(a.Key, l.scrub(err.Error()))
		}
	}
	return a
}

// Open creates the file now, to detect one that cannot be written.
func (l *Log) Open() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ready()
}

func (l *Log) ready() error {
	if l.file != nil || l.err != nil {
		return l.err
	}
	if l.err = os.MkdirAll(filepath.Dir(l.path), 0o700); l.err != nil {
		return l.err
	}
	// Without O_NONBLOCK, opening a pipe without a reader would block the command forever.
	l.file, l.err = os.OpenFile(l.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND|unix.O_NONBLOCK, 0o600)
	if errors.Is(l.err, unix.ENXIO) {
		l.err = fmt.Errorf("%w: the pipe has no reader", l.err)
	}
	if l.err != nil {
		return l.err
	}
	var info fs.FileInfo
	if info, l.err = l.file.Stat(); l.err == nil {
		l.turns, l.written = info.Mode().IsRegular(), info.Size()
	}
	return l.err
}

// Write adds a line. A failed log write does not stop the command.
func (l *Log) Write(line []byte) (int, error) {
	text := l.scrub(string(line))
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ready() != nil {
		return len(line), nil
	}
	if l.turns && l.written+int64(len(text)) > LogSize {
		l.err = errors.Join(l.file.Close(), os.Rename(l.path, l.path+oldSuffix))
		l.file = nil
		if l.ready() != nil {
			return len(line), nil
		}
	}
	n, err := io.WriteString(l.file, text)
	l.written += int64(n)
	l.err = err
	return len(line), nil
}

// Path returns the log's file, or why there is none. Both are empty while nothing was written.
func (l *Log) Path() (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.err != nil:
		return "", fmt.Errorf("the log could not be written: %w", l.err)
	case l.file == nil:
		return "", nil
	}
	return l.path, nil
}

// Close closes the log.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	return l.file.Close()
}

// PruneLogs deletes the oldest logs of a command until keep are left.
func PruneLogs(folder, command string, keep int) error {
	all, err := stamped(folder, logSuffix)
	all = slices.DeleteFunc(all, func(name string) bool {
		_, rest, _ := strings.Cut(name, "-")
		return !strings.HasPrefix(rest, command+"-")
	})
	for _, name := range all[min(keep, len(all)):] {
		path := filepath.Join(folder, name)
		err = errors.Join(err, remove(path), remove(path+oldSuffix))
	}
	return err
}
