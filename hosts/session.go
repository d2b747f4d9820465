package hosts

import (
	"fmt"

	"golang.org/x/crypto/ssh"
)

// endOf returns a channel that is closed when a connection is gone.
func endOf(conn ssh.Conn) <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		_ = conn.Wait() // why it ended is asked when somebody wants to know
		close(ended)
	}()
	return ended
}

// session opens a session on the connection.
//
// The library alone may wait for ever, and closing the connection does not free it: where
// the connection ends just before it asks, the end has closed all channels but the new
// one, and its failed write goes unreported. So it is not asked behind the end, and where
// the end comes between the two, its goroutine is left behind.
func (c *Conn) session() (*ssh.Session, error) {
	type opened struct {
		session *ssh.Session
		err     error
	}
	answer := make(chan opened, 1)
	if !c.wire.over.Load() {
		go func() {
			s, err := c.ssh.NewSession()
			answer <- opened{s, err}
		}()
	}
	select {
	case a := <-answer:
		if a.err != nil {
			return nil, fmt.Errorf("open a session: %w", a.err)
		}
		return a.session, nil
	case <-c.ended:
		return nil, fmt.Errorf("open a session: %w", c.ssh.Wait())
	}
}
