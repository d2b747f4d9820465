package app

import (
	"context"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/agents"
	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/providers/github"
	"github.com/macfleet/macfleet/providers/transport"
)

// agents returns the CI services whose agents run on hosts that the command may concern; nil: the configuration has none.
func (s *session) agents(touches func(fleet.Specified) bool) (*agents.Agents, error) {
	client := transport.New(s.counts("github"), github.RequestsPerSecond)
	client.Transport = transport.Watch(s.frugal(client.Transport), s.env.secrets.Learn)
	s.closers = append(s.closers, client.CloseIdleConnections)
	o := agents.Options{Config: s.config, Touches: touches, Resolve: s.credential, Learn: s.env.secrets.Learn, HTTP: client,
		Waiting: s.env.reportWaiting("github"), Now: time.Now}
	if s.world != nil {
		o.URL = s.world.GitHubURL() + "/"
	}
	return agents.New(o)
}

// credential resolves an attribute of the credentials for a CI service. A simulated world knows what each must be.
func (s *session) credential(ctx context.Context, attribute string, ref secret.Ref) (secret.Value, error) {
	r := s.resolver()
	if attribute == github.AppID || attribute == github.InstallationID {
		r.Learn = nil // it is not a secret: a number in messages must not be masked
	}
	if s.world != nil {
		r.World = func(ref string) (string, error) { return s.world.GitHubSecret(attribute, ref) }
		r.Kubernetes = func(context.Context, string, string, string) (string, error) { return r.World(ref.String()) }
	}
	return r.Resolve(ctx, ref)
}
