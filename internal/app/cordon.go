package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/view"
	"github.com/macfleet/macfleet/plan"
)

// CordonOptions are the flags of cordon.
type CordonOptions struct {
	Approve, Undo, Drain bool
	Force                bool // evict Pods too that nothing makes again
	Timeout              time.Duration
}

func (o CordonOptions) check(c Call) error {
	return cmp.Or(
		refuse(o.Undo && o.Drain, "--undo and --drain exclude each other: use one of them"),
		refuse(c.gave("timeout") && !o.Drain, "--timeout needs --drain: add --drain, or remove --timeout"),
		refuse(o.Force && !o.Drain, "--force needs --drain: add --drain, or remove --force"),
		refuse(o.Timeout <= 0, "--timeout is %s; it must be positive", o.Timeout))
}

// Cordon cordons the Nodes of hosts and may drain them, or uncordons them.
func Cordon(ctx context.Context, env *Env, o CordonOptions) error {
	if err := cmp.Or(o.check(env.Call), env.approvable("cordon", o.Approve, true, "pass --auto-approve")); err != nil {
		return err
	}
	return env.with(ctx, need{Selection: env.and(env.Args...), needsCluster: "cordon"}, func(ctx context.Context, s *session) error {
		m, err := s.engine.Members(ctx)
		if err != nil {
			return err
		}
		s.sayMeant()
		nodes, without := m.Nodes()
		for _, name := range without {
			env.errText().Warn(name + " has no Node; macfleet plan shows why.")
		}
		if len(nodes) == 0 {
			return cmp.Or(refuse(len(m.Hosts) == 0, "no host matches the selection; macfleet hosts lists them"),
				errors.New("none of the selected hosts has a Node"))
		}
		s.warnInProgress(ctx)
		what := "Cordon"
		switch {
		case o.Undo:
			what = "Uncordon"
		case o.Drain:
			what = "Cordon and drain"
		}
		names := mapped(nodes, func(n inventory.Node) string { return n.Name })
		if err := env.ask(o.Approve, what+" "+strings.Join(names, ", ")+"?"); err != nil {
			return err
		}
		done, ok := s.cordon(ctx, nodes, o)
		done.Add("missing", len(without))
		return env.summed("Node", done, result(false, ok && len(without) == 0))
	})
}

// cordon works on one Node after the other, until one fails, and counts the results. It reports whether all of them finished.
func (s *session) cordon(ctx context.Context, nodes []inventory.Node, o CordonOptions) (done view.Counts, ok bool) {
	t := s.env.outText()
	ok = true
	for i, n := range nodes {
		became, detail, err := s.cordonNode(ctx, n, o)
		if err != nil {
			s.env.errText().Error(fmt.Errorf("%s: %w", n.Name, err))
			done.Add("failed", 1)
			done.Add("not started", len(nodes)-i-1)
			if !o.Undo {
				t.Say("Cordoned Nodes stay cordoned. To undo: macfleet cordon " + n.Name + " --undo")
			}
			return done, false
		}
		ok = ok && became != stillCordoned
		done.Add(became, 1)
		t.Say(n.Name + ": " + became + detail)
	}
	return done, ok
}

// stillCordoned is the result of --undo on a Node that someone else cordoned.
const stillCordoned = "still cordoned"

// cordonNode cordons a Node and returns its state after that, with a detail.
func (s *session) cordonNode(ctx context.Context, n inventory.Node, o CordonOptions) (became, detail string, err error) {
	cluster := s.kubernetes
	switch {
	case o.Undo && !n.Cordoned:
		return "already uncordoned", "", nil
	case o.Undo:
		open, err := cluster.Uncordon(ctx, n)
		if err != nil || open {
			return "uncordoned", "", err
		}
		return stillCordoned, ": macfleet did not cordon it; fix: kubectl uncordon " + n.Name, nil
	}
	if _, err := cluster.CordonNode(ctx, n, plan.Run{Who: caller()}); err != nil {
		return "", "", err
	}
	became = "cordoned"
	switch {
	case n.CordonedBy != "":
		became, detail = "cordoned already", ", by "+n.CordonedBy
	case n.Cordoned:
		became, detail = "cordoned already", ", but not by macfleet"
	}
	if !o.Drain {
		return became, detail, nil
	}
	s.env.outText().Say(n.Name + ": " + became + detail)
	var saying sync.Mutex // Pods of a Node end at the same time
	reported := make(map[string]string)
	err = cluster.EvictPods(ctx, n, o.Timeout, o.Force, func(pod, text, why string) {
		saying.Lock()
		defer saying.Unlock()
		if why != "" {
			text += ": " + why
		}
		if reported[pod] != text { // what holds a Pod is reported once, not at each try
			reported[pod] = text
			s.env.errText().Say(n.Name + ": Pod " + pod + " " + text)
		}
	})
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		err = fmt.Errorf("not drained after %s: %w", o.Timeout, err)
	}
	return "drained", "", err
}
