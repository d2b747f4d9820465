package mac

import "context"

// launchdSwitches are the doubts about launchd.
func launchdSwitches() []Switch { return nil }

// settle does what has become due since somebody last looked at the machine: jobs that launchd
// would have started by now. Times are computed from what is stored, as nothing runs in between.
func (s *session) settle(ctx context.Context) error { return nil }

// endSession ends the jobs of a user's Aqua session.
func (v *visit) endSession(uid int) error { return nil }

// Reboot restarts the machine: what is in memory is lost, and the jobs of the disk start.
func (m *Machine) Reboot(ctx context.Context) error { return nil }

// Settle lets what has become due happen.
func (m *Machine) Settle(ctx context.Context) error {
	s, err := m.session()
	if err != nil {
		return err
	}
	defer s.close()
	return s.settle(ctx)
}
