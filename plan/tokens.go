package plan

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// CodeTokenRotation says that a host gets a new token because somebody asked for it.
var CodeTokenRotation = NewCode("token-rotation", Notice, "a new token was asked for, in the place of the one that the host's kubelet has")

var codeTokenKept = NewCode("token-kept", Warning, "a new token was asked for, and the host keeps the one that it has")

var codeOldTokens = NewCode("old-tokens", Warning, "older tokens of the host's kubelet are still good: a run that rotated them did not come to its end")

// TokenAge says how old a host's token for the cluster is. It never expires: the kubelet cannot renew one, and a fleet
// outlives a month in which nobody runs macfleet.
type TokenAge struct {
	Since time.Time `json:"since"`    // when the cluster made it
	Days  int       `json:"age_days"` // whole days
}

// wantNewToken marks a host whose token is to be another one. Where an older one is left, a run that
// rotated it was killed: that rotation is brought to its end, and no further one begun.
func (c *computation) wantNewToken(h *Host) {
	i, known := h.Identity.Get()
	if known && i.Issued && !i.Since.IsZero() {
		h.Token = &TokenAge{i.Since, max(0, int(c.snap.Taken.Sub(i.Since)/(24*time.Hour)))}
	}
	h.NewToken = c.sel.NewTokens && h.Member && c.cluster.there && h.Spec.Spec.JoinsCluster() && known && i.Complete() && len(i.Spent) == 0
}

// rotation is what is done to a host's tokens before its steps and after them.
type rotation struct{ before, after []Action }

// rotation makes a new token before the step that writes it to the host, and ends the older ones after it. Neither
// happens where that step is refused or cannot be judged: the kubelet's process then still needs the token that it has.
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
		r.before = []Action{h.action(RenewToken, pending, CodeTokenRotation, "a new token was asked for, in the place of the one of "+day(i.Since))}
		r.after = []Action{h.action(RetireTokens, pending, CodeTokenRotation, "once the cluster has heard of the kubelet with the new one", Field{i.TokenName(), "good", "ended"})}
	case len(i.Spent) > 0 && (at >= 0 || looked && k.Token == i.TokenName()):
		a := h.action(RetireTokens, drifted, codeOldTokens, strings.Join(i.Spent, ", ")+": a run that rotated the token did not come to its end")
		for _, name := range i.Spent {
			a.Fields = append(a.Fields, Field{name, "good", "ended"})
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

// refuseTokens refuses what is done to a host's tokens where the kubelet's step was refused since: its process would
// never have the new token, and still needs the older one.
func refuseTokens(actions []Action, node StepID) {
	t := refusalOf(node, actions)
	for i := range actions {
		if a := &actions[i]; a.Kind == RenewToken || a.Kind == RetireTokens {
			a.Refusal = cmp.Or(a.Refusal, t)
		}
	}
}

// RefuseTokens does so for all hosts of a plan some of whose steps were refused after it was made.
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

// keepToken takes back the wish for another token where none is made, and asks the kubelet's step again: it would
// start the kubelet anew with the token that it has.
func (c *computation) keepToken(h *Host, actions []Action, marker Marker) []Action {
	h.NewToken = false
	step, is := NodeStep(c.stepsFor(h.Spec))
	if !is || !c.sel.Asks(step.ID()) || refusalOf(step.ID(), actions) != nil {
		return actions
	}
	again := *h // what it warns of is there already
	a, differs := c.ask(&again, step, marker)
	h.Proven = again.Proven
	h.warn(step.ID(), codeTokenKept.Trouble("no new token was made, as not everything about the host could be read",
		"correct what could not be read, then apply with --rotate-tokens again"))
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
		return "a time that is not known"
	}
	return t.UTC().Format("2006-01-02")
}
