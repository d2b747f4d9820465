package app

import (
	"context"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/hosts/tailnet"
	"github.com/macfleet/macfleet/internal/devices"
	"github.com/macfleet/macfleet/internal/sandbox"
	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/providers/tailscale"
	"github.com/macfleet/macfleet/providers/transport"
)

// tailnet returns the control server of the hosts' tailnet.
func (s *session) tailnet(t fleet.Tailnet) *devices.Devices {
	client := transport.New(s.counts("tailscale"), tailscale.RequestsPerSecond)
	client.Transport = transport.Watch(s.frugal(client.Transport), s.env.secrets.Learn)
	s.closers = append(s.closers, client.CloseIdleConnections)
	o := devices.Options{Tailnet: t, Resolve: s.tailnetSecret, Learn: s.env.secrets.Learn, HTTP: client, Waiting: s.env.reportWaiting("tailscale"), Now: time.Now}
	if s.world != nil {
		o.URL = s.world.TailnetURL()
	}
	return devices.New(o)
}

// tailnetSecret resolves an attribute of the tailnet's credentials. A simulated world knows what each must be.
func (s *session) tailnetSecret(ctx context.Context, attribute string, ref secret.Ref) (secret.Value, error) {
	r := s.resolver()
	if s.world != nil {
		r.World = func(ref string) (string, error) {
			return s.world.TailnetSecret(attribute, ref, !s.config.Tailnet.Listed())
		}
		r.Kubernetes = func(context.Context, string, string, string) (string, error) { return r.World(ref.String()) }
	}
	return r.Resolve(ctx, ref)
}

// worldTailnet lists the devices that this machine would see in a simulated world.
func worldTailnet(w *sandbox.World) func(context.Context) (tailnet.Devices, error) {
	return func(context.Context) (tailnet.Devices, error) {
		all, err := w.TailnetDevices()
		if err != nil {
			return nil, err
		}
		var out tailnet.Devices
		for _, d := range all {
			out = append(out, tailnet.Device(d))
		}
		return out, nil
	}
}
