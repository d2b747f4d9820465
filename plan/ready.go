package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
)

// The codes that are raised here.
var (
	CodeNodeNotReady = NewCode("node-not-ready", Critical, "the Node is not Ready",
		"kubectl describe node NAME; on the host: tail /var/log/tart-kubelet.log; then macfleet apply")
	CodeKubeletSettling = NewCode("kubelet-settling", Notice, "the kubelet was just started, and may still crash",
		"macfleet hosts --wait ready; then run the command again")
	CodeNodeNotJudged = NewCode("node-not-judged", Warning, "the kubelet was just started and has not reported yet, so its Node cannot be judged",
		"macfleet hosts --wait ready; then run the command again")
	CodeKubeletCrashLoop = NewCode("kubelet-crash-loop", Critical, "the kubelet is crash-looping")
)

// Kubelet is the process that makes a host a Node, as read from the host once.
type Kubelet struct {
	Fault Reason // why it does not run as it should, or not yet; zero: it runs
	// Started is when it started at the latest, by this machine's clock; zero: there is no process, or that
	// is unknown. Earlier reports of the Node are of another process.
	Started time.Time
	// Token is the name of the Secret whose token its kubeconfig has; empty: unknown.
	Token string
	// Unfinished says that an earlier run started to change it and never verified the result: the process may
	// be older than its kubeconfig, and use another token.
	Unfinished bool
}

// ready reports whether a server's Node is Ready.
func ready(node inventory.Seen[inventory.Node]) bool {
	n, ok := node.Get()
	return ok && n.Ready == inventory.Ready
}

// readyAs reports whether a server's Node is Ready and has its provider id.
func readyAs(s inventory.Server, node inventory.Seen[inventory.Node]) bool {
	n, _ := node.Get()
	return ready(node) && n.ProviderID == s.ProviderID()
}

// SentHeartbeat reports whether the Node's last heartbeat is from this very process. If one of the times is unknown,
// it is assumed.
func (k Kubelet) SentHeartbeat(n inventory.Node) bool {
	return k.Started.IsZero() || n.LastHeartbeat.IsZero() || n.LastHeartbeat.After(k.Started)
}

// SentHeartbeatWith reports whether the Node's last heartbeat is from this process and it uses the token of a Secret.
// If one of the times is unknown, it is not assumed.
func (k Kubelet) SentHeartbeatWith(token string, n inventory.Node) bool {
	return k.Has(token) && !n.LastHeartbeat.IsZero() && k.SentHeartbeat(n)
}

// Has reports whether there is a process that was started with the token of a Secret.
func (k Kubelet) Has(token string) bool {
	well := k.Fault == (Reason{}) || k.Fault.Code == CodeKubeletSettling // the next heartbeat shows it
	return well && !k.Started.IsZero() && !k.Unfinished && token != "" && k.Token == token
}

// Ready says whether the host is a Node that takes Pods, by its Node and by its kubelet: the cluster notices
// late that one has died. known is false if there is no Node to judge.
func (h Host) Ready() (state inventory.Readiness, why string, known bool) {
	n, there := h.Node.Get()
	k, looked := h.Kubelet.Get()
	switch {
	case h.Node.IsUnread():
		return inventory.ReadyUnknown, cmp.Or(h.Node.Why(), "the cluster was not read"), false
	case !there:
		return inventory.NotReady, "the cluster has no Node of that name", false
	case n.ProviderID != "" && n.ProviderID != h.Server.ProviderID():
		return inventory.ReadyUnknown, "its Node has another server's provider id: " + n.ProviderID, true
	case looked && k.Fault != (Reason{}) && k.Fault.Code != CodeKubeletSettling:
		return inventory.NotReady, k.Fault.Code.String() + ": " + k.Fault.Text, true
	case n.Ready != inventory.Ready:
		return n.Ready, "Ready is " + string(n.Ready) + ": " + cmp.Or(n.Why, "no reason given"), true
	case looked && k.Fault.Code == CodeKubeletSettling:
		return inventory.ReadyUnknown, k.Fault.Text, true
	case looked && !k.SentHeartbeat(n):
		return inventory.ReadyUnknown, "its kubelet was started after its Node's last heartbeat", true
	}
	return inventory.Ready, "", true
}

// Settling reports whether the host's kubelet was started so recently that its Node may become Ready by
// itself.
func (h Host) Settling() bool {
	k, looked := h.Kubelet.Get()
	return looked && k.Fault.Code == CodeKubeletSettling || h.Unheard()
}

// Unheard reports whether the host's kubelet runs, but its Node's last heartbeat seems to be from before
// it started.
func (h Host) Unheard() bool {
	n, there := h.Node.Get()
	k, looked := h.Kubelet.Get()
	return there && looked && k.Fault == (Reason{}) && !k.SentHeartbeat(n)
}

// NotJudged returns why the host's Node cannot be judged, or nil: its kubelet was just started.
func (h Host) NotJudged() *Trouble {
	i := slices.IndexFunc(h.Warnings, func(w StepWarning) bool { return w.Code == CodeNodeNotJudged || w.Code == CodeKubeletSettling })
	if i < 0 {
		return nil
	}
	return &h.Warnings[i].Trouble
}
