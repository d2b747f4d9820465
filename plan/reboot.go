package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/fleet/inventory"
)

// The codes that are raised here.
var (
	codeRebootRequested = NewCode("reboot-requested", NotDrift, "a person asked for the restart of the server")
	codeHostMayBeBusy   = NewCode("host-may-be-busy", NotDrift, "the host has running work, or it is unknown whether it has",
		"wait until its work has ended; to lose that work: macfleet reboot NAME --force-busy NAME")
	codeRebootUnsafe = NewCode("reboot-unsafe", NotDrift, "the host would not come back into service after a restart",
		"macfleet apply --on name=NAME; then reboot it")
	codeServerNotVerified = NewCode("server-not-verified", NotDrift, "no second source confirms that the server is the host",
		"check the server's id in the provider's console")
)

// SessionStep returns the step that keeps a user logged in at the host's screen, also after a restart; empty: the
// host has none.
func SessionStep(all []Step) StepID {
	for _, s := range all {
		if k, is := s.(SessionKeeper); is && k.KeepsSession() {
			return s.ID()
		}
	}
	return ""
}

// Rebooting returns the actions that restart a host, for macfleet reboot: cleanly if it answers, otherwise through the provider. actions are
// those that the host's plan has; session is the step that keeps its session; ring is the provider's SSH keys, nil if they were not read. A host that lacks the
// fleet's key gets it by the restart, if the project has it.
func Rebooting(h Host, actions []Action, session StepID, ring *Keyring) []Action {
	why := "restarts the host"
	if h.silent() {
		why = "restarts the server through the provider, which is like pulling its plug"
	}
	a := h.rebooting(h.action(RebootServer, Origin{}, codeRebootRequested, why), actions, session)
	if ring == nil || !h.LacksKey() {
		return []Action{a}
	}
	if a.Refusal = cmp.Or(a.Refusal, ring.Trouble()); a.Refusal == nil && ring.Missing() {
		return []Action{registering(ring.Ours[:1]), a}
	}
	return []Action{a}
}

// rebooting completes an action that restarts the host's server.
func (h *Host) rebooting(a Action, actions []Action, session StepID) Action {
	a.Disruption, a.Forced, a.PullsPlug = Reboot, h.ForceBusy, h.silent()
	a.Refusal = h.notRebootable(actions, session)
	if a.Refusal == nil && !h.ForceBusy {
		if a.Refusal = h.mayBeBusy(); a.Refusal == nil && h.Drainable() {
			a.Drains, a.Evicts = true, len(h.evicted())
		}
	}
	return a
}

// silent reports whether the host cannot restart itself: it does not answer, or root does nothing there.
func (h *Host) silent() bool { return h.Unknown != nil || !h.Seen.Root }

// restartFor adds the restart that a step needs, behind all other actions: it depends on them. What they repair in the session is then
// right; where one of them is refused, the restart is, too. A new host restarts right after the step.
func (c *computation) restartFor(d *draft) {
	h := d.host
	if h.restarts == nil || h.Unknown != nil || h.Refused != nil {
		return
	}
	if !h.Member { // nothing runs on a new host, and the restart comes before anything can
		i := slices.IndexFunc(d.actions, func(a Action) bool { return a.Step == h.restartsAfter })
		if i < 0 { // the step itself is in sync
			i = slices.IndexFunc(d.actions, func(a Action) bool { return a.Kind == CreateMarker })
		}
		d.actions = slices.Insert(d.actions, i+1, h.action(RebootServer, pending, h.restarts.Code, h.restarts.Text))
		return
	}
	blocked := slices.DeleteFunc(slices.Clone(d.actions), func(a Action) bool { return a.Refusal == nil })
	d.actions = append(d.actions, h.rebooting(h.action(RebootServer, drifted, h.restarts.Code, h.restarts.Text), blocked, SessionStep(c.stepsOf(h))))
}

// LacksKey reports whether the host refuses the fleet's key, which a restart installs.
func (h Host) LacksKey() bool { return h.Unknown != nil && h.Unknown.Code.String() == keyNotInstalled }

// notRebootable returns why a host must not be restarted, however idle it is, or nil.
func (h *Host) notRebootable(actions []Action, session StepID) *Trouble {
	if held := h.ActiveHold(); held != nil {
		return held.Trouble(h.Name)
	}
	switch {
	case h.Refused != nil && h.Refused.Code != CodeQuarantined && h.Refused.Code != CodeMissingSudoPassword:
		return h.Refused
	case !h.Server.Usable():
		return codeServerBusy.Trouble(fmt.Sprintf("the provider reports status %s, and restarts only servers that are ready", h.Server.Status))
	case h.Unknown != nil:
		return h.unverified()
	}
	return h.losesSession(actions, session)
}

// losesSession returns why a host that answers would have no session or no SSH after a restart, or nil. Without a
// step that keeps its session, it has none to lose.
func (h *Host) losesSession(actions []Action, session StepID) *Trouble {
	why := ""
	if i := slices.IndexFunc(actions, func(a Action) bool { return a.Step == session }); i >= 0 {
		why = "differs (" + actions[i].Reason.Code.String() + ")"
	}
	if i := slices.IndexFunc(h.Warnings, func(w StepWarning) bool { return w.Step == session }); i >= 0 {
		why = "is not in sync (" + h.Warnings[i].Code.String() + ")"
	}
	if slices.ContainsFunc(h.Unread, func(u StepUnread) bool { return u.Step == session }) {
		why = "could not be compared"
	}
	if session == "" || why == "" {
		return nil
	}
	return codeRebootUnsafe.Trouble(fmt.Sprintf("%s %s: after a restart the host may have no session, or no SSH", session, why),
		"macfleet apply --on name="+h.Name+"; then reboot it")
}

// unverified returns why it is not certain that a server is the host, which does not answer, or nil. Its name and
// its Node or its pinned key have to agree.
func (h *Host) unverified() *Trouble {
	n, there := h.Node.Get()
	pin := h.trust.Pin
	switch {
	case h.Server.Name != h.Name:
		return codeServerNotVerified.Trouble(fmt.Sprintf("the host does not answer, and its server is called %s", h.Server.Name), "macfleet apply --on name="+h.Name+" (restores the name)")
	case there && n.ProviderID == h.Server.ProviderID(), !there && pin != nil && pin.Name == h.Name && pin.ServerID == h.Server.ID:
		return nil
	case there:
		return codeServerNotVerified.Trouble("the host does not answer, and its Node has the provider id " + n.ProviderID)
	}
	return codeServerNotVerified.Trouble("the host does not answer, it has no Node, and its key was never pinned")
}

// mayBeBusy returns why a restart may interrupt work that macfleet cannot end, or nil. What is unknown is busy.
func (h *Host) mayBeBusy() *Trouble {
	t := func(why string) *Trouble {
		return codeHostMayBeBusy.Trouble(why, fmt.Sprintf("wait until its work has ended; to lose that work: macfleet reboot %s --force-busy %[1]s", h.Name))
	}
	n, there := h.Node.Get()
	work := h.evicted()
	alone := slices.IndexFunc(work, func(p inventory.Pod) bool { return p.Controller == "" })
	switch _, read := h.Pods.Get(); {
	case h.Server.RunnerConfigurations != "":
		return t("the provider runs its own CI runner on it, whose jobs macfleet does not see")
	case h.Spec.Spec.BuildsImages() && h.Unknown != nil:
		return t("it is a builder whose host does not answer, so it is unknown whether a job runs on it")
	case h.Spec.Spec.BuildsImages() && !h.Fenceable():
		return t("it is a builder, and " + h.Spec.Spec.JobsFrom() + " does not list its runner, so a job could start on it at any moment")
	case h.Spec.Spec.BuildsImages() && !h.Spec.Spec.JoinsCluster():
		return nil // the run fences its runner and waits
	case !h.Spec.Spec.JoinsCluster():
		return t("it is not a Node, so macfleet does not know what runs on it")
	case h.Node.IsUnread():
		return t("the cluster could not be read: " + h.Node.Why())
	case !read:
		return t("it is unknown which Pods run on it: " + h.Pods.Why())
	case h.Drainable() && alone >= 0:
		return t(fmt.Sprintf("the Pod %s/%s runs on it, which no controller recreates elsewhere", work[alone].Namespace, work[alone].Name))
	case h.Drainable():
		return nil
	case len(work) > 0:
		return t(fmt.Sprintf("its Node is not Ready and has %s (%s), whose virtual machines may still run", count(len(work), "Pod"), podSample(work)))
	case there && n.ProviderID != h.Server.ProviderID():
		return t("its Node has another server's provider id")
	}
	return nil
}

// keyNotInstalled is the code of a host that answers and refuses the fleet's key. A restart installs it.
const keyNotInstalled = "key-not-installed"

// rebootable are the codes of hosts that a restart through the provider may bring back.
var rebootable = []string{CodeUnreachable.String(), "host-down", "ssh-port-unreachable", "no-ssh-answer", "connection-lost", keyNotInstalled}

// offerReboot adds the restart to the remedy of a member that does not answer and is certainly idle, or that refuses
// the key and can be drained. It is never done by itself: an apply that restarts a dead host would do so every time.
func (h *Host) offerReboot() {
	t := h.Unknown
	if t == nil || !h.Member || !slices.Contains(rebootable, t.Code.String()) || h.notRebootable(nil, "") != nil || h.mayBeBusy() != nil {
		return
	}
	offered := *t
	rest := strings.TrimSuffix(t.Remedy, ", or: macfleet reboot "+h.Name)
	switch {
	case h.LacksKey():
		offered.Remedy = "macfleet reboot " + h.Name + " (installs the project's SSH keys)"
		_, rest, _ = strings.Cut(rest, "; or ")
	case h.Drainable():
		return // its Node works: a network problem is more likely
	default:
		offered.Remedy = "macfleet reboot " + h.Name + " (its Node has no Pods)"
	}
	if rest != "" && rest != "macfleet reboot "+h.Name {
		offered.Remedy += "; or " + rest
	}
	h.Unknown = &offered
}
