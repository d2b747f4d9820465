// Package engine runs a command's data path: observe, plan, execute, observe again. Package
// plan makes all decisions about hosts.
package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/rollout"
	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/internal/wire"
	"github.com/macfleet/macfleet/plan"
)

// Servers is the provider of the servers.
type Servers interface {
	// List returns all servers of the project, or an error: never a partial list.
	List(context.Context) ([]inventory.Server, error)
	// Elsewhere returns what the account has in zones or projects that List does not cover.
	Elsewhere(context.Context) inventory.Account
	// Catalogue returns the server types and operating systems of all configured zones.
	Catalogue(context.Context) (inventory.Catalogue, error)
	// Get returns one server.
	Get(ctx context.Context, zone, id string) (inventory.Server, error)
	// Gone reports whether a server was deleted: an error that a provider gives for one server may have
	// another cause, so whole lists decide. An error means that it is unknown.
	Gone(ctx context.Context, zone, id string) (bool, error)
	// CheckRename checks that a server may be renamed, without changing it. The error wraps
	// inventory.ErrDenied if the credentials lack the permission.
	CheckRename(ctx context.Context, zone, id string) error
	// Reboot restarts a server. It is sent once: after an error the server's status decides.
	Reboot(ctx context.Context, zone, id string) error
	// Rename changes a server's name if it is still from, and verifies it by reading it back.
	Rename(ctx context.Context, zone, id, from, to string) error
	// Reinstall asks the provider to erase a server and install an operating system. It returns before that
	// is done.
	Reinstall(ctx context.Context, zone, id, systemID string) error
}

// DefaultObservers is how many hosts are observed at once. Observing is mostly waiting for the
// network.
const DefaultObservers = 256

// InputFor describes the input of a change's script, without the secret.
type InputFor struct {
	Kind    plan.InputKind
	Host    fleet.Host
	Join    inventory.Join
	Refused bool // the secret is a password that the host refused
}

// Engine carries what a run needs. All fields are required, unless the meaning of nil is
// documented.
type Engine struct {
	Config    *fleet.Config
	Steps     plan.StepsFor
	Servers   Servers
	Cluster   Cluster // nil: no cluster is configured
	Hosts     Hosts
	Pins      Pins
	Passwords Passwords // nil: none is known
	Artifacts Artifacts // nil: there are none
	// Input renders the input of a change's script from a secret: a host's login
	// password or its kubelet's token.
	Input func(InputFor, secret.Value) (secret.Value, error)
	// FleetKeys are the public halves of the SSH keys that hosts must accept, the one that is offered first
	// first; empty: not known.
	FleetKeys []plan.FleetKey
	Ready     Ready
	Install   Install
	Bounds    *plan.Bounds // limits of a run, except for its time; nil: none
	Selection plan.Selection
	Former    []string // earlier owners of the configuration's directory; see plan.Snapshot
	// Met says on which of some servers a recorded run started something; nil: nothing is recorded.
	Met         func(servers []string) []string
	Approved    *plan.Approved // what the plan file approves; nil: the whole plan
	Parallelism int            // hosts worked on at once, at least 1
	// Timing says how long actions typically take; nil: the defaults.
	Timing    func() rollout.Timing
	Observers int        // hosts observed at once; 0 = DefaultObservers
	Watching  bool       // a cluster that does not answer is reported, not an error
	Scrub     wire.Scrub // removes secrets from observations; nil: no secrets are known
	Drain     Drain
	Reboot    Reboot
	Peers     map[inventory.ServiceName]Service // those of the run
	Stop      context.Context                   // done: start no new action
	Now       func() time.Time
	Emit      func(Event) // never called concurrently
	// AddNodeEvent records on a Node that an action is about to disturb the work on its host; called
	// from many goroutines. nil: not recorded.
	AddNodeEvent func(context.Context, inventory.Node, plan.Action)

	// Run identifies the run on hosts and in markers. Without an id, hosts do not fence it.
	Run   plan.Run
	Guard Guard // nil: no lock to check
	// Raise raises the run's epoch above another one; nil: no epochs.
	Raise func(ctx context.Context, above int64) (plan.Run, error)
	// Locked says who holds the lock; nil: there is no lock.
	Locked func(context.Context) (*plan.Lock, error)

	// AsksRight says that a plan which would rename a server is preceded by the question whether the API key may do
	// it. The question is a write that changes nothing, so what only looks does not ask.
	AsksRight bool

	renaming  renameRight
	right     *plan.RenameRight // the answer of this run; nil: it is unknown
	keys      keyCheck
	diagnosed diagnoses
	emitting  sync.Mutex
	sent      sync.Map // time of the last progress event per host
}

// Plan observes everything and computes the difference. An error means that there is no
// plan; unreachable hosts are part of the plan.
func (e *Engine) Plan(ctx context.Context) (*plan.Plan, error) {
	_, p, err := e.Observe(ctx)
	return p, err
}

// Compute returns the difference between the configuration and a snapshot, within the run's
// limits.
func (e *Engine) Compute(ctx context.Context, snap plan.Snapshot) *plan.Plan {
	started := e.Now()
	return e.judge(ctx, plan.Compute(e.Config, e.Steps, snap, e.Selection), nil, started)
}

// judge refuses actions that would deliver a changed file or that the applied plan file does
// not approve, and defers what exceeds the run's limits. performed is the plan that the run has
// already executed, or nil.
func (e *Engine) judge(ctx context.Context, p, performed *plan.Plan, started time.Time) *plan.Plan {
	e.refuseChanged(ctx, p)
	if performed != nil {
		p.RetireKeysLater()
	}
	if e.Approved != nil {
		e.Approved.Restrict(p, e.Steps)
	}
	if e.Bounds != nil {
		b := *e.Bounds
		b.Now = started
		Bound(e.Config, e.Steps, p, b, Outlook{e.Timing, e.Parallelism}, performed)
	}
	e.emit(Event{Type: Computed, Seconds: e.Now().Sub(started).Seconds()})
	return p
}

// Observe observes everything that a plan needs, and returns the snapshot and its plan. An
// unreachable host is in the snapshot with its trouble. With Watching set, hosts are observed
// even if the cluster does not answer.
func (e *Engine) Observe(ctx context.Context) (plan.Snapshot, *plan.Plan, error) {
	return e.observe(ctx, nil)
}

// observe is Observe in a run that has already executed the plan performed, or nil.
func (e *Engine) observe(ctx context.Context, performed *plan.Plan) (plan.Snapshot, *plan.Plan, error) {
	snap, err := e.checked(ctx, func(err error) bool {
		var away *AwayError
		return e.Watching && errors.As(err, &away) && ctx.Err() == nil
	})
	if err != nil {
		return snap, nil, err
	}
	snap.RenameRight = e.right
	p, err := e.complete(ctx, &snap, e.Selection, e.AsksRight && performed == nil)
	if err != nil {
		return snap, nil, err
	}
	return snap, e.judge(ctx, p, performed, e.Now()), nil
}

// ObserveHost reads the lists and observes one host, by any name that plan.Find takes.
func (e *Engine) ObserveHost(ctx context.Context, name string) (plan.Snapshot, error) {
	snap, err := e.lists(ctx, never)
	if err != nil {
		return snap, err
	}
	if err := plan.CheckInventory(e.Config, snap); err != nil {
		return snap, err
	}
	sel, err := plan.SelectHost(e.Config, snap, name)
	if err != nil {
		return snap, err
	}
	_, err = e.complete(ctx, &snap, sel, false)
	return snap, err
}

// ObserveToHold observes the selected hosts as far as a hold needs it, even if the cluster
// does not answer or a host is unreachable.
func (e *Engine) ObserveToHold(ctx context.Context) (*plan.Plan, error) {
	snap, err := e.checked(ctx, always)
	if err != nil {
		return nil, err
	}
	if err := e.ask(ctx, &snap, plan.Next(e.Config, snap, e.Selection)); err != nil {
		return nil, err
	}
	return e.Compute(ctx, snap), nil
}

// Examine observes one server of the inventory, whatever its role, even if the cluster does
// not answer. name is the server's current or wanted name, or its id; more are extra probes.
// The plan covers only that host; it is nil if the server is not a member or no plan is possible.
func (e *Engine) Examine(ctx context.Context, name string, more ...plan.Probe) (inventory.Server, plan.Snapshot, *plan.Plan, error) {
	snap, err := e.lists(ctx, always)
	if err != nil {
		return inventory.Server{}, snap, nil, err
	}
	server, err := plan.Find(e.Config, snap, name)
	if err == nil {
		err = e.ask(ctx, &snap, []inventory.Server{server}, more...)
	}
	if err != nil || !plan.SubjectOf(e.Config, snap, server.ID).Member || plan.CheckInventory(e.Config, snap) != nil {
		return server, snap, nil, err
	}
	sel, err := plan.SelectHost(e.Config, snap, server.ID)
	if err != nil {
		return server, snap, nil, err
	}
	p, err := e.complete(ctx, &snap, sel, false)
	if err == nil {
		p = e.judge(ctx, p, nil, e.Now())
	}
	return server, snap, p, err
}

// complete observes the selected hosts, computes their plan, and looks up the passwords it
// needs, and whether the API key may rename servers if asksRight is set. A candidate without a password is replaced by another one. It terminates, because
// each round observes new hosts or finds new passwords.
func (e *Engine) complete(ctx context.Context, snap *plan.Snapshot, sel plan.Selection, asksRight bool) (*plan.Plan, error) {
	var p *plan.Plan
	var again map[string]bool
	for more := true; more; {
		next := plan.Next(e.Config, *snap, sel)
		for ; len(next) > 0; next = plan.Next(e.Config, *snap, sel) {
			if err := e.ask(ctx, snap, next); err != nil {
				return nil, err
			}
			p = nil // the other hosts' roles may have changed
		}
		if read, err := e.consult(ctx, snap, sel); err != nil {
			return nil, err
		} else if read {
			p = nil
		}
		if p == nil {
			p = plan.Compute(e.Config, e.Steps, *snap, sel)
		} else {
			p = plan.Complete(e.Config, e.Steps, *snap, sel, p, again)
		}
		var err error
		if again, more, err = e.findPasswords(ctx, *snap, p); err != nil {
			return nil, err
		}
		if more {
			continue
		}
		keys, err := e.readKeys(ctx, snap, p)
		if err != nil {
			return nil, err
		}
		denied := false
		if asksRight {
			if denied, err = e.readRenameRight(ctx, snap, p); err != nil {
				return nil, err
			}
		}
		if more = keys || denied; more {
			p = nil
		}
	}
	if again = e.diagnose(ctx, snap, p); len(again) > 0 {
		p = plan.Complete(e.Config, e.Steps, *snap, sel, p, again)
	}
	return p, context.Cause(ctx)
}

// Lists reads the providers' lists without observing a host.
func (e *Engine) Lists(ctx context.Context) (plan.Snapshot, error) {
	return e.lists(ctx, never)
}

// ObserveServers observes servers of a snapshot, whatever their roles, and adds what their hosts say to it. It
// changes nothing; an unreachable host is in the snapshot with its trouble.
func (e *Engine) ObserveServers(ctx context.Context, snap *plan.Snapshot, servers []inventory.Server) error {
	return e.ask(ctx, snap, servers)
}

// never and always decide which cluster errors leave the cluster unread.
func never(error) bool  { return false }
func always(error) bool { return true }

// checked is lists plus a check of the run's selection, which from then on has full host names.
func (e *Engine) checked(ctx context.Context, unread func(error) bool) (plan.Snapshot, error) {
	snap, err := e.lists(ctx, unread)
	if err == nil {
		e.Selection, err = plan.CheckLists(e.Config, snap, e.Selection)
	}
	snap.Asked = e.Selection.Departs.Asked()
	return snap, err
}

// lists reads all providers' lists concurrently. If the cluster cannot be read, its part is
// unread if unread(err) is true, otherwise the error is returned.
func (e *Engine) lists(ctx context.Context, unread func(error) bool) (plan.Snapshot, error) {
	started := e.Now()
	snap := plan.Snapshot{Taken: started.UTC().Truncate(time.Second), Former: e.Former, Nodes: inventory.Absent[[]inventory.Node](), Cluster: inventory.Absent[inventory.Cluster](),
		Hosts: make(map[string]plan.HostSeen), Peers: make(plan.PeersSeen)}
	if len(e.FleetKeys) > 1 {
		snap.FleetKeys = e.FleetKeys
	}
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		if snap.Servers, err = e.Servers.List(gctx); err != nil {
			return &AwayError{Scaleway, err}
		}
		return nil
	})
	g.Go(func() error {
		all, err := e.Pins.All()
		snap.Pins, snap.Released = plan.WithoutReleased(all)
		if r, ok := e.Pins.(Recalling); ok && err == nil {
			c := r.Recall()
			snap.Remembered, snap.PinsLost, snap.PinsUnread = c.Remembered, c.Lost, c.Unread
		}
		return err
	})
	g.Go(func() error {
		if e.Locked == nil || e.Run.ID != "" { // there is no lock, or this run holds it
			return nil
		}
		var err error
		if snap.Lock, err = e.Locked(gctx); err != nil {
			snap.Lock = &plan.Lock{Unread: err.Error()}
		}
		return nil
	})
	var peers sync.Mutex
	for id, service := range e.Peers {
		g.Go(func() error {
			seen := service.Observe(gctx)
			peers.Lock()
			defer peers.Unlock()
			snap.Peers[id] = seen
			return nil
		})
	}
	if e.Cluster != nil {
		g.Go(func() error {
			nodes, cluster, err := e.observeCluster(gctx)
			snap.Nodes, snap.Cluster = nodes, inventory.Present(cluster)
			if err != nil && unread(err) {
				snap.Nodes, snap.Cluster = inventory.Unread[[]inventory.Node](err.Error()), inventory.Unread[inventory.Cluster](err.Error())
				return nil
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return plan.Snapshot{}, e.scrubError(err)
	}
	if unmet := plan.FirstContacts(e.Config, snap); e.Met != nil && len(unmet) > 0 {
		snap.Met = e.Met(unmet)
	}
	if plan.ServersMissing(e.Config, snap, e.Selection) {
		snap.Account = new(e.Servers.Elsewhere(ctx))
	}
	e.emit(Event{Type: Listed, Seconds: e.Now().Sub(started).Seconds()})
	return wire.Clean(e.Scrub, snap), nil
}

// observeCluster reads the cluster and checks that it is the configured one. After an error
// the Nodes must not be used.
func (e *Engine) observeCluster(ctx context.Context) (inventory.Seen[[]inventory.Node], inventory.Cluster, error) {
	nodes, cluster := e.Cluster.Observe(ctx, plan.JoinsCluster(e.Config))
	if nodes.IsUnread() {
		return nodes, cluster, &AwayError{Kubernetes, errors.New(nodes.Why())}
	}
	id, known := cluster.ID.Get()
	if !known && e.Config.ClusterUID != "" {
		return nodes, cluster, &AwayError{Kubernetes, errors.New(cluster.ID.Why())}
	}
	if known {
		return nodes, cluster, RightCluster(e.Config, id, cluster.Noted, e.Selection.MovedFrom)
	}
	return nodes, cluster, nil
}

// RightCluster returns an error if the cluster is not the environment's, or not the one in
// which macfleet's namespace was prepared. If neither names a cluster, any will do.
func RightCluster(cfg *fleet.Config, id inventory.ClusterID, noted inventory.Seen[inventory.ClusterID], movedFrom string) error {
	if cfg.ClusterUID != "" && id.UID != cfg.ClusterUID {
		return plan.CodeOtherCluster.Trouble(fmt.Sprintf("wrong cluster: %s has uid %s, environment %q expects %s", id.Name(), id.UID, cfg.Environment, cfg.ClusterUID),
			"check the context of the kubernetes block, KUBECONFIG and cluster_uid")
	}
	if t := plan.PreparedElsewhere(cfg, id, noted, movedFrom); t != nil {
		return t
	}
	return nil
}

// ask observes hosts, with additional probes, and adds them to the snapshot.
func (e *Engine) ask(ctx context.Context, snap *plan.Snapshot, servers []inventory.Server, more ...plan.Probe) error {
	trusts := plan.Trusts(e.Config, *snap)
	e.emit(Event{Type: Observing, Count: len(servers)})
	probes := append(plan.Probes(e.Config, e.Steps, e.Selection), more...)
	var mu sync.Mutex
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(cmp.Or(e.Observers, DefaultObservers))
	for _, s := range servers {
		g.Go(func() error {
			started := e.Now()
			seen := e.look(gctx, Target{Server: s, Trust: trusts[s.ID]}, probes)
			if gctx.Err() != nil {
				return context.Cause(gctx)
			}
			mu.Lock()
			snap.Hosts[s.ID] = seen
			mu.Unlock()
			e.emit(Event{Type: Observed, Host: s.Name, Trouble: seen.Trouble, Seconds: e.Now().Sub(started).Seconds()})
			return nil
		})
	}
	return g.Wait()
}

// look runs probes on one host over its own connection. It changes nothing. What could not be
// read is marked in the result.
func (e *Engine) look(ctx context.Context, t Target, probes []plan.Probe) plan.HostSeen {
	conn, err := e.Hosts.Connect(ctx, t)
	if err != nil {
		return wire.Clean(e.Scrub, plan.HostSeen{Trouble: trouble(err)})
	}
	defer conn.Close(ctx)
	seen := conn.Observe(ctx, probes)
	if seen.Trouble == nil {
		seen.At = e.Now().UTC().Truncate(time.Millisecond)
	}
	return wire.Clean(e.Scrub, seen)
}

func trouble(err error) *plan.Trouble {
	var e interface{ Trouble() *plan.Trouble }
	if errors.As(err, &e) {
		return e.Trouble()
	}
	return &plan.Trouble{Code: plan.CodeUnreachable, Text: err.Error(), Remedy: "run the command again"}
}

func (e *Engine) emit(ev Event) {
	e.emitting.Lock()
	defer e.emitting.Unlock()
	ev.Time = e.Now()
	e.Emit(ev)
}

// emitStart emits a start event, unless the run is stopping: no start is recorded after the stop.
func (e *Engine) emitStart(ctx context.Context, ev Event) bool {
	e.emitting.Lock()
	defer e.emitting.Unlock()
	if e.Stop.Err() != nil || ctx.Err() != nil {
		return false
	}
	ev.Time = e.Now()
	e.Emit(ev)
	return true
}

// Between calls f between two events. If Stop is done by then, nothing starts after f.
func (e *Engine) Between(f func()) {
	e.emitting.Lock()
	defer e.emitting.Unlock()
	f()
}
