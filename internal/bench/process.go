package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// usage is the cost of one process.
type usage struct {
	wall time.Duration // from start to end
	cpu  time.Duration // of the process, user and system
	peak int64         // resident bytes
}

// execute runs a process and returns its output and cost. A process's peak memory is at least this
// program's own at its start, because Linux carries it over. So everything big runs in children.
func execute(ctx context.Context, stdin io.Reader, environ []string, argv ...string) (string, usage, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &out, &errs
	cmd.Env = append(os.Environ(), environ...)
	// Do not wait for a program in the background that still has the streams open.
	cmd.WaitDelay = 5 * time.Second
	began := time.Now()
	err := cmd.Run()
	u := usage{wall: time.Since(began)}
	if cmd.ProcessState != nil {
		u.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
		if r, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
			u.peak = resident(r.Maxrss)
		}
	}
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return out.String(), u, fmt.Errorf("%s: %w\n%s", strings.Join(argv, " "), err, tail(out.String()+errs.String()))
	}
	return out.String(), u, nil
}

// resident converts to bytes: Linux counts kilobytes, macOS bytes.
func resident(maxrss int64) int64 {
	if runtime.GOOS == "darwin" {
		return maxrss
	}
	return maxrss * 1024
}

// tail returns the end of a program's output, for a message.
func tail(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-12):], "\n")
}

// builder returns a function that builds macfleet into dir, once.
func builder(ctx context.Context, dir string) func() (string, error) {
	return sync.OnceValues(func() (string, error) {
		path := filepath.Join(dir, "macfleet")
		_, _, err := execute(ctx, nil, nil, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", path, "github.com/macfleet/macfleet/cmd/macfleet")
		return path, err
	})
}

// versionMilliseconds is the budget of a start.
const versionMilliseconds = 50.0

// version measures how long the command takes to start and exit.
func (b *bench) version(ctx context.Context) ([]row, error) {
	binary, err := b.binary()
	if err != nil {
		return nil, err
	}
	starts := 4 * b.rounds
	b.say("version: %d starts", starts)
	var walls []float64
	for range starts {
		_, u, err := execute(ctx, nil, nil, binary, "version")
		if err != nil {
			return nil, err
		}
		walls = append(walls, milliseconds(u.wall))
	}
	info, err := os.Stat(binary)
	if err != nil {
		return nil, err
	}
	return []row{judged(fmt.Sprintf("macfleet version, %d starts", starts), median(walls), versionMilliseconds, " ms"),
		judged("  the binary", megabytes(info.Size()), 60, " MB")}, nil
}
