package mac

import "slices"

// workerPath is the program that GitHub's runner starts for a job. It runs as long as the job.
const workerPath = "actions-runner/bin/Runner.Worker"

// StartCIJob starts a job of a GitHub runner of the login user. Neither tart nor launchd knows it.
func (m *Machine) StartCIJob() error {
	return m.asLogin("start a job", func(v *visit, c tartCall) error {
		return v.addGuest(&guest{UID: c.user.uid, Started: v.session.now(), CIJob: true, Args: []string{c.user.home + "/" + workerPath, "spawnclient", "117", "120"}})
	})
}

// EndCIJobs ends all jobs of GitHub runners.
func (m *Machine) EndCIJobs() error {
	return m.asLogin("end a job", func(v *visit, _ tartCall) error { return v.endGuests(func(g guest) bool { return g.CIJob }) })
}

// HasCIJob reports whether a job of a GitHub runner runs.
func (m *Machine) HasCIJob() (has bool, err error) {
	err = m.asRoot(func(v *visit, _ *proc) error {
		all, err := v.guests()
		has = slices.ContainsFunc(all, func(g guest) bool { return g.CIJob })
		return err
	})
	return has, err
}
