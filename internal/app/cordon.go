package app

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// CordonOptions are the arguments and flags of cordon.
type CordonOptions struct {
	Hosts   []string // names or selectors
	Approve bool
	Undo    bool
	Drain   bool
	Force   bool // evict Pods too that nothing makes again
	Timeout time.Duration
}

func (o CordonOptions) check(c Call) error {
	switch {
	case o.Undo && o.Drain:
		return errors.New("--undo and --drain exclude each other: --undo opens Nodes to Pods, and --drain takes their Pods away; run macfleet cordon with one of them")
	case c.gave("timeout") && !o.Drain:
		return errors.New("--timeout is of --drain: it is how long a Node's Pods have; write cordon … --drain --timeout 10m, or leave it out")
	case o.Force && !o.Drain:
		return errors.New("--force is of --drain: it also evicts Pods that nothing makes again; write cordon … --drain --force, or leave it out")
	case o.Timeout <= 0:
		return fmt.Errorf("--timeout is %s; it must be more than nothing", o.Timeout)
	}
	return nil
}

// Cordon closes the Nodes of hosts to new Pods and may empty them, or opens them again.
func Cordon(ctx context.Context, env *Env, o CordonOptions) error {
	if err := o.check(env.Call); err != nil {
		return err
	}
	if err := env.approvable("cordon", o.Approve, true, "pass --auto-approve"); err != nil {
		return err
	}
	return env.with(ctx, need{Selection: env.and(o.Hosts...)}, func(ctx context.Context, s *session) error {
		if s.kubernetes == nil {
			return errNoCluster("cordon")
		}
		m, err := s.engine.Members(ctx)
		if err != nil {
			return err
		}
		nodes, without := m.Nodes()
		for _, name := range without {
			env.errText().Warn(name + " has no Node; macfleet plan says why.")
		}
		if len(nodes) == 0 {
			return errors.New("none of the selected hosts has a Node")
		}
		s.tellInProgress(ctx)
		if err := env.askCordon(nodes, o); err != nil {
			return err
		}
		w := cordoning{session: s, options: o, said: make(map[string]string)}
		return result(false, w.run(ctx, nodes) && len(without) == 0)
	})
}

func (env *Env) askCordon(nodes []inventory.Node, o CordonOptions) error {
	what := "Close to new Pods"
	switch {
	case o.Undo:
		what = "Open to new Pods"
	case o.Drain:
		what = "Close to new Pods, and evict the Pods of"
	}
	names := named(nodes, func(n inventory.Node) string { return n.Name })
	return env.ask(o.Approve, what+" "+strings.Join(names, ", ")+"?")
}

// cordoning works on Nodes, one after the other: a mistake shows at the first.
type cordoning struct {
	session *session
	options CordonOptions
	saying  sync.Mutex        // Pods of a Node go at once
	said    map[string]string // by Node and Pod
}

// run reports whether all came to its end. A Node that failed ends the run.
func (w *cordoning) run(ctx context.Context, nodes []inventory.Node) bool {
	t := w.session.env.outText()
	ok := true
	for i, n := range nodes {
		said, right, err := w.node(ctx, n)
		if err != nil {
			w.session.env.errText().Error(fmt.Errorf("%s: %w", n.Name, err))
			if left := len(nodes) - i - 1; left > 0 {
				t.Say(fmt.Sprintf("Nodes that were not begun: %d.", left))
			}
			if !w.options.Undo {
				t.Say("What was closed stays closed; macfleet cordon " + n.Name + " --undo opens what macfleet closed.")
			}
			return false
		}
		ok = ok && right
		t.Say(n.Name + ": " + said)
	}
	return ok
}

func (w *cordoning) node(ctx context.Context, n inventory.Node) (said string, right bool, err error) {
	cluster := w.session.kubernetes
	if w.options.Undo {
		open, err := cluster.Uncordon(ctx, n)
		if err != nil || open {
			return "open to new Pods", err == nil, err
		}
		return "left closed: somebody else closed it (kubectl uncordon " + n.Name + " opens it)", false, nil
	}
	if _, err := cluster.CloseNode(ctx, n, plan.Run{Who: caller()}); err != nil {
		return "", false, err
	}
	said = "closed to new Pods"
	switch {
	case n.CordonedBy != "":
		said += " before, by " + n.CordonedBy
	case n.Cordoned:
		said += " before, by somebody else, whose it stays"
	}
	if !w.options.Drain {
		return said, true, nil
	}
	w.session.env.outText().Say(n.Name + ": " + said)
	err = cluster.EmptyNode(ctx, n, w.options.Timeout, w.options.Force, func(pod, what, why string) { w.tell(n.Name+": Pod "+pod+" ", what, why) })
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		err = fmt.Errorf("not empty after %s: %w", w.options.Timeout, err)
	}
	return "empty", true, err
}

func (w *cordoning) tell(pod, text, why string) {
	w.saying.Lock()
	defer w.saying.Unlock()
	if why != "" {
		text += ": " + why
	}
	if w.said[pod] != text { // what holds a Pod is told once, and not at each try
		w.said[pod] = text
		w.session.env.errText().Say(pod + text)
	}
}
