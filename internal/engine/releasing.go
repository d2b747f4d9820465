package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

var (
	// CodeNotErased is raised if a server that was reinstalled is not empty, or cannot be verified.
	CodeNotErased = plan.NewCode("not-erased", plan.Critical, "a reinstalled server could not be verified, so it is not returned to the pool",
		"check the server in the provider's console; macfleet apply continues the release")
	codeInstallFailed = plan.NewCode("install-failed", plan.Critical, "the provider failed twice to install a server",
		"ask the provider's support; macfleet apply tries again and continues the release")
	codeNotReinstalled = plan.NewCode("not-reinstalled", plan.Warning, "the provider did not finish reinstalling a server in time",
		"check the server in the provider's console; macfleet apply continues the release")
)

// Install holds the time limits of a reinstallation. A zero field means the default.
type Install struct {
	Within time.Duration // until the server is installed and answers; 0 = DefaultInstall
	Every  time.Duration // polling interval; 0 = DefaultInstallEvery
}

// The defaults of Install. A reinstallation takes half an hour.
const (
	DefaultInstall      = 2 * time.Hour
	DefaultInstallEvery = 15 * time.Second
)

// startLeaving stores that the host is being released before anything is done to it, so that the next run continues
// with the same host.
func (w *worker) startLeaving() error {
	if !w.host.Leaves || w.host.Stage.Final() || w.host.Stage == plan.Leaving {
		return nil
	}
	return w.stage(plan.Leaving, w.host.Seen.Key)
}

// stage stores how far the server is on its way out, with the key of its host.
func (w *worker) stage(to plan.Stage, key string) error {
	s := w.host.Server
	if err := w.engine.checkLock(); err != nil {
		return err
	}
	missing, other := false, false
	err := w.engine.Pins.Update(func(all []plan.Pin) []plan.Pin {
		all = slices.Clone(all)
		i := slices.IndexFunc(all, func(p plan.Pin) bool { return p.ServerID == s.ID })
		// A run that lost its lock without knowing it must not stop or repeat the release of another.
		none := i < 0 || all[i].Stage == plan.Released
		other = to != plan.Wiped && !none && key != "" && all[i].Key != key
		if missing = none && (key == "" || w.host.Seen.Pinned); missing || other {
			return all
		}
		if i < 0 {
			all, i = append(all, plan.Pin{ServerID: s.ID, Since: w.engine.Now().UTC()}), len(all)
		}
		was := all[i]
		if key != "" && key != was.Key {
			all[i].Accepted = ""
		}
		if to != was.Stage {
			all[i].StageSince = w.engine.Now().UTC().Truncate(time.Second)
		}
		all[i].Name, all[i].Stage, all[i].Key = s.Name, to, cmp.Or(key, was.Key)
		all[i] = all[i].Replaces(was)
		return all
	})
	switch {
	case err != nil:
		return fmt.Errorf("store that the server is released: %w", err)
	case other:
		return errors.New("another run has pinned another key of its host since the plan; plan again")
	case missing:
		return errors.New("the key of its host is not pinned; plan again")
	}
	w.host.Stage = to
	return nil
}

// reinstall erases a server that leaves its fleet, and verifies that it is empty. An earlier run may have asked
// for it already: then it is awaited.
func (w *worker) reinstall(ctx context.Context, a plan.Action) error {
	if w.left != nil {
		w.left()
	}
	old := w.oldKey()
	if w.host.Stage != plan.Wiping {
		if err := w.mayErase(ctx, a); err != nil {
			return err
		}
		if err := w.stage(plan.Wiping, old); err != nil {
			return err
		}
		if err := w.erase(ctx, a); err != nil {
			return err
		}
	} else if err := w.eraseAgain(ctx, a, old); err != nil {
		return err
	}
	key, err := w.erased(ctx, old)
	if trouble := (*plan.Trouble)(nil); errors.As(err, &trouble) && trouble.Code == codeInstallFailed { // once more, as the provider advises
		if err = w.erase(ctx, a); err == nil {
			key, err = w.erased(ctx, old)
		}
	}
	if err != nil {
		return err
	}
	return w.stage(plan.Wiped, key)
}

// oldKey returns the key that the host had before it is erased.
func (w *worker) oldKey() string {
	if pin := w.host.Trust().Pin; pin != nil {
		return pin.Key
	}
	return w.host.Seen.Key
}

// mayErase looks again, right before the server is erased: it must still be this configuration's, and idle.
func (w *worker) mayErase(ctx context.Context, a plan.Action) error {
	s := w.host.Server
	now, err := w.engine.Servers.Get(ctx, s.Zone, s.ID)
	switch {
	case err != nil:
		return err
	case now.Name != s.Name || now.Type != s.Type || now.Zone != s.Zone:
		return fmt.Errorf("the server changed since the plan: name %s, type %s; plan again", now.Name, now.Type)
	case !now.Usable():
		return fmt.Errorf("the server's status is %s; plan again when it is ready", now.Status)
	}
	if w.engine.Cluster != nil && !a.Forced {
		if n, there := w.host.Node.Get(); there || w.host.Spec.Spec.JoinsCluster() {
			n.Name = cmp.Or(n.Name, w.host.Name)
			if err := w.checkUnused(ctx, n, inventory.Pod.Works); err != nil {
				return w.notDrained(a, err)
			}
		}
	}
	if w.host.Unknown != nil { // the plan has found it to be idle without an answer of its host
		return nil
	}
	return w.stillIdle(ctx, a)
}

// stillIdle reads the host right before it is erased: it must be the planned one, and nothing may run there.
func (w *worker) stillIdle(ctx context.Context, a plan.Action) error {
	s := w.host.Server
	if err := w.connect(ctx); err != nil {
		return err
	}
	defer func() {
		w.conn.Close(ctx)
		w.conn = nil
	}()
	m, marked := w.host.Seen.Marker.Get()
	if marked && m.ServerID != s.ID {
		return fmt.Errorf("the marker on its host is of server %s; plan again", m.ServerID)
	}
	if w.host.Unowned {
		if err := w.stillUnowned(ctx); err != nil {
			return err
		}
	}
	if a.Forced {
		return nil
	}
	if _, _, agent := w.agentFor(a); agent {
		return w.drainFor(ctx, a, nil)
	}
	busy, err := w.running(ctx)
	if err == nil && len(busy) > 0 {
		err = errors.New("running work: " + plan.TaskTexts(busy))
	}
	if err != nil {
		return w.notDrained(a, err)
	}
	return nil
}

// running reads what runs on the host. Work that no step can read is unknown, which is an error.
func (w *worker) running(ctx context.Context) ([]plan.Task, error) {
	var out []plan.Task
	read := false
	for _, step := range w.engine.Steps(w.host.Spec) {
		probes := step.Probes()
		if w.host.Asked {
			probes = append(probes, plan.WorkProbes([]plan.Step{step})...)
		}
		facts, root, err := w.conn.Probe(ctx, probes)
		if err != nil {
			return nil, err
		}
		v := w.host.View(step.ID())
		v.Facts, v.Root = facts, root
		f := step.Diff(v)
		if all, ok := f.Running.Get(); ok {
			out, read = append(out, all...), true
		}
	}
	if !read {
		return nil, errors.New("it is unknown what runs on the host")
	}
	return out, nil
}

// erase asks for the reinstallation. An answer that is lost says nothing: the server's status does.
func (w *worker) erase(ctx context.Context, a plan.Action) error {
	if err := w.engine.checkLock(); err != nil {
		return err
	}
	s := w.host.Server
	now, err := w.engine.Servers.Get(ctx, s.Zone, s.ID)
	if err == nil && now.Name != s.Name { // another run may have released it meanwhile
		err = fmt.Errorf("the server was renamed to %s since the plan; plan again", now.Name)
	}
	if err != nil {
		return err
	}
	if err = w.engine.Servers.Reinstall(ctx, s.Zone, s.ID, a.Reset.SystemID); err == nil {
		return nil
	}
	now, gerr := w.engine.Servers.Get(ctx, s.Zone, s.ID)
	if gerr == nil && now.Status == reinstalling {
		return nil
	}
	return err
}

// The provider's statuses of a server that it erases, and of one for which that failed.
const (
	reinstalling  = "reinstalling"
	installFailed = "error"
)

// eraseAgain asks for a reinstallation that an earlier run may have asked for, unless it is in progress or done: a
// host that is erased has another key.
func (w *worker) eraseAgain(ctx context.Context, a plan.Action, old string) error {
	s := w.host.Server
	now, err := w.settledServer(ctx, func(inventory.Server) bool { return true })
	switch {
	case err != nil:
		return err
	case now.Name != s.Name:
		return fmt.Errorf("the server was renamed to %s since the plan; plan again", now.Name)
	case now.Status == reinstalling:
		return nil
	}
	if now.Status != installFailed {
		if _, err = w.settledServer(ctx, inventory.Server.Usable); err != nil {
			return err
		}
	}
	seen := w.lookNew(ctx)
	if seen.Key != "" && seen.Key != old {
		return nil
	}
	if seen.Trouble == nil { // its disk is the old one, with a marker or without: work may have started since
		if err := w.stillIdle(ctx, a); err != nil {
			return err
		}
	}
	return w.erase(ctx, a)
}

// lookNew observes the host as one that was never seen before.
func (w *worker) lookNew(ctx context.Context) plan.HostSeen {
	return w.engine.look(ctx, Target{Server: w.host.Server, Name: w.host.Server.Name}, nil)
}

// settledServer reads the server until it is as wanted. A status that does not pass by itself is an error.
func (w *worker) settledServer(ctx context.Context, wanted func(inventory.Server) bool) (inventory.Server, error) {
	e, s := w.engine, w.host.Server
	waiting, cancel := context.WithTimeout(ctx, cmp.Or(e.Install.Within, DefaultInstall))
	defer cancel()
	defer context.AfterFunc(e.Stop, cancel)()
	for {
		now, err := e.Servers.Get(waiting, s.Zone, s.ID)
		switch {
		case err == nil && wanted(now):
			return now, nil
		case err == nil && now.Status == installFailed:
			return now, codeInstallFailed.Trouble("the installation of server " + s.Name + " failed: its status is " + now.Status)
		case err == nil && now.Status == "locked":
			return now, codeNotReinstalled.Trouble(fmt.Sprintf("the status of server %s is %s", s.Name, now.Status))
		case err != nil && w.serverGone(waiting, err):
			return now, codeNotReinstalled.Trouble("server "+s.Name+" no longer exists", "macfleet hosts forget-key "+w.host.Name)
		}
		w.awaits(Installing, "waiting for the reinstallation")
		if stopped := pause(waiting, cmp.Or(e.Install.Every, DefaultInstallEvery)); stopped != nil {
			if err == nil {
				err = fmt.Errorf("its status is %s", now.Status)
			}
			return now, w.overdue(ctx, err)
		}
	}
}

// serverGone reports whether the provider deleted the server, which may be the cause of an error. Scaleway also denies access to such a server.
func (w *worker) serverGone(ctx context.Context, err error) bool {
	class, s := inventory.ClassOf(err), w.host.Server
	if class != inventory.NotFound && class != inventory.Denied {
		return false
	}
	gone, err := w.engine.Servers.Gone(ctx, s.Zone, s.ID)
	return err == nil && gone
}

// awaits emits what the run waits for, once for each wait: a reinstallation takes half an hour.
func (w *worker) awaits(as EventType, what string) {
	if w.awaited != what {
		w.awaited = what
		w.engine.emit(Event{Type: as, Host: w.host.Name, Text: what})
	}
}

// pause waits, unless ctx ends first.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// overdue says why a reinstallation was not awaited to its end.
func (w *worker) overdue(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case w.engine.Stop.Err() != nil:
		return fmt.Errorf("the run was stopped while server %s is reinstalled (%w); macfleet apply continues the release", w.host.Server.Name, err)
	}
	return codeNotReinstalled.Trouble(fmt.Sprintf("server %s was not reinstalled in %s: %s", w.host.Server.Name,
		cmp.Or(w.engine.Install.Within, DefaultInstall), err))
}

// erased waits until the reinstalled host answers, and returns its new key. It must not have the old key, a marker or a
// claim.
func (w *worker) erased(ctx context.Context, old string) (string, error) {
	if _, err := w.settledServer(ctx, inventory.Server.Usable); err != nil {
		return "", err
	}
	e := w.engine
	waiting, cancel := context.WithTimeout(ctx, cmp.Or(e.Install.Within, DefaultInstall))
	defer cancel()
	defer context.AfterFunc(e.Stop, cancel)()
	for {
		seen := w.lookNew(waiting)
		_, marked := seen.Marker.Get()
		switch t := seen.Trouble; {
		case t != nil && t.Code == plan.CodeUnreachable:
			w.awaits(Installing, "reinstalled, waiting for its host")
			if stopped := pause(waiting, cmp.Or(e.Install.Every, DefaultInstallEvery)); stopped != nil {
				return "", w.overdue(ctx, t)
			}
			continue
		case t != nil: // an authentication is never tried twice
			return "", CodeNotErased.Trouble(fmt.Sprintf("server %s was reinstalled, but its host cannot be read: %s", w.host.Server.Name, t.Text), t.Remedy)
		case old != "" && seen.Key == old:
			return "", CodeNotErased.Trouble(fmt.Sprintf("server %s was reinstalled, but its host has the same key as before", w.host.Server.Name))
		case marked || seen.Marker.IsUnread() || !seen.Claim.IsAbsent():
			return "", CodeNotErased.Trouble(fmt.Sprintf("server %s was reinstalled, but its host still has files of macfleet", w.host.Server.Name))
		}
		return seen.Key, nil
	}
}

// toPool gives an erased server its name in the pool, and forgets its host. What the cluster still has of it goes first:
// afterwards nothing shows to whom it belonged.
func (w *worker) toPool(ctx context.Context, a plan.Action) error {
	if err := w.forgetNode(ctx); err != nil {
		return err
	}
	if err := w.stillWiped(); err != nil {
		return err
	}
	s := w.host.Server
	if err := w.engine.Servers.Rename(ctx, s.Zone, s.ID, s.Name, a.Reset.Pool); err != nil {
		return err
	}
	return w.engine.noteReleased(s.ID)
}

// stillWiped looks again, right before something is taken from a host that leaves: a run that lost its lock without knowing
// it must not take it from one that was claimed since.
func (w *worker) stillWiped() error {
	if err := w.engine.checkLock(); err != nil {
		return err
	}
	all, err := w.engine.Pins.All()
	if err != nil {
		return err
	}
	id := w.host.Server.ID
	if !slices.ContainsFunc(all, func(p plan.Pin) bool { return p.ServerID == id && p.Stage == plan.Wiped }) {
		return errors.New("another run has finished its release since the plan; plan again")
	}
	return nil
}

// forgetNode removes a Node that the host's kubelet registered again before it was erased, and the finalizers of Pods whose
// virtual machines were erased.
func (w *worker) forgetNode(ctx context.Context) error {
	c := w.engine.Cluster
	if c == nil {
		return nil
	}
	nodes, err := c.Nodes(ctx)
	if err == nil {
		err = w.stillWiped() // so the Nodes that were listed are those from before
	}
	if err != nil {
		return err
	}
	names := []string{w.host.Name}
	for _, f := range w.host.Former {
		names = append(names, f.Name)
	}
	for _, name := range names {
		if n, there := nodeNamed(nodes, name); there && n.ProviderID == w.host.Server.ProviderID() {
			if err := c.DeleteNode(ctx, n); err != nil {
				return err
			}
		}
		pods, err := c.PodsOn(ctx, inventory.Node{Name: name})
		if err != nil {
			return err
		}
		held := slices.DeleteFunc(pods, func(p inventory.Pod) bool { return !p.Held() })
		if err := w.releasePods(ctx, held); err != nil {
			return err
		}
	}
	return nil
}

// noteReleased stores that servers are back in the pool, so that nothing older counts: no Node, and no copy of a pin on another machine.
// A pin without a stage is of a server that was claimed again.
func (e *Engine) noteReleased(ids ...string) error {
	if len(ids) == 0 {
		return nil
	}
	return e.Pins.Update(func(all []plan.Pin) []plan.Pin {
		all = slices.Clone(all)
		for i := range all {
			if p := &all[i]; slices.Contains(ids, p.ServerID) && p.Stage != plan.Stays {
				p.Stage, p.Unfinished = plan.Released, false
			}
		}
		return all
	})
}

// settleStages forgets what earlier runs stored of servers that left, and of those that stay after all.
func (e *Engine) settleStages(p *plan.Plan) error {
	if len(p.Stay) > 0 {
		if err := e.Pins.Update(func(all []plan.Pin) []plan.Pin {
			all = slices.Clone(all)
			for i := range all {
				all[i] = p.Keep(all[i])
			}
			return all
		}); err != nil {
			return err
		}
	}
	for i := range p.Hosts {
		if h := &p.Hosts[i]; slices.Contains(p.Left, h.Server.ID) { // one that is claimed gets a new pin
			h.Seen.Pinned = false
		}
	}
	return e.noteReleased(p.Left...)
}
