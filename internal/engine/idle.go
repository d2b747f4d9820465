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

// CodeNotDrained means: the host could not be made idle in time.
var CodeNotDrained = plan.NewCode("not-drained", plan.Warning, "the host could not be made idle in time",
	"see what holds it, give it longer (--drain-timeout), and apply again")

// Idle proves of hosts that nothing is at work on them.
type Idle interface {
	// Busy returns what is at work on a host, in words; empty: nothing is. An error
	// means that nobody knows, which counts as busy.
	Busy(context.Context, plan.Host) ([]string, error)
}

// NoRunners is the Idle of a macfleet that has registered no runner: nobody gives work to
// a builder but on the host itself.
type NoRunners struct{}

// Busy returns nothing.
func (NoRunners) Busy(context.Context, plan.Host) ([]string, error) { return nil, nil }

// Drain says how hosts are made idle. A zero field means the default.
type Drain struct {
	Within time.Duration // the Pods of one host have to end, and their machines; 0 = DefaultDrain
	Every  time.Duration // between two looks at what still runs; 0 = DefaultEvery
}

// DefaultDrain is how long the Pods of one host have to end, and their machines.
const DefaultDrain = 10 * time.Minute

// idle makes the host idle before an action that would hurt what is at work there.
func (w *worker) idle(ctx context.Context, a plan.Action, step plan.Step) error {
	if a.Disruption < plan.Drain || a.Forced {
		return nil
	}
	proving, cancel := context.WithTimeout(ctx, cmp.Or(w.engine.Drain.Within, DefaultDrain))
	defer cancel()
	defer context.AfterFunc(w.engine.Stop, cancel)()
	err := w.makeIdle(proving, step)
	if err == nil || ctx.Err() != nil { // a second Ctrl-C leaves at once; the next run finds the cordon
		return err
	}
	var trouble *plan.Trouble
	if !errors.As(err, &trouble) {
		err = w.notDrained(a, err)
	}
	return err
}

// reopen opens the Node that this run closed, where an action failed before anything was changed
// on the host.
func (w *worker) reopen(ctx context.Context, err error) error {
	if w.changed || !w.closed || ctx.Err() != nil {
		return err
	}
	open := w.engine.open(ctx, w.host)
	if w.closed, w.opened = open != nil, open == nil; open != nil {
		return fmt.Errorf("%w; and its Node stays closed to new Pods: %w", err, open)
	}
	return err
}

func (w *worker) notDrained(a plan.Action, err error) error {
	name, what := w.host.Name, cmp.Or(string(a.Step), "the move")
	t := plan.Trouble{Code: CodeNotDrained, Text: fmt.Sprintf("%s was not begun: %s", what, err),
		Remedy: "see what holds it, give it longer (--drain-timeout), and apply again; --force-busy " + name + " does not wait, and that work is lost"}
	if w.engine.Stop.Err() != nil {
		t.Text, t.Remedy = what+" was not begun: the run was stopped while the host was made idle", "apply again"
	}
	return &t
}

// makeIdle drains the host's Node where a kubelet heeds that, and then has the host itself
// show that nothing runs. A machine is gone a moment after its Pod.
func (w *worker) makeIdle(ctx context.Context, step plan.Step) error {
	_, moves := w.host.MovesFrom()
	drains := w.host.Drainable() && w.engine.Cluster != nil
	if drains || moves {
		if err := w.drain(ctx, drains); err != nil {
			return err
		}
	}
	var last []string
	for {
		busy, err := w.busy(ctx, step)
		switch {
		case err != nil && ctx.Err() != nil && len(last) > 0:
			return fmt.Errorf("time was up, and this still ran: %s", strings.Join(last, ", "))
		case err != nil || len(busy) == 0:
			return err
		case !drains:
			return fmt.Errorf("nothing ends what is at work there: %s", strings.Join(busy, ", "))
		}
		last = busy
		select {
		case <-ctx.Done():
		case <-time.After(cmp.Or(w.engine.Drain.Every, DefaultEvery)):
		}
	}
}

// busy asks everybody who may know what is at work on the host.
func (w *worker) busy(ctx context.Context, step plan.Step) ([]string, error) {
	f, err := w.look(ctx, step, false)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, t := range f.Busy {
		out = append(out, t.Text)
	}
	if !w.host.Spec.Spec.BuildsImages() {
		return out, nil
	}
	if w.engine.Runners == nil {
		return append(out, "perhaps a job of GitHub: nobody can be asked"), nil
	}
	jobs, err := w.engine.Runners.Busy(ctx, w.host)
	if err != nil {
		return nil, fmt.Errorf("nobody knows whether GitHub has given it work: %w", err)
	}
	return append(out, jobs...), nil
}

// drain closes the host's Node to new Pods, evicts those that it has where evicts says so, and
// counts. Somebody may have opened the Node since the last time, so it is closed again.
func (w *worker) drain(ctx context.Context, evicts bool) error {
	e := w.engine
	n, _ := w.host.Node.Get()
	if err := e.may(); err != nil {
		return err
	}
	if !w.closing {
		e.emit(Event{Type: Closing, Host: w.host.Name})
		w.closing, w.closed = true, true // whatever comes back: the answer may be lost
	}
	ours, err := e.Cluster.CloseNode(ctx, n, e.Run)
	if err != nil {
		return err
	}
	w.closed = ours
	if !evicts {
		return w.unused(ctx, n, inventory.Pod.Stays)
	}
	if err := e.Cluster.EmptyNode(ctx, n, cmp.Or(e.Drain.Within, DefaultDrain), false, w.evictions()); err != nil {
		return err
	}
	return w.unused(ctx, n, inventory.Pod.Works)
}

// unused returns an error where Pods are at work on a Node.
func (w *worker) unused(ctx context.Context, n inventory.Node, works func(inventory.Pod) bool) error {
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
		return fmt.Errorf("these Pods are on the Node %s: %s", n.Name, strings.Join(left, ", "))
	}
	return nil
}

// evictions tells of Pods on their way, each word once: a budget that holds one is asked
// every few seconds.
func (w *worker) evictions() func(pod, what, why string) {
	var said sync.Map
	return func(pod, what, why string) {
		if old, _ := said.Swap(pod, what+why); old != what+why {
			w.engine.emit(Event{Type: Evicting, Host: w.host.Name, Pod: pod, What: what, Text: why})
		}
	}
}

// open lets Pods onto a host's Node again, if it is there.
func (e *Engine) open(ctx context.Context, h plan.Host) error {
	n, there := h.Node.Get()
	if !there {
		return nil
	}
	// Who has lost the lock leaves it to the run that has it now: that takes the cordon over.
	if err := e.may(); err != nil {
		return err
	}
	if err := e.Cluster.OpenNode(ctx, n); err != nil {
		return err
	}
	e.emit(Event{Type: Opened, Host: h.Name, Fleet: h.Fleet})
	return nil
}
