package plan

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"slices"

	"github.com/macfleet/macfleet/fleet"
)

var (
	codeNotApproved = NewCode("not-approved", NotDrift, "the plan file does not approve this action",
		"review a new plan and apply it: macfleet plan --out FILE")
	codeAfterUnapproved = NewCode("after-unapproved", NotDrift, "the action depends on an earlier one that the plan file does not approve",
		"review a new plan and apply it: macfleet plan --out FILE")
)

// approvalOf returns a digest of what an action does and to which host. A later plan has the same digest for
// the same action, so values that change by themselves (free space, process ids, times) and secrets are left
// out.
func (p *Plan) approvalOf(a Action, key string) string {
	d := approval{sha256.New()}
	d.text("macfleet action 1", p.Owner.Name, p.Owner.Environment, string(a.Kind), a.Host, a.Fleet, a.Group, a.ServerID, string(a.Step))
	if a.Kind.onHost() {
		d.text(key) // the approval is for this key only
	}
	if a.Was != "" {
		d.text(a.Was)
	}
	d.flags(a.AfterRoot)
	d.fields(a.Fields)
	d.size(len(a.Changes))
	for i := range a.Changes {
		d.change(&a.Changes[i])
	}
	d.size(len(a.Pods))
	for _, pod := range a.Pods {
		d.text(pod.Namespace, pod.Name, pod.UID)
	}
	if a.Kind == ClaimServer { // the approval is for these orphans only
		for _, o := range p.Orphans {
			d.text(o.Server.ID)
		}
	}
	if o := a.Object; o != nil {
		d.text(o.Kind, o.Namespace, o.Name, string(o.State))
	}
	return digestKind + hex.EncodeToString(d.Sum(nil))
}

// onHost reports whether an action changes the host itself.
func (k Kind) onHost() bool {
	return k.OfStep() || k == ClaimServer || k == CreateMarker || k == PinHost || k == AuthorizeKey || k == RetireKey
}

// approval collects the input of a digest. Each text is preceded by its length, so that none runs into the
// next.
type approval struct{ hash.Hash }

func (d approval) size(n int) { _ = binary.Write(d, binary.BigEndian, int64(n)) } // writing to a hash cannot fail

func (d approval) text(all ...string) {
	for _, s := range all {
		d.size(len(s))
		d.Write([]byte(s))
	}
}

func (d approval) flags(all ...bool) { _ = binary.Write(d, binary.BigEndian, all) }

func (d approval) fields(all []Field) {
	d.size(len(all))
	for _, f := range all {
		d.text(f.Name, f.Before, f.After)
	}
}

func (d approval) command(c *Command) {
	d.flags(c != nil)
	if c == nil {
		return
	}
	d.text(c.Name, c.Script, string(c.As))
	d.size(len(c.Args))
	d.text(c.Args...)
}

func (d approval) change(c *Change) {
	d.fields(c.Fields)
	d.command(&c.Command)
	d.text(string(c.Input), c.Disruption.String())
	d.flags(c.Removes, c.GrantsRoot, c.Detached, c.Guard != nil, c.Delivery != nil)
	if g := c.Guard; g != nil {
		d.command(g.Restore)
		d.command(&g.Persist)
		d.text(g.Why)
	}
	d.flags(c.Peer != nil)
	if to := c.Peer; to != nil {
		d.text(string(to.Peer), string(to.Verb), to.Realm, to.Entry.ID, to.Entry.Name, to.Key)
		d.text(to.To...)
	}
	if c.Delivery != nil {
		x := c.Delivery.Artifact
		d.text(x.Name, x.Version, x.Source, x.SHA256, string(x.Fetch))
	}
}

// Approved is what a plan file approves: actions by their digests, and the hosts of the plan.
type Approved struct {
	Owner   fleet.Owner
	Digests map[string]string // of actions, by address
	// Deferred holds the actions that the approved plan left for a later run, by address.
	Deferred map[string]*Trouble
	Keys     map[string]string // fingerprints of the hosts' keys, by server id; "": the host was not contacted
}

// Approve returns the approval of all actions that the plan would run.
func (p *Plan) Approve() *Approved {
	x := &Approved{Owner: p.Owner, Digests: make(map[string]string, len(p.Actions)), Keys: p.Keys(), Deferred: p.Deferrals()}
	for _, a := range p.Actions {
		if a.Runs() {
			x.Digests[a.Address()] = p.approvalOf(a, x.Keys[a.ServerID])
		}
	}
	return x
}

// Restrict refuses every action of a plan that was not approved, and those of the same host that depend on
// it. It returns how many it refused. Hosts whose key was not approved are not changed.
func (x Approved) Restrict(p *Plan, steps StepsFor) int {
	hosts := p.hostsByServer()
	for id, h := range hosts {
		key, known := x.Keys[id]
		h.Unapproved = !known || !h.Seen.Pinned && key != h.Seen.Fingerprint
	}
	n := 0
	for id, actions := range p.byServer() {
		h := cmp.Or(hosts[id], &Host{}) // actions without a host have no key
		var left []Action               // actions that were not approved
		for i := range actions {
			a := &actions[i]
			switch earlier := slices.IndexFunc(left, func(b Action) bool { return !a.OfCluster() && h.Needs(*a, b, steps) }); {
			case a.Refusal != nil:
				continue
			case x.Deferred[a.Address()] != nil: // the approved plan showed it as deferred
				a.Deferral = x.Deferred[a.Address()]
				continue
			case h.Unapproved, x.Digests[a.Address()] != p.approvalOf(*a, h.Seen.Fingerprint):
				a.Refusal = codeNotApproved.Trouble(x.whyNot(h, a))
				left = append(left, *a)
			case earlier >= 0:
				a.Refusal = codeAfterUnapproved.Trouble("depends on " + left[earlier].what() + ", which the plan file does not approve")
			default:
				continue
			}
			n++
		}
	}
	return n
}

// whyNot says why an action is not approved.
func (x Approved) whyNot(h *Host, a *Action) string {
	switch {
	case h.Unapproved:
		return "the plan file does not approve the key that this host shows now"
	case x.Digests[a.Address()] != "":
		return "the plan file approves this step, but the host has changed since the plan was made"
	}
	return "the plan file does not contain this action: it was not needed when the plan was made"
}

// Needs reports whether an action may depend on an earlier one of the host. All depend on ownership and root.
// The step that makes the host a Node depends on every other step.
func (h *Host) Needs(later, earlier Action, steps StepsFor) bool {
	if !earlier.Kind.OfStep() || !later.Kind.OfStep() || earlier.grantsRoot() {
		return true
	}
	node, makes := NodeStep(steps(h.Spec))
	return makes && node.ID() == later.Step
}

// Deferrals returns why each deferred action waits, by address.
func (p *Plan) Deferrals() map[string]*Trouble {
	out := make(map[string]*Trouble)
	for _, a := range p.Actions {
		if a.Deferral != nil {
			out[a.Address()] = a.Deferral
		}
	}
	return out
}

// Keys returns the fingerprints of the hosts' keys, by server id.
func (p *Plan) Keys() map[string]string {
	out := make(map[string]string, len(p.Hosts))
	for i := range p.Hosts {
		out[p.Hosts[i].Server.ID] = p.Hosts[i].Seen.Fingerprint
	}
	return out
}
