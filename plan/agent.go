package plan

import (
	"strings"
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan/lists"
)

// AgentKeeper is the step that makes a host an agent of a CI service, for example a self-hosted runner. What
// happens on the host is the step's; what happens at the service is done by the engine.
type AgentKeeper interface {
	Step
	// Agent returns the agent that the host should be; ok is false if it should be none.
	Agent() (spec AgentSpec, ok bool)
	// Entry returns the id of the host's entry, and the scope where it is registered, by what was read on the host; ok is
	// false if it is not registered. The scope may differ from the specification's.
	Entry(Facts) (said lists.Said, ok bool)
	// Job returns the label of the job that macfleet made for the host's agent; empty: it made none. It is no other system's.
	Job(Facts) string
	// Leave returns the changes that end the host's agent: its job, its entry at the service, its files. It is Diff for a
	// host that leaves, and has no changes if there is no agent.
	Leave(View) Finding
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

// AgentVerb is what happens to an entry at a CI service.
type AgentVerb string

// The verbs.
const (
	Deregister AgentVerb = "deregister" // delete the entry
	Restore    AgentVerb = "restore"    // give it the labels and the group that are configured
)

// AgentChange is a change at a CI service instead of on the host.
type AgentChange struct {
	Verb  AgentVerb       `json:"verb"`
	Scope string          `json:"scope"`
	Agent inventory.Agent `json:"agent"` // as it was listed
}

// ServiceSeen is what a CI service answered about one scope. A step gets only the entries of its host.
type ServiceSeen struct {
	// Trouble says why it could not be read; nil: it was.
	Trouble *Trouble `json:"trouble,omitempty"`
	inventory.AgentService
}

// SilentService is a CI service that could not be read in one scope, and why.
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
