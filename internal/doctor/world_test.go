package doctor_test

import (
	"fmt"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// wants is a step that wants one text and reads one answer.
type wants struct {
	id      plan.StepID
	desired string
}

func (s wants) ID() plan.StepID      { return s.id }
func (s wants) probe() string        { return string(s.id) + ".get" }
func (s wants) Wanted() string       { return s.desired }
func (s wants) Probes() []plan.Probe { return []plan.Probe{{ID: s.probe()}} }

func (s wants) Diff(v plan.View) plan.Finding {
	seen := v.Facts.Get(s.probe())
	a, ok := seen.Get()
	if !ok {
		return plan.Finding{Unread: []plan.Unread{{Probe: s.probe(), Why: seen.Why()}}}
	}
	f := plan.Finding{Facts: a.Stdout}
	if s.desired != f.Facts {
		f.Changes = []plan.Change{{Fields: []plan.Field{{Name: string(s.id), Before: a.Stdout, After: s.desired}}}}
	}
	return f
}

// world is the configuration, what the providers list, and the hosts as they would answer.
type world struct {
	cfg   *fleet.Config
	snap  plan.Snapshot
	hosts map[string]plan.HostSeen
}

// newWorld has the fleet macos with the group m2, and no server.
func newWorld() *world {
	return &world{
		cfg: &fleet.Config{
			Owner:    fleet.Owner{Name: "acme", Environment: "prod"},
			Scaleway: fleet.Scaleway{Zones: []string{"fr-par-1"}, PoolPrefix: "acme-pool-"},
			SSH:      fleet.SSH{User: "m1"},
			Fleets:   []fleet.Fleet{{Name: "macos", OS: "Tahoe", Groups: []fleet.Group{{Name: "m2", Type: "M2-L", Replicas: 1}}}},
		},
		snap:  plan.Snapshot{Nodes: inventory.Present([]inventory.Node{}), Hosts: make(map[string]plan.HostSeen)},
		hosts: make(map[string]plan.HostSeen),
	}
}

func (w *world) steps(fleet.Host) []plan.Step {
	return []plan.Step{wants{"alpha", "good"}, wants{"beta", "good"}}
}

// serverID makes an id whose first five characters tell n.
func serverID(n int) string { return fmt.Sprintf("%05x000-0000-4000-8000-%012x", n, n) }

// name returns the name of a member.
func (w *world) name(n int) string { return w.cfg.HostName("macos", "m2", serverID(n)) }

// server adds a server whose host does no work.
func (w *world) server(n int, name string) {
	w.snap.Servers = append(w.snap.Servers, inventory.Server{ID: serverID(n), Name: name, Type: "M2-L", Zone: "fr-par-1",
		Address: fmt.Sprintf("192.0.2.%d", n), OSFamily: "Tahoe", Status: "ready", Delivered: true,
		Created: time.Date(2026, 1, 1, 0, n, 0, 0, time.UTC)})
	w.hosts[serverID(n)] = plan.HostSeen{Key: fmt.Sprintf("ssh-ed25519 %d", n), Fingerprint: "SHA256:x", Root: true,
		Serial: inventory.Present(fmt.Sprintf("C07%05d", n)), OSVersion: inventory.Present("26.3"),
		Marker: inventory.Absent[plan.Marker](), Claim: inventory.Absent[plan.Claim](), Facts: facts("factory")}
}

func said(answer string) inventory.Seen[plan.Answer] {
	return inventory.Present(plan.Answer{Stdout: answer})
}

func facts(answer string) plan.Facts {
	return plan.Facts{"alpha.get": said(answer), "beta.get": said(answer)}
}

// free adds a clean server of the pool.
func (w *world) free(n int) { w.server(n, fmt.Sprintf("acme-pool-%02d", n)) }

// member adds a converged host, without a Node or a pin.
func (w *world) member(n int) {
	w.server(n, w.name(n))
	proof := plan.DigestOf("good", "good")
	w.change(n, func(s *plan.HostSeen) {
		s.Pinned, s.Facts = true, facts("good")
		s.Marker = inventory.Present(plan.Marker{Configuration: "acme", Environment: "prod", Name: w.name(n), Fleet: "macos", Group: "m2", ServerID: serverID(n),
			Serial: fmt.Sprintf("C07%05d", n), Version: fleet.Version, Steps: map[plan.StepID]plan.Digest{"alpha": proof, "beta": proof}})
	})
}

// change edits a host's answers.
func (w *world) change(n int, edit func(*plan.HostSeen)) {
	seen := w.hosts[serverID(n)]
	edit(&seen)
	w.hosts[serverID(n)] = seen
}

func (w *world) pin(n int) {
	w.snap.Pins = append(w.snap.Pins, plan.Pin{ServerID: serverID(n), Name: w.name(n), Key: "ssh-ed25519 x"})
}

// notReady adds a member's Node.
func (w *world) notReady(n int) {
	s := inventory.Server{ID: serverID(n), Zone: "fr-par-1"}
	w.snap.Nodes = inventory.Present([]inventory.Node{{Name: w.name(n), ProviderID: s.ProviderID(), Ready: inventory.NotReady}})
}
