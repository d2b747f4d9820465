package mac

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// clock is how far a machine's clock is ahead of the real one.
type clock struct {
	Ahead time.Duration `json:"ahead_ns"`
}

// now is the machine's clock. It may be asked with the machine locked and without.
func (s *session) now() time.Time { return time.Now().Add(s.machine.ahead()) }

// now is the machine's clock as a process sees it: one that launchd has started sleeps without
// waiting, and then finds that time has passed.
func (p *proc) now() time.Time { return p.session.now().Add(p.under.asleep()) }

// ahead counts a clock that cannot be read as one that nobody has moved.
func (m *Machine) ahead() time.Duration {
	var c clock
	if data, err := os.ReadFile(filepath.Join(m.dir, string(inFirmware("clock")))); err == nil {
		_ = json.Unmarshal(data, &c)
	}
	return c.Ahead
}

// Advance moves the machine's clock forward. What becomes due in that time happens when somebody
// next looks at the machine. Times of files stay as the real disk has them.
func (m *Machine) Advance(d time.Duration) error {
	if d < 0 {
		return fmt.Errorf("move the clock of the machine in %s: %s is in the past", m.dir, d)
	}
	return m.asRoot(func(v *visit, _ *proc) error {
		return v.keep(inFirmware("clock"), clock{m.ahead() + d})
	})
}

// remembers reports whether something is kept at a place, and gives it.
func (m *Machine) remembers(at place) (data []byte, err error) {
	data, err = os.ReadFile(filepath.Join(m.dir, string(at)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}
