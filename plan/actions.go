package plan

import (
	"cmp"
	"fmt"

	"github.com/macfleet/macfleet/fleet"
)

// The codes that are raised here.
var (
	CodeAdopted         = NewCode("adopted", NotDrift, "a host block adopts the server under its present name")
	codeClaimUnfinished = NewCode("claim-unfinished", NotDrift, "an earlier run claimed the host but did not finish")
	CodeMarkerMissing   = NewCode("marker-missing", Warning, "the server is a member by its name, but its host has no marker")
	codeTooFewReplicas  = NewCode("too-few-replicas", NotDrift, "the group has fewer hosts than configured")
	codeRenamedByHand   = NewCode("renamed-by-hand", Warning, "someone renamed the server at the provider")
	codeTooManyReplicas = NewCode("too-many-replicas", NotDrift, "the group has more hosts than configured")
	codeWrongType       = NewCode("wrong-type", NotDrift, "the server's type differs from the group's")
	codeWrongOS         = NewCode("wrong-os", NotDrift, "the host runs a different macOS family than configured",
		"reinstall the host with the configured family, or change os of the fleet")
	codeReplaceNotPossible = NewCode("replace-not-possible", NotDrift, "the server does not fit its group, and an apply replaces no server by itself",
		"macfleet replace NAME, or restore the type or os of the group")
)

// mark returns the action that writes the claim and the marker on the host.
func mark(h *Host) Action {
	_, started := h.Seen.Claim.Get()
	switch {
	case h.adopting:
		return h.action(CreateMarker, pending, CodeAdopted, "a host block adopts the server under its present name")
	case started && (!h.Seen.Pinned || h.trust.Pin != nil && h.trust.Pin.Unfinished):
		return h.action(CreateMarker, pending, codeClaimUnfinished, "an earlier run claimed the host but did not finish")
	case h.Member:
		return h.action(CreateMarker, drifted, CodeMarkerMissing, "the server is a member by its name, but its host has no marker")
	}
	return h.action(CreateMarker, pending, codeTooFewReplicas, "records the owner and the last verified state")
}

// The origins of nearly all actions.
var (
	drifted  = Origin{Drift: true}
	pending  = Origin{Pending: true}
	notKnown = Origin{NotKnown: true}
)

// action returns an action of the host with its reason and the fields that change.
func (h *Host) action(k Kind, from Origin, code Code, why string, fields ...Field) Action {
	return Action{Kind: k, Host: h.Name, Fleet: h.Fleet, Group: h.Group, ServerID: h.Server.ID, Origin: from, Reason: Reason{code, why}, Fields: fields}
}

// replaceRefused returns the action for a member whose type or macOS family differs from its group's.
func replaceRefused(h *Host, f fleet.Fleet, g fleet.Group) []Action {
	var a Action
	version, _ := h.Seen.OSVersion.Get()
	switch family := fleet.OSFamily(version); {
	case !g.Accepts(h.Server.Type):
		a = h.action(ReplaceServer, pending, codeWrongType, fmt.Sprintf("the server is a %s, %s.%s needs %s", h.Server.Type, f.Name, g.Name, g.TypeText()),
			Field{"type", h.Server.Type, g.TypeText()})
	case family != "" && family != f.OS:
		a = h.action(ReplaceServer, pending, codeWrongOS, fmt.Sprintf("the host runs macOS %s (%s), %s needs %s", version, family, f.Name, f.OS),
			Field{"os", family, f.OS})
	default:
		return nil
	}
	a.Disruption = Wipe
	a.Refusal = codeReplaceNotPossible.Trouble(a.Reason.Text+", and an apply replaces no server by itself", "macfleet replace "+h.Name+", or restore the type or os of the group")
	return []Action{a}
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Restarting returns the action that runs a step's change without a difference, for macfleet restart.
func Restarting(h Host, step StepID, c Change) Action {
	a := h.action(RunStep, Origin{}, c.Reason.Code, c.Reason.Text, c.Fields...)
	a.Step, a.Disruption, a.Changes = step, c.Disruption, []Change{c}
	if held := h.ActiveHold(); held != nil {
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
