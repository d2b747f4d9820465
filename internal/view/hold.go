package view

import (
	"fmt"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/plan"
)

// held lists the hosts that a person holds, those together that are held alike.
// shown says of which the plan has said so already.
func (t *Text) held(p *plan.Plan, shown func(plan.Host) bool) {
	names := make(map[string][]string) // by what is said of the hold
	var said []string
	for _, h := range p.Hosts {
		x := h.Standing()
		if x == nil || shown(h) {
			continue
		}
		if names[x.String()] == nil {
			said = append(said, x.String())
		}
		names[x.String()] = append(names[x.String()], h.Name)
	}
	for _, text := range said {
		t.line(0, "", fmt.Sprintf("Held %s: %s.", text, strings.Join(names[text], ", ")))
	}
}

// refusedByHold reports whether a hold is why nothing is done on a host: its block
// says so once, and not behind each action.
func refusedByHold(h plan.Host, actions []plan.Action) bool {
	return h.Standing() != nil && slices.ContainsFunc(actions, byHold)
}

func byHold(a plan.Action) bool { return a.Refusal != nil && a.Refusal.Code == plan.CodeHeld }

// holdRows say once in a host's block who holds it.
func holdRows(h plan.Host, actions []plan.Action) []row {
	if !refusedByHold(h, actions) || h.Refused != nil || h.Unknown != nil {
		return nil
	}
	return trouble(signRefused, generalTrouble(h, *h.Standing().Trouble(h.Name)))
}

// inBlock says which hosts of a plan show their holds in their blocks.
func inBlock(p *plan.Plan) func(plan.Host) bool {
	actions := byHost(p)
	return func(h plan.Host) bool { return len(holdRows(h, actions[h.Server.ID])) > 0 }
}

func nowhere(plan.Host) bool { return false }

// Holding says where a hold was written, or taken away where there is none, a line
// for each host, and why it was not elsewhere.
func (t *Text) Holding(all []engine.Holding, hold *inventory.Hold) {
	done, failed := "no longer held", "still held"
	if hold != nil {
		done, failed = "held "+plan.Held{Hold: *hold}.String(), "not held"
	}
	for _, h := range all {
		var in, not []string
		for _, place := range []struct {
			name string
			err  error
		}{{plan.InMarker, h.Marker}, {plan.InNode, h.Node}} {
			if place.err == nil {
				in = append(in, place.name)
			} else {
				not = append(not, fmt.Sprintf("%s: %v", place.name, place.err))
			}
		}
		sign, text := "", h.Host.Name+": "+done+" ("+strings.Join(in, ", ")+")"
		if !h.Done(hold) {
			sign, text = signRefused, h.Host.Name+": "+failed
		}
		t.line(0, sign, text)
		for _, n := range not {
			t.line(4, "", n)
		}
	}
}
