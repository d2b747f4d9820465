package app

import (
	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/providers/transport"
	"github.com/macfleet/macfleet/steps"
)

// peers returns the services that keep entries of hosts.
func (s *session) peers(sel plan.Selection) (map[inventory.ServiceName]engine.Service, error) {
	out := make(map[inventory.ServiceName]engine.Service)
	runners, err := s.agents(func(of fleet.Specified) bool { return sel.MayInclude(s.config, of) })
	if err != nil {
		return nil, err
	}
	if runners != nil {
		out[inventory.CIService] = runners
	}
	if t := s.config.Tailnet; t != nil {
		out[inventory.TailnetService] = s.tailnet(*t)
	}
	return out, nil
}

// acceptable returns the names of the lists that a run of a configuration may read.
func acceptable(config *fleet.Config) (names []string, err error) {
	scopes, err := config.RunnerScopes()
	for _, p := range plan.Peers(steps.For(fleet.Host{})) {
		switch s := p.Service(); {
		case s.ID == inventory.CIService:
			names = append(names, mapped(scopes, func(at fleet.RunnerScope) string { return s.AcceptName(at.URL) })...)
		case s.ID == inventory.TailnetService && config.Tailnet != nil:
			names = append(names, s.AcceptName(""))
		}
	}
	return names, err
}

// counted counts the requests to one service.
type counted struct {
	*transport.Counter
	provider string // as the statistics of a run name it
}

// counts returns a counter that the statistics of the run show.
func (s *session) counts(provider string) *transport.Counter {
	c := counted{&transport.Counter{Report: s.env.reportRequests(provider)}, provider}
	s.peered = append(s.peered, c)
	return c.Counter
}
