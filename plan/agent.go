package plan

import (
	"strings"
	"time"
)

// AgentKeeper is a peer whose service gives work to hosts, for example a self-hosted runner. A run keeps new work away before it disturbs one.
type AgentKeeper interface {
	Peer
	// Agent returns the agent that the host should be; ok is false if it should be none.
	Agent() (spec AgentSpec, ok bool)
	// Job returns the label of the job that macfleet made for the host's agent; empty: it made none. It is no other system's.
	Job(Facts) string
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

// AgentStep returns the step that makes a host a CI agent, and that agent; ok is false if the host should be none.
func AgentStep(all []Step) (k AgentKeeper, spec AgentSpec, ok bool) {
	if k, ok = keeper(all); !ok {
		return nil, AgentSpec{}, false
	}
	spec, ok = k.Agent()
	return k, spec, ok
}

// AgentSpec is the agent that a host should be.
type AgentSpec struct {
	Scope      string   // the web address where it registers
	Name       string   // the host's name
	Labels     []string // those that can be changed, sorted, in lower case
	Group      string   // by name; empty: the default one
	GroupID    string   // instead of Group, if the agent gets back the group that it had
	FenceGroup string   // by name: the group without repositories that keeps new jobs away; empty: its labels are taken off
}

// CopiedRegistration reports whether the host has a copy of another server's registration: the entry that it names has that
// server's name. own is the name that the host's entry should have. A host that moves still has its former name at the
// provider.
func (v View) CopiedRegistration(entry, own string) bool {
	return v.Servers[entry] && entry != v.Server.Name && !strings.EqualFold(entry, own)
}

// SilentService is a service that could not be read, by its place in a sentence, and why.
type SilentService struct {
	Scope string `json:"scope"`
	Trouble
}

// About names the scope without its protocol, in the place of a host's name.
func (s SilentService) About() string { return strings.TrimPrefix(s.Scope, "https://") }

// Fence is what a run notes in a host's marker before it keeps new jobs away from the host's agent: an interrupted run is
// distinguished from a person who changed the agent's labels or group.
type Fence struct {
	Run   string    `json:"run"`
	Epoch int64     `json:"epoch"`
	At    time.Time `json:"at"`
}
