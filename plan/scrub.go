package plan

import (
	"slices"

	"github.com/macfleet/macfleet/fleet/inventory"
)

// Scrub takes secrets out of a text: secret.Scrubber.Scrub. It changes nothing
// else.
type Scrub func(text string) string

// Snapshot returns a snapshot with every text scrubbed: what the providers list,
// what hosts answered, and the ids under which all that is kept. It runs before
// anything is computed, so that a plan from a file is the plan that was seen.
func (s Scrub) Snapshot(in Snapshot) Snapshot {
	out := Snapshot{Taken: in.Taken, Nodes: mapped(s, in.Nodes, s.Nodes), Cluster: mapped(s, in.Cluster, s.cluster), Lock: s.lock(in.Lock)}
	for _, v := range in.Servers {
		out.Servers = append(out.Servers, s.Server(v))
	}
	for _, p := range in.Pins {
		p.ServerID, p.Name, p.Key = s(p.ServerID), s(p.Name), s(p.Key)
		out.Pins = append(out.Pins, p)
	}
	if in.Hosts != nil {
		out.Hosts = make(map[string]HostSeen, len(in.Hosts))
	}
	for id, h := range in.Hosts {
		out.Hosts[s(id)] = s.Host(h)
	}
	return out
}

// Server returns a server with every text scrubbed.
func (s Scrub) Server(v inventory.Server) inventory.Server {
	v.ID, v.Name, v.Type, v.Zone = s(v.ID), s(v.Name), s(v.Type), s(v.Zone)
	v.Address, v.OSFamily, v.Status = s(v.Address), s(v.OSFamily), s(v.Status)
	return v
}

// Host returns a host's observation with every text scrubbed. The marker and the
// claim are scrubbed as they were understood, so that no escape in their JSON
// hides anything.
func (s Scrub) Host(h HostSeen) HostSeen {
	h.Trouble = s.trouble(h.Trouble)
	h.Pending = slices.Clone(h.Pending)
	for i, step := range h.Pending {
		h.Pending[i] = StepID(s(string(step)))
	}
	if u := h.Undone; u != nil {
		h.Undone = &Undone{Step: StepID(s(string(u.Step))), At: u.At, Why: s(u.Why), Exit: u.Exit}
	}
	if e := h.Entered; e != nil {
		scrubbed := *e
		scrubbed.ID, scrubbed.Who = s(e.ID), s(e.Who)
		h.Entered = &scrubbed
	}
	if w := h.Password; w != nil {
		h.Password = &Password{Source: s(w.Source), Trouble: s.trouble(w.Trouble)}
	}
	h.Path, h.Key, h.Fingerprint = s(h.Path), s(h.Key), s(h.Fingerprint)
	h.Serial, h.OSVersion = mapped(s, h.Serial, s), mapped(s, h.OSVersion, s)
	h.Marker, h.Claim = mapped(s, h.Marker, s.marker), mapped(s, h.Claim, s.claim)
	h.Facts = s.Facts(h.Facts)
	return h
}

func (s Scrub) lock(l *Lock) *Lock {
	if l == nil {
		return nil
	}
	out := *l
	out.Run.ID, out.Run.Who, out.Unread = s(l.Run.ID), s(l.Run.Who), s(l.Unread)
	return &out
}

func (s Scrub) trouble(t *Trouble) *Trouble {
	if t == nil {
		return nil
	}
	return &Trouble{Code: s(t.Code), Text: s(t.Text), Remedy: s(t.Remedy)}
}

// Facts returns answers with every text scrubbed.
func (s Scrub) Facts(in Facts) Facts {
	if in == nil {
		return nil
	}
	out := make(Facts, len(in))
	for id, a := range in {
		out[s(id)] = mapped(s, a, func(a Answer) Answer { return Answer{a.Exit, s(a.Stdout), s(a.Stderr)} })
	}
	return out
}

func (s Scrub) marker(m Marker) Marker {
	m.Configuration, m.Environment, m.Name = s(m.Configuration), s(m.Environment), s(m.Name)
	m.Fleet, m.Group, m.ServerID = s(m.Fleet), s(m.Group), s(m.ServerID)
	m.Serial, m.ClusterUID, m.Version = s(m.Serial), s(m.ClusterUID), s(m.Version)
	if r := m.Run; r != nil {
		m.Run = &MarkerRun{ID: s(r.ID), Epoch: r.Epoch, Who: s(r.Who), At: r.At}
	}
	m.Hold = s.hold(m.Hold)
	if m.Steps == nil {
		return m
	}
	steps := make(map[StepID]Digest, len(m.Steps))
	for id, d := range m.Steps {
		d.Wanted, d.Facts = s(d.Wanted), s(d.Facts)
		steps[StepID(s(string(id)))] = d
	}
	m.Steps = steps
	return m
}

func (s Scrub) hold(h *inventory.Hold) *inventory.Hold {
	if h == nil {
		return nil
	}
	return &inventory.Hold{Who: s(h.Who), Reason: s(h.Reason), Since: h.Since, Until: h.Until}
}

func (s Scrub) claim(c Claim) Claim {
	return Claim{Configuration: s(c.Configuration), Environment: s(c.Environment), Name: s(c.Name),
		ServerID: s(c.ServerID), Nonce: s(c.Nonce)}
}

// mapped changes what was seen, or the reason why it was not.
func mapped[T any](s Scrub, seen inventory.Seen[T], change func(T) T) inventory.Seen[T] {
	if v, ok := seen.Get(); ok {
		return inventory.Present(change(v))
	}
	if seen.IsUnread() {
		return inventory.Unread[T](s(seen.Why()))
	}
	return seen
}
