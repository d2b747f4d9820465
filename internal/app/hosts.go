package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/hosts"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/view"
	"github.com/macfleet/macfleet/plan"
)

// HostsOptions are the flags of hosts.
type HostsOptions struct {
	Source
	Format  string // one of HostsFormats; empty: a short table
	JSON    bool   // an alias
	Wait    string // state of Nodes that is waited for
	Timeout time.Duration
}

// HostsFormats are the values of hosts --output.
func HostsFormats() []string { return []string{"wide", "json", "name"} }

// Hosts lists the members, or waits until their Nodes are Ready.
func Hosts(ctx context.Context, env *Env, o HostsOptions) error {
	if env.gave("wait") {
		return waitReady(ctx, env, o)
	}
	if o.JSON {
		o.Format = cmp.Or(o.Format, "json")
	}
	if err := cmp.Or(refuse(env.gave("timeout"), "--timeout is of --wait: write hosts --wait ready --timeout 10m"),
		refuse(o.Format != "" && !slices.Contains(HostsFormats(), o.Format), "--output %s: write wide, json or name", o.Format)); err != nil {
		return err
	}
	l, err := env.look(ctx, o.Source, need{Selection: env.Selection})
	if err != nil {
		return err
	}
	return env.answer(o.Format == "json", func(w io.Writer) error { return view.WriteHosts(w, l.plan) }, func(t *view.Text) {
		if o.Format == "name" {
			t.HostNames(l.plan)
		} else {
			t.Hosts(l.plan, o.Format == "wide")
		}
	})
}

// waitReady ends when all selected members are Ready, or when time is up.
func waitReady(ctx context.Context, env *Env, o HostsOptions) error {
	if err := cmp.Or(refuse(o.Source != (Source{}) || o.Format != "" && o.Format != "json",
		"--wait goes with --json alone: it looks at the cluster until the Nodes are Ready, and lists nothing; write hosts --wait ready [--json]"),
		refuse(o.Wait != "ready", "--wait %s: write --wait ready", o.Wait),
		refuse(o.Timeout <= 0, "--timeout is %s; it must be more than nothing", o.Timeout)); err != nil {
		return err
	}
	n := need{Selection: env.Selection, readOnly: true, needsCluster: "hosts --wait ready"}
	return env.with(ctx, n, func(ctx context.Context, s *session) error {
		m, err := s.engine.Members(ctx)
		if err != nil {
			return err
		}
		if m.Missing == 0 && !slices.ContainsFunc(m.Hosts, joins) {
			return errors.New("none of the selected hosts joins the cluster (a host with a tart_kubelet block does), so there is no Node to wait for")
		}
		s.engine.Ready.Within = o.Timeout
		waited, err := s.engine.WaitReady(ctx, m, func(late []engine.NotReady) {
			if len(late) > 0 {
				env.errText().NotReady(time.Now(), late)
			}
		})
		if err != nil {
			return err
		}
		for _, h := range waited.Alone {
			env.errText().Warn(h.Host.Name + " could not be asked, so what its Node says counts alone: " + h.Why)
		}
		err = env.answer(o.JSON || o.Format == "json",
			func(w io.Writer) error { return view.WriteReady(w, s.config.Owner, m.Hosts, m.Missing, waited.Late) },
			func(t *view.Text) { sayReady(t, m, waited.Late, o.Timeout) })
		return cmp.Or(err, result(false, m.Missing+len(waited.Late) == 0))
	})
}

func joins(h plan.Host) bool { return h.Spec.Spec.JoinsCluster() }

func sayReady(t *view.Text, m engine.Members, late []engine.NotReady, timeout time.Duration) {
	all := len(slices.DeleteFunc(slices.Clone(m.Hosts), func(h plan.Host) bool { return !joins(h) }))
	switch {
	case len(late) > 0:
		t.Say(fmt.Sprintf("After %s %d of %d Nodes are not Ready; macfleet plan says what their hosts lack.", timeout, len(late), all))
	case all > 0:
		t.Say(fmt.Sprintf("All %d Nodes are Ready.", all))
	}
	if m.Missing > 0 {
		t.Say(fmt.Sprintf("%d more hosts are wanted and not there; macfleet apply claims them.", m.Missing))
	}
}

// Trust forgets a host's pinned key.
func Trust(ctx context.Context, env *Env) error {
	name := env.Args[0]
	return env.with(ctx, need{clusterOnly: true}, func(looking context.Context, s *session) error {
		s.tellInProgress(looking)
		env.acting.Store(true)
		pins := s.pins(ctx)
		all, err := pins.All()
		if err != nil {
			return err
		}
		is := func(p plan.Pin) bool { return p.Name == name }
		i := slices.IndexFunc(all, is)
		if i < 0 {
			known := mapped(all, func(p plan.Pin) string { return p.Name })
			return fmt.Errorf("no host key is pinned for %s; %s", name, cmp.Or(didYouMean("did you mean %s?", name, known), "macfleet hosts lists the members"))
		}
		dropped, key := all[i], hosts.FingerprintOf(all[i])
		if err := pins.Update(func(now []plan.Pin) []plan.Pin { return slices.DeleteFunc(now, is) }); err != nil {
			return err
		}
		env.logged(slog.LevelInfo, "forgot", "host", name, "server", dropped.ServerID, "key", key)
		env.outText().Say(fmt.Sprintf("Forgot the key %s of %s, pinned since %s.", key, name, dropped.Since.Format("2006-01-02")))
		return nil
	})
}

// longestReason is how long the reason of a hold is at most, in characters: it stands in every plan.
const longestReason = 200

// HoldOptions are the flags of hold.
type HoldOptions struct{ Reason, Until string }

// Hold keeps everybody off hosts until a time.
func Hold(ctx context.Context, env *Env, o HoldOptions) error {
	reason := strings.TrimSpace(o.Reason)
	if err := cmp.Or(refuse(reason == "" || o.Until == "", "a hold needs to say why and until when: --reason TEXT --until 3d"),
		refuse(utf8.RuneCountInString(reason) > longestReason, "--reason has more than %d characters", longestReason)); err != nil {
		return err
	}
	now := time.Now()
	end, err := plan.ParseUntil(o.Until, now)
	if err != nil {
		return fmt.Errorf("--until: %w", err)
	}
	return hold(ctx, env, &inventory.Hold{Who: caller(), Reason: reason, Since: now.UTC().Truncate(time.Second), Until: end})
}

// Unhold takes the holds of hosts away.
func Unhold(ctx context.Context, env *Env) error { return hold(ctx, env, nil) }

// hold writes a hold, or takes away what is there, on the hosts that the arguments name.
func hold(ctx context.Context, env *Env, h *inventory.Hold) error {
	if len(env.On) > 0 {
		return errors.New("name the hosts as arguments: leave out --on")
	}
	// A hold needs no key that only the cluster knows.
	return env.with(ctx, need{Selection: env.and(env.Args...), readOnly: true}, func(ctx context.Context, s *session) error {
		hosts, left, err := s.toHold(ctx, h)
		if err != nil {
			return err
		}
		var node engine.SetNodeHold
		if s.kubernetes != nil {
			node = s.kubernetes.SetHold
		}
		held := s.engine.Hold(ctx, hosts, h, node)
		env.outText().Holding(held, h)
		return result(false, left == 0 && !slices.ContainsFunc(held, func(x engine.Holding) bool { return !x.Done(h) }))
	})
}

// toHold returns the selected members, but for those that somebody else holds, whose hold another
// one must not shorten, and those that are free already. left is how many are not as the caller wants them.
func (s *session) toHold(ctx context.Context, h *inventory.Hold) (hosts []plan.Host, left int, err error) {
	p, err := showing(s, s.env.Err, func() (*plan.Plan, error) { return s.engine.ObserveToHold(ctx) })
	if err != nil {
		return nil, 0, err
	}
	seen := false
	for _, x := range p.Hosts {
		other := x.Standing()
		switch {
		case !x.Member:
		case h == nil && x.Held == nil && x.Unknown == nil && !x.Node.IsUnread():
			seen = true
			s.env.outText().Say(x.Name + ": was not held")
		case h != nil && other != nil && other.Who != h.Who:
			left++
			s.env.errText().Warn(fmt.Sprintf("%s is held %s; that stays. macfleet unhold %s takes it away.", x.Name, other, x.Name))
		default:
			hosts = append(hosts, x)
		}
	}
	if len(hosts)+left == 0 && !seen {
		return nil, 0, errors.New("the selection matches no member; macfleet hosts lists them")
	}
	return hosts, left, nil
}

// CordonOptions are the flags of cordon.
type CordonOptions struct {
	Approve, Undo, Drain bool
	Force                bool // evict Pods too that nothing makes again
	Timeout              time.Duration
}

func (o CordonOptions) check(c Call) error {
	return cmp.Or(
		refuse(o.Undo && o.Drain, "--undo and --drain exclude each other: --undo opens Nodes to Pods, and --drain takes their Pods away; run macfleet cordon with one of them"),
		refuse(c.gave("timeout") && !o.Drain, "--timeout is of --drain: it is how long a Node's Pods have; write cordon … --drain --timeout 10m, or leave it out"),
		refuse(o.Force && !o.Drain, "--force is of --drain: it also evicts Pods that nothing makes again; write cordon … --drain --force, or leave it out"),
		refuse(o.Timeout <= 0, "--timeout is %s; it must be more than nothing", o.Timeout))
}

// Cordon closes the Nodes of hosts to new Pods and may empty them, or opens them again.
func Cordon(ctx context.Context, env *Env, o CordonOptions) error {
	if err := cmp.Or(o.check(env.Call), env.approvable("cordon", o.Approve, true, "pass --auto-approve")); err != nil {
		return err
	}
	return env.with(ctx, need{Selection: env.and(env.Args...), needsCluster: "cordon"}, func(ctx context.Context, s *session) error {
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
		what := "Close to new Pods"
		switch {
		case o.Undo:
			what = "Open to new Pods"
		case o.Drain:
			what = "Close to new Pods, and evict the Pods of"
		}
		names := mapped(nodes, func(n inventory.Node) string { return n.Name })
		if err := env.ask(o.Approve, what+" "+strings.Join(names, ", ")+"?"); err != nil {
			return err
		}
		return result(false, s.cordon(ctx, nodes, o) && len(without) == 0)
	})
}

// cordon works on one Node after the other, until one fails. It reports whether all came to its end.
func (s *session) cordon(ctx context.Context, nodes []inventory.Node, o CordonOptions) bool {
	t := s.env.outText()
	ok := true
	for i, n := range nodes {
		said, right, err := s.cordonNode(ctx, n, o)
		if err != nil {
			s.env.errText().Error(fmt.Errorf("%s: %w", n.Name, err))
			if left := len(nodes) - i - 1; left > 0 {
				t.Say(fmt.Sprintf("Nodes that were not begun: %d.", left))
			}
			if !o.Undo {
				t.Say("What was closed stays closed; macfleet cordon " + n.Name + " --undo opens what macfleet closed.")
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
	if !o.Drain {
		return said, true, nil
	}
	s.env.outText().Say(n.Name + ": " + said)
	var saying sync.Mutex // Pods of a Node go at once
	told := make(map[string]string)
	err = cluster.EmptyNode(ctx, n, o.Timeout, o.Force, func(pod, text, why string) {
		saying.Lock()
		defer saying.Unlock()
		if why != "" {
			text += ": " + why
		}
		if told[pod] != text { // what holds a Pod is told once, and not at each try
			told[pod] = text
			s.env.errText().Say(n.Name + ": Pod " + pod + " " + text)
		}
	})
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		err = fmt.Errorf("not empty after %s: %w", o.Timeout, err)
	}
	return "empty", true, err
}
