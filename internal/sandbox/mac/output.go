package mac

import (
	"bytes"
	"errors"
	"io"
	"sync"
	"time"
)

// capture collects a script's output, possibly from several of its processes at once.
type capture struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write adds p.
func (c *capture) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.buf.Write(p)
}

// bytes returns what was collected so far.
func (c *capture) bytes() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return bytes.Clone(c.buf.Bytes())
}

const (
	batchSize  = 16 << 10
	batchDelay = 2 * time.Millisecond
)

var errEnded = errors.New("the command has ended")

// batch joins small writes, since each would be an encrypted packet, but delays nothing for long.
type batch struct {
	to io.Writer

	mu      sync.Mutex
	buf     []byte
	timer   *time.Timer
	pending bool
	err     error
}

func newBatch(to io.Writer) *batch { return &batch{to: to} }

// Write keeps p for the next packet.
func (b *batch) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return 0, b.err
	}
	b.buf = append(b.buf, p...)
	if len(b.buf) >= batchSize {
		b.send()
		return len(p), b.err
	}
	if !b.pending {
		b.pending = true
		if b.timer == nil {
			b.timer = time.AfterFunc(batchDelay, b.late)
		} else {
			b.timer.Reset(batchDelay)
		}
	}
	return len(p), nil
}

func (b *batch) late() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pending = false
	b.send()
}

func (b *batch) send() {
	if len(b.buf) == 0 || b.err != nil {
		return
	}
	_, b.err = b.to.Write(b.buf)
	b.buf = b.buf[:0]
}

// end sends the rest and refuses further writes.
func (b *batch) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.timer != nil {
		b.timer.Stop()
	}
	b.send()
	if b.err == nil {
		b.err = errEnded
	}
}
