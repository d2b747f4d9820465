package sandbox

import (
	"errors"
	"time"

	"github.com/macfleet/macfleet/internal/sandbox/cloud"
	"github.com/macfleet/macfleet/internal/sandbox/mac"
)

// unheard is how long ago the provider last received an answer of a Mac that is down.
const unheard = 7 * time.Minute

// health is what the provider sees of a Mac. Its own software on the Mac does not use port 22.
func (w *World) health(server cloud.Server) (cloud.Health, error) {
	now := time.Now().UTC().Truncate(time.Second)
	dead := cloud.Health{CheckedIn: now.Add(-unheard)}
	open, err := w.incidentsOf(server.ID)
	if err != nil || open.find(unreachableName) != nil {
		return dead, err
	}
	machine, err := w.macs.get(server)
	if err != nil {
		return dead, err
	}
	if err := machine.Settle(w.connections); errors.Is(err, mac.ErrDown) {
		return dead, nil
	} else if err != nil {
		return dead, err
	}
	reachable, err := machine.Reachable()
	return cloud.Health{CheckedIn: now, Alive: true, Agent: true, MDM: true, SSH: reachable, VNC: reachable}, err
}
