package sandbox

import (
	"errors"
	"fmt"
)

// ErrWaits is returned for a workflow's job that no runner gets.
var ErrWaits = errors.New("the job waits: no idle runner has its labels and may serve its repository")

// RunJob lets GitHub give a workflow's job of a repository, such as acme/app, to a runner with all labels. It returns the
// host's name. The job runs until FinishJob.
func (w *World) RunJob(repository, job string, labels ...string) (host string, err error) {
	r, id, ok, err := w.github.Pick(repository, labels...)
	if err != nil {
		return "", err
	}
	if !ok {
		return "", fmt.Errorf("%s of %s: %w", job, repository, ErrWaits)
	}
	server, err := w.find(id)
	if err != nil {
		return "", fmt.Errorf("the host of the runner %s: %w", r.Name, err)
	}
	machine, err := w.macs.get(server)
	if err != nil {
		return "", err
	}
	return server.Name, machine.StartWork(job)
}

// FinishJob ends the workflow's job that runs on a host. None is not an error.
func (w *World) FinishJob(host string) error {
	machine, err := w.Mac(host)
	if err != nil {
		return err
	}
	return machine.FinishWork()
}
