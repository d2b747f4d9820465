package app

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"

	"github.com/macfleet/macfleet/providers/transport"
)

// A descriptorError says that this process, or this machine, may open no more files and connections. It is
// never a host's trouble.
type descriptorError struct {
	limit int // 0: unknown
	err   error
}

func (e *descriptorError) Error() string {
	return fmt.Sprintf("%v; this process may have %d files and connections open at once; fix: ulimit -n 4096, then run the command again", e.err, e.limit)
}

func (e *descriptorError) Unwrap() error { return e.err }

// exhausted reports whether err is about too few descriptors. Some libraries, and a simulated API, keep only its text.
func exhausted(err error) bool {
	if err == nil {
		return false
	}
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) ||
		strings.Contains(err.Error(), syscall.EMFILE.Error()) || strings.Contains(err.Error(), syscall.ENFILE.Error())
}

// explained adds to an error about too few descriptors how many there are, and what gives more.
func explained(err error) error {
	if told := (*descriptorError)(nil); !exhausted(err) || errors.As(err, &told) {
		return err
	}
	return &descriptorError{limit: descriptorLimit(), err: err}
}

// descriptorLimit is how many descriptors this process may have. Go has raised it as far as the hard limit allows.
func descriptorLimit() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur > math.MaxInt32 {
		return math.MaxInt32
	}
	return int(limit.Cur)
}

// openDescriptors is how many this process has already.
func openDescriptors() int {
	entries, err := os.ReadDir("/dev/fd")
	if err != nil && len(entries) == 0 {
		return 3
	}
	return len(entries)
}

// needed is what a command takes from the descriptors: a fixed part, and one for each host that is worked on at once,
// with the requests about it. In the sandbox this process also has the other end of each, and the files of the Macs.
type needed struct{ fixed, perHost int }

var (
	inReality   = needed{fixed: 16, perHost: 3}
	inTheWorld  = needed{fixed: 20, perHost: 10}
	manyAtATime = 64 // from here on requests need no separate limit
)

// atOnce is how many hosts may be worked on at once; less than one is an error.
func (n needed) atOnce(limit, open int) (int, error) {
	hosts := (limit - open - n.fixed) / n.perHost
	if hosts < 1 {
		return 0, &descriptorError{limit, fmt.Errorf("too few file descriptors: this command needs at least %d", open+n.fixed+n.perHost)}
	}
	return hosts, nil
}

// fitDescriptors works on fewer hosts at once where there are few descriptors, and refuses where there are too few for one.
func (s *session) fitDescriptors() error {
	of := inReality
	if s.env.Sandbox != "" {
		of = inTheWorld
	}
	hosts, err := of.atOnce(descriptorLimit(), openDescriptors())
	if err != nil {
		return err
	}
	for _, bound := range []*int{&s.env.Starts, &s.env.ObserveParallelism, &s.env.Parallelism} {
		*bound = min(*bound, hosts)
	}
	if hosts < manyAtATime {
		s.requests = make(chan struct{}, hosts)
	}
	return nil
}

// starvation ends a command that had too few descriptors: what it saw of hosts is worth nothing.
type starvation struct {
	mu  sync.Mutex
	err error
	end func(error) // ends the observation
}

// noteStarved remembers the first error about too few descriptors. A run starts nothing more then, and a comparison ends.
func (s *session) noteStarved(err error) {
	if !exhausted(err) {
		return
	}
	s.starved.mu.Lock()
	defer s.starved.mu.Unlock()
	if s.starved.err != nil {
		return
	}
	s.starved.err = explained(err)
	s.starved.end(s.starved.err)
	if s.halt != nil {
		s.halt(s.starved.err)
	}
}

// starvedError is the first error about too few descriptors, or nil.
func (s *session) starvedError() error {
	s.starved.mu.Lock()
	defer s.starved.mu.Unlock()
	return s.starved.err
}

// frugal bounds the requests that are under way at once, where there are few descriptors, and notes when none are left.
func (s *session) frugal(next http.RoundTripper) http.RoundTripper {
	return transport.Around(next, func(r *http.Request) (*http.Response, error) {
		if s.requests != nil {
			select {
			case s.requests <- struct{}{}:
				defer func() { <-s.requests }()
			case <-r.Context().Done():
				return nil, context.Cause(r.Context())
			}
		}
		resp, err := next.RoundTrip(r)
		s.noteStarved(err)
		return resp, err
	})
}

// noting is dial, and notes when no descriptors are left.
func (s *session) noting(dial func(context.Context, string, string) (net.Conn, error)) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		s.noteStarved(err)
		return conn, err
	}
}
