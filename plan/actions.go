package plan

import (
	"cmp"
	"fmt"

	"github.com/macfleet/macfleet/fleet"
)

// The codes that are raised here.
var (
	codeAdopted            = NewCode("adopted", NotDrift, "the configuration takes the server over under its present name")
	codeClaimUnfinished    = NewCode("claim-unfinished", NotDrift, "an earlier run claimed the host and did not finish")
	CodeMarkerMissing      = NewCode("marker-missing", Warning, "the server bears our name, and the host has no marker")
	codeTooFewReplicas     = NewCode("too-few-replicas", NotDrift, "the group has fewer hosts than are wanted")
	codeRenamedByHand      = NewCode("renamed-by-hand", Warning, "somebody renamed the server at the provider")
	codeTooManyReplicas    = NewCode("too-many-replicas", NotDrift, "the group has more hosts than are wanted")
	codeReleaseNotPossible = NewCode("release-not-possible", NotDrift, "a server is to go, and macfleet cannot drain and reinstall it",
		"raise replicas again, or give the server back by hand: drain, reinstall, rename into the pool, then macfleet hosts forget-key NAME")
	codeWrongType = NewCode("wrong-type", NotDrift, "the server has another type than is wanted")
	codeWrongOS   = NewCode("wrong-os", NotDrift, "the host runs another family of macOS than is wanted",
		"reinstall it with the wanted family, or set os of the fleet")
	codeReplaceNotPossible = NewCode("replace-not-possible", NotDrift, "a server is to be replaced, and macfleet cannot do that",
		"set the group back, or replace the server by hand: give this one back to the pool and let macfleet claim another")
)

// mark returns the action that claims the host on the host.
func mark(h *Host) Action {
	_, begun := h.Seen.Claim.Get()
	switch {
	case h.adopting:
		return h.action(CreateMarker, pending, codeAdopted, "the configuration takes the server over under its present name")
	case begun && (!h.Seen.Pinned || h.trust.Pin != nil && h.trust.Pin.Unfinished):
		return h.action(CreateMarker, pending, codeClaimUnfinished, "an earlier run claimed the host and did not finish")
	case h.Member:
		return h.action(CreateMarker, drifted, CodeMarkerMissing, "the server bears our name and the host has no marker")
	}
	return h.action(CreateMarker, pending, codeTooFewReplicas, "it says whose the host is and what was proven on it")
}

// Where nearly all actions come from.
var (
	drifted  = Origin{Drift: true}
	pending  = Origin{Pending: true}
	notKnown = Origin{NotKnown: true}
)

// action returns an action of the host, why it is one, and what moves.
func (h *Host) action(k Kind, from Origin, code Code, why string, fields ...Field) Action {
	return Action{Kind: k, Host: h.Name, Fleet: h.Fleet, Group: h.Group, ServerID: h.Server.ID, Origin: from, Reason: Reason{code, why}, Fields: fields}
}

func releaseRefused(h *Host, replicas int) Action {
	a := h.action(ReleaseServer, pending, codeTooManyReplicas, fmt.Sprintf("%s.%s wants %d", h.Fleet, h.Group, replicas))
	a.Disruption = Wipe
	a.Refusal = codeReleaseNotPossible.Trouble(fmt.Sprintf("macfleet %s cannot drain and reinstall a host, so it gives no server back", fleet.Version),
		"raise replicas again, or give the server back by hand: drain, reinstall, rename into the pool, then macfleet hosts forget-key "+h.Name)
	return a
}

// replaceRefused returns the action that a member of another type or OS family
// than its group wants would need.
func replaceRefused(h *Host, f fleet.Fleet, g fleet.Group) []Action {
	var a Action
	version, _ := h.Seen.OSVersion.Get()
	switch family := fleet.OSFamily(version); {
	case h.Server.Type != g.Type:
		a = h.action(ReplaceServer, pending, codeWrongType, fmt.Sprintf("the server is of type %s, %s.%s wants %s", h.Server.Type, f.Name, g.Name, g.Type),
			Field{"type", h.Server.Type, g.Type})
	case family != "" && family != f.OS:
		a = h.action(ReplaceServer, pending, codeWrongOS, fmt.Sprintf("the host runs macOS %s (%s), %s wants %s", version, family, f.Name, f.OS),
			Field{"os", family, f.OS})
	default:
		return nil
	}
	a.Disruption = Wipe
	a.Refusal = codeReplaceNotPossible.Trouble(fmt.Sprintf("macfleet %s cannot drain and reinstall a host, so it replaces no server", fleet.Version))
	return []Action{a}
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Restarting returns the action that runs a step's change without a difference: a
// person asks for it.
func Restarting(h Host, step StepID, c Change) Action {
	a := h.action(RunStep, Origin{}, c.Reason.Code, c.Reason.Text, c.Fields...)
	a.Step, a.Disruption, a.Changes = step, c.Disruption, []Change{c}
	if held := h.Standing(); held != nil {
		a.Refusal = held.Trouble(h.Name)
	}
	return a
}

// refuse refuses all actions that are not refused yet.
func refuse(actions []Action, t *Trouble) {
	for i := range actions {
		actions[i].Refusal = cmp.Or(actions[i].Refusal, t)
	}
}
