package plan

import (
	"maps"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan/lists"
)

var (
	codeRunnerLeftOver = NewCode("runner-left-over", Notice, "a CI service lists an offline agent whose host is gone")
	codeListChurned    = NewCode("list-churned", NotDrift, "the list of a CI service changed each time it was read and lacks the host's agent, which shows nothing",
		"run the command again")
	codeAgentUnknown = NewCode("agent-unknown", NotDrift, "the CI service cannot be read, so it is unknown whether a job runs on a host that leaves",
		"check the service, then run macfleet apply again")
)

// AgentStatus is a host's CI agent as its service lists it.
type AgentStatus struct {
	Scope  string `json:"scope"`
	Fenced bool   `json:"fenced,omitempty"` // a run keeps new jobs away
	inventory.Agent
}

// keeper returns the step that makes a host an agent; ok is false if there is none.
func keeper(all []Step) (k AgentKeeper, ok bool) {
	for _, s := range all {
		if k, ok = s.(AgentKeeper); ok {
			return k, true
		}
	}
	return nil, false
}

// enterService gives a host what the CI service of its agent said. A host that should be no agent any more has the one where
// macfleet registered it.
func (c *computation) enterService(h *Host) {
	k, ok := keeper(c.stepsFor(h.Spec))
	if !ok {
		return
	}
	h.servers, h.taken = c.names(), c.snap.Taken
	spec, wanted := k.Agent()
	entry, registered := c.agentsSaid.of(h.Server.ID, func() (lists.Said, bool) { return k.Entry(h.Seen.Facts) })
	scope, id := entry.Realm, entry.ID
	if wanted {
		scope = spec.Scope
	}
	service, known := c.service(scope)
	if !known {
		if _, configured := c.scopes()[scope]; configured {
			h.Service = &ServiceSeen{Trouble: codeAgentUnknown.Trouble("the selection of this run leaves out the fleets whose credentials "+scope+" needs", "run it without --on")}
		}
		return
	}
	h.Service = service.of(id, h.Name)
	if registered && len(h.Service.Agents) == 0 && service.Churned && service.Trouble == nil {
		why := codeListChurned.Trouble("agents came and went each time the list was read, and it lacks those of some hosts")
		if !service.told {
			service.told = true
			c.plan.Services = append(c.plan.Services, SilentService{scope, *why})
		}
		h.Service = &ServiceSeen{Trouble: why}
	}
	m, _ := h.Seen.Marker.Get()
	if f := m.Fence; f != nil && !(c.snap.Lock != nil && c.snap.Lock.Alive && c.snap.Lock.Run.ID == f.Run) {
		h.fence = f
	}
	a, listed := service.byID[id]
	if !listed || !registered {
		named := service.byName[strings.ToLower(h.Name)]
		if listed = len(named) > 0; listed {
			a = named[0]
		}
	}
	if listed {
		h.Agent = &AgentStatus{Scope: scope, Fenced: m.Fence != nil, Agent: a}
	}
}

// indexed is a CI service with its agents by id, and by name in lower case: services ignore the case of names.
type indexed struct {
	ServiceSeen
	told   bool // the plan says that it churned
	byID   map[string]inventory.Agent
	byName map[string][]inventory.Agent
}

// service returns the CI service of a scope.
func (c *computation) service(scope string) (*indexed, bool) {
	if s, is := c.byScope[scope]; is {
		return s, true
	}
	seen, known := c.snap.Services[scope]
	if !known {
		return nil, false
	}
	s := &indexed{seen, false, make(map[string]inventory.Agent, len(seen.Agents)), make(map[string][]inventory.Agent, len(seen.Agents))}
	for _, a := range seen.Agents {
		name := strings.ToLower(a.Name)
		s.byID[a.ID], s.byName[name] = a, append(s.byName[name], a)
	}
	if c.byScope == nil {
		c.byScope = make(map[string]*indexed)
	}
	c.byScope[scope] = s
	return s, true
}

// of returns what the service said that concerns one host: the entries with its name, and the one of its registration.
func (s *indexed) of(id, name string) *ServiceSeen {
	out := s.ServiceSeen
	out.Agents = slices.Clone(s.byName[strings.ToLower(name)])
	if a, listed := s.byID[id]; listed && !strings.EqualFold(a.Name, name) {
		out.Agents = append(out.Agents, a)
	}
	return &out
}

// scopes are those where hosts of the configuration should register.
func (c *computation) scopes() map[string]bool {
	if c.wantedScopes == nil {
		c.wantedScopes = make(map[string]bool)
		for _, spec := range specs(c.cfg) {
			if k, ok := keeper(c.stepsFor(fleet.Host{User: c.cfg.SSH.User, Spec: spec})); ok {
				if a, wanted := k.Agent(); wanted {
					c.wantedScopes[a.Scope] = true
				}
			}
		}
	}
	return c.wantedScopes
}

// names returns the names of all servers and members.
func (c *computation) names() map[string]bool {
	if c.servers == nil || c.serverNames != nil {
		return c.serverNames
	}
	c.serverNames = make(map[string]bool, len(c.servers))
	for i := range c.servers {
		c.serverNames[c.servers[i].name], c.serverNames[c.servers[i].server.Name] = true, true
	}
	return c.serverNames
}

// Fenceable reports whether a run can keep new jobs away from the host's agent, so that the work on it finishes.
func (h *Host) Fenceable() bool {
	return h.Agent != nil && h.Service != nil && h.Service.Trouble == nil && !h.Service.ReadOnly
}

// services warns of CI services that could not be read, once each.
func (c *computation) services() {
	for _, scope := range slices.Sorted(maps.Keys(c.snap.Services)) {
		if t := c.snap.Services[scope].Trouble; t != nil {
			c.plan.Services = append(c.plan.Services, SilentService{scope, *t})
		}
	}
}

// agentsLeft deletes entries of agents whose hosts are gone: offline ones under names of this configuration that no server
// has. A host that does not answer may be one of them, so then nothing is deleted.
func (c *computation) agentsLeft() {
	if c.plan.Narrowed || slices.ContainsFunc(c.servers, c.silent) {
		return
	}
	spoken := c.mentioned()
	for _, scope := range slices.Sorted(maps.Keys(c.snap.Services)) {
		service := c.snap.Services[scope]
		if service.Trouble != nil || service.ReadOnly {
			continue
		}
		for _, a := range service.Agents {
			if _, ours := c.cfg.Parse(a.Name); !ours || a.Online || a.Busy || spoken[a.Name] || c.names()[a.Name] || !c.leftOver(scope+" lists the offline agent "+a.Name, a.Name) {
				continue
			}
			c.plan.Actions = append(c.plan.Actions, Action{Kind: ForgetAgent, Host: a.Name, Was: a.Name, Origin: drifted,
				Reason: Reason{codeRunnerLeftOver, scope + " lists the offline agent " + a.Name + ", and no server has this name"},
				Fields: []Field{{"entry", "id " + a.ID, "none"}},
				Changes: []Change{{Reason: Reason{codeRunnerLeftOver, "no server is called " + a.Name}, Removes: true,
					Agent: &AgentChange{Verb: Deregister, Scope: scope, Agent: a}, Fields: []Field{{"entry", "id " + a.ID, "none"}}}}})
		}
	}
}

// silent reports whether a member was not read.
func (c *computation) silent(p placed) bool {
	if p.role != member && p.role != orphan {
		return p.role == gone
	}
	seen, asked := c.snap.Hosts[p.server.ID]
	return !asked || seen.Trouble != nil
}

// retire adds what ends the agent of a host that leaves. For a host that does not answer, only the service decides.
func (c *computation) retire(h *Host, add func(Kind, Code, string, ...Field) *Action, code Code, why string) *Trouble {
	k, ok := keeper(c.stepsFor(h.Spec))
	if !ok {
		return nil
	}
	_, wanted := k.Agent()
	if !h.ForceBusy && (wanted && h.Service == nil || h.Service != nil && h.Service.Trouble != nil) {
		text := "it is unknown whether a job runs on the host"
		if h.Service != nil {
			text += ": " + h.Service.Trouble.Text
		}
		return codeAgentUnknown.Trouble(text)
	}
	changes, busy := c.leaveChanges(h, k)
	if len(changes) == 0 {
		return nil
	}
	a := add(RetireAgent, code, why, fieldsOf(changes)...)
	a.Step, a.Changes, a.Busy, a.Forced = k.ID(), changes, busy, h.ForceBusy
	a.Disruption = Drain
	return nil
}

// leaveChanges returns the changes that end a host's agent. A host that does not answer has only its entry deleted.
func (c *computation) leaveChanges(h *Host, k AgentKeeper) ([]Change, []Task) {
	if h.Seen.Trouble == nil {
		f := k.Leave(h.View(k.ID()))
		f.readable()
		return f.Changes, f.Busy
	}
	var out []Change
	if h.Service != nil && h.Service.Trouble == nil {
		spec, _ := k.Agent()
		for _, a := range h.Service.Named(h.Name) {
			if !a.Online {
				out = append(out, Change{Reason: Reason{codeRunnerLeftOver, "the host is released and does not answer"}, Removes: true,
					Agent:  &AgentChange{Verb: Deregister, Scope: spec.Scope, Agent: a},
					Fields: []Field{{"entry", strings.TrimSpace(a.Name + ", id " + a.ID), "none"}}})
			}
		}
	}
	return out, nil
}
