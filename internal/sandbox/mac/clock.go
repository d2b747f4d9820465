package mac

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"time"
)

// clock is how far a machine's clock is ahead of the real one, with its changes.
type clock struct {
	Ahead time.Duration `json:"ahead_ns"`
	Moved []move        `json:"moved,omitempty"`
}

// move is a time of the real clock at which the machine's clock was changed.
type move struct {
	At    time.Time     `json:"at"`
	Ahead time.Duration `json:"ahead_ns"` // from this time on
}

// now returns the machine's time, with or without the machine's lock.
func (s *session) now() time.Time {
	s.machine.changing() // what depends on the time is another answer every time
	return s.instant()
}

// instant is now for a caller that says until when what it makes of the time holds, with untilThen.
func (s *session) instant() time.Time { return time.Now().Add(s.machine.ahead()) }

// While nothing has changed on the machine for a while, its tools show the time in longer steps, so that what they show
// can be remembered for as long. A young process has its exact age: whether its Node has reported since its start
// depends on it.
const (
	shownStep = 10 * time.Second
	young     = 10 * time.Minute
)

// shown returns the machine's time as its tools show it.
func (s *session) shown() time.Time {
	at := s.shownNow()
	s.machine.saw(timeSource, "", func() any { return at.UnixNano() })
	return at
}

func (s *session) shownNow() time.Time {
	now := s.instant()
	if now.Sub(s.lastChange()).Abs() < young {
		return now.Truncate(time.Second)
	}
	from := s.machine.clock().lastMove() // so that the steps begin where someone has moved the clock to
	return from.Add(now.Sub(from).Truncate(shownStep))
}

// lastMove returns where the clock was moved to last.
func (c clock) lastMove() time.Time {
	if len(c.Moved) == 0 {
		return time.Unix(0, 0)
	}
	last := c.Moved[len(c.Moved)-1]
	return last.At.Add(last.Ahead)
}

// shown returns the time that a process shows.
func (p *proc) shown() time.Time { return p.session.shown().Add(p.under.asleep()) }

// before reports whether a time of the machine's clock is still to come.
func (s *session) before(at time.Time) bool {
	if !s.instant().Before(at) {
		return false
	}
	s.machine.untilThen(at)
	return true
}

// now returns the machine's time as a process sees it: a process of launchd sleeps without waiting,
// and then finds that time has passed.
func (p *proc) now() time.Time { return p.session.now().Add(p.under.asleep()) }

func (m *Machine) ahead() time.Duration { return m.clock().Ahead }

// clock treats an unreadable file like an unchanged clock. It is read often and grows with every
// change, so the file is read again only after a change.
func (m *Machine) clock() clock {
	c, err := decoded[clock](m, clockRecord, json.Unmarshal)
	if c == nil || err != nil {
		return clock{}
	}
	return *c
}

var clockRecord = inFirmware("clock")

// aheadAt returns how far the clock was ahead at a time of the real one.
func (m *Machine) aheadAt(real time.Time) time.Duration {
	c, ahead := m.clock(), time.Duration(0)
	for _, moved := range c.Moved {
		if !real.Before(moved.At) {
			ahead = moved.Ahead
		}
	}
	return ahead
}

// between returns the time on the machine's clock between two times of the real one.
func (m *Machine) between(from, to time.Time) time.Duration {
	return to.Sub(from) + m.aheadAt(to) - m.aheadAt(from)
}

// Advance moves the machine's clock forward. What becomes due in that time happens at the next read of
// the machine. Files keep the times of the real disk; stat converts them to the machine's clock.
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
	return v.write(clockRecord, c) // which changes nothing else
}

// tick waits for the disk's clock, which moves in steps of some milliseconds: earlier changes get an
// older time than later ones.
func (m *Machine) tick() (time.Time, error) {
	file, err := os.CreateTemp(m.dir, ".tick-")
	if err != nil {
		return time.Time{}, err
	}
	defer os.Remove(file.Name()) // a leftover is harmless
	defer file.Close()           // its content is not used
	var first, now time.Time
	for range 100 {
		if _, err := file.WriteString("."); err != nil {
			return now, err
		}
		info, err := file.Stat()
		if err != nil {
			return now, err
		}
		if now = info.ModTime(); !first.IsZero() && now.After(first) {
			return now, nil
		}
		if first.IsZero() {
			first = now
		}
		time.Sleep(time.Millisecond)
	}
	return now, nil
}
