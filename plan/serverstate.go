package plan

import (
	"cmp"
	"fmt"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
)

// The codes of what the provider says of a server.
var (
	CodeDeletionScheduled = NewCode("deletion-scheduled", Critical, "the provider is going to delete the server",
		"if nobody meant that, cancel the deletion in the provider's console; else take the work off the host: macfleet cordon NAME")
	codeServerReinstalling = NewCode("server-reinstalling", Critical, "the provider is wiping the server's disk and installing macOS again",
		"find out who reinstalls it; when it is ready: macfleet hosts forget-key NAME, then apply again")
	codeServerLocked = NewCode("server-locked", Critical, "the provider has locked the server, or is locking it",
		"ask the provider's support why, and have it unlocked")
	codeServerError = NewCode("server-error", Critical, "the provider says that the server is in error",
		"look at it in the provider's console, and ask the provider's support")
	codeServerBusy = NewCode("server-busy", Warning, "the provider is working on the server, so nothing is changed on its host",
		"wait until its status is ready, and run the command again")
	codeServerStatus = NewCode("server-status-unknown", Warning, "the provider gives the server a status that says nothing",
		"look at it in the provider's console")
)

// status is what a status of the provider means for a server.
type status struct {
	code    Code   // of a member; zero: nothing stands against it
	meaning string // in words
	drift   bool   // it does not pass by itself: a person must see to it
	busy    bool   // the provider may restart or wipe it at any moment: nothing is changed on its host
	remedy  string // of a server of the pool
}

// statuses are all that the provider's API has. Of another one nobody knows what it means.
var statuses = map[string]status{
	"ready":          {},
	"starting":       {codeServerBusy, "it is being delivered, or starts", false, true, "wait until it is ready"},
	"rebooting":      {codeServerBusy, "it restarts", false, true, "wait until it is ready"},
	"updating":       {codeServerBusy, "its options are being changed, which may restart it", false, true, "wait until it is ready"},
	"unlocking":      {codeServerBusy, "it is being unlocked", false, true, "wait until it is ready"},
	"busy":           {codeServerBusy, "something is being done to it", false, true, "wait until it is ready"},
	"reinstalling":   {codeServerReinstalling, "its disk is being wiped and macOS is installed again", true, true, "wait until it is ready"},
	"locking":        {codeServerLocked, "it is being locked", true, false, "ask the provider's support why"},
	"locked":         {codeServerLocked, "it is locked", true, false, "ask the provider's support why"},
	"error":          {codeServerError, "something that was begun with it has failed", true, false, "ask the provider's support"},
	"unknown_status": {codeServerStatus, "the provider does not know it either", false, false, "look at it in the provider's console"},
}

// statusOf returns what the provider's status of a server means.
func statusOf(s inventory.Server) status {
	known, ok := statuses[s.Status]
	switch {
	case !ok:
		return status{codeServerStatus, "macfleet does not know what that means", false, false, "look at it in the provider's console"}
	case known.code == Code{} && !s.Delivered:
		return status{codeServerBusy, "it is not delivered yet", false, true, "wait until it is ready"}
	}
	return known
}

// condition is what the vendor says of a server, and what that means.
func condition(of fleet.Vendor, s inventory.Server) string {
	text := fmt.Sprintf("%s says status %s, delivered %t", of.Name, cmp.Or(s.Status, "none"), s.Delivered)
	if meaning := statusOf(s).meaning; meaning != "" {
		text += ": " + meaning
	}
	return text
}

// unready returns why a server of the pool cannot be claimed by what the provider says of it.
func (c *census) unready(s inventory.Server) *Trouble {
	switch {
	case s.DeletionScheduled:
		return CodeDeletionScheduled.Trouble(c.deletion(s), "cancel the deletion in "+c.vendor.Console()+", or claim another server")
	case !s.Usable():
		return codeServerNotReady.Trouble(condition(c.vendor, s), statusOf(s).remedy)
	}
	return nil
}

// deletion says when the provider deletes a server.
func (c *census) deletion(s inventory.Server) string {
	text := c.vendor.Name + " is going to delete the server"
	switch {
	case s.DeletableAt.IsZero():
		return text
	case s.DeletableAt.After(c.snap.Taken):
		return text + ", from " + clockTime(s.DeletableAt) + " on"
	}
	return text + " at any moment (since " + clockTime(s.DeletableAt) + ")"
}

// watchServer warns of what the provider says of the host's server, and refuses its actions
// while the provider may restart or wipe it. A hold ends the alarms, but not that of a
// deletion: nobody could undo that afterwards.
func (c *computation) watchServer(h *Host, actions []Action) {
	s := h.Server
	if s.DeletionScheduled {
		h.watch(CodeDeletionScheduled.Trouble(c.deletion(s),
			"if nobody meant that, cancel the deletion in "+c.vendor.Console()+"; else take the work off the host: macfleet cordon NAME"),
			Field{"deletion", "scheduled", "not scheduled"})
		h.ofServer(true)
	}
	is := statusOf(s)
	if is.code == (Code{}) {
		return
	}
	t := is.code.Trouble(condition(c.vendor, s))
	h.watch(t, Field{"status", s.Status, "ready"})
	h.ofServer(is.drift && h.Standing() == nil)
	if is.busy {
		refuse(actions, t)
	}
}

// ofServer says of the last warning that the provider says it, and whether it is drift.
func (h *Host) ofServer(drift bool) {
	w := &h.Warnings[len(h.Warnings)-1]
	w.OfServer, w.Drift = true, drift
}
