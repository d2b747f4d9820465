package plan

import (
	"slices"
	"strings"
	"time"
)

// CodeTokenRotation says that a host gets a new token because somebody asked for it.
var CodeTokenRotation = NewCode("token-rotation", Notice, "a new token was asked for, in the place of the one that the host's kubelet has")

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
// happens where that step is refused or cannot be judged: the host then still needs the token that it has.
func (c *computation) rotation(h *Host, actions []Action) (r rotation) {
	i, known := h.Identity.Get()
	if !known || !i.Complete() || !h.Member || !h.Spec.Spec.JoinsCluster() {
		return rotation{}
	}
	writes := func(a Action) bool {
		return slices.ContainsFunc(a.Changes, func(ch Change) bool { return ch.Input == Kubeconfig })
	}
	at := slices.IndexFunc(actions, writes)
	if at >= 0 && actions[at].Refusal != nil || len(h.Unread) > 0 {
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

func day(t time.Time) string {
	if t.IsZero() {
		return "a time that is not known"
	}
	return t.UTC().Format("2006-01-02")
}
