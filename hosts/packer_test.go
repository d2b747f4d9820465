package hosts

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// wordy are bytes that gzip makes small.
func wordy(size int) []byte {
	var b bytes.Buffer
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, "line %d of a program\n", i)
	}
	return b.Bytes()[:size]
}

// TestDeliverPacks what is sent over a slow line, from where it turned out to be
// slow, and what becomes smaller.
func TestDeliverPacks(t *testing.T) {
	t.Parallel()
	c, dir := sshdTarget(t, func(*Options) {})
	var ticks atomic.Int64 // of a clock on which every read takes a tenth of a second
	c.now = func() time.Time { return time.Unix(0, ticks.Add(int64(100*time.Millisecond))) }
	conn := connect(t, c, acme1())
	for name, tt := range map[string]struct {
		data  []byte
		packs bool
	}{"a program": {wordy(12 << 20), true}, "an archive": {random(12 << 20), false}, "a small one": {wordy(5 << 20), false}} {
		d := deliveryOf(tt.data)
		got, err := conn.Deliver(within(t), d.Delivery, d.source)
		if err != nil || got.Packed != tt.packs || (got.Sent < int64(len(d.data))/2) != tt.packs {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		if data, err := os.ReadFile(filepath.Join(dir, d.Artifact.SHA256)); err != nil || !bytes.Equal(data, d.data) {
			t.Errorf("%s: %v, %d bytes", name, err, len(data))
		}
	}
	d := deliveryOf(wordy(13 << 20))
	_, err := conn.Deliver(within(t), d.Delivery, d.from(io.MultiReader(bytes.NewReader(d.data[:9<<20]), broken{errors.New("the disk is ill")})))
	if err == nil || !strings.Contains(err.Error(), "the disk is ill") {
		t.Errorf("error = %v", err)
	}
	if got, err := connect(t, c, acme1()).Deliver(within(t), d.Delivery, d.source); err != nil || got.Resumed < 3<<20 {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestPacker says when a line is slow. What comes out is the source, in one piece.
func TestPacker(t *testing.T) {
	t.Parallel()
	data := wordy(20 << 20)
	for name, tt := range map[string]struct {
		stall, each time.Duration // before the first bytes; for each piece behind the window
		from, to    int64         // where packing begins; 0: in no place
	}{
		"a gigabit":                   {0, 2240 * time.Microsecond, 0, 0},
		"a gigabit, a slow beginning": {900 * time.Millisecond, 2240 * time.Microsecond, 0, 0},
		"a hundred megabits":          {50 * time.Millisecond, 22400 * time.Microsecond, timedTo, timedTo},
		"ten megabits":                {50 * time.Millisecond, 224 * time.Millisecond, past, 4 << 20},
	} {
		at, stored, told := time.Unix(0, 0), int64(0), int64(0)
		var p *packer
		source := func(b []byte) (int, error) { // a piece each time
			if p.n == piece {
				at = at.Add(tt.stall)
			}
			if p.n > 2<<20 {
				at = at.Add(tt.each)
			}
			return copy(b, data[p.n:]), nil
		}
		p = &packer{source: io.LimitReader(reader(source), 20<<20), left: 20 << 20, now: func() time.Time { return at }, tell: func(n int64) {
			if told = n; !p.packed {
				stored = n
			}
		}}
		unpacked, err := gzip.NewReader(p)
		must(t, err)
		got, err := io.ReadAll(unpacked)
		if err != nil || !bytes.Equal(got, data) || told != 20<<20 {
			t.Errorf("%s: %d bytes came out, %d were reported, %v", name, len(got), told, err)
		}
		if p.packed != (tt.to > 0) || p.packed && (stored < tt.from || stored > tt.to) || (p.sent == 20<<20) == p.packed {
			t.Errorf("%s: packed %t after %d bytes, %d sent", name, p.packed, stored, p.sent)
		}
		if err := p.end(); err != nil {
			t.Error(err)
		}
		if n, err := p.Read(make([]byte, 1)); n > 0 || err == nil || err == io.EOF {
			t.Errorf("read after the end: %d, %v", n, err)
		}
	}
}

type reader func([]byte) (int, error)

func (r reader) Read(b []byte) (int, error) { return r(b) }
