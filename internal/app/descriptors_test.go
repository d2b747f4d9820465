package app

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"testing"
)

// TestExhausted: too few descriptors are recognised however they are wrapped, and reported once with the limit and the fix.
func TestExhausted(t *testing.T) {
	t.Parallel()
	for _, err := range []error{syscall.EMFILE, syscall.ENFILE,
		&net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("socket", syscall.EMFILE)},
		fmt.Errorf("read it: %w", &os.PathError{Op: "open", Path: "x", Err: syscall.EMFILE}),
		errors.New("http error 500: open api.lock: too many open files"),
		errors.New("fork/exec ssh: too many open files in system")} {
		told := explained(err)
		if want := fmt.Sprintf("%v; this process may have %d files and connections open at once; fix: ulimit -n 4096, then run the command again",
			err, descriptorLimit()); told.Error() != want || !errors.Is(told, err) {
			t.Errorf("explained(%v) = %v, want %s", err, told, want)
		}
		if again := explained(told); again.Error() != told.Error() {
			t.Errorf("explained twice: %v", again)
		}
	}
	for _, err := range []error{nil, syscall.ECONNREFUSED, errors.New("too many logins")} {
		if got := explained(err); got != err {
			t.Errorf("explained(%v) = %v", err, got)
		}
	}
}

// TestStarved: the first error about too few descriptors ends a comparison and a run; no other error does.
func TestStarved(t *testing.T) {
	t.Parallel()
	var ended, halted error
	s := &session{starved: starvation{end: func(err error) { ended = err }}, halt: func(err error) { halted = err }}
	if s.noteStarved(syscall.ECONNREFUSED); ended != nil || s.starvedError() != nil {
		t.Fatalf("a refused connection ends the command: %v", ended)
	}
	s.noteStarved(fmt.Errorf("first: %w", syscall.EMFILE))
	s.noteStarved(fmt.Errorf("second: %w", syscall.ENFILE))
	if err := s.starvedError(); !errors.Is(err, syscall.EMFILE) || ended != err || halted != err {
		t.Errorf("starved: %v; ended by %v, halted by %v", err, ended, halted)
	}
}

// TestHostsAtOnce: few descriptors mean fewer hosts at once, and too few for one an error.
func TestHostsAtOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		of          needed
		limit, want int
	}{{inReality, 24, 0}, {inReality, 32, 3}, {inReality, 64, 14}, {inReality, 1024, 334},
		{inTheWorld, 32, 0}, {inTheWorld, 64, 3}, {inTheWorld, 1024, 99}} {
		got, err := c.of.atOnce(c.limit, 6)
		if got != c.want || (err != nil) != (c.want == 0) {
			t.Errorf("%+v, %d descriptors: %d hosts at once, %v; want %d", c.of, c.limit, got, err, c.want)
		}
	}
}
