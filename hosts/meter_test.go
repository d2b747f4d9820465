package hosts

import (
	"bytes"
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

// TestMeter says when a line is slow.
func TestMeter(t *testing.T) {
	t.Parallel()
	const each = 32 << 10
	data := wordy(20 << 20)
	for name, tt := range map[string]struct {
		stall, each time.Duration // before the first bytes; for each piece behind the window
		from, to    int64         // where it ends; 0: nowhere
	}{
		"a gigabit":                   {0, 280 * time.Microsecond, 0, 0},
		"a gigabit, a slow beginning": {900 * time.Millisecond, 280 * time.Microsecond, 0, 0},
		"a hundred megabits":          {50 * time.Millisecond, 2800 * time.Microsecond, timedTo, timedTo},
		"ten megabits":                {50 * time.Millisecond, 28 * time.Millisecond, past, 4 << 20},
	} {
		at := time.Unix(0, 0)
		m := &meter{source: bytes.NewReader(data), left: 20 << 20, now: func() time.Time { return at }}
		n, buffer := int64(0), make([]byte, each)
		for {
			got, err := m.Read(buffer)
			n += int64(got)
			if err == io.EOF {
				break
			}
			if n == each {
				at = at.Add(tt.stall)
			}
			if n > 2<<20 {
				at = at.Add(tt.each)
			}
		}
		if m.slow != (tt.to > 0) || m.slow && (n < tt.from || n > tt.to) {
			t.Errorf("%s: slow %t after %d bytes", name, m.slow, n)
		}
		rest, err := io.ReadAll(m.rest())
		if err != nil || n+int64(len(rest)) != 20<<20 {
			t.Errorf("%s: %d bytes and then %d, %v", name, n, len(rest), err)
		}
	}
}
