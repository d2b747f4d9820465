package plan

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// CodeTokenRotation is the reason of a new token for a host that --rotate-tokens requested.
var CodeTokenRotation = NewCode("token-rotation", Notice, "--rotate-tokens replaces the token of the host's kubelet")

var codeTokenKept = NewCode("token-kept", Warning, "--rotate-tokens created no new token; the host keeps its present one")

var codeOldTokens = NewCode("old-tokens", Warning, "older tokens of the host's kubelet are still valid: a rotation was interrupted")

// TokenAge is how old a host's token for the cluster is. It never expires, because the kubelet cannot renew
// it and a fleet must keep working without macfleet runs.
type TokenAge struct {
	Since time.Time `json:"since"`    // when the cluster created it
	Days  int       `json:"age_days"` // whole days
}

// wantNewToken marks a host whose token is rotated. If an older token is left, an earlier rotation was
// interrupted: that one is completed instead of starting another.
func (c *computation) wantNewToken(h *Host) {
	i, known := h.Identity.Get()
	if known && i.Issued && !i.Since.IsZero() {
		h.Token = &TokenAge{i.Since, max(0, int(c.snap.Taken.Sub(i.Since)/(24*time.Hour)))}
	}
	h.NewToken = c.sel.NewTokens && h.Member && c.cluster.read && h.Spec.Spec.JoinsCluster() && known && i.Complete() && len(i.Spent) == 0
}

// rotation is what is done to a host's tokens before and after its steps.
type rotation struct{ before, after []Action }

// rotation creates a new token before the step that writes it to the host, and deletes the older ones after
// it. If that step is refused or cannot be judged, neither happens: the kubelet's process then still needs
// its present token.
func (c *computation) rotation(h *Host, actions []Action, node StepID) (r rotation) {
	i, known := h.Identity.Get()
	if !known || !i.Complete() || !h.Member || !h.Spec.Spec.JoinsCluster() {
		return rotation{}
	}
	writes := func(a Action) bool {
		return slices.ContainsFunc(a.Changes, func(ch Change) bool { return ch.Input == Kubeconfig })
	}
	at := slices.IndexFunc(actions, writes)
	if refusalOf(node, actions) != nil || len(h.Unread) > 0 {
		return rotation{}
	}
	k, looked := h.Kubelet.Get()
	switch {
	case h.NewToken && at >= 0:
		r.before = []Action{h.action(RenewToken, pending, CodeTokenRotation, "--rotate-tokens replaces the token of "+day(i.Since))}
		r.after = []Action{h.action(RetireTokens, pending, CodeTokenRotation, "when the kubelet has reported with the new token", Field{i.TokenName(), "valid", "deleted"})}
	case len(i.Spent) > 0 && (at >= 0 || looked && k.Token == i.TokenName()):
		a := h.action(RetireTokens, drifted, codeOldTokens, strings.Join(i.Spent, ", ")+": an earlier rotation was interrupted")
		for _, name := range i.Spent {
			a.Fields = append(a.Fields, Field{name, "valid", "deleted"})
		}
		r.after = []Action{a}
	}
	return r
}

// refusalOf returns why the step that makes a host a Node is refused, or nil.
func refusalOf(node StepID, actions []Action) *Trouble {
	i := slices.IndexFunc(actions, func(a Action) bool { return a.Kind.OfStep() && a.Step == node && a.Refusal != nil })
	if i < 0 || node == "" {
		return nil
	}
	return actions[i].Refusal
}

// refuseTokens refuses the changes to a host's tokens if the kubelet's step was refused since: its process
// would never get the new token, and still needs the older one.
func refuseTokens(actions []Action, node StepID) {
	t := refusalOf(node, actions)
	for i := range actions {
		if a := &actions[i]; a.Kind == RenewToken || a.Kind == RetireTokens {
			a.Refusal = cmp.Or(a.Refusal, t)
		}
	}
}

// RefuseTokens does so for all hosts of a plan of which steps were refused after it was made.
func (p *Plan) RefuseTokens(steps StepsFor) {
	hosts := p.hostsByServer()
	for id, actions := range p.byServer() {
		h, tokens := hosts[id], slices.ContainsFunc(actions, func(a Action) bool { return a.Kind == RenewToken || a.Kind == RetireTokens })
		if h != nil && tokens {
			if node, is := NodeStep(steps(h.Spec)); is {
				refuseTokens(actions, node.ID())
			}
		}
	}
}

// keepToken cancels the rotation if no new token is created, and compares the kubelet's step again: it would
// restart the kubelet with its present token.
func (c *computation) keepToken(h *Host, actions []Action, marker Marker) []Action {
	h.NewToken = false
	step, is := NodeStep(c.stepsOf(h))
	if !is || !c.sel.Includes(step.ID()) || refusalOf(step.ID(), actions) != nil {
		return actions
	}
	again := *h // its warnings are already recorded
	a, differs := c.compareStep(&again, step, marker)
	h.Verified = again.Verified
	h.warn(step.ID(), codeTokenKept.Trouble("no new token was created, because part of the host could not be read",
		"fix what could not be read, then: macfleet apply --rotate-tokens --on name="+h.Name))
	at := slices.IndexFunc(actions, func(a Action) bool { return a.Kind.OfStep() && a.Step == step.ID() })
	switch {
	case at < 0:
	case differs:
		actions[at] = a
	default:
		actions = slices.Delete(actions, at, at+1)
	}
	return actions
}

func day(t time.Time) string {
	if t.IsZero() {
		return "an unknown time"
	}
	return t.UTC().Format("2006-01-02")
}
