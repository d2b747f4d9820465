package app

import (
	"context"
	"io"
	"os"
	"syscall"
	"testing"
	"time"
)

// TestThirdStop: who presses Ctrl-C fast leaves with the third one, also where the command hangs in something that
// cannot be cancelled. A terminal that was closed sends its signal often, and means one stop.
func TestThirdStop(t *testing.T) {
	t.Parallel()
	stop, interrupt := context.WithCancel(t.Context())
	env := &Env{Streams: Streams{Out: io.Discard, Err: io.Discard}, stop: stop}
	signals := make(chan os.Signal)
	code := make(chan int)
	left := 0
	go func() {
		code <- env.until(make(chan int), signals, env.errText(), interrupt, func() { left++ })
	}()
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGHUP, syscall.SIGHUP, syscall.SIGHUP, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT} {
		signals <- s
	}
	select {
	case got := <-code:
		if got != ExitLeft || left != 1 {
			t.Errorf("exit %d, left %d times", got, left)
		}
	case <-time.After(leaveWithin - time.Second):
		t.Error("the third Ctrl-C does not leave")
	}
}
