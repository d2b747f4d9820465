package view

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/macfleet/macfleet/plan"
)

// HostState is the state of a host, in one word.
type HostState string

// The states, the worst first.
const (
	unknown  HostState = "unknown" // it could not be compared
	blocked  HostState = "blocked" // it differs, and a rule refuses the change
	drifted  HostState = "drifted"
	toUpdate HostState = "to-update"
	held     HostState = "held"    // it differs, and a person holds it
	leaves   HostState = "leaving" // its server is released
	orphaned HostState = "orphaned"
	inSync   HostState = "in-sync"
)

// HostStates are all of them, the worst first.
func HostStates() []HostState {
	return []HostState{unknown, blocked, drifted, toUpdate, held, leaves, orphaned, inSync}
}

// String is the state as people read it.
func (s HostState) String() string { return strings.ReplaceAll(string(s), "-", " ") }

// stateOf returns the state of a member, as planned.
func stateOf(h plan.Host, actions []plan.Action) HostState {
	switch v := h.Verdict(actions); {
	case v == plan.Blocked:
		return blocked
	case v == plan.HeldBack:
		return held
	case h.Leaves:
		return leaves
	case v == plan.InSync:
		return inSync
	case v == plan.Unreachable, v == plan.Uncompared:
		return unknown
	case h.Drifted(actions):
		return drifted
	}
	return toUpdate
}

// because returns the most important reason why a member is not in sync and Ready, whole and in few words, the longest first.
func (r HostRow) because(h plan.Host, actions []plan.Action, now time.Time) (whole string, brief []string) {
	drift := slices.IndexFunc(actions, func(a plan.Action) bool { return a.Origin.Drift })
	moved := slices.IndexFunc(h.Warnings, func(w plan.StepWarning) bool { return w.Drift })
	refused := slices.IndexFunc(actions, func(a plan.Action) bool { return a.Refusal != nil })
	switch {
	case r.State == leaves && len(actions) > 0: // while it is erased it does not answer
		return whyLeaves(actions)
	case h.Unknown != nil:
		return ofTrouble(h.Unknown)
	case h.ActiveHold() != nil && r.State != blocked:
		return ofHold(*h.Held, now)
	case len(r.ServerTroubles) > 0:
		return ofTrouble(&r.ServerTroubles[0])
	case h.Refused != nil:
		return ofTrouble(h.Refused)
	case r.State == blocked && refused >= 0:
		whole, brief = ofTrouble(actions[refused].Refusal)
		return label(actions[refused]) + ": " + whole, brief
	case drift >= 0:
		return firstDifference(actions, drift)
	case moved >= 0:
		return ofTrouble(&h.Warnings[moved].Trouble)
	case r.ReadyWhy != "":
		return "not Ready: " + strings.TrimPrefix(r.ReadyWhy, "Ready is "), []string{"not Ready"}
	case len(actions) > 0:
		return firstDifference(actions, 0)
	case len(r.NodeTroubles) > 0:
		return ofTrouble(&r.NodeTroubles[0])
	case len(h.Unread) > 0:
		u := h.Unread[0]
		return fmt.Sprintf("%s not compared: %s", u.Step, u.Why), []string{fmt.Sprintf("%s not compared", u.Step)}
	case len(h.Warnings) > 0:
		return ofTrouble(&h.Warnings[0].Trouble)
	case r.joins && r.Ready == "no-node":
		return "not Ready: the cluster has no Node of that name", []string{"no Node"}
	}
	return "", nil
}

// whyLeaves says why a host leaves, and what leaves it for a later run.
func whyLeaves(actions []plan.Action) (whole string, brief []string) {
	why := actions[0].Reason
	codes := why.Code.String()
	whole = "release: " + why.Text
	if late := slices.IndexFunc(actions, func(a plan.Action) bool { return a.Deferral != nil }); late >= 0 {
		whole, codes = whole+"; deferred", codes+", "+actions[late].Deferral.Code.String()
	}
	return fmt.Sprintf("%s (%s)", whole, codes), []string{fmt.Sprintf("release (%s)", codes), codes}
}

// dialed is what Go says before the cause when nothing answers.
var dialed = regexp.MustCompile(`^dial [a-z0-9]+ \S+: (connect: )?`)

// ofTrouble says what is wrong, with its code unless it is the plain case that nothing answers.
func ofTrouble(x *plan.Trouble) (whole string, brief []string) {
	text := dialed.ReplaceAllString(x.Text, "")
	if x.Code == plan.CodeUnreachable {
		return text, nil
	}
	return fmt.Sprintf("%s (%s)", text, x.Code), []string{x.Code.String()}
}

func ofHold(h plan.Held, now time.Time) (whole string, brief []string) {
	if h.Who == "" || h.Until.IsZero() {
		return "held " + h.String(), []string{"held"}
	}
	until := h.Until.UTC().Format("15:04")
	if h.Until.Sub(now) >= 24*time.Hour {
		until = h.Until.UTC().Format("2006-01-02 15:04")
	}
	short := fmt.Sprintf("held by %s until %s", h.Who, until)
	return short + ": " + h.Reason, []string{short}
}

// firstDifference says what the action at i would change, and how many more there are.
func firstDifference(actions []plan.Action, i int) (whole string, brief []string) {
	a, f := actions[i], plan.Field{}
	if len(a.Fields) > 0 {
		f = observedFirst(a.Fields)[0]
	}
	short := fmt.Sprintf("%s (%s)", label(a), a.Reason.Code)
	whole = short
	switch {
	case len(a.Fields) > 0 && a.Origin.Drift:
		whole = fmt.Sprintf("%s: %s %s (%s)", label(a), f.Name, value(f.Before), a.Reason.Code)
	case len(a.Fields) > 0:
		whole = fmt.Sprintf("%s: %s %s → %s (%s)", label(a), f.Name, value(f.Before), value(f.After), a.Reason.Code)
	case a.Reason.Text != "":
		whole = fmt.Sprintf("%s: %s (%s)", label(a), a.Reason.Text, a.Reason.Code)
	}
	return whole + given(len(actions) > 1, " +%d more", len(actions)-1), []string{short, a.Reason.Code.String()}
}
