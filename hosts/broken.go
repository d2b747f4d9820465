package hosts

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"

	"golang.org/x/crypto/ssh"
)

// noLogin says that the handshake's deadline passed.
func noLogin(limit time.Duration) error { return fmt.Errorf("no login within %s", limit) }

// hungUpError says that the host closed the connection. A connection that was
// closed on this side never causes it.
type hungUpError struct{ cause error }

func (e *hungUpError) Error() string { return "the host hung up: " + e.cause.Error() }
func (e *hungUpError) Unwrap() error { return e.cause }

func hungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// note remembers the first thing that went wrong on the wire. The SSH library
// closes a connection over a failed write and then reports the closing.
func (w *watched) note(err error) {
	switch {
	case err == nil || errors.Is(err, net.ErrClosed):
	case errors.Is(err, os.ErrDeadlineExceeded):
		w.silent.Store(true)
	default:
		w.broke.CompareAndSwap(nil, &err)
	}
}

// why finds what is behind an error that says only that the connection is gone.
func (w *watched) why(err error) error {
	first := w.broke.Load()
	switch {
	case err == nil:
		return nil
	case w.silent.Load():
		return fmt.Errorf("no byte from the host for %s", w.silence)
	case hungUp(err):
		return &hungUpError{err}
	case errors.Is(err, net.ErrClosed) && first != nil && hungUp(*first):
		return &hungUpError{*first}
	}
	return err
}

// ending returns why a command ended without an exit status: the connection
// broke, or the host gave up this command alone. A request that every server
// answers tells the two apart.
func (c *Conn) ending() error {
	if _, _, err := c.ssh.SendRequest(keepalive, true, nil); err == nil {
		return errors.New("the command ended without an exit status")
	}
	return c.ssh.Wait()
}

// refusedCommand replaces the library's error for a command that the host does
// not run: it holds the whole script.
func refusedCommand(err error) error {
	if err != nil && strings.HasPrefix(err.Error(), "ssh: command ") {
		return errors.New("the host refused to run a command: its sshd or authorized_keys allows none")
	}
	return err
}

// missesExit reports whether a command ended without an exit status.
func missesExit(err error) bool {
	var missing *ssh.ExitMissingError
	return errors.As(err, &missing)
}

// maxText is the longest text of an error, in bytes, that is shown.
const maxText = 600

// printable makes a text fit for a terminal: a peer may have written parts of
// it.
func printable(text string) string {
	var b strings.Builder
	for _, r := range text {
		if b.Len() > maxText {
			return b.String() + "…"
		}
		if unicode.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		quoted := strconv.QuoteRune(r)
		b.WriteString(quoted[1 : len(quoted)-1])
	}
	return b.String()
}
