package app

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/agents"
	"github.com/macfleet/macfleet/internal/doctor"
	"github.com/macfleet/macfleet/internal/view"
)

// GitHubOptions are the flags of doctor github.
type GitHubOptions struct {
	JSON bool
}

// DoctorGitHub checks the credentials for GitHub, their rights, and the runner groups. It contacts no host and changes
// nothing.
func DoctorGitHub(ctx context.Context, env *Env, o GitHubOptions) error {
	return env.with(ctx, need{readOnly: true, accountOnly: true}, func(looking context.Context, s *session) error {
		a, err := s.agents(nil)
		switch {
		case err != nil:
			return err
		case a == nil:
			return errors.New("no fleet registers GitHub runners; fix: set organization or repository in the github_runner block of a fleet")
		}
		if s.config.Kubernetes != nil { // it may keep the credentials
			if err := s.openCluster(); err != nil {
				env.warn("the cluster cannot be opened: " + err.Error())
			}
		}
		scopes := a.Scopes()
		seen := make([]doctor.Service, len(scopes))
		var all sync.WaitGroup
		for i, scope := range scopes {
			all.Go(func() { seen[i] = doctor.ExamineService(service(looking, a, scope)) })
		}
		all.Wait()
		if looking.Err() != nil {
			return context.Cause(looking)
		}
		healthy := !slices.ContainsFunc(seen, func(s doctor.Service) bool { return !s.Healthy })
		err = env.answer(o.JSON, func(w io.Writer) error { return view.WriteServices(w, healthy, seen) }, func(t *view.Text) { t.Services(seen) })
		if err != nil {
			return err
		}
		return result(false, healthy)
	})
}

// service reads what GitHub says about one organization or repository.
func service(ctx context.Context, a *agents.Agents, scope fleet.RunnerScope) doctor.ServiceSeen {
	seen := doctor.ServiceSeen{Scope: scope, Repositories: make(map[string]inventory.Seen[[]string])}
	if seen.Access, seen.AccessErr = a.Access(ctx, scope.URL); seen.AccessErr != nil {
		seen.Trouble = agents.Trouble(seen.AccessErr)
		return seen
	}
	seen.Service = a.Read(ctx, scope.URL)
	for _, id := range doctor.GroupsOf(scope, seen.Service.CI()) {
		names, err := a.Repositories(ctx, scope.URL, id)
		seen.Repositories[id] = inventory.Present(names)
		if err != nil {
			seen.Repositories[id] = inventory.Unread[[]string](err.Error())
		}
	}
	return seen
}
