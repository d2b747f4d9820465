package plan

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/plan/ledger"
)

// StepsFor returns all steps of a host; a step that the configuration does not have has no desired state. It
// is steps.For: plan does not know which steps exist.
type StepsFor func(fleet.Host) []Step

// Compute returns the difference between the configuration and what was seen, for the selected hosts. It is
// pure and total: a host that could not be read is unknown, and the others are compared. Steps of different
// hosts run in parallel.
func Compute(cfg *fleet.Config, stepsFor StepsFor, snap Snapshot, sel Selection) *Plan {
	return compute(cfg, stepsFor, snap, sel, runtime.GOMAXPROCS(0), nil)
}

// Complete is Compute with the passwords that a plan of the same snapshot needs. Only the hosts in again (by
// server id) and those that the plan did not have are compared again.
func Complete(cfg *fleet.Config, stepsFor StepsFor, snap Snapshot, sel Selection, before *Plan, again map[string]bool) *Plan {
	return compute(cfg, stepsFor, snap, sel, runtime.GOMAXPROCS(0), before.except(again))
}

// except returns what the plan holds of all hosts but these, by server id.
func (p *Plan) except(these map[string]bool) map[string]draft {
	out := make(map[string]draft, len(p.Hosts))
	for i := range p.Hosts {
		if h := &p.Hosts[i]; !these[h.Server.ID] {
			out[h.Server.ID] = draft{host: h}
		}
	}
	for id, actions := range p.byServer() {
		if d, is := out[id]; is {
			d.actions = actions
			out[id] = d
		}
	}
	return out
}

// compute is Compute on a number of goroutines. It reuses what is known of hosts by their server ids.
func compute(cfg *fleet.Config, stepsFor StepsFor, snap Snapshot, sel Selection, workers int, known map[string]draft) *Plan {
	c := computation{census: takeCensus(cfg, snap), stepsFor: stepsFor, sel: sel,
		plan: &Plan{Owner: cfg.Owner, Narrowed: !sel.IsAll(), Steps: sel.Steps, Decisions: sel.Decisions,
			On: texts(sel.On), Exclude: texts(sel.Exclude)}, rejected: make(map[Rejected]bool), shared: make(sharing)}
	c.believe()
	c.needs = c.assign(sel)
	c.leaves, c.surplus = c.leaving(c.needs, sel.ReleaseSurplus)
	c.unstaged()
	c.plan.KeyRotation = c.keyRotation()
	c.plan.Sizes = c.sizes()
	c.plan.Cluster, c.plan.Healthy = c.cluster.read, c.healthy()
	c.whichCluster()
	c.keys = c.trusts()
	c.objects()
	c.pinPlace()
	c.orphans()
	c.stranded()
	c.peersLeft()
	c.silentPeers()
	refuse(c.plan.Actions, c.doubt) // actions without a host
	c.plan.Hosts, c.drafts = make([]Host, 0, len(c.servers)), make([]draft, 0, len(c.servers))
	for _, f := range cfg.Fleets {
		c.plan.Fleets = append(c.plan.Fleets, f.Name)
		for _, g := range f.Groups {
			at := fleet.Place{Fleet: f.Name, Group: g.Name}
			c.keep(f, g, append(slices.Clip(c.members[at]), c.leaversOf(at)...))
			c.claims(f, g)
		}
	}
	c.releasePlaceless()
	for i := range c.servers {
		if p := &c.servers[i]; p.role == stray {
			c.plan.Strays = append(c.plan.Strays, p.server)
		}
	}
	c.nearMisses(c.plan.Strays)
	c.whatIf()
	c.exchanged()
	c.unplaced()
	c.anotherName()
	c.lost()
	room := make([]Action, min(len(c.drafts), batch)*roomForActions)
	for from := 0; from < len(c.drafts); from += batch {
		some := c.drafts[from:min(from+batch, len(c.drafts))]
		inParallel(len(some), workers, func(i int) {
			d := &some[i]
			d.host = &c.plan.Hosts[from+i]
			if k, is := known[d.host.Server.ID]; is && k.host.Name == d.host.Name {
				seen := d.host.Seen
				*d.host, d.actions = *k.host, k.actions
				d.host.Seen = seen
				return
			}
			d.actions = append(room[i*roomForActions:i*roomForActions:(i+1)*roomForActions], d.actions...)
			c.finish(d)
		})
		for i := range some {
			c.quotas(&some[i])
		}
		c.enter(some, len(c.drafts)-from)
	}
	c.keepUntilJoined()
	c.unread()
	c.renameRight()
	c.fleetKey()
	c.unknownCluster()
	c.plan.Warnings = append(inProgress(cfg.Owner, snap), c.plan.Warnings...)
	return c.plan
}

// batch is how many hosts are finished before their actions enter the plan: those of a big plan are not kept
// twice.
const batch = 500

// roomForActions is how many actions of a host have room while a batch is finished. A host with more gets a
// separate allocation.
const roomForActions = 20

// computation carries the inputs and the plan being built.
type computation struct {
	*census
	stepsFor StepsFor
	sel      Selection
	keys     *trusts
	peers    peersKnown
	needs    []need
	leaves   map[string]bool // ids of servers that leave their groups
	surplus  map[string]int  // ids of servers that a person decides about, because their groups have too many: how many
	plan     *Plan
	drafts   []draft           // of the plan's hosts, in their order
	doubt    *Trouble          // why nothing may start in this cluster: it is the wrong one or unknown; nil: it may
	rejected map[Rejected]bool // listed once, however many groups considered them
	shared   sharing
}

// draft is a host of the plan before its steps were compared, with the actions that come before theirs.
type draft struct {
	host    *Host // in the plan
	actions []Action
	refused *Trouble // it must not be changed, and its steps are not compared
	node    StepID   // the step that makes it a Node; empty: none was compared
}

// keep plans the members of a group, also those that are too many.
func (c *computation) keep(f fleet.Fleet, g fleet.Group, all []*placed) {
	for _, p := range all {
		if c.leaves[p.server.ID] && len(c.sel.Steps) == 0 {
			c.depart(g, p)
			continue
		}
		if !c.sel.matches(p) {
			c.plan.LeftOut++
			continue
		}
		d := draft{refused: p.refused}
		h := c.host(g, p)
		if d.refused = cmp.Or(d.refused, c.keeps(h)); d.refused != nil && c.sel.Departs != nil {
			c.drafts = append(c.drafts, d)
			continue
		}
		h.adopting = p.adopted && (p.why.Source == ledger.Block || p.why.Source == ledger.Node || h.trust.Pin != nil && h.trust.Pin.Unfinished)
		if h.adopting && p.server.DeletionScheduled {
			d.refused = cmp.Or(d.refused, CodeDeletionScheduled.Trouble("it cannot be adopted, because "+c.deletion(p.server),
				"cancel the deletion in "+c.vendor.Console()+", or remove its host block"))
		}
		if len(c.sel.Steps) == 0 && d.refused == nil {
			switch {
			case p.moved:
				d.actions = append(d.actions, h.action(RenameServer, pending, codeMoved,
					"a moved block puts it in "+h.Fleet+"."+h.Group, Field{"name", h.Server.Name, h.Name}))
			case p.name != p.server.Name:
				d.actions = append(d.actions, h.action(RenameServer, drifted, codeRenamedByHand,
					fmt.Sprintf("someone renamed the server to %[2]s in the console of %[1]s", c.vendor.Name, h.Server.Name), Field{"name", h.Server.Name, h.Name}))
			}
			d.actions = append(d.actions, replaceRefused(h, f, g)...)
		}
		c.drafts = append(c.drafts, d)
	}
}

// host enters one server into the plan.
func (c *computation) host(g fleet.Group, p *placed) *Host {
	c.plan.Hosts = append(c.plan.Hosts, c.census.host(g, p))
	h := &c.plan.Hosts[len(c.plan.Hosts)-1]
	h.MovedFrom = c.sel.MovedFrom
	h.trust = c.keys.of(p)
	c.enterPeers(h)
	h.Stage = p.stage
	h.Rollback, h.ForceBusy = c.sel.Rollback, slices.Contains(c.sel.ForceBusy, p.name)
	return h
}

// stepsOf returns the steps of a host, which are made once. The host keeps them until its actions are in the plan.
func (c *computation) stepsOf(h *Host) []Step {
	if h.steps == nil {
		h.steps = c.stepsFor(h.Spec)
	}
	return h.steps
}

// finish compares the host's steps and then judges the host as a whole. A trouble of the host refuses all of
// its actions.
func (c *computation) finish(d *draft) {
	h := d.host
	if h.Leaves {
		c.leave(d)
		c.departing(d)
		return
	}
	c.work(d)
	refuse(d.actions, cmp.Or(h.Unknown, h.Refused))
	c.keepToCluster(h, d.actions)
	d.actions = append(d.actions, c.releasePods(h)...)
	c.restartFor(d)
	c.watchServer(h, d.actions)
	h.hold(d.actions)
	h.quarantine(d.actions)
	h.offerReboot()
	h.movesWhole(d.actions, d.node)
	h.failing()
	if t := c.waitsForAnother(h); t != nil && h.Refused == nil {
		h.warn("", t)
	}
	c.tooMany(h)
	c.bindings(h)
	c.watchNode(h, d.actions)
	c.misplaced(h)
	c.unbound(h)
	switch {
	case h.Unknown == nil && len(d.actions) > 0:
		h.Converged = Differs
	case h.Unknown != nil, len(h.Unread) > 0, h.Refused != nil && !h.Compared, h.NeedsRoot:
		h.Converged = NotCompared
	default:
		h.Converged = Converged
	}
}

// enter enters the actions of some drafts into the plan. If it has too little room, it gets as much as all
// remaining hosts need, assuming they are like these.
func (c *computation) enter(some []draft, left int) {
	actions := 0
	for i := range some {
		actions += len(some[i].actions)
	}
	if len(c.plan.Actions)+actions > cap(c.plan.Actions) {
		c.plan.Actions = slices.Grow(c.plan.Actions, actions*left/len(some))
	}
	for i := range some {
		for j := range some[i].actions {
			c.shared.share(&some[i].actions[j])
		}
		c.plan.Actions = append(c.plan.Actions, some[i].actions...)
		some[i].host.steps = nil
		some[i] = draft{}
	}
}

// work adds the host's own actions and records what prevents them.
func (c *computation) work(d *draft) {
	h := d.host
	if h.Seen.Trouble != nil {
		h.Unknown = h.Diagnosed(c.vendor)
		return
	}
	if h.Refused = d.refused; h.Refused != nil {
		return
	}
	if h.Unknown = h.WrongKey(); h.Unknown != nil {
		return
	}
	if h.Refused = cmp.Or(MarkerForbids(c.cfg, h), c.controlled(h), c.cluster.misjoined(h), c.cluster.unclaimable(h)); h.Refused != nil {
		return
	}
	h.Compared = true
	if why := h.Seen.Jobs.Why(); why != "" {
		h.Unread = append(h.Unread, StepUnread{Unread: Unread{Probe: "host.jobs", Why: why}})
	}
	d.actions = append(d.actions, c.pin(h)...)
	marker, marked := h.Seen.Marker.Get()
	if !marked {
		a := mark(h)
		h.markerLost = a.Drift
		d.actions = append(d.actions, a)
	}
	if marked && h.moves(marker) {
		d.actions = append(d.actions, h.moved(marker))
	}
	d.actions = append(d.actions, c.authorizeKey(h)...)
	at := len(d.actions)
	c.wantNewToken(h)
	w := c.compareSteps(d, marker)
	// The cluster gets the kubelet's identity before it starts, and its Node is checked afterwards.
	rotation := c.rotation(h, d.actions, w.node)
	if h.NewToken && len(rotation.before) == 0 {
		d.actions = c.keepToken(h, d.actions, marker)
	}
	d.actions = slices.Insert(d.actions, at+w.first, append(c.joining(h, w), rotation.before...)...)
	d.actions = append(append(d.actions, rotation.after...), c.joined(h)...)
	d.actions = h.drainFormer(w.node, d.actions)
	d.actions = append(d.actions, c.notJoining(h, d.actions)...)
	d.actions = append(d.actions, c.leavesBehind(h, d.actions, w.node)...)
	d.actions = append(d.actions, c.retireKey(h)...)
	c.cluster.unprepared(h, d.actions, w.node)
	d.node = w.node
	refuseTokens(d.actions, w.node)
	if !h.Seen.Root && !h.rootToCome && h.Refused == nil {
		h.Refused = MissingSudo()
	}
}

// stepWork is what a host's steps need.
type stepWork struct {
	first    int    // how many of their actions come before all others and set up root
	tokens   bool   // something may read the token of the host's kubelet
	verified bool   // whatever reads it was verified before
	node     StepID // the step that makes the host a Node; empty: none was compared
}

// compareSteps compares a host's steps in their order, and adds their actions.
func (c *computation) compareSteps(d *draft, marker Marker) stepWork {
	h := d.host
	var w stepWork
	for _, step := range c.stepsOf(h) {
		if !c.sel.Includes(step.ID()) || c.sel.AdoptOnly && h.Seen.Root {
			continue
		}
		if m, is := step.(NodeMaker); is && m.MakesNode() {
			w.node = step.ID()
		}
		a, differs := c.compareStep(h, step, marker)
		// The content of a deferred action is unknown.
		reads := slices.ContainsFunc(a.Changes, func(c Change) bool { return c.Input == Kubeconfig })
		_, proven := marker.Steps[a.Step]
		w.tokens, w.verified = w.tokens || reads || a.AfterRoot, w.verified || reads && proven
		switch {
		case !differs:
		case !h.Seen.Root && a.grantsRoot() && a.Refusal == nil:
			// All other actions on the host need root, including the claim.
			h.rootToCome = true
			d.actions = slices.Insert(d.actions, 0, a)
			w.first++
		default:
			d.actions = append(d.actions, a)
			if !h.Seen.Root && a.grantsRoot() {
				h.Refused = a.Refusal
			}
		}
	}
	return w
}

// compareStep compares one step, and notes if it differs only by the host's name.
func (c *computation) compareStep(h *Host, step Step, marker Marker) (a Action, differs bool) {
	a, differs = h.enter(step, marker)
	if differs && len(h.Former) > 0 && c.differsOnlyByName(h, a.Step, marker) {
		a.Origin, a.Reason = pending, Reason{codeMoved, "the host was renamed"}
	}
	return a, differs
}

// inParallel calls do with every number below n, on several goroutines. A call must not change what another
// one uses.
func inParallel(n, workers int, do func(int)) {
	var wg sync.WaitGroup
	for first := range workers {
		wg.Go(func() {
			for i := first; i < n; i += workers {
				do(i)
			}
		})
	}
	wg.Wait()
}
