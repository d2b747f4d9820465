package plan_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/drift"
	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/internal/view"
	"github.com/macfleet/macfleet/internal/wire"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/plan/plantest"
)

// TestScrubbedWorldPlans plants a value in one place of a drawn world: no record
// and no plan of it holds the value, and both agree.
func TestScrubbedWorldPlans(t *testing.T) {
	t.Parallel()
	const value = "SentinelValue0123"
	var s secret.Scrubber
	s.Learn(value)
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		for id, h := range w.hosts {
			w.snap.Hosts[id] = sowHost(t, h, value)
		}
		for i := range w.snap.Servers {
			if rapid.IntRange(0, 3).Draw(t, "server") == 0 {
				w.snap.Servers[i].Name += value
			}
		}
		w.snap = wire.Clean(s.Scrub, w.snap)
		content := must(wire.NewRecord(fleet.Owner{Name: "acme"}, w.snap).Encode())
		if text := string(content) + shown(t, w.compute()); strings.Contains(text, value) {
			t.Fatalf("the value is in the record or the plan: %s", text)
		}
	})
}

func sowHost(t *rapid.T, h plan.HostSeen, value string) plan.HostSeen {
	switch rapid.IntRange(0, 5).Draw(t, "where") {
	case 0:
		h.Trouble = &plan.Trouble{Code: plantest.Code("unreachable"), Text: "it said " + value, Remedy: "r"}
	case 1:
		h.Facts = facts(value, "a "+value+" b")
	case 2:
		h.Marker = inventory.Unread[plan.Marker]("cat: " + value)
	case 3:
		if m, ok := h.Marker.Get(); ok {
			m.Environment = value
			h.Marker = inventory.Present(m)
		}
	case 4:
		h.Serial, h.OSVersion = inventory.Present(value), inventory.Present("26."+value)
	}
	return h
}

// shown is everything that a plan says, to people and to programs.
func shown(t *rapid.T, p *plan.Plan) string {
	var b bytes.Buffer
	text := view.NewText(&b, 0, false)
	text.Plan(p, view.PlanForm{Full: true})
	text.Plan(p, view.PlanForm{})
	r, err := drift.Of(p, nil, noon)
	if err != nil {
		t.Fatal(err)
	}
	text.Drift(p, r, 2)
	text.Hosts(p, view.HostsOptions{Wide: true})
	if err := errors.Join(wire.Write(&b, wire.PlanOf(p)), view.WriteHosts(&b, p, view.HostsOptions{}), view.WriteDrift(&b, p, r), view.WriteDriftMarkdown(&b, r), view.WriteDriftMetrics(&b, r)); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
