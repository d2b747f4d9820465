package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// CodeNotDrained is raised if a host could not be drained in time.
var CodeNotDrained = plan.NewCode("not-drained", plan.Warning, "the host could not be drained in time",
	"check what blocks the drain, allow more time (--drain-timeout), and apply again")

// Drain holds the time limits of a drain. A zero field means the default.
type Drain struct {
	Within time.Duration // time for a host's Pods and virtual machines to end; 0 = DefaultDrain
	Every  time.Duration // polling interval; 0 = DefaultEvery
	Quiet  time.Duration // how long a host with a CI agent must be idle; 0 = DefaultQuiet
}

// The defaults of Drain. A job that a CI service assigned starts within a minute.
const (
	DefaultDrain = 10 * time.Minute
	DefaultQuiet = time.Minute
)

// idles reports whether the host must be idle before an action.
func idles(a plan.Action) bool {
	return !a.Forced && a.Disruption >= plan.Drain
}

// drainFor drains the host before an action that would hurt its running work.
func (w *worker) drainFor(ctx context.Context, a plan.Action, step plan.Step) error {
	if !idles(a) {
		return nil
	}
	draining, cancel := context.WithTimeout(ctx, cmp.Or(w.engine.Drain.Within, DefaultDrain))
	defer cancel()
	defer context.AfterFunc(w.engine.Stop, cancel)()
	err := w.drainHost(draining, a, step)
	if err == nil || ctx.Err() != nil { // after a second Ctrl-C the cordon stays for the next run
		return err
	}
	var trouble *plan.Trouble
	switch {
	case errors.As(err, &trouble) && trouble.Code == CodeRunnerBusyStuck:
		trouble.Text = w.notStarted(a) + trouble.Text
		return err
	case errors.As(err, &trouble):
		return err
	case w.engine.Stop.Err() != nil:
		return errStoppedDrain
	}
	return w.notDrained(a, err)
}

// errStoppedDrain ends an action whose drain was stopped with the run. Nothing was changed, so it counts as not started.
var errStoppedDrain = errors.New("the run was stopped during the drain")

// uncordonUnchanged uncordons the Node that this run cordoned, if the action failed before it changed
// anything on the host.
func (w *worker) uncordonUnchanged(ctx context.Context, err error) error {
	if w.changed || !w.cordoned || ctx.Err() != nil {
		return err
	}
	uerr := w.engine.uncordon(ctx, w.host)
	if w.cordoned, w.uncordoned = uerr != nil, uerr == nil; uerr != nil {
		return fmt.Errorf("%w; its Node stays cordoned: %w", err, uerr) // this counts as a failure, also of a stopped drain
	}
	return err
}

func (w *worker) notDrained(a plan.Action, err error) error {
	return &plan.Trouble{Code: CodeNotDrained, Text: w.notStarted(a) + err.Error(),
		Remedy: "check what blocks the drain, allow more time (--drain-timeout), and apply again; to lose the running work: macfleet apply --force-busy " + w.host.Name}
}

// notStarted names what was not started.
func (w *worker) notStarted(a plan.Action) string {
	what := cmp.Or(string(a.Step), "the move")
	switch {
	case w.host.Leaves:
		what = "the release"
	case a.Kind == plan.RebootServer:
		what = "the restart"
	}
	return what + " not started: "
}

// drainHost drains the host's Node, if it has a working kubelet, and then waits until the host
// itself shows no running work: a virtual machine ends a moment after its Pod.
func (w *worker) drainHost(ctx context.Context, a plan.Action, step plan.Step) error {
	keeper, spec, agent := w.agentFor(a)
	if agent {
		if err := w.fenceAgent(ctx, keeper, spec); err != nil {
			return err
		}
	}
	_, moves := w.host.MovesFrom()
	drains := w.host.Drainable() && w.engine.Cluster != nil
	if drains || moves {
		if err := w.drainNode(ctx, drains); err != nil {
			return err
		}
	}
	if agent {
		return w.awaitIdle(ctx, keeper, step)
	}
	var last []string
	for {
		busy, err := w.busy(ctx, step)
		switch {
		case err != nil && ctx.Err() != nil && len(last) > 0:
			return fmt.Errorf("timed out; still running: %s", strings.Join(last, ", "))
		case err != nil || len(busy) == 0:
			return err
		case !drains:
			return fmt.Errorf("running work that a drain does not end: %s", strings.Join(busy, ", "))
		}
		last = busy
		select {
		case <-ctx.Done():
		case <-time.After(cmp.Or(w.engine.Drain.Every, DefaultEvery)):
		}
	}
}

// busy returns the running work in words.
func (w *worker) busy(ctx context.Context, step plan.Step) ([]string, error) {
	tasks, err := w.tasks(ctx, step)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, t := range tasks {
		out = append(out, t.Text)
	}
	return out, nil
}

// tasks returns the work on the host that the changes of a step would interrupt, or all of it if the host leaves.
func (w *worker) tasks(ctx context.Context, step plan.Step) ([]plan.Task, error) {
	if w.host.Leaves {
		return w.running(ctx)
	}
	f, err := w.probe(ctx, step)
	return f.Busy, err
}

// drainNode cordons the host's Node and, if evicts is set, evicts its Pods. It cordons every time,
// because someone may have uncordoned the Node since.
func (w *worker) drainNode(ctx context.Context, evicts bool) error {
	e := w.engine
	n, _ := w.host.Node.Get()
	if err := e.checkLock(); err != nil {
		return err
	}
	if !w.cordoning {
		e.emit(Event{Type: Cordoning, Host: w.host.Name})
		w.cordoning, w.cordoned = true, true // even on error: the answer may be lost
	}
	ours, err := e.Cluster.CordonNode(ctx, n, e.Run)
	if err != nil {
		return err
	}
	w.cordoned = ours
	if !evicts {
		return w.checkUnused(ctx, n, inventory.Pod.Stays)
	}
	if err := e.Cluster.EvictPods(ctx, n, cmp.Or(e.Drain.Within, DefaultDrain), false, w.evictions()); err != nil {
		return err
	}
	return w.checkUnused(ctx, n, inventory.Pod.Works)
}

// checkUnused returns an error if working Pods are on a Node.
func (w *worker) checkUnused(ctx context.Context, n inventory.Node, works func(inventory.Pod) bool) error {
	pods, err := w.engine.Cluster.PodsOn(ctx, n)
	if err != nil {
		return err
	}
	var left []string
	for _, p := range pods {
		if works(p) {
			left = append(left, p.Namespace+"/"+p.Name)
		}
	}
	if len(left) > 0 {
		return fmt.Errorf("the Node %s has Pods: %s", n.Name, strings.Join(left, ", "))
	}
	return nil
}

// evictions returns a function that emits an event for each change of a Pod, without the
// repetitions of a held Pod.
func (w *worker) evictions() func(pod, what, why string) {
	var said sync.Map
	return func(pod, what, why string) {
		if old, _ := said.Swap(pod, what+why); old != what+why {
			w.engine.emit(Event{Type: Evicting, Host: w.host.Name, Pod: pod, What: what, Text: why})
		}
	}
}

// uncordon uncordons a host's Node, if it exists.
func (e *Engine) uncordon(ctx context.Context, h plan.Host) error {
	n, there := h.Node.Get()
	if !there {
		return nil
	}
	// Without the lock, leave the cordon to the run that holds it now.
	if err := e.checkLock(); err != nil {
		return err
	}
	if err := e.Cluster.UncordonNode(ctx, n); err != nil {
		return err
	}
	e.emit(Event{Type: Uncordoned, Host: h.Name, Fleet: h.Fleet})
	return nil
}
