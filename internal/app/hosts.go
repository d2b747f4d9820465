package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"

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
		if o.Source != (Source{}) || o.Format != "" && o.Format != "json" {
			return errors.New("--wait goes with --json alone: it looks at the cluster until the Nodes are Ready, and lists nothing; write hosts --wait ready [--json]")
		}
		return waitReady(ctx, env, o)
	}
	if env.gave("timeout") {
		return errors.New("--timeout is of --wait: write hosts --wait ready --timeout 10m")
	}
	if o.JSON && o.Format == "" {
		o.Format = "json"
	}
	if o.Format != "" && !slices.Contains(HostsFormats(), o.Format) {
		return fmt.Errorf("--output %s: write wide, json or name", o.Format)
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
	if o.Wait != "ready" {
		return fmt.Errorf("--wait %s: write --wait ready", o.Wait)
	}
	if o.Timeout <= 0 {
		return fmt.Errorf("--timeout is %s; it must be more than nothing", o.Timeout)
	}
	return env.with(ctx, need{Selection: env.Selection, readOnly: true}, func(ctx context.Context, s *session) error {
		if s.kubernetes == nil {
			return errNoCluster("hosts --wait ready")
		}
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
		if err != nil {
			return err
		}
		return result(false, m.Missing+len(waited.Late) == 0)
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
func Trust(ctx context.Context, env *Env, name string) error {
	return env.with(ctx, need{reach: clusterOnly}, func(looking context.Context, s *session) error {
		s.tellInProgress(looking)
		env.acting.Store(true)
		dropped, err := drop(s.pins(ctx), name)
		if err != nil {
			return err
		}
		env.logged(slog.LevelInfo, "forgot", "host", name, "server", dropped.ServerID, "key", hosts.FingerprintOf(dropped))
		env.outText().Say(fmt.Sprintf("Forgot the key %s of %s, pinned since %s.", hosts.FingerprintOf(dropped), name, dropped.Since.Format("2006-01-02")))
		return nil
	})
}
