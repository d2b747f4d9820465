package inventory

import (
	"fmt"
	"slices"
	"strings"
)

// Account is what the provider's account has where macfleet does not look for servers. It is read only if
// servers are missing: the zones or the project may be wrong.
type Account struct {
	Project string    `json:"project"`          // in which servers are looked for
	Holds   []Holding `json:"holds,omitempty"`  // elsewhere
	Unread  string    `json:"unread,omitempty"` // why it is incomplete; empty: it is complete
}

// Holding is how many servers a project has in a zone.
type Holding struct {
	Zone    string `json:"zone"`
	Project string `json:"project"`
	Servers int    `json:"servers"`
	// IDs are the ids of those servers, sorted. A recorded account of an older macfleet has none.
	IDs []string `json:"ids,omitempty"`
}

// Holding returns where the account has a server, if it is elsewhere.
func (a Account) Holding(id string) (Holding, bool) {
	i := slices.IndexFunc(a.Holds, func(h Holding) bool { return slices.Contains(h.IDs, id) })
	if i < 0 {
		return Holding{}, false
	}
	return a.Holds[i], true
}

// String says what the account has elsewhere.
func (a Account) String() string {
	var texts []string
	for _, h := range a.Holds {
		text := fmt.Sprintf("%d servers", h.Servers)
		if h.Servers == 1 {
			text = "1 server"
		}
		text += " in " + h.Zone
		if h.Project != a.Project {
			text += " of project " + h.Project
		}
		texts = append(texts, text)
	}
	out := "the API key sees no servers elsewhere"
	if len(texts) > 0 {
		out = "elsewhere the API key sees " + strings.Join(texts, ", ")
	}
	if a.Unread != "" {
		out += " (incomplete: " + a.Unread + ")"
	}
	return out
}
