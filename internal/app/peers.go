package app

import (
	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/providers/transport"
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
