package github

import (
	"slices"
	"strings"
	"time"
)

// Pick returns the runner that gets a job of a repository, such as acme/app, which asks for labels, and the server of its
// Mac: the first idle one with a session whose group serves the repository. ok is false if the job waits.
func (a *API) Pick(repository string, labels ...string) (r Runner, serverID string, ok bool, err error) {
	account, name, _ := strings.Cut(repository, "/")
	err = a.change(func(s state, _ time.Time) error {
		own, err := a.settings()
		if err != nil {
			return err
		}
		for _, one := range s.runners {
			l, has := s.session(one)
			if !has || l.Job != "" || !s.online(one) || !one.offers(labels) {
				continue
			}
			group, known := own.group(one.Group)
			ofAccount := strings.EqualFold(one.Scope, account) && known && group.serves(name)
			if ofAccount || strings.EqualFold(one.Scope, repository) {
				r, serverID, ok = one, l.ServerID, true
				return nil
			}
		}
		return nil
	})
	return r, serverID, ok, err
}

// offers reports whether a runner has all labels, also those of an entry that it replaced.
func (r Runner) offers(labels []string) bool {
	has := slices.Concat(r.fixed(), r.Labels, r.Former)
	return !slices.ContainsFunc(labels, func(name string) bool { return inLabels(has, name) < 0 })
}
