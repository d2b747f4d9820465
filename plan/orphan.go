package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan/ledger"
)

var (
	// CodeOrphanedMember is the code of an orphaned member.
	CodeOrphanedMember = NewCode("orphaned-member", Warning, "an orphaned member: the configuration no longer has the host's fleet, group or host block",
		"restore its block in the configuration; to return the server to the pool: macfleet release NAME")
	codeOrphansHoldClaims = NewCode("orphans-hold-claims", NotDrift, "no server is claimed while orphaned members may belong to the same groups",
		"restore the blocks of the orphaned members; to claim other servers instead: macfleet apply --allow-orphans")
	codeAnotherName = NewCode("another-name", Warning, "the configuration has no hosts, and servers named after another configuration fit its groups",
		"if the configuration was renamed, restore its old name; if those servers belong to another configuration, ignore this")
)

// Orphan is a member without a place in the configuration. It is read and shown until a person decides, and
// never changed.
type Orphan struct {
	Name    string                         `json:"name"`  // at the provider
	Fleet   string                         `json:"fleet"` // where it belonged
	Group   string                         `json:"group"`
	Server  inventory.Server               `json:"server"`
	Witness string                         `json:"witness"`           // the source of its membership: name, marker, pin, Node, identity
	Ready   string                         `json:"ready"`             // True, False, Unknown, no-node; "-" without a cluster
	Pods    *int                           `json:"pods,omitempty"`    // running on it; absent: unknown
	Unknown *Trouble                       `json:"unknown,omitempty"` // why it could not be read
	Seen    HostSeen                       `json:"-"`
	Node    inventory.Seen[inventory.Node] `json:"-"`
	Trouble
}

// Runs says what the host still does, as far as known.
func (o Orphan) Runs() string {
	var out []string
	switch o.Ready {
	case "-":
	case noNode:
		out = append(out, "no Node")
	case string(inventory.Ready):
		out = append(out, "its Node is Ready")
	default:
		out = append(out, "its Node is not Ready")
	}
	if o.Pods != nil {
		out = append(out, count(*o.Pods, "Pod")+" running")
	}
	if o.Unknown != nil {
		out = append(out, fmt.Sprintf("not read (%s)", o.Unknown.Code))
	}
	return strings.Join(out, ", ")
}

// noNode is the readiness of a host without a Node.
const noNode = "no-node"

// hadOwner reports whether the configuration was applied from here under an owner's name that no
// environment has any more.
func (c *census) hadOwner(owner string) bool {
	current := func(env string) bool { return owner == fleet.Owner{Name: c.cfg.Name, Environment: env}.String() }
	return slices.Contains(c.snap.Former, owner) && !current(c.cfg.Environment) && !slices.ContainsFunc(c.cfg.Environments, current)
}

// placeless says why an orphan has no place, and how to restore it.
func (c *census) placeless(p *placed) *Trouble {
	giveUp := "; to return the server to the pool: macfleet release " + p.server.Name
	at := p.place
	group := fmt.Sprintf("fleet %q with group %q", at.Fleet, at.Group)
	hasFleet := slices.ContainsFunc(c.cfg.Fleets, func(f fleet.Fleet) bool { return f.Name == at.Fleet })
	why, remedy := "", "restore "+group+", or add a moved block: moved { from = fleet."+at.Fleet+".group."+at.Group+", to = … }"
	switch {
	case p.why.By != c.cfg.Owner.String():
		why = fmt.Sprintf("it belongs to %s, the former name of this configuration, which is now %s", p.why.By, c.cfg.Owner)
		remedy = "restore the configuration's name"
	case at == fleet.Place{}:
		why, remedy = "it was adopted, and its host block is missing", "restore its host block"
	case c.has(at.Fleet, at.Group):
		why = fmt.Sprintf("it was adopted as a member of %s.%s, and its host block is missing", at.Fleet, at.Group)
		remedy = "restore its host block"
	case hasFleet:
		why = fmt.Sprintf("fleet %q no longer has a group %q", at.Fleet, at.Group)
	default:
		why = fmt.Sprintf("fleet %q is no longer in the configuration", at.Fleet)
	}
	if p.why.Source != ledger.Name {
		why += " (known by its " + p.why.Source.String() + ")"
	}
	if e := p.against; e != nil { // macfleet release would refuse it
		why, giveUp = fmt.Sprintf("%s; its %s shows %s, a host of %s", why, e.Source, e.Name, e.By), ""
	}
	return CodeOrphanedMember.Trouble(why, remedy+giveUp)
}

// unplaced records the hosts without a place.
func (c *computation) unplaced() {
	for i := range c.servers {
		if p := &c.servers[i]; p.role == orphan && c.sel.matches(p) {
			c.plan.Orphans = append(c.plan.Orphans, c.orphan(p))
		}
	}
}

func (c *census) orphan(p *placed) Orphan {
	o := Orphan{Name: p.server.Name, Fleet: p.place.Fleet, Group: p.place.Group, Server: p.server, Witness: p.why.Source.String(), Node: p.node,
		Ready: "-", Trouble: *p.placeless, Seen: c.snap.Hosts[p.server.ID]}
	if p.server.DeletionScheduled {
		o.Text += "; " + c.deletion(p.server)
	}
	o.Unknown = o.Seen.Trouble
	if _, asked := c.snap.Hosts[p.server.ID]; !asked {
		o.Unknown = notContacted()
	}
	n, isNode := p.node.Get()
	switch {
	case isNode:
		o.Ready = string(n.Ready)
	case p.node.IsUnread():
		o.Ready = string(inventory.ReadyUnknown)
	case c.cluster.read:
		o.Ready = noNode
	}
	if _, read := c.cluster.seen.Pods.Get(); read && isNode {
		working := 0
		for _, pod := range c.cluster.pods[n.Name] {
			working += ones(pod.Works())
		}
		o.Pods = &working
	}
	return o
}

// holdsClaims reports whether claims wait until a person decides about orphans: if their group is gone it may
// have been renamed, and a claim would replace them. An orphan whose group still exists blocks only its own
// place.
func (c *census) holdsClaims() bool {
	return slices.ContainsFunc(c.servers, func(p placed) bool {
		return p.role == orphan && !c.holdsPlace(&p)
	})
}

// holdsPlace reports whether an orphan keeps a place of a group: it was adopted there, and a server claimed
// instead would be one too many once its block is back.
func (c *census) holdsPlace(p *placed) bool {
	return p.role == orphan && p.why.By == c.cfg.Owner.String() && c.has(p.place.Fleet, p.place.Group)
}

// anotherName warns of a configuration that was probably renamed: it has no hosts, but servers under another
// name fit its groups. A second configuration in the same project looks the same.
func (c *computation) anotherName() {
	if c.plan.Narrowed || c.hasOwn() {
		return
	}
	env := strings.TrimPrefix(c.cfg.Owner.String(), c.cfg.Name) // with its hyphen
	fit := make(map[string][]string)                            // servers' names by the name of the configuration
	for _, p := range c.servers {
		owner, at, ok := fleet.Split(p.server.Name, p.server.ID)
		name, same := strings.CutSuffix(owner, env)
		if ok && same && p.role == stray && name != c.cfg.Name && c.has(at.Fleet, at.Group) && !ofAnotherEnvironment(c.cfg, p.server) {
			fit[name] = append(fit[name], p.server.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(fit)) {
		c.plan.Doubts = append(c.plan.Doubts, *codeAnotherName.Trouble(
			fmt.Sprintf("%s has no hosts, but its groups fit %s under the name %s%s: %s",
				c.cfg.Owner, count(len(fit[name]), "server"), name, env, sampleOf(fit[name])),
			fmt.Sprintf("if this configuration was called %q before, restore that name before the next apply, or it claims new servers; otherwise ignore this", name)))
	}
}

// hasOwn reports whether anything is known to be this configuration's.
func (c *computation) hasOwn() bool {
	identities, _ := c.cluster.seen.Identities.Get()
	return len(c.gone)+len(identities) > 0 ||
		slices.ContainsFunc(c.servers, func(p placed) bool { return p.role == member || p.role == orphan || p.believed() })
}
