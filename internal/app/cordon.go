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
		s.tellInProgress(ctx)
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
		return result(false, s.cordon(ctx, nodes, o) && len(without) == 0)
	})
}

// cordon works on one Node after the other, until one fails. It reports whether all of them finished.
func (s *session) cordon(ctx context.Context, nodes []inventory.Node, o CordonOptions) bool {
	t := s.env.outText()
	ok := true
	for i, n := range nodes {
		said, right, err := s.cordonNode(ctx, n, o)
		if err != nil {
			s.env.errText().Error(fmt.Errorf("%s: %w", n.Name, err))
			if left := len(nodes) - i - 1; left > 0 {
				t.Say(fmt.Sprintf("%d Nodes were not started.", left))
			}
			if !o.Undo {
				t.Say("Cordoned Nodes stay cordoned. To undo: macfleet cordon " + n.Name + " --undo")
			}
			return false
		}
		ok = ok && right
		t.Say(n.Name + ": " + said)
	}
	return ok
}

func (s *session) cordonNode(ctx context.Context, n inventory.Node, o CordonOptions) (said string, right bool, err error) {
	cluster := s.kubernetes
	if o.Undo {
		open, err := cluster.Uncordon(ctx, n)
		if err != nil || open {
			return "uncordoned", err == nil, err
		}
		return "still cordoned: macfleet did not cordon it; fix: kubectl uncordon " + n.Name, false, nil
	}
	if _, err := cluster.CordonNode(ctx, n, plan.Run{Who: caller()}); err != nil {
		return "", false, err
	}
	said = "cordoned"
	switch {
	case n.CordonedBy != "":
		said += " already, by " + n.CordonedBy
	case n.Cordoned:
		said += " already, but not by macfleet"
	}
	if !o.Drain {
		return said, true, nil
	}
	s.env.outText().Say(n.Name + ": " + said)
	var saying sync.Mutex // Pods of a Node go at once
	told := make(map[string]string)
	err = cluster.EvictPods(ctx, n, o.Timeout, o.Force, func(pod, text, why string) {
		saying.Lock()
		defer saying.Unlock()
		if why != "" {
			text += ": " + why
		}
		if told[pod] != text { // what holds a Pod is reported once, not at each try
			told[pod] = text
			s.env.errText().Say(n.Name + ": Pod " + pod + " " + text)
		}
	})
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		err = fmt.Errorf("not empty after %s: %w", o.Timeout, err)
	}
	return "empty", true, err
}
