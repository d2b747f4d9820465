package mac

import (
	"fmt"
	"slices"
	"time"
)

// disallowedRecord lists the labels of jobs whose background item someone has turned off.
var disallowedRecord = inFirmware("background")

const btmSwitch = "background-item-allowed-by"

// btmSwitches are the uncertain behaviours of background items.
func btmSwitches() []Switch {
	return []Switch{{btmSwitch, "what allows a disallowed background item again: sfltool resetbtm and a restart, or also a bootout and a bootstrap",
		[]string{"reset", "bootstrap"}}}
}

// disallowed reports whether a daemon's background item is turned off. launchd then neither loads it
// at a start nor starts its process.
func (v *visit) disallowed(label string) (bool, error) {
	var labels []string
	err := v.recall(disallowedRecord, &labels)
	return slices.Contains(labels, label), err
}

// setDisallowed turns the item of a job off or on.
func (v *visit) setDisallowed(label string, off bool) error {
	var labels []string
	if err := v.recall(disallowedRecord, &labels); err != nil {
		return err
	}
	others := slices.DeleteFunc(slices.Clone(labels), func(l string) bool { return l == label })
	if off {
		others = append(others, label)
	}
	if slices.Equal(labels, others) {
		return nil
	}
	return v.keep(disallowedRecord, others)
}

// register does what loading a job does to its background item. It reports whether the job may start.
func (v *visit) register(label string) (allowed bool, err error) {
	off, err := v.disallowed(label)
	if err != nil || !off {
		return err == nil, err
	}
	if v.switched(btmSwitch) != "bootstrap" {
		return false, nil
	}
	return true, v.setDisallowed(label, false)
}

// DisallowItem turns the background item of a daemon off, as a click in the settings does: its process
// ends and does not start again.
func (m *Machine) DisallowItem(label string) error {
	return m.setItem(label, true, func(j *job, now time.Time) {
		j.Off = true
		j.end(ending{Signal: 15}, now)
		j.Due = time.Time{}
	})
}

// AllowItem turns the background item of a daemon on and lets the job start.
func (m *Machine) AllowItem(label string) error {
	return m.setItem(label, false, func(j *job, now time.Time) {
		if j.Off = false; j.PID == 0 {
			j.Due = now
		}
	})
}

func (m *Machine) setItem(label string, off bool, change func(*job, time.Time)) error {
	err := m.asRoot(func(v *visit, _ *proc) error {
		if was, err := v.disallowed(label); err != nil || was == off {
			return err
		}
		if err := v.setDisallowed(label, off); err != nil {
			return err
		}
		return v.changeLaunchd(func(held *manager, now time.Time) error {
			if j, ok := held.Jobs["system/"+label]; ok {
				change(j, now)
			}
			return nil
		})
	})
	if err != nil {
		return fmt.Errorf("change the background item %s of the machine in %s: %w", label, m.dir, err)
	}
	return nil
}

// ItemDisallowed reports whether the background item of a daemon is turned off.
func (m *Machine) ItemDisallowed(label string) (off bool, err error) {
	err = m.asRoot(func(v *visit, _ *proc) error {
		off, err = v.disallowed(label)
		return err
	})
	return off, err
}

// resetItems clears which items were turned off, from the next start on.
func (v *visit) resetItems() error {
	var labels []string
	if err := v.recall(disallowedRecord, &labels); err != nil || len(labels) == 0 {
		return err
	}
	return v.keep(disallowedRecord, []string{})
}

// folderItemOff reports whether a daemon's file is skipped at a start because its item is turned off.
func (v *visit) folderItemOff(d domain, file string) (bool, error) {
	if d.kind != "system" {
		return false, nil
	}
	about, _, err := v.describeFile(v.session.users()[0], file)
	if err != nil {
		return false, nil // it is not a job
	}
	return v.disallowed(about.Label)
}
