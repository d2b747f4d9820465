package inventory

import "time"

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
