package mac

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"time"
)

// clock is how far a machine's clock is ahead of the real one, and since when.
type clock struct {
	Ahead time.Duration `json:"ahead_ns"`
	Moved []move        `json:"moved,omitempty"`
}

// move is a moment of the real clock at which the machine's was moved.
type move struct {
	At    time.Time     `json:"at"`
	Ahead time.Duration `json:"ahead_ns"` // from then on
}

// now is the machine's clock. It may be asked with the machine locked and without.
func (s *session) now() time.Time { return time.Now().Add(s.machine.ahead()) }

// now is the machine's clock as a process sees it: one that launchd has started sleeps without
// waiting, and then finds that time has passed.
func (p *proc) now() time.Time { return p.session.now().Add(p.under.asleep()) }

func (m *Machine) ahead() time.Duration { return m.clock().Ahead }

// clock counts one that cannot be read as one that nobody has moved. It is asked all the time, and
// grows with every move, so it is read again only where the file is another.
func (m *Machine) clock() clock {
	c, err := decoded[clock](m, clockRecord, json.Unmarshal)
	if c == nil || err != nil {
		return clock{}
	}
	return *c
}

var clockRecord = inFirmware("clock")

// aheadAt is how far the clock was ahead at a moment of the real one.
func (m *Machine) aheadAt(real time.Time) time.Duration {
	c, ahead := m.clock(), time.Duration(0)
	for _, moved := range c.Moved {
		if !real.Before(moved.At) {
			ahead = moved.Ahead
		}
	}
	return ahead
}

// between is how long it was on the machine's clock from one moment of the real one to another.
func (m *Machine) between(from, to time.Time) time.Duration {
	return to.Sub(from) + m.aheadAt(to) - m.aheadAt(from)
}

// Advance moves the machine's clock forward. What becomes due in that time happens when someone
// next reads the machine. Times of files stay as the real disk has them; stat tells when one
// was changed on the machine's clock.
func (m *Machine) Advance(d time.Duration) error {
	if d < 0 {
		return fmt.Errorf("move the clock of the machine in %s: %s is in the past", m.dir, d)
	}
	return m.asRoot(func(v *visit, _ *proc) error { return v.advance(d) })
}

func (v *visit) advance(d time.Duration) error {
	at, err := v.session.machine.tick()
	if err != nil {
		return err
	}
	c := v.session.machine.clock()
	c.Ahead += d
	c.Moved = append(slices.Clip(c.Moved), move{at, c.Ahead})
	return v.keep(clockRecord, c)
}

// tick waits for the disk's clock, which moves in steps of some milliseconds, to move on: what was
// changed before is older than its time, and what is changed from now on is not.
func (m *Machine) tick() (time.Time, error) {
	file, err := os.CreateTemp(m.dir, ".tick-")
	if err != nil {
		return time.Time{}, err
	}
	defer os.Remove(file.Name()) // one that stays harms nobody
	defer file.Close()           // nothing of it is kept
	var first, now time.Time
	for range 100 {
		if _, err := file.WriteString("."); err != nil {
			return now, err
		}
		if now, err = changedAt(file.Name()); err != nil || !first.IsZero() && now.After(first) {
			return now, err
		}
		if first.IsZero() {
			first = now
		}
		time.Sleep(time.Millisecond)
	}
	return now, nil
}
