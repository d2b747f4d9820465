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
		"kubectl describe node NAME, and read /var/log/tart-kubelet.log on the host; then apply again")
	CodeKubeletSettling = NewCode("kubelet-settling", Notice, "the kubelet was started a moment ago, and nobody can say yet whether it stays",
		"run macfleet plan in a minute")
	CodeNodeNotJudged = NewCode("node-not-judged", Warning, "the kubelet was started a moment ago, and the cluster has not heard of it: its Node could not be judged",
		"wait for it: macfleet hosts --wait ready; then run the command again")
	CodeKubeletCrashLoop = NewCode("kubelet-crash-loop", Critical, "the kubelet ends as soon as it was started")
)

// Kubelet is the process that makes a host a Node, as one look at the host showed
// it.
type Kubelet struct {
	Fault Reason // why it does not run as it should, or not yet; zero: it runs
	// Started is when it began at the latest, by this machine's clock; zero: there is
	// no process, or nobody knows. What the Node said before is of another process.
	Started time.Time
	// Token is the name of the Secret whose token its kubeconfig has; empty: not known.
	Token string
	// Unfinished says that an earlier run began to change it and never proved it: the process may be older than its
	// kubeconfig, and have another token.
	Unfinished bool
}

// ready reports whether a server's Node is Ready.
func ready(node inventory.Seen[inventory.Node]) bool {
	n, ok := node.Get()
	return ok && n.Ready == inventory.Ready
}

// readyAs reports whether a server's Node is Ready and says that it is this server.
func readyAs(s inventory.Server, node inventory.Seen[inventory.Node]) bool {
	n, _ := node.Get()
	return ready(node) && n.ProviderID == s.ProviderID()
}

// Heard reports whether the Node's last heartbeat is of this very process. Where one
// of the times is not known, nothing speaks against it.
func (k Kubelet) Heard(n inventory.Node) bool {
	return k.Started.IsZero() || n.Heard.IsZero() || n.Heard.After(k.Started)
}

// HeardWith reports whether the Node's last heartbeat is of this very process, and that has the token of a Secret. What is
// not known speaks against it.
func (k Kubelet) HeardWith(token string, n inventory.Node) bool {
	return k.Has(token) && !n.Heard.IsZero() && k.Heard(n)
}

// Has reports whether there is a process that was started with the token of a Secret.
func (k Kubelet) Has(token string) bool {
	well := k.Fault == (Reason{}) || k.Fault.Code == CodeKubeletSettling // which the next heartbeat tells
	return well && !k.Started.IsZero() && !k.Unfinished && token != "" && k.Token == token
}

// Ready says whether the host is a Node that takes Pods, by its Node and by its kubelet:
// the cluster learns late of one that has died. known is false where there is no Node to judge.
func (h Host) Ready() (state inventory.Readiness, why string, known bool) {
	n, there := h.Node.Get()
	k, looked := h.Kubelet.Get()
	switch {
	case h.Node.IsUnread():
		return inventory.ReadyUnknown, cmp.Or(h.Node.Why(), "nobody looked at the cluster"), false
	case !there:
		return inventory.NotReady, "the cluster has no Node of that name", false
	case n.ProviderID != "" && n.ProviderID != h.Server.ProviderID():
		return inventory.ReadyUnknown, "its Node says that it is another server: " + n.ProviderID, true
	case looked && k.Fault != (Reason{}) && k.Fault.Code != CodeKubeletSettling:
		return inventory.NotReady, k.Fault.Code.String() + ": " + k.Fault.Text, true
	case n.Ready != inventory.Ready:
		return n.Ready, "Ready is " + string(n.Ready) + ": " + cmp.Or(n.Why, "no reason given"), true
	case looked && k.Fault.Code == CodeKubeletSettling:
		return inventory.ReadyUnknown, k.Fault.Text, true
	case looked && !k.Heard(n):
		return inventory.ReadyUnknown, "its kubelet was started after its Node's last heartbeat", true
	}
	return inventory.Ready, "", true
}

// Settling reports whether the host's kubelet was started so lately that its Node may become
// Ready by itself.
func (h Host) Settling() bool {
	n, there := h.Node.Get()
	k, looked := h.Kubelet.Get()
	return looked && (k.Fault.Code == CodeKubeletSettling || k.Fault == (Reason{}) && there && !k.Heard(n))
}

// NotJudged returns why nobody can say whether the host's Node is well, or nil: what a step
// found of a kubelet that was started a moment ago.
func (h Host) NotJudged() *Trouble {
	i := slices.IndexFunc(h.Warnings, func(w StepWarning) bool { return w.Code == CodeNodeNotJudged || w.Code == CodeKubeletSettling })
	if i < 0 {
		return nil
	}
	return &h.Warnings[i].Trouble
}
