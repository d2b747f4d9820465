package inventory

import (
	"fmt"
	"strings"
)

// Account is what the provider's account holds where nobody looks for servers. It is asked for
// only where servers are missing: the zones or the project may be wrong.
type Account struct {
	Project string    `json:"project"`          // in which servers are looked for
	Holds   []Holding `json:"holds,omitempty"`  // elsewhere
	Unread  string    `json:"unread,omitempty"` // why not all of it is known; empty: it is
}

// Holding is how many servers a project has in a zone.
type Holding struct {
	Zone    string `json:"zone"`
	Project string `json:"project"`
	Servers int    `json:"servers"`
}

// String says what the account holds elsewhere.
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
	out := "elsewhere the API key sees no server"
	if len(texts) > 0 {
		out = "elsewhere the API key sees " + strings.Join(texts, ", ")
	}
	if a.Unread != "" {
		out += " (not all could be asked: " + a.Unread + ")"
	}
	return out
}
