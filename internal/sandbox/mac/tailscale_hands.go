package mac

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/macfleet/macfleet/internal/sandbox/agent"
)

// ErrNoTailscale is returned for a machine on which tailscaled does not run.
var ErrNoTailscale = errors.New("tailscaled does not run on the host")

// TailscaleState is tailscaled on a machine.
type TailscaleState struct {
	ID, Name  string // of its device, as it believes
	Address   string
	Backend   string
	Version   string // of the running daemon
	Retries   bool   // it has an auth key in its memory
	Exporter  string // where node_exporter listens; "" = it does not run
	KubeletIP string // what a kubelet reports; "" = the public address, or none runs
}

// Tailscale returns tailscaled on the machine.
func (m *Machine) Tailscale() (s TailscaleState, err error) {
	err = m.asRoot(func(v *visit, _ *proc) error {
		l, _, err := v.launchd()
		if err != nil {
			return err
		}
		for _, j := range l.Jobs {
			if j.PID != 0 && j.Exporter != "" {
				s.Exporter = j.Exporter
			}
			if j.PID != 0 && j.Kubelet != nil {
				s.KubeletIP = j.Kubelet.Address
			}
		}
		d := l.tailscale()
		if d == nil {
			return ErrNoTailscale
		}
		s.ID, s.Name, s.Backend, s.Version, s.Retries = d.Seen.ID, d.Seen.Name, d.Backend, d.Version, d.Key != ""
		s.Address = first(d.Seen.Addresses)
		return nil
	})
	if err != nil {
		return s, fmt.Errorf("tailscaled of the machine in %s: %w", m.dir, err)
	}
	return s, nil
}

// KeepTailscale returns everything of tailscaled, for RestoreTailscale.
func (m *Machine) KeepTailscale() (data []byte, err error) {
	err = m.asRoot(func(v *visit, _ *proc) error {
		l, _, err := v.launchd()
		if err != nil {
			return err
		}
		d := l.tailscale()
		if d == nil {
			return ErrNoTailscale
		}
		data, err = json.Marshal(d)
		return err
	})
	return data, err
}

// RestoreTailscale gives the daemon and its state file what KeepTailscale returned.
func (m *Machine) RestoreTailscale(data []byte) error {
	return m.daemon(func(v *visit, d *tailscaled) error {
		var was tailscaled
		if err := json.Unmarshal(data, &was); err != nil {
			return err
		}
		was.PID, was.Version, was.PeerAPI = d.PID, d.Version, d.PeerAPI
		*d = was
		v.storeTailscale(d)
		return nil
	})
}

// RetryJoin makes the daemon one that failed to join and tries again for ever with a key in its memory.
func (m *Machine) RetryJoin(key string) error {
	return m.daemon(func(v *visit, d *tailscaled) error {
		d.Node, d.Key, d.Seen, d.Backend = "", key, agent.Node{}, stateNoLogin
		d.Prefs.LoggedOut, d.Prefs.WantRunning = false, true
		v.storeTailscale(d)
		return nil
	})
}

// daemon changes the running daemon.
func (m *Machine) daemon(do func(*visit, *tailscaled) error) error {
	err := m.asRoot(func(v *visit, _ *proc) error {
		return v.changeLaunchd(func(l *manager, _ time.Time) error {
			d := l.tailscale()
			if d == nil {
				return ErrNoTailscale
			}
			return do(v, d)
		})
	})
	if err != nil {
		return fmt.Errorf("tailscaled of the machine in %s: %w", m.dir, err)
	}
	return nil
}

// ListenOutside makes node_exporter listen at another address, as one that someone started by hand.
func (m *Machine) ListenOutside(at string) error {
	return m.jobs(func(j *job) bool {
		if j.Exporter == "" || j.PID == 0 {
			return false
		}
		j.Exporter = at
		return true
	})
}

// ReportOutside makes the kubelet report an address outside the tailnet; "" is the server's own.
func (m *Machine) ReportOutside(address string) error {
	return m.jobs(func(j *job) bool {
		if j.Kubelet == nil || j.PID == 0 {
			return false
		}
		j.Kubelet.Address = address
		j.Kubelet.Started = time.Now().UTC().Add(-time.Minute) // reported as a new run
		return true
	})
}

// jobs changes the first job that do accepts.
func (m *Machine) jobs(do func(*job) bool) error {
	err := m.asRoot(func(v *visit, _ *proc) error {
		return v.changeLaunchd(func(l *manager, _ time.Time) error {
			for _, j := range l.Jobs {
				if do(j) {
					return nil
				}
			}
			return os.ErrNotExist
		})
	})
	if err != nil {
		return fmt.Errorf("a job of the machine in %s: %w", m.dir, err)
	}
	return nil
}
