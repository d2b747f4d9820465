package hosts

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"sync"
	"time"
)

// gzip pays off only below 40 MB/s: compressing 60 MB takes 1.3 s of CPU time, sending them over
// gigabit Ethernet 0.5 s. So the first bytes are sent uncompressed and timed, except those of
// the channel's 2 MiB window, which are sent before the host reads any.
const (
	slowLine  = 40e6      // bytes a second
	piece     = 256 << 10 // bytes that are read at a time, and packed to see whether it helps
	timedFrom = 4 << 20   // bytes that are sent before the timed ones; whole pieces
	timedTo   = 8 << 20
	verySlow  = time.Second // after this long no more than past need be out
	past      = 3 << 20     // more than the window
	worth     = 4 << 20     // bytes that must be left
	pays      = 0.8         // of their size that they may have then
)

// packer is a source in gzip format: stored at first, compressed once the connection turns out
// to be slow.
type packer struct {
	source io.Reader
	left   int64 // bytes that the source still has
	now    func() time.Time
	tell   func(n int64)

	mu      sync.Mutex // the SSH library reads in a separate goroutine
	gzip    *gzip.Writer
	data    []byte       // the last piece read
	out     bytes.Buffer // not sent yet
	n       int64        // bytes read from the source
	sent    int64        // bytes sent, after compression
	packed  bool
	decided bool
	began   time.Time
	timed   time.Time // when timedFrom was reached
	err     error     // io.EOF, or why the source could not be read
}

// Read returns the next bytes in gzip format.
func (p *packer) Read(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.out.Len() == 0 {
		if p.err != nil {
			return 0, p.err
		}
		p.err = p.fill()
	}
	return p.out.Read(b)
}

// fill adds the next piece of the source to the gzip stream.
func (p *packer) fill() error {
	if p.gzip == nil {
		p.data = make([]byte, piece)
		p.gzip, _ = gzip.NewWriterLevel(&p.out, gzip.NoCompression) // the level is valid
	}
	n, err := io.ReadFull(p.source, p.data)
	data := p.data[:n]
	if !p.decided && p.slow() && p.left >= worth && shrinks(data) {
		_ = p.gzip.Close()                                      // a buffer accepts everything
		p.gzip, _ = gzip.NewWriterLevel(&p.out, gzip.BestSpeed) // gunzip accepts several members
		p.packed = true
	}
	before := p.out.Len()
	_, _ = p.gzip.Write(data)
	if err == io.ErrUnexpectedEOF || err == io.EOF {
		_, err = p.gzip.Close(), io.EOF
	}
	if p.packed {
		p.sent += int64(p.out.Len() - before)
	} else {
		p.sent += int64(n)
	}
	p.n, p.left = p.n+int64(n), p.left-int64(n)
	if n > 0 {
		p.tell(p.n)
	}
	return err
}

// slow reports whether the connection is known to be slow.
func (p *packer) slow() bool {
	now := p.now()
	switch p.n {
	case 0:
		p.began = now
	case timedFrom:
		p.timed = now
	}
	since, n := p.began, p.n
	switch late := now.Sub(p.began) > verySlow; {
	case p.n >= timedTo:
		since, n = p.timed, timedTo-timedFrom
	case !late || p.n < past:
		return false
	}
	p.decided = true
	return float64(n) < slowLine*now.Sub(since).Seconds()
}

// shrinks reports whether compression makes a piece much smaller.
func shrinks(data []byte) bool {
	var small bytes.Buffer
	w, _ := gzip.NewWriterLevel(&small, gzip.BestSpeed) // the level is valid
	_, _ = w.Write(data)                                // a buffer accepts everything
	_ = w.Close()
	return float64(small.Len()) < pays*float64(len(data))
}

// end stops reading the source, and returns its read error, if any.
func (p *packer) end() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	err := p.err
	p.err = errors.New("the upload has ended")
	p.out.Reset()
	if err == io.EOF {
		return nil
	}
	return err
}
