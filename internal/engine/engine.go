// Package engine runs a command's data path: observe, plan, execute, observe
// again. It decides nothing about hosts; package plan does.
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
	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/internal/wire"
	"github.com/macfleet/macfleet/plan"
)

// Servers is the provider of the machines.
type Servers interface {
	// List returns all servers of the project, or an error: never a part.
	List(context.Context) ([]inventory.Server, error)
	// Elsewhere returns what the account holds where List does not look.
	Elsewhere(context.Context) inventory.Account
	// Get returns one server.
	Get(ctx context.Context, zone, id string) (inventory.Server, error)
	// CheckRename proves that a server may be renamed, and changes nothing of it. The error
	// wraps inventory.ErrDenied where the credentials lack the right.
	CheckRename(ctx context.Context, zone, id string) error
	// Rename changes a server's name from one to another, only while it bears
	// the first, and proves it by reading it back.
	Rename(ctx context.Context, zone, id, from, to string) error
}

// DefaultObservers is how many hosts are observed at once. A look costs a host little and
// this machine a few milliseconds; what it takes is waiting for far hosts.
const DefaultObservers = 256

// InputFor says what a change's script reads, and of which host.
type InputFor struct {
	Kind    plan.InputKind
	Host    fleet.Host
	Join    inventory.Join
	Refused bool // the secret is a password that the host has refused
}

// Engine carries what a run needs. All fields are set but where nil is
// said to mean something.
type Engine struct {
	Config    *fleet.Config
	Steps     plan.StepsFor
	Servers   Servers
	Cluster   Cluster // nil: the configuration has none
	Hosts     Hosts
	Pins      Pins
	Passwords Passwords // nil: none is known
	Artifacts Artifacts // nil: there are none
	// Input renders what a change's script reads, around a secret: a host's login
	// password, or the token of its kubelet.
	Input     func(InputFor, secret.Value) (secret.Value, error)
	Ready     Ready
	Bounds    *plan.Bounds // what a run may do at most, but for its time; nil: anything
	Selection plan.Selection
	Former    []string // as whose the configuration was applied from its directory; see plan.Snapshot
	// Met says on which of some servers' hosts a recorded run has begun something; nil: nothing is recorded.
	Met         func(servers []string) []string
	Approved    *plan.Approved // what a plan file allows; nil: whatever the plan holds
	Parallelism int            // hosts worked on at once, at least 1
	Observers   int            // hosts observed at once; 0 = DefaultObservers
	Watching    bool           // a cluster that does not answer is part of what is observed
	Scrub       wire.Scrub     // takes secrets out of what is observed; nil: nothing is taken out
	Drain       Drain
	Runners     Idle            // of builders: what GitHub has given them; nil: nobody knows
	Stop        context.Context // done: start no new action
	Now         func() time.Time
	Emit        func(Event) // called by one goroutine at a time
	// Tell lets a Node know of an action that disturbs the work on its host, before it
	// begins; from many goroutines. nil: nobody is told.
	Tell func(context.Context, inventory.Node, plan.Action)

	// Run is the run whose changes these are: hosts and markers bear it. Without an id
	// nothing is fenced.
	Run   plan.Run
	Guard Guard // nil: nothing is asked
	// Raise gives the run an epoch above another; nil: it has none.
	Raise func(ctx context.Context, above int64) (plan.Run, error)
	// Locked says who applies at this moment; nil: nobody knows.
	Locked func(context.Context) (*plan.Lock, error)

	renaming renameRight
	emitting sync.Mutex
	sent     sync.Map // when the upload to a host was told of last
}

// Plan observes everything and computes the difference. An error means that no
// plan can be made at all; hosts that cannot be asked are part of the plan.
func (e *Engine) Plan(ctx context.Context) (*plan.Plan, error) {
	_, p, err := e.Observe(ctx)
	return p, err
}

// Compute returns the difference between what is wanted and what was seen, within what
// the run may do.
func (e *Engine) Compute(ctx context.Context, snap plan.Snapshot) *plan.Plan {
	started := e.Now()
	return e.judge(ctx, plan.Compute(e.Config, e.Steps, snap, e.Selection), nil, started)
}

// judge refuses in a plan what would send a file that is not the locked one, and what no
// plan file approves where one is applied. It defers what goes beyond the bounds of the run,
// which has performed the plan begun, or none yet.
func (e *Engine) judge(ctx context.Context, p, begun *plan.Plan, started time.Time) *plan.Plan {
	e.refuseChanged(ctx, p)
	if e.Approved != nil {
		e.Approved.Restrict(p, e.Steps)
	}
	if e.Bounds != nil {
		b := *e.Bounds
		b.Now = started
		bound(e.Config, e.Steps, p, b, begun)
	}
	e.emit(Event{Type: Computed, Seconds: e.Now().Sub(started).Seconds()})
	return p
}

// Observe looks at everything that a plan needs, and returns both. An error means that no
// plan can be made; a host that cannot be asked is in the snapshot with its trouble. Where the
// engine watches, hosts are looked at also while the cluster is away.
func (e *Engine) Observe(ctx context.Context) (plan.Snapshot, *plan.Plan, error) {
	return e.observe(ctx, nil)
}

// observe is Observe in a run that has performed the plan begun; nil: none yet.
func (e *Engine) observe(ctx context.Context, begun *plan.Plan) (plan.Snapshot, *plan.Plan, error) {
	snap, err := e.checked(ctx, func(err error) bool {
		var away *AwayError
		return e.Watching && errors.As(err, &away) && ctx.Err() == nil
	})
	if err != nil {
		return snap, nil, err
	}
	p, err := e.complete(ctx, &snap, e.Selection)
	if err != nil {
		return snap, nil, err
	}
	return snap, e.judge(ctx, p, begun, e.Now()), nil
}

// ObserveHost looks at the lists and at one host alone, by any name that
// plan.Find takes.
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
	_, err = e.complete(ctx, &snap, sel)
	return snap, err
}

// ObserveToHold looks at the selected hosts as far as a hold needs it: also while
// the cluster is away, and at a host that nobody reaches.
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

// Examine looks at one server of the inventory, whatever its role and also while the cluster
// is away. name is the server's name or id, or the name that it should bear; more is asked of
// it beside what a plan asks. The plan is of that host alone; nil where it is no member, or none can be made.
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
	p, err := e.complete(ctx, &snap, sel)
	if err == nil {
		p = e.judge(ctx, p, nil, e.Now())
	}
	return server, snap, p, err
}

// complete asks the selected hosts, computes their plan, and looks for the passwords that
// it needs: a candidate whose password is not to be had gives way to another one. The rounds
// end, as each asks hosts or looks for passwords that were not there before.
func (e *Engine) complete(ctx context.Context, snap *plan.Snapshot, sel plan.Selection) (*plan.Plan, error) {
	var p *plan.Plan
	var again map[string]bool
	for more := true; more; {
		next := plan.Next(e.Config, *snap, sel)
		for ; len(next) > 0; next = plan.Next(e.Config, *snap, sel) {
			if err := e.ask(ctx, snap, next); err != nil {
				return nil, err
			}
			p = nil // the others' places may be other ones now
		}
		if p == nil {
			p = plan.Compute(e.Config, e.Steps, *snap, sel)
		} else {
			p = plan.Complete(e.Config, e.Steps, *snap, sel, p, again)
		}
		var err error
		if again, more, err = e.lookForPasswords(ctx, *snap, p); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// Lists reads what the providers list, and asks no host.
func (e *Engine) Lists(ctx context.Context) (plan.Snapshot, error) {
	return e.lists(ctx, never)
}

// never and always say which errors of the cluster leave it unread.
func never(error) bool  { return false }
func always(error) bool { return true }

// checked is lists, for the selection of the run, which names hosts by their full names from then on.
func (e *Engine) checked(ctx context.Context, unread func(error) bool) (plan.Snapshot, error) {
	snap, err := e.lists(ctx, unread)
	if err == nil {
		e.Selection, err = plan.CheckLists(e.Config, snap, e.Selection)
	}
	return snap, err
}

// lists reads what the providers list, all at once. Without a cluster that can be read, what
// it knows is unread where its error says so, else that is the error.
func (e *Engine) lists(ctx context.Context, unread func(error) bool) (plan.Snapshot, error) {
	started := e.Now()
	snap := plan.Snapshot{Taken: started.UTC().Truncate(time.Second), Former: e.Former, Nodes: inventory.Absent[[]inventory.Node](), Cluster: inventory.Absent[inventory.Cluster](),
		Hosts: make(map[string]plan.HostSeen)}
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		if snap.Servers, err = e.Servers.List(gctx); err != nil {
			return &AwayError{Scaleway, err}
		}
		return nil
	})
	g.Go(func() (err error) {
		snap.Pins, err = e.Pins.All()
		if r, ok := e.Pins.(Recalling); ok && err == nil {
			c := r.Recall()
			snap.Remembered, snap.PinsLost, snap.PinsUnread = c.Remembered, c.Lost, c.Unread
		}
		return err
	})
	g.Go(func() error {
		if e.Locked == nil || e.Run.ID != "" { // nobody keeps a lock, or this run has it itself
			return nil
		}
		var err error
		if snap.Lock, err = e.Locked(gctx); err != nil {
			snap.Lock = &plan.Lock{Unread: err.Error()}
		}
		return nil
	})
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
	if unmet := plan.Unmet(e.Config, snap); e.Met != nil && len(unmet) > 0 {
		snap.Met = e.Met(unmet)
	}
	if plan.LooksElsewhere(e.Config, snap, e.Selection) {
		snap.Account = new(e.Servers.Elsewhere(ctx))
	}
	e.emit(Event{Type: Listed, Seconds: e.Now().Sub(started).Seconds()})
	return wire.Clean(e.Scrub, snap), nil
}

// observeCluster looks at the cluster, and whether it is the wanted one. An error
// means that the Nodes count for nothing: they could not be read, or it is another
// cluster, whatever was read of it meanwhile.
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

// RightCluster returns an error when a cluster is not the one that the environment is about,
// or not the one that macfleet's namespace was prepared in. An environment that names none,
// and a namespace that says nothing, take any.
func RightCluster(cfg *fleet.Config, id inventory.ClusterID, noted inventory.Seen[inventory.ClusterID], movedFrom string) error {
	if cfg.ClusterUID != "" && id.UID != cfg.ClusterUID {
		return plan.CodeOtherCluster.Trouble(fmt.Sprintf("this is another cluster: %s has uid %s, environment %q wants %s", id.Name(), id.UID, cfg.Environment, cfg.ClusterUID),
			"check the context of the kubernetes block, KUBECONFIG and cluster_uid")
	}
	if t := plan.NotedElsewhere(cfg, id, noted, movedFrom); t != nil {
		return t
	}
	return nil
}

// ask observes hosts, with more questions than a plan has, and enters them into the snapshot.
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

// look asks one host some questions, on a connection of its own. It changes
// nothing. What could not be learnt is in the result.
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

// begin tells of something that starts now, unless nothing may start any more: a
// record has nothing that begins after it has told of the stop.
func (e *Engine) begin(ctx context.Context, ev Event) bool {
	e.emitting.Lock()
	defer e.emitting.Unlock()
	if e.Stop.Err() != nil || ctx.Err() != nil {
		return false
	}
	ev.Time = e.Now()
	e.Emit(ev)
	return true
}

// Between calls f between two events. Where Stop has ended by then, nothing begins
// after f.
func (e *Engine) Between(f func()) {
	e.emitting.Lock()
	defer e.emitting.Unlock()
	f()
}

// The providers that can be away.
const (
	Scaleway   = "scaleway"
	Kubernetes = "kubernetes"
)

// AwayError says that a provider could not be asked. What it would have said is not
// known: that is neither a difference nor the absence of one.
type AwayError struct {
	Provider string
	Err      error
}

// Error returns what the provider, or the way to it, said.
func (e *AwayError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *AwayError) Unwrap() error { return e.Err }

// scrubError takes secrets out of an error's text: a host's last words and a
// provider's answer stand in it.
func (e *Engine) scrubError(err error) error {
	if err == nil || e.Scrub == nil {
		return err
	}
	if text := e.Scrub(err.Error()); text != err.Error() {
		return &scrubbedError{text, err}
	}
	return err
}

// scrubbedError is an error under another text. Its cause is what it was.
type scrubbedError struct {
	text  string
	cause error
}

// Error returns the text without secrets.
func (e *scrubbedError) Error() string { return e.text }

// Unwrap returns the error itself, for errors.Is and errors.As alone.
func (e *scrubbedError) Unwrap() error { return e.cause }
