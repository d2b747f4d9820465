package mac

import (
	"fmt"
	"slices"
	"time"
)

// JobState is launchd's state of a loaded job.
type JobState struct {
	Path    string   // of its property list
	Program string   // the path that it runs
	Args    []string // the program's name first
	PID     int      // 0 = no process
	Runs    int
	Old     bool // the property list on the disk has changed since
}

// Job returns launchd's state of a job, such as system/com.example.d; ok is false if no such job is
// loaded.
func (m *Machine) Job(target string) (state JobState, ok bool, err error) {
	err = m.asRoot(func(v *visit, p *proc) error {
		held, _, err := v.launchd()
		if err != nil {
			return err
		}
		j, loaded := held.Jobs[target]
		if ok = loaded && !j.leaving(); !ok {
			return nil
		}
		state = JobState{Path: j.Path, Program: j.About.Program, Args: slices.Clone(j.About.Args), PID: j.PID, Runs: j.Runs}
		about, _, err := v.describeFile(p.user, j.Path)
		state.Old = err != nil || !slices.Equal(about.Args, j.About.Args) || about.Program != j.About.Program
		return nil
	})
	if err != nil {
		return state, false, fmt.Errorf("the job %s of the machine in %s: %w", target, m.dir, err)
	}
	return state, ok, nil
}

// RestartJob restarts a job's process, as kickstart -k does.
func (m *Machine) RestartJob(target string) error {
	return m.changeJob(target, func(j *job, now time.Time) {
		j.end(ending{Signal: 15}, now)
		j.Stuck, j.Due = false, now
	})
}

// LoadJob loads a daemon from its property list, replacing the job that was loaded from it before.
func (m *Machine) LoadJob(path string) error {
	err := m.asRoot(func(v *visit, _ *proc) error {
		return v.changeLaunchd(func(held *manager, now time.Time) error {
			for target, j := range held.Jobs {
				if j.Path == path && j.Domain == "system" {
					delete(held.Jobs, target)
				}
			}
			_, err := v.load(held, now, domain{kind: "system"}, path)
			return err
		})
	})
	if err != nil {
		return fmt.Errorf("load %s on the machine in %s: %w", path, m.dir, err)
	}
	return nil
}

// UnloadJob removes a job from launchd with its process. A missing one is not an error.
func (m *Machine) UnloadJob(target string) error {
	err := m.asRoot(func(v *visit, _ *proc) error {
		return v.changeLaunchd(func(held *manager, _ time.Time) error {
			delete(held.Jobs, target)
			return nil
		})
	})
	if err != nil {
		return fmt.Errorf("unload %s on the machine in %s: %w", target, m.dir, err)
	}
	return nil
}

// AgeJob makes a job's process an hour old and, if it is a kubelet, of an older version whose file was
// replaced since.
func (m *Machine) AgeJob(target, version string) error {
	return m.changeJob(target, func(j *job, now time.Time) {
		j.Started = now.Add(-time.Hour)
		if j.Kubelet != nil {
			j.Kubelet.Version = version
		}
		if j.Pin != nil && j.Pin.Team == "" {
			j.Pin = &pin{Hash: "of version " + version}
		}
	})
}

// SetSerial changes the machine's serial number, as if it were another machine.
func (m *Machine) SetSerial(serial string) error {
	err := m.asRoot(func(v *visit, _ *proc) error { return v.changeIdentity(func(id *identity) { id.Serial = serial }) })
	if err != nil {
		return fmt.Errorf("change the serial number of the machine in %s: %w", m.dir, err)
	}
	return nil
}

// Serial returns the machine's serial number.
func (m *Machine) Serial() (string, error) {
	id, err := m.identity()
	if err != nil {
		return "", fmt.Errorf("read the serial number of the machine in %s: %w", m.dir, err)
	}
	return id.Serial, nil
}
