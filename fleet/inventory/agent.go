package inventory

import (
	"slices"
	"strings"
	"time"
)

// Agent is a CI agent as its service lists it, for example a self-hosted runner of GitHub.
type Agent struct {
	ID     string   `json:"id"` // unique in its scope; a new registration has a new one
	Name   string   `json:"name"`
	Labels []string `json:"labels,omitempty"` // those that can be changed, sorted, in lower case
	Fixed  []string `json:"fixed,omitempty"`  // those that the service sets and keeps, likewise
	Online bool     `json:"online"`           // it is connected
	Busy   bool     `json:"busy"`             // the service says that a job runs, which may be wrong either way
	// Group is the id of the agent's group, empty where the scope has no groups.
	Group     string `json:"group,omitempty"`
	Version   string `json:"version,omitempty"` // empty: the service does not say
	Ephemeral bool   `json:"ephemeral,omitempty"`
}

// AgentGroup is a group of agents, which decides who may give jobs to them.
type AgentGroup struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Public bool   `json:"public,omitempty"` // jobs of public repositories may run on it
	All    bool   `json:"all,omitempty"`    // all repositories of the organization may use it
	// Default says that agents join it which name no group.
	Default bool `json:"default,omitempty"`
}

// AgentRelease is a version of an agent's program that its service offers for download.
type AgentRelease struct {
	Version string `json:"version"`
	URL     string `json:"url"`
	SHA256  string `json:"sha256,omitempty"` // hex; empty: the service does not say
}

// Sunset is when a service stops accepting a version of its agent. The zero time: no date is set.
type Sunset struct {
	Running     time.Time `json:"running,omitzero"`     // from then on it gets no jobs
	Registering time.Time `json:"registering,omitzero"` // from then on it cannot register
}

// AgentService is what a CI service lists of one scope, such as an organization at GitHub.
type AgentService struct {
	Agents []Agent `json:"agents,omitempty"` // all of the scope, by id
	// Churned says that entries came and went each time the list was read, so that Agents may lack some.
	Churned bool `json:"churned,omitempty"`
	// Groups are those of the scope; absent: the scope has none.
	Groups Seen[[]AgentGroup] `json:"groups,omitzero"`
	// Public says that the scope is a repository that everyone can read, so that anyone can propose a workflow; absent: the
	// scope is not a repository.
	Public Seen[bool] `json:"public,omitzero"`
	// Newest is the newest program for these hosts; absent: the service offers none.
	Newest Seen[AgentRelease] `json:"newest,omitzero"`
	// Sunsets are when it stops accepting the versions that its agents have, by version; one without a date is missing.
	Sunsets map[string]Sunset `json:"sunsets,omitempty"`
	// SunsetsUnread says why Sunsets may lack some; empty: it does not.
	SunsetsUnread string `json:"sunsets_unread,omitempty"`
	// ReadOnly says that the credentials can list agents but not change them.
	ReadOnly bool `json:"read_only,omitempty"`
}

// Named returns the agents of a name, which services compare without regard to case.
func (s AgentService) Named(name string) []Agent {
	return slices.DeleteFunc(slices.Clone(s.Agents), func(a Agent) bool { return !strings.EqualFold(a.Name, name) })
}

// Agent returns the agent with an id.
func (s AgentService) Agent(id string) (Agent, bool) {
	i := slices.IndexFunc(s.Agents, func(a Agent) bool { return a.ID == id })
	if i < 0 {
		return Agent{}, false
	}
	return s.Agents[i], true
}

// GroupNamed returns the group of a name; the empty name is that of the default group.
func (s AgentService) GroupNamed(name string) (AgentGroup, bool) {
	groups, _ := s.Groups.Get()
	i := slices.IndexFunc(groups, func(g AgentGroup) bool { return strings.EqualFold(g.Name, name) || name == "" && g.Default })
	if i < 0 {
		return AgentGroup{}, false
	}
	return groups[i], true
}

// AgentAccess is what the credentials for a CI service are, and what they may do in a scope.
type AgentAccess struct {
	App          string // its id as configured; empty: the credentials are a token
	Key          int    // which of the App's keys the service accepts, from 1; 0: a token
	Installation string // the App's, by id; empty: a token
	Permission   string // what is needed, as the service's pages name it
	Level        string // write or read; empty: only a change would show it
}
