package mac

// pfSwitches are the doubts about pf.
func pfSwitches() []Switch { return nil }

// loadAtBoot is what the system's own job does at a boot: the rules of /etc/pf.conf are loaded and
// the filter is not enabled.
func (v *visit) loadAtBoot() error { return nil }

// cutOff reports whether the loaded rules keep everybody from reaching the machine's SSH port.
func (v *visit) cutOff() (bool, error) { return false, nil }

// Reachable reports whether a connection to the machine's SSH port would be answered.
func (m *Machine) Reachable() (bool, error) {
	var cut bool
	err := m.asRoot(func(v *visit, _ *proc) (err error) {
		cut, err = v.cutOff()
		return err
	})
	return !cut, err
}
