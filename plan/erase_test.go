package plan

import (
	"testing"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
)

// TestMarkerGuardsTheErase: each rule that reads a marker before a server is erased holds by itself, although MarkerForbids refuses
// such a host first.
func TestMarkerGuardsTheErase(t *testing.T) {
	t.Parallel()
	us := fleet.Owner{Name: "acme", Environment: "prod"}
	c := &computation{census: takeCensus(&fleet.Config{Owner: us}, Snapshot{})}
	mark := func(owner, id string) inventory.Seen[Marker] {
		return inventory.Present(Marker{Configuration: owner, Environment: us.Environment, ServerID: id})
	}
	for name, tc := range map[string]struct {
		marker           inventory.Seen[Marker]
		marks, old, free bool
	}{
		"its own":          {marker: mark("acme", "s"), marks: true, old: true},
		"another server's": {marker: mark("acme", "other")},
		"another owner's":  {marker: mark("globex", "s"), old: true},
		"none":             {marker: inventory.Absent[Marker](), free: true},
	} {
		h := &Host{Stage: Wiping, Server: inventory.Server{ID: "s"}, Seen: HostSeen{Marker: tc.marker, Claim: inventory.Absent[Claim]()}}
		if c.marks(h) != tc.marks || h.notErased() != tc.old || (c.unowned(h) == nil) != tc.free {
			t.Errorf("%s: its own marker %t, its disk is the old one %t, unowned %v", name, c.marks(h), h.notErased(), c.unowned(h))
		}
	}
}
