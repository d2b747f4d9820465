package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

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

// longestReason is how long the reason of a hold is at most, in characters: it stands in every plan.
const longestReason = 200
