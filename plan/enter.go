package plan

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/macfleet/macfleet/fleet/inventory"
)

// The codes that are raised here.
var (
	CodeUnfinished     = NewCode("unfinished", Warning, "an earlier run started to change it and never verified the result")
	codeKnownAfterSudo = NewCode("known-after-sudo", Warning, "the step needs root, which the host grants once sudo is set up")
	CodeRolledBack     = NewCode("rolled-back", Warning, "the host rolled back a change that was not confirmed",
		"check what the change does to the host's connections before you apply it again")
	CodeUndoArmed = NewCode("undo-armed", NotDrift, "a change on the host is not confirmed yet: the host rolls it back unless a run confirms it",
		"macfleet apply (waits until the host has rolled it back)")
	CodeFirstSetup    = NewCode("first-setup", NotDrift, "the step was never verified on the host")
	codeConfigChanged = NewCode("config-changed", NotDrift, "the configuration has changed since the step was last verified")
)

// NeedsRoot is the reason of an answer that only root can read.
const NeedsRoot = "needs root"

// enter compares one step, records its finding on the host and returns its action, if there is one.
func (h *Host) enter(step Step, marker Marker) (a Action, differs bool) {
	id := step.ID()
	view := h.View(id)
	f := step.Diff(view)
	if armed := h.Seen.Armed; armed != nil && armed.Step == id {
		h.warn(id, CodeUndoArmed.Trouble(armed.Text()))
	}
	f.readable()
	for _, w := range f.Warnings {
		h.Warnings = append(h.Warnings, StepWarning{Step: id, Trouble: w})
	}
	for _, w := range f.Watched {
		w.Drift = h.ActiveHold() == nil // for a held host, known differences are not news
		h.Warnings = append(h.Warnings, w)
	}
	h.noSession = h.noSession || f.NoSession
	if h.restarts == nil && f.Restart != nil {
		h.restarts, h.restartsAfter = f.Restart, id
	}
	if _, shown := f.VMs.Get(); shown {
		h.vms = f.VMs
	}
	if !f.Kubelet.IsUnread() {
		h.Kubelet = f.Kubelet
	}
	a = h.action(RunStep, Origin{}, Code{}, "")
	a.Step = id
	switch {
	case f.needsRoot() && !h.Seen.Root:
		// Without any way to root, the host is refused once and not each step.
		h.NeedsRoot = true
		a.AfterRoot, a.Origin = true, pending
		a.renames(h, step)
		if view.Verified || h.markerLost {
			a.Origin = notKnown
		}
		a.Reason = Reason{codeKnownAfterSudo, "only root can read the differences, and sudo is not set up yet"}
		return a, h.rootToCome && step.Wanted() != ""
	case len(f.Unread) > 0:
		for _, u := range f.Unread {
			h.Unread = append(h.Unread, StepUnread{id, u})
		}
		return a, false
	case f.Refused != nil:
		a.Changes, a.Fields = f.Changes, fieldsOf(f.Changes)
		a.Refusal, a.Disruption = f.Refused, NoDisruption
		a.Origin, a.Reason = h.explain(step, f, Reason{f.Refused.Code, f.Refused.Text}, marker)
	case len(f.Changes) > 0:
		a.change(h, step, f, marker)
		a.renames(h, step)
		a.idle(h, f)
	case view.Pending:
		a.Origin, a.Reason = drifted, Reason{CodeUnfinished, "an earlier run started this change and did not verify the result"}
	default:
		h.recordVerified(step, f, marker)
		return a, false
	}
	if u := h.Seen.Undone; u != nil && u.Step == id {
		h.warn(id, CodeRolledBack.Trouble("the host rolled back the last change at "+clockTime(u.At)+": "+u.Why))
	}
	return a, true
}

// View is what a step may read of the host.
func (h *Host) View(id StepID) View {
	marker, _ := h.Seen.Marker.Get()
	_, proven := marker.Steps[id]
	node := h.Node
	if _, moves := h.MovesFrom(); moves { // the step needs a kubelet identity that does not exist yet
		node = inventory.Absent[inventory.Node]()
	}
	version, _ := h.Seen.OSVersion.Get()
	return View{Host: h.Spec, Server: h.Server, Node: node, Facts: h.Seen.Facts, OSVersion: version, Root: h.Seen.Root,
		Verified: proven, Pending: slices.Contains(h.Seen.Pending, id),
		Identity: h.Identity, Join: h.Join, Pods: h.Pods, Rollback: h.Rollback, NewToken: h.NewToken, Force: h.ForceBusy, At: h.Seen.At,
		Peers: h.Peers, Path: h.Seen.Path, Servers: h.servers, Fence: h.fence, Taken: h.taken}
}

// needsRoot reports whether root could read everything that is unread.
func (f Finding) needsRoot() bool {
	other := slices.ContainsFunc(f.Unread, func(u Unread) bool { return u.Why != NeedsRoot })
	return len(f.Unread) > 0 && !other
}

// change makes the action of a finding's changes.
func (a *Action) change(h *Host, step Step, f Finding, marker Marker) {
	a.Changes, a.Fields = f.Changes, fieldsOf(f.Changes)
	a.Origin, a.Reason = h.explain(step, f, f.Changes[0].Reason, marker)
	removes := true
	for _, c := range f.Changes {
		a.Disruption = max(a.Disruption, c.Disruption)
		removes = removes && c.Removes
	}
	if w := h.Seen.Password; w != nil && needsOf(f.Changes).Password {
		a.Refusal = w.Trouble
	}
	if removes {
		// A block removed from the configuration is not drift of the host.
		a.Kind, a.Origin, a.Reason = RemoveStep, pending, f.Changes[0].Reason
	}
}

func (a Action) grantsRoot() bool {
	return slices.ContainsFunc(a.Changes, func(c Change) bool { return c.GrantsRoot })
}

// recordVerified records the verified state of a step without a difference.
func (h *Host) recordVerified(step Step, f Finding, marker Marker) {
	if f.Facts == "" {
		return // nothing was compared: recording it as verified would later look like drift
	}
	if h.Verified == nil {
		h.Verified = make(map[StepID]Digest, len(marker.Steps))
	}
	last, proven := marker.Steps[step.ID()]
	if wanted := step.Wanted(); !proven || last.Moved(wanted, f.Facts) != (Origin{}) {
		last = DigestOf(wanted, f.Facts)
	}
	h.Verified[step.ID()] = last
}

// warn adds a warning of a step, or of none.
func (h *Host) warn(of StepID, t *Trouble) {
	h.Warnings = append(h.Warnings, StepWarning{Step: of, Trouble: *t})
}

// fieldsOf returns what changes over all changes of a step. The changes then share its memory: plans of big
// fleets are mostly fields.
func fieldsOf(changes []Change) []Field {
	if len(changes) == 1 {
		return changes[0].Fields
	}
	n := 0
	for i := range changes {
		n += len(changes[i].Fields)
	}
	all := make([]Field, 0, n)
	for i := range changes {
		start := len(all)
		all = append(all, changes[i].Fields...)
		changes[i].Fields = slices.Clip(all[start:])
	}
	return all
}

// explain says where a difference comes from, by the digests of the last verification. first is the step's
// own reason.
func (h *Host) explain(step Step, f Finding, first Reason, marker Marker) (Origin, Reason) {
	last, proven := marker.Steps[step.ID()]
	switch {
	case h.markerLost:
		return notKnown, first
	case !proven:
		return pending, Reason{CodeFirstSetup, first.Text}
	}
	o := last.Moved(step.Wanted(), f.Facts)
	if o.Drift {
		return o, first
	}
	if o == (Origin{}) && f.Refused != nil && len(f.Changes) == 0 {
		// Everything is as last verified, but cannot stay so: the disk has filled up.
		return drifted, first
	}
	if first.Code == CodeTokenRotation && o == (Origin{}) {
		return pending, first
	}
	// The desired state changed, or this version renders it differently.
	o.Pending = true
	return o, Reason{codeConfigChanged, first.Text}
}

// readable makes every text of a finding valid UTF-8: a step may repeat any bytes that a host printed, and
// documents cannot hold them.
func (f *Finding) readable() {
	for i := range f.Changes {
		c := &f.Changes[i]
		makeReadable(&c.Reason.Text)
		for j := range c.Fields {
			makeReadable(&c.Fields[j].Before, &c.Fields[j].After)
		}
	}
	for i := range f.Unread {
		makeReadable(&f.Unread[i].Why, &f.Unread[i].Bytes)
	}
	for i := range f.Watched {
		w := &f.Watched[i]
		makeReadable(&w.Text)
		for j := range w.Fields {
			makeReadable(&w.Fields[j].Before, &w.Fields[j].After)
		}
	}
	for i := range f.Warnings {
		makeReadable(&f.Warnings[i].Text)
	}
	for i := range f.Busy {
		makeReadable(&f.Busy[i].Text)
	}
	if f.Refused != nil {
		makeReadable(&f.Refused.Text)
	}
}

// makeReadable writes bytes that are not UTF-8 as \xff.
func makeReadable(texts ...*string) {
	for _, text := range texts {
		if utf8.ValidString(*text) {
			continue
		}
		var b strings.Builder
		for i, r := range *text {
			if r == utf8.RuneError && !strings.HasPrefix((*text)[i:], "\uFFFD") {
				fmt.Fprintf(&b, `\x%02x`, (*text)[i])
			} else {
				b.WriteRune(r)
			}
		}
		*text = b.String()
	}
}
