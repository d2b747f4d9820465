package view

import (
	"fmt"

	"github.com/macfleet/macfleet/plan"
)

// Staying says that a server stays, and which hosts leave in its place.
func (t *Text) Staying(k plan.Kept) {
	if k.Stage == plan.Stays {
		t.Say(k.Name + " is neither being replaced nor released; nothing was changed.")
		return
	}
	text := k.Name + " stays. The next macfleet apply repairs what was started on it."
	if k.Surplus > 0 {
		n := count(k.Surplus, "host")
		text = fmt.Sprintf("%s is no longer chosen to leave. %s has replicas = %d and %s too many: macfleet plan says which leave, "+
			"this one among them or not. To keep all of them, raise replicas.", k.Name, k.Group, k.Replicas, n)
	}
	t.Say(text)
}

// Departing says what finishes a request that a server leaves, or nothing if the run finished it. after is the plan
// made afterwards; nil: there is none.
func (t *Text) Departing(d plan.Departure, after *plan.Plan) {
	if after == nil {
		return
	}
	h, there := after.HostByServer(d.ServerID)
	switch {
	case !there:
	case h.Stage.Final():
		t.Say(h.Name + " is being erased. The next macfleet apply finishes its release.")
	case h.Stage == plan.Replaced, d.Replace && h.Stage == plan.Leaving:
		t.Say(fmt.Sprintf("%s is not replaced yet. A later macfleet apply continues; to keep the host: macfleet replace --cancel %[1]s", h.Name))
	}
}
