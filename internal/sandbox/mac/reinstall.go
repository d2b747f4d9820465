package mac

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// Lives counts what the provider did to a machine since its delivery.
type Lives struct {
	Installs int `json:"installs,omitempty"`
	Boots    int `json:"boots,omitempty"`
}

// Lives returns how often the provider has reinstalled and restarted this machine.
func (m *Machine) Lives() (Lives, error) {
	id, err := m.identity()
	return id.Lives, err
}

// Reinstall replaces the machine by the one of f, as the provider does: nothing of the old disk is left,
// the host key is a new one, connections end, and the machine does not answer for the time down. Its
// switches and its clock stay. A reinstallation that is cut off leaves the old machine or none.
func (m *Machine) Reinstall(f Factory, down time.Duration) error {
	fresh, err := os.MkdirTemp(filepath.Dir(m.dir), "."+filepath.Base(m.dir)+"-")
	if err == nil {
		err = m.prepare(fresh, f, down)
	}
	if err == nil {
		err = m.exchange(fresh)
	}
	m.power.cut()
	if err != nil {
		return fmt.Errorf("reinstall the machine in %s: %w", m.dir, errors.Join(err, os.RemoveAll(fresh)))
	}
	return nil
}

// prepare makes the new machine in a separate folder: switched off, and with the settings of the
// simulation that belong to the machine and not to its disk.
func (m *Machine) prepare(dir string, f Factory, down time.Duration) error {
	if err := manufacture(dir, f); err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Join(dir, firmwareFolder), 0o700); err != nil {
		return err
	}
	for _, kept := range []place{clockRecord, inFirmware("switches")} {
		data, err := os.ReadFile(filepath.Join(m.dir, string(kept)))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err = errors.Join(err, os.WriteFile(filepath.Join(dir, string(kept)), data, 0o600)); err != nil {
			return err
		}
	}
	next, err := Open(dir)
	if err != nil {
		return err
	}
	return next.asRoot(func(v *visit, _ *proc) error { return v.haltFor(down) })
}

// exchange puts the new machine's folder in the place of the old one. Both have the same lock file, so
// that a process that waits for the lock never works without one.
func (m *Machine) exchange(fresh string) error {
	var old string
	err := m.withKeys(func(string, string) error {
		lock := filepath.Join(fresh, lockFile)
		if err := os.Remove(lock); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := os.Link(filepath.Join(m.dir, lockFile), lock); err != nil {
			return err
		}
		m.known = ledger{}
		old = fresh + "-old"
		return errors.Join(os.Rename(m.dir, old), os.Rename(fresh, m.dir))
	})
	if err != nil {
		return err
	}
	return os.RemoveAll(old)
}

// SwitchOff lets the machine not answer for a while. Nothing happens if the time is over.
func (m *Machine) SwitchOff(down time.Duration) error {
	if down <= 0 {
		return nil
	}
	if err := m.asRoot(func(v *visit, _ *proc) error { return v.haltFor(down) }); err != nil {
		return fmt.Errorf("switch off the machine in %s: %w", m.dir, err)
	}
	m.power.cut()
	return nil
}

// haltFor stops the machine for a while, at least as long as it takes to start.
func (v *visit) haltFor(down time.Duration) error {
	return v.changeLaunchd(func(m *manager, now time.Time) error {
		m.Halt = &halt{Until: now.Add(max(down, v.timeSwitched(bootTimeSwitch)))}
		return nil
	})
}

// PowerCycle restarts the machine from outside. It does not answer for the time down, and then has the
// authorized keys that the provider knows. boots is the number of such restarts so far.
func (m *Machine) PowerCycle(ctx context.Context, down time.Duration, boots int, keys []string) error {
	err := m.asRoot(func(v *visit, p *proc) error {
		if err := v.inject(p, keys); err != nil {
			return err
		}
		if err := v.haltFor(down); err != nil {
			return err
		}
		return v.changeIdentity(func(id *identity) { id.Boots = boots })
	})
	if err != nil {
		return fmt.Errorf("restart the machine in %s: %w", m.dir, err)
	}
	m.power.cut()
	if err := m.Settle(ctx); err != nil && !errors.Is(err, ErrDown) {
		return err
	}
	return nil
}

// providerKeys is the file of authorized keys that the provider's agent writes.
func providerKeys(user string) string { return "/Users/" + user + "/.ssh/scw_authorized_keys" }

// inject replaces the authorized keys that come from the provider.
func (v *visit) inject(p *proc, keys []string) error {
	name := providerKeys(v.session.id.User)
	if err := v.mkdirAll(p, path.Dir(name), 0o700); err != nil {
		return fmt.Errorf("write %s on the machine: %w", name, err)
	}
	n, err := v.resolve(p.user, p.dir, name, true)
	if err != nil {
		return fmt.Errorf("write %s on the machine: %w", name, err)
	}
	return v.replace(n, keyLines(keys), owner{loginUID, staff, 0o600})
}

// keyLines is the content of a file of authorized keys.
func keyLines(keys []string) []byte {
	var b strings.Builder
	for _, key := range keys {
		b.WriteString(key + "\n")
	}
	return []byte(b.String())
}
