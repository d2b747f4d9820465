package plan

import (
	"fmt"

	"github.com/macfleet/macfleet/fleet"
)

// Unasked is a group of which nobody was asked anything: it is not compared.
type Unasked struct {
	Fleet    string `json:"fleet"`
	Group    string `json:"group"`
	Type     string `json:"type"`
	OS       string `json:"os"`
	Replicas int    `json:"replicas"`
}

// String says what is wanted, and that it was not compared.
func (u Unasked) String() string {
	return fmt.Sprintf("not compared: %s of type %s with macOS %s wanted; without secrets nobody was asked", count(u.Replicas, "host"), u.Type, u.OS)
}

// ComputeUnasked returns the plan of a run that may ask nobody: what is wanted, and
// that nothing of it was compared. It is never complete unless nothing is wanted.
func ComputeUnasked(cfg *fleet.Config) *Plan {
	p := &Plan{Owner: cfg.Owner}
	for _, f := range cfg.Fleets {
		p.Fleets = append(p.Fleets, f.Name)
		for _, g := range f.Groups {
			p.Unasked = append(p.Unasked, Unasked{Fleet: f.Name, Group: g.Name, Type: g.Type, OS: f.OS, Replicas: g.Replicas})
		}
	}
	return p
}
