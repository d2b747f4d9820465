package mac

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// ErrDown is returned while a machine is starting and does not answer.
var ErrDown = errors.New("the machine is starting")

// power signals to everything on a machine that it goes down. It covers only this process; connections
// of another process end at their next command.
type power struct {
	mu  sync.Mutex
	on  context.Context
	off context.CancelFunc
}

// up returns a context that ends when the machine goes down.
func (p *power) up() context.Context {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.on == nil {
		p.on, p.off = context.WithCancel(context.Background())
	}
	return p.on
}

func (p *power) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.off != nil {
		p.off()
	}
	p.on, p.off = nil, nil
}

// Reboot restarts the machine: the content of memory is lost, connections end, and the jobs on the
// disk start.
func (m *Machine) Reboot(ctx context.Context) error {
	if err := m.asRoot(func(v *visit, _ *proc) error { return v.shutDown() }); err != nil {
		return fmt.Errorf("restart the machine in %s: %w", m.dir, err)
	}
	m.power.cut()
	if err := m.Settle(ctx); err != nil && !errors.Is(err, ErrDown) {
		return err
	}
	return nil
}

// shutDown records that the machine restarts, which happens at the next read. What runs is ended at
// once only by power.cut, after the machine is unlocked.
func (v *visit) shutDown() error {
	return v.changeLaunchd(func(m *manager, now time.Time) error {
		if m.Halt == nil {
			m.Halt = &halt{Until: now.Add(v.timeSwitched(bootTimeSwitch))}
		}
		return nil
	})
}

// goUp starts a machine that was shut down, and reports whether it did.
func (s *session) goUp() (booted bool, err error) {
	err = s.visit(func(v *visit) error {
		m, now, err := v.launchd()
		if err != nil || m.Halt == nil {
			return err
		}
		if now.Before(m.Halt.Until) {
			return fmt.Errorf("%w: until %s", ErrDown, m.Halt.Until.UTC().Format(time.TimeOnly))
		}
		booted = true
		return v.boot(m.Halt.Until)
	})
	if booted {
		s.machine.power.cut() // the process that shut it down may not have done this
	}
	return booted, err
}

// boot is the start of the machine up to the login window.
func (v *visit) boot(at time.Time) error {
	if err := errors.Join(v.loseMemory(), v.clearRun()); err != nil {
		return err
	}
	if err := v.changeIdentity(func(id *identity) { id.Booted = at.UTC().Truncate(time.Microsecond) }); err != nil {
		return err
	}
	if err := v.loadAtBoot(); err != nil {
		return fmt.Errorf("load the rules of /etc/pf.conf: %w", err)
	}
	return v.changeLaunchd(func(m *manager, now time.Time) error {
		if v.brokenItems() {
			return nil
		}
		return v.loadFolder(m, now, domain{kind: "system"}, "/Library/LaunchDaemons")
	})
}

// clearRun empties /var/run, as a boot does.
func (v *visit) clearRun() error {
	root := v.session.users()[0]
	n, err := v.find(root, "/", "/private/var/run", true)
	if missing(err) {
		return nil
	}
	if err != nil {
		return err
	}
	children, err := v.list(root, n)
	for _, child := range children {
		err = errors.Join(err, v.removeAll(root, child))
	}
	return err
}

// changeIdentity changes the machine's identity. Open sessions keep what they have read.
func (v *visit) changeIdentity(change func(*identity)) error {
	m := v.session.machine
	id, err := m.identity()
	if err != nil {
		return err
	}
	change(&id)
	data, err := json.MarshalIndent(id, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", identityFile, err)
	}
	return replaceFile(filepath.Join(m.dir, identityFile), append(data, '\n'))
}

// booted returns when the machine started.
func (s *session) booted() time.Time {
	if id, err := s.machine.identity(); err == nil {
		return id.Booted
	}
	return s.id.Booted
}

// UpFor lets the machine have started that long ago.
func (m *Machine) UpFor(d time.Duration) error {
	return m.asRoot(func(v *visit, _ *proc) error {
		return v.changeIdentity(func(id *identity) { id.Booted = v.session.now().Add(-d).UTC().Truncate(time.Microsecond) })
	})
}

// Up returns how long ago the machine started.
func (m *Machine) Up() (up time.Duration, err error) {
	err = m.asRoot(func(v *visit, _ *proc) error {
		up = v.session.now().Sub(v.session.booted())
		return nil
	})
	return up, err
}

// outlived reports whether the machine has restarted since the session started.
func (s *session) outlived() bool { return !s.booted().Equal(s.id.Booted) }

// itemsFile is the database of background items. Above itemsLimit, the daemon that reads it was seen
// to run out of memory on every try. No daemon of /Library is then loaded at a start until someone
// moves the file.
const (
	itemsFile  = "/private/var/db/com.apple.backgroundtaskmanagement/BackgroundItems-v16.btm"
	itemsLimit = 4_000_000
)

func (v *visit) brokenItems() bool {
	n, err := v.find(v.session.users()[0], "/", itemsFile, true)
	return err == nil && n.info.Size() >= itemsLimit
}

// BreakBackgroundItems grows the database of background items beyond what its daemon can read.
// Removing the file heals it. Both take effect at the next start.
func (m *Machine) BreakBackgroundItems() error {
	if err := m.WriteFile(itemsFile, []byte("bplist00"), 0, 0, 0o600); err != nil {
		return err
	}
	err := m.asRoot(func(v *visit, _ *proc) error {
		file, err := v.session.root.OpenFile(relative(itemsFile), os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		return errors.Join(file.Truncate(itemsLimit+300_000), file.Close())
	})
	if err != nil {
		return fmt.Errorf("write %s on the machine: %w", itemsFile, err)
	}
	return nil
}
