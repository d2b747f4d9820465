package plan

import (
	"fmt"

	"github.com/macfleet/macfleet/fleet/inventory"
)

// CodeQuarantined is the code of a host that is out of service until a person decides.
var CodeQuarantined = NewCode("quarantined", Critical, "the host is quarantined: its repairs failed, and it does not count for its fleet",
	"find the cause; when it is removed: macfleet unquarantine NAME")

// repairsOf returns the failed repairs of a host from both places that record them, or nil. A quarantine in
// either counts; of two records without one, the later.
func repairsOf(marker inventory.Seen[Marker], node inventory.Seen[inventory.Node]) *inventory.Repairs {
	m, _ := marker.Get()
	n, _ := node.Get()
	a, b := m.Repairs, n.Repairs
	switch {
	case a == nil, b.Quarantined() && !a.Quarantined():
		return b
	case b == nil, a.Quarantined(), !b.Last.After(a.Last):
		return a
	}
	return b
}

// quarantined reports whether a server's host is quarantined.
func (c *census) quarantined(p *placed) bool {
	seen := c.snap.Hosts[p.server.ID]
	return repairsOf(seen.Marker, p.node).Quarantined()
}

// serving counts the members of a group that count for it: all but those in quarantine, whose places other
// servers may take.
func (c *census) serving(members []*placed) int {
	n := 0
	for _, p := range members {
		n += ones(!c.quarantined(p))
	}
	return n
}

// quarantineText says since when and why a host is quarantined.
func quarantineText(r *inventory.Repairs) string {
	since := "out of service since " + r.Since.UTC().Format(holdTime)
	switch {
	case r.Unread != "":
		return "it counts as quarantined, because the record of its repairs cannot be read: " + r.Unread
	case r.Failed == 0:
		return fmt.Sprintf("%s, by %s: %s", since, r.Who, r.Reason)
	}
	return fmt.Sprintf("%s, after %s; the last one: %s", since, count(r.Failed, "failed repair"), r.Reason)
}

// Quarantine returns why macfleet does not change the host, or nil: it is in quarantine.
func (h *Host) Quarantine() *Trouble {
	if !h.Member || !h.FailedRepairs.Quarantined() {
		return nil
	}
	return CodeQuarantined.Trouble(quarantineText(h.FailedRepairs), "find the cause; when it is removed: macfleet unquarantine "+h.Name)
}

// quarantine refuses all actions on a quarantined host that stays in its fleet. It is reported also if there is
// nothing to do.
func (h *Host) quarantine(actions []Action) {
	t := h.Quarantine()
	if t == nil {
		return
	}
	refuse(actions, t)
	if h.Unknown == nil && h.Refused == nil {
		h.Refused = t
		return
	}
	h.warn("", t)
}
