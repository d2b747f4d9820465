package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
)

// The codes of what the provider says of a server.
var (
	CodeDeletionScheduled = NewCode("deletion-scheduled", Critical, "the provider will delete the server",
		"cancel the deletion in the provider's console; if it is intended, move its Pods away: macfleet cordon NAME --drain")
	codeServerReinstalling = NewCode("server-reinstalling", Critical, "the provider is reinstalling the server",
		"find out who reinstalls it; when it is ready: macfleet hosts forget-key NAME, then macfleet apply")
	codeServerLocked = NewCode("server-locked", Critical, "the provider has locked the server or is locking it",
		"ask the provider's support to unlock it")
	codeServerError = NewCode("server-error", Critical, "the provider reports an error of the server",
		"check the server in the provider's console, or ask the provider's support")
	codeServerBusy = NewCode("server-busy", Warning, "the provider is changing the server, so macfleet does not change its host",
		"wait until the server is ready, then run the command again")
	codeProviderRunner = NewCode("provider-runner", Warning, "the provider runs its own CI runner on the server, which takes jobs that macfleet does not see",
		"remove the runner from the server in the provider's console")
	codeServerStatus = NewCode("server-status-unknown", Warning, "the provider reports an unknown status for the server",
		"check the server in the provider's console")
)

// status is what a status of the provider means for a server.
type status struct {
	code    Code   // of a member; zero: no trouble
	meaning string // in words
	drift   bool   // it does not end by itself: a person has to act
	busy    bool   // the provider may restart or wipe it at any moment: its host is not changed
	remedy  string // for a server of the pool
}

// statuses are all that the provider's API has. Any other is unknown.
var statuses = map[string]status{
	"ready":          {},
	"starting":       {codeServerBusy, "it is being delivered or started", false, true, "wait until it is ready"},
	"rebooting":      {codeServerBusy, "it is restarting", false, true, "wait until it is ready"},
	"updating":       {codeServerBusy, "its options are being changed, which may restart it", false, true, "wait until it is ready"},
	"unlocking":      {codeServerBusy, "it is being unlocked", false, true, "wait until it is ready"},
	"busy":           {codeServerBusy, "an operation on it is in progress", false, true, "wait until it is ready"},
	"reinstalling":   {codeServerReinstalling, "it is being reinstalled", true, true, "wait until it is ready"},
	"locking":        {codeServerLocked, "it is being locked", true, false, "ask the provider's support why"},
	"locked":         {codeServerLocked, "it is locked", true, false, "ask the provider's support why"},
	"error":          {codeServerError, "an operation on it has failed", true, false, "ask the provider's support"},
	"unknown_status": {codeServerStatus, "the provider itself does not know its status", false, false, "check it in the provider's console"},
}

// statusOf returns what the provider's status of a server means.
func statusOf(s inventory.Server) status {
	known, ok := statuses[s.Status]
	switch {
	case !ok:
		return status{codeServerStatus, "macfleet does not know this status", false, false, "check it in the provider's console"}
	case known.code == Code{} && !s.Delivered:
		return status{codeServerBusy, "it is not delivered yet", false, true, "wait until it is ready"}
	}
	return known
}

// condition is the provider's status of a server and its meaning.
func condition(of fleet.Vendor, s inventory.Server) string {
	text := fmt.Sprintf("%s reports status %s", of.Name, cmp.Or(s.Status, "none"))
	if meaning := statusOf(s).meaning; meaning != "" {
		text += ": " + meaning
	}
	return text
}

// unready returns why a pool server cannot be claimed, judging by its status, or nil.
func (c *census) unready(s inventory.Server) *Trouble {
	switch {
	case s.DeletionScheduled:
		return CodeDeletionScheduled.Trouble(c.deletion(s), "cancel the deletion in "+c.vendor.Console()+", or order another server")
	case !s.Usable():
		return codeServerNotReady.Trouble(condition(c.vendor, s), statusOf(s).remedy)
	case s.RunnerConfigurations != "":
		return c.providerRunner(s)
	}
	return nil
}

func (c *census) providerRunner(s inventory.Server) *Trouble {
	return codeProviderRunner.Trouble(fmt.Sprintf("%s runs its own CI runner on the server (configuration %s)", c.vendor.Name, strings.ReplaceAll(s.RunnerConfigurations, ",", ", ")),
		"remove the runner from the server in "+c.vendor.Console())
}

// deletion says when the provider deletes a server.
func (c *census) deletion(s inventory.Server) string {
	text := c.vendor.Name + " will delete the server"
	switch {
	case s.DeletableAt.IsZero():
		return text
	case s.DeletableAt.After(c.snap.Taken):
		return text + ", at " + clockTime(s.DeletableAt) + " or later"
	}
	return text + " at any time (since " + clockTime(s.DeletableAt) + ")"
}

// watchServer warns of the provider's status of the host's server, and refuses its actions while the provider
// may restart or wipe it. A hold silences these alerts, except for a deletion, which cannot be undone.
func (c *computation) watchServer(h *Host, actions []Action) {
	s := h.Server
	if s.DeletionScheduled {
		h.watch(CodeDeletionScheduled.Trouble(c.deletion(s), "cancel the deletion in "+c.vendor.Console()+"; if it is intended, "+h.vacating()), Field{"deletion", "scheduled", "not scheduled"})
		h.ofServer(true)
	}
	if s.RunnerConfigurations != "" {
		h.watch(c.providerRunner(s), Field{"runners of the provider", s.RunnerConfigurations, "none"})
		h.ofServer(h.ActiveHold() == nil)
	}
	is := statusOf(s)
	if is.code == (Code{}) {
		return
	}
	t := is.code.Trouble(condition(c.vendor, s))
	h.watch(t, Field{"status", s.Status, "ready"})
	h.ofServer(is.drift && h.ActiveHold() == nil)
	if is.busy {
		refuse(actions, t)
	}
}

// vacating says how to take the work off a host whose server is deleted, as far as it is not done.
func (h *Host) vacating() string {
	node, joined := h.Node.Get()
	pods, read := h.Pods.Get()
	working := slices.ContainsFunc(pods, func(p inventory.Pod) bool { return p.Works() })
	if joined && node.Cordoned && read && !working {
		return "you are done: its Node is cordoned and has no Pods"
	}
	return "move its Pods away: macfleet cordon " + h.Name + " --drain"
}

// ofServer marks the last warning as the provider's, and says whether it is drift.
func (h *Host) ofServer(drift bool) {
	w := &h.Warnings[len(h.Warnings)-1]
	w.OfServer, w.Drift = true, drift
}
