package hosts

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"sync"
	"time"
)

// Packing with gzip pays below 40 MB/s alone: above, the packing itself is what
// is waited for (60 MB of a program take 1.3 s of processor time to pack, and 0.5 s
// over gigabit Ethernet). So the first bytes go out as they are and are timed.
// Those of the channel's window, 2 MiB, say nothing: they leave before the host
// has read any.
const (
	slowLine  = 40e6    // bytes a second
	timedFrom = 4 << 20 // bytes that are sent before the timed ones
	timedTo   = 8 << 20
	verySlow  = time.Second // after this long no more than windowPast need be out
	past      = 3 << 20     // more than the window
	worth     = 4 << 20     // bytes that must be left
	sampled   = 256 << 10   // bytes that are packed to see whether it helps
	pays      = 0.8         // of their size that they may have then
)

// meter reads a source, counts it, and ends early where its rest had better be
// packed.
type meter struct {
	source io.Reader
	left   int64 // bytes that the source still has
	now    func() time.Time
	tell   func(n int64)

	n       int64 // bytes that were read from the meter
	err     error // why the source could not be read
	slow    bool  // it ended early
	decided bool
	ahead   []byte // read from the source and not yet from the meter
	began   time.Time
	timed   time.Time // when timedFrom was reached
}

// Read reads from the source. It ends where the line is slow.
func (m *meter) Read(p []byte) (int, error) {
	if !m.decided && m.decide() {
		m.slow = true
	}
	if m.slow {
		return 0, io.EOF
	}
	return m.read(p)
}

func (m *meter) read(p []byte) (n int, err error) {
	if len(m.ahead) > 0 {
		n = copy(p, m.ahead)
		m.ahead = m.ahead[n:]
	} else {
		n, err = m.source.Read(p)
		m.left -= int64(n)
		if err != nil && err != io.EOF {
			m.err = err
		}
	}
	m.n += int64(n)
	if m.tell != nil && n > 0 {
		m.tell(m.n)
	}
	return n, err
}

// decide looks at the time, and reports whether the rest had better be packed.
func (m *meter) decide() bool {
	now := m.now()
	if m.began.IsZero() {
		m.began = now
	}
	if m.timed.IsZero() && m.n >= timedFrom {
		m.timed = now
	}
	switch late := now.Sub(m.began) > verySlow; {
	case m.n >= timedTo:
		m.decided = true
		took := now.Sub(m.timed).Seconds()
		return float64(timedTo-timedFrom) < slowLine*took && m.packs()
	case late && m.n >= past:
		m.decided = true
		return float64(m.n) < slowLine*now.Sub(m.began).Seconds() && m.packs()
	}
	return false
}

// packs tries whether what comes next becomes smaller.
func (m *meter) packs() bool {
	if m.left < worth {
		return false
	}
	sample := make([]byte, sampled)
	n, err := io.ReadFull(m.source, sample)
	m.ahead = sample[:n]
	m.left -= int64(n)
	if err != nil { // too short, which whoever reads on finds out
		if err != io.EOF && err != io.ErrUnexpectedEOF {
			m.err = err
		}
		return false
	}
	var small bytes.Buffer
	w, _ := gzip.NewWriterLevel(&small, gzip.BestSpeed) // the level is valid
	_, _ = w.Write(m.ahead)                             // a buffer takes all
	_ = w.Close()
	return float64(small.Len()) < pays*float64(n)
}

// rest is what the meter has not read.
func (m *meter) rest() io.Reader { return reader(m.read) }

type reader func([]byte) (int, error)

func (r reader) Read(p []byte) (int, error) { return r(p) }

// ending is a reader that can be ended from outside. The SSH library reads what is
// sent in a goroutine that it does not wait for.
type ending struct {
	mu   sync.Mutex
	r    io.Reader
	over bool
}

// Read reads until the end.
func (e *ending) Read(p []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.over {
		return 0, errors.New("nobody reads any more")
	}
	return e.r.Read(p)
}

// end returns when nobody reads any more.
func (e *ending) end() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.over = true
}

// packer is a source packed with gzip while it is read.
type packer struct {
	source io.Reader
	gzip   *gzip.Writer
	packed bytes.Buffer // and not read yet
	sent   int64
	over   bool // the source is
}

func pack(source io.Reader) *packer {
	p := &packer{source: source}
	p.gzip, _ = gzip.NewWriterLevel(&p.packed, gzip.BestSpeed) // the level is valid
	return p
}

// Read reads packed bytes.
func (p *packer) Read(b []byte) (int, error) {
	for p.packed.Len() == 0 && !p.over {
		_, err := io.CopyN(p.gzip, p.source, sampled)
		if p.over = err == io.EOF; p.over {
			err = p.gzip.Close()
		}
		if err != nil {
			return 0, err
		}
	}
	n, err := p.packed.Read(b)
	p.sent += int64(n)
	return n, err
}
