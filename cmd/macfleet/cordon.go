package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/providers/kubernetes"
)

type cordonOptions struct {
	approve bool
	undo    bool
	drain   bool
	force   bool
	timeout time.Duration
}

func (a *app) cordonCmd() *cobra.Command {
	var o cordonOptions
	c := &cobra.Command{Use: "cordon SELECTOR|HOST...", Short: "Let no new Pod onto the Nodes of hosts, and empty them", Args: cobra.MinimumNArgs(1),
		Long: "cordon closes the Nodes of hosts to new Pods and notes on them who did so with macfleet. --undo opens\n" +
			"those again, and leaves alone what somebody closed by another way. --drain then evicts their Pods, one\n" +
			"Node after the other; disruption budgets are honoured, Pods of DaemonSets stay.\n\n" +
			"  macfleet cordon acme-production-runners-m2-0bccd --drain\n" +
			"  macfleet cordon fleet=runners,zone=fr-par-3\n\n" +
			"Exit codes: 0 done, 1 error or not approved, 3 some Nodes are not closed, opened or empty.",
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case o.undo && o.drain:
				return errors.New("--undo and --drain exclude each other: --undo opens Nodes to Pods, and --drain takes their Pods away; run macfleet cordon with one of them")
			case c.Flags().Changed("timeout") && !o.drain:
				return errors.New("--timeout is of --drain: it is how long a Node's Pods have; write cordon … --drain --timeout 10m, or leave it out")
			case o.force && !o.drain:
				return errors.New("--force is of --drain: it also evicts Pods that nothing makes again; write cordon … --drain --force, or leave it out")
			}
			return a.cordon(c.Context(), args, o)
		}}
	f := c.Flags()
	f.BoolVar(&o.undo, "undo", false, "open the Nodes again that macfleet closed")
	f.BoolVar(&o.drain, "drain", false, "evict the Pods too")
	f.DurationVar(&o.timeout, "timeout", 10*time.Minute, "how `LONG` the Pods of a Node have until they are gone")
	f.BoolVar(&o.force, "force", false, "evict Pods too that nothing makes again")
	f.BoolVar(&o.approve, "auto-approve", false, "do not ask")
	return c
}

func (a *app) cordon(ctx context.Context, args []string, o cordonOptions) error {
	if o.timeout <= 0 {
		return fmt.Errorf("--timeout is %s; it must be more than nothing", o.timeout)
	}
	if !o.approve && !a.interactive() {
		return errors.New("cordon must be approved and nobody can be asked here; pass --auto-approve")
	}
	for _, arg := range args {
		if !strings.Contains(arg, "=") {
			arg = "name=" + arg
		}
		a.on = append(a.on, arg)
	}
	ctx, done := a.untilStopped(ctx)
	defer done()
	s, err := a.open(ctx, ctx)
	if err != nil {
		return err
	}
	defer s.close()
	if s.kubernetes == nil {
		return errNoCluster("cordon")
	}
	m, err := s.engine.Members(ctx)
	if err != nil {
		return err
	}
	nodes, without := m.Nodes()
	for _, name := range without {
		a.errText().Warn(name + " has no Node; macfleet plan says why.")
	}
	if len(nodes) == 0 {
		return errors.New("none of the selected hosts has a Node")
	}
	s.tellInProgress(ctx)
	if err := a.askCordon(nodes, o); err != nil {
		return err
	}
	w := cordoning{session: s, options: o, said: make(map[string]string)}
	return result(false, w.run(ctx, nodes) && len(without) == 0)
}

func (a *app) askCordon(nodes []inventory.Node, o cordonOptions) error {
	if o.approve {
		return nil
	}
	what := "Close to new Pods"
	switch {
	case o.undo:
		what = "Open to new Pods"
	case o.drain:
		what = "Close to new Pods, and evict the Pods of"
	}
	var names []string
	for _, n := range nodes {
		names = append(names, n.Name)
	}
	return a.ask(what + " " + strings.Join(names, ", ") + "?")
}

// cordoning works on Nodes, one after the other: a mistake shows at the first.
type cordoning struct {
	session *session
	options cordonOptions
	saying  sync.Mutex        // Pods of a Node go at once
	said    map[string]string // by Node and Pod
}

// run reports whether all came to its end. A Node that failed ends the run.
func (w *cordoning) run(ctx context.Context, nodes []inventory.Node) bool {
	t := w.session.app.outText()
	ok := true
	for i, n := range nodes {
		said, right, err := w.node(ctx, n)
		if err != nil {
			w.session.app.errText().Error(fmt.Errorf("%s: %w", n.Name, err))
			if left := len(nodes) - i - 1; left > 0 {
				t.Say(fmt.Sprintf("Nodes that were not begun: %d.", left))
			}
			if !w.options.undo {
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
	if w.options.undo {
		open, err := cluster.Uncordon(ctx, n)
		if err != nil || open {
			return "open to new Pods", err == nil, err
		}
		return "left closed: somebody else closed it (kubectl uncordon " + n.Name + " opens it)", false, nil
	}
	if err := cluster.Cordon(ctx, n, caller()); err != nil {
		return "", false, err
	}
	said = "closed to new Pods"
	switch {
	case n.CordonedBy != "":
		said += " before, by " + n.CordonedBy
	case n.Cordoned:
		said += " before, by somebody else, whose it stays"
	}
	if !w.options.drain {
		return said, true, nil
	}
	w.session.app.outText().Say(n.Name + ": " + said)
	err = cluster.Drain(ctx, n, kubernetes.DrainOptions{Timeout: w.options.timeout, Unmanaged: w.options.force, Progress: func(e kubernetes.DrainEvent) { w.tell(n, e) }})
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		err = fmt.Errorf("not empty after %s: %w", w.options.timeout, err)
	}
	return "empty", true, err
}

func (w *cordoning) tell(n inventory.Node, e kubernetes.DrainEvent) {
	w.saying.Lock()
	defer w.saying.Unlock()
	pod := fmt.Sprintf("%s: Pod %s/%s ", n.Name, e.Namespace, e.Pod)
	text := string(e.What)
	if e.Why != "" {
		text += ": " + e.Why
	}
	if w.said[pod] != text { // what holds a Pod is told once, and not at each try
		w.said[pod] = text
		w.session.app.errText().Say(pod + text)
	}
}

// caller is who runs this, for a note that others read.
func caller() string {
	name, host := "somebody", "an unknown machine"
	if me, err := user.Current(); err == nil {
		name = me.Username
	}
	if h, err := os.Hostname(); err == nil {
		host = h
	}
	return name + "@" + host
}
