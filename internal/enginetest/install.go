package enginetest

import (
	"fmt"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// InstallTime is how long a reinstallation takes.
const InstallTime = 30 * time.Minute

// erase starts to reinstall the machine: nothing on it stays, and it gets another key.
func (m *Machine) erase() {
	m.installs++
	m.boots++
	m.up = time.Now().Add(InstallTime)
	m.State, m.Root, m.granted = make(map[string]string), false, ""
	m.pending, m.artifacts = make(map[plan.StepID]bool), make(map[string]bool)
	m.marker, m.claim, m.entered, m.Refusals = "", nil, plan.Run{}, nil
	m.key = keyOf(fmt.Sprintf("%s-%d", m.Server.ID, m.installs))
	m.node, m.process, m.token = "", "", ""
	m.Agent = Agent{}
}

// Owners are all to whom something shows that the machine belongs: its name, its marker and its claim. A name of the pool
// shows nothing.
func (m *Machine) Owners() map[string]bool {
	out := make(map[string]bool)
	if owner, _, ok := fleet.Split(m.Server.Name, m.Server.ID); ok {
		out[owner] = true
	}
	if mark, err := plan.ParseMarker(m.marker); err == nil {
		out[mark.Owner().String()] = true
	}
	if m.claim != nil {
		out[fleet.Owner{Name: m.claim.Configuration, Environment: m.claim.Environment}.String()] = true
	}
	return out
}

// server is the machine as the provider shows it now.
func (m *Machine) server() inventory.Server {
	s := m.Server
	if m.installs > 0 && time.Now().Before(m.up) && s.Status == "ready" {
		s.Status = "reinstalling"
	}
	return s
}
