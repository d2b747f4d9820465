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
	codeNotApproved = NewCode("not-approved", NotDrift, "the plan file does not approve it",
		"look at it, and approve it with another plan: macfleet plan --out FILE")
	codeAfterUnapproved = NewCode("after-unapproved", NotDrift, "it may need an action that comes before it and that the plan file does not approve",
		"approve both with another plan: macfleet plan --out FILE")
)

// approvalOf returns the digest by which an action of a host with that key is known
// again, in a later plan too: over what would be done, and to whom. Nothing counts that
// moves by itself, such as free space, process numbers and times, and no secret.
func (p *Plan) approvalOf(a Action, key string) string {
	d := approval{sha256.New()}
	d.text("macfleet action 1", p.Owner.Name, p.Owner.Environment, string(a.Kind), a.Host, a.Fleet, a.Group, a.ServerID, string(a.Step))
	if a.Kind.onHost() {
		d.text(key) // the person trusted this key and no other
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
	if a.Kind == ClaimServer { // whoever approved it knew of these, and of no others
		for _, o := range p.Orphans {
			d.text(o.Server.ID)
		}
	}
	if o := a.Object; o != nil {
		d.text(o.Kind, o.Namespace, o.Name, string(o.State))
	}
	return digestKind + hex.EncodeToString(d.Sum(nil))
}

// onHost reports whether an action works on the host itself.
func (k Kind) onHost() bool {
	return k.OfStep() || k == ClaimServer || k == CreateMarker || k == PinHost
}

// approval gathers what a digest is over. Each text has its length in front, so
// that none runs into the next.
type approval struct{ hash.Hash }

func (d approval) size(n int) { _ = binary.Write(d, binary.BigEndian, int64(n)) } // a hash takes everything

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
	if c.Delivery != nil {
		x := c.Delivery.Artifact
		d.text(x.Name, x.Version, x.Source, x.SHA256, string(x.Fetch))
	}
}

// Approved is what somebody approved: actions, by their digests, and the hosts that
// the plan was about.
type Approved struct {
	Owner   fleet.Owner
	Digests map[string]string // of actions, by address
	// Deferred says why the approved plan left actions for a later run, by address.
	Deferred map[string]*Trouble
	Keys     map[string]string // fingerprints of the hosts' keys, by server id; "": the host was not asked
}

// Approve returns the approval of everything that the plan would do.
func (p *Plan) Approve() *Approved {
	x := &Approved{Owner: p.Owner, Digests: make(map[string]string, len(p.Actions)), Keys: p.Keys(), Deferred: p.Deferrals()}
	for _, a := range p.Actions {
		if a.Runs() {
			x.Digests[a.Address()] = p.approvalOf(a, x.Keys[a.ServerID])
		}
	}
	return x
}

// Restrict refuses all of a plan that was not approved, and what needs that on the same
// host, and returns how many actions that are. Hosts whose key nobody approved are left alone.
func (x Approved) Restrict(p *Plan, steps StepsFor) int {
	hosts := p.hostsByServer()
	for id, h := range hosts {
		key, known := x.Keys[id]
		h.Unapproved = !known || !h.Seen.Pinned && key != h.Seen.Fingerprint
	}
	n := 0
	for id, actions := range p.byServer() {
		h := cmp.Or(hosts[id], &Host{}) // those of no host have no key
		var left []Action               // of these, that were not approved
		for i := range actions {
			a := &actions[i]
			switch earlier := slices.IndexFunc(left, func(b Action) bool { return !a.OfCluster() && h.Needs(*a, b, steps) }); {
			case a.Refusal != nil:
				continue
			case x.Deferred[a.Address()] != nil: // whoever approved the plan saw that it is left for later
				a.Deferral = x.Deferred[a.Address()]
				continue
			case h.Unapproved, x.Digests[a.Address()] != p.approvalOf(*a, h.Seen.Fingerprint):
				a.Refusal = codeNotApproved.Trouble("the plan file does not approve it: it was not to be done, or otherwise, when that was made")
				left = append(left, *a)
			case earlier >= 0:
				a.Refusal = codeAfterUnapproved.Trouble("it may need " + left[earlier].what() + ", which comes before and which the plan file does not approve")
			default:
				continue
			}
			n++
		}
	}
	return n
}

// Needs reports whether an action may need an earlier one of the host. Each needs that the
// host is ours and gives root; and work is let onto a host only when all else is proven.
func (h *Host) Needs(later, earlier Action, steps StepsFor) bool {
	if !earlier.Kind.OfStep() || !later.Kind.OfStep() || earlier.grantsRoot() {
		return true
	}
	node, makes := NodeStep(steps(h.Spec))
	return makes && node.ID() == later.Step
}

// Deferrals says of the actions that the run leaves for a later one why, by address.
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
