package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/view"
	"github.com/macfleet/macfleet/plan"
)

// HostsOptions are the flags of hosts.
type HostsOptions struct {
	Source
	Format    string // one of HostsFormats; empty: a short table
	JSON      bool   // an alias
	NoHeaders bool
	SortBy    string // column; empty: the order of the configuration
	Watch     bool
	Interval  time.Duration // of Watch
	Wait      string        // state of Nodes that is waited for
	Timeout   time.Duration
}

// HostsFormats are the values of hosts --output.
func HostsFormats() []string { return []string{"wide", "json", "yaml", "name"} }

// HostsColumns are the values of hosts --sort-by.
func HostsColumns() []string { return mapped(view.HostColumns(), strings.ToLower) }

// DefaultInterval is how often hosts --watch looks.
const DefaultInterval = 15 * time.Second

func (o *HostsOptions) check(c Call) error {
	if o.JSON {
		o.Format = cmp.Or(o.Format, "json")
	}
	return cmp.Or(
		refuse(c.gave("timeout"), "--timeout needs --wait; fix: macfleet hosts --wait ready --timeout 10m"),
		refuse(o.Format != "" && !slices.Contains(HostsFormats(), o.Format), "--output %s: use %s", o.Format, strings.Join(HostsFormats(), ", ")),
		refuse(o.JSON && o.Format != "json", "--json and --output %s exclude each other", o.Format),
		refuse(o.SortBy != "" && !slices.Contains(HostsColumns(), strings.ToLower(o.SortBy)), "--sort-by %s: columns are %s", o.SortBy, strings.Join(HostsColumns(), ", ")),
		refuse(c.gave("interval") && !o.Watch, "--interval needs --watch"),
		refuse(o.Watch && o.Source != (Source{}), "--watch does not work with --record or --snapshot"),
		refuse(o.Watch && o.Format != "" && o.Format != "wide", "--watch prints a table; --output %s prints one document", o.Format),
		refuse(o.Watch && o.Interval < time.Second, "--interval %s: must be at least 1s", o.Interval))
}

func (o HostsOptions) shown(now time.Time) view.HostsOptions {
	return view.HostsOptions{Now: now, Wide: o.Format == "wide", Bare: o.NoHeaders, SortBy: o.SortBy}
}

// Hosts lists the members, or waits until their Nodes are Ready.
func Hosts(ctx context.Context, env *Env, o HostsOptions) error {
	if env.gave("wait") {
		return waitReady(ctx, env, o)
	}
	if err := o.check(env.Call); err != nil {
		return err
	}
	if o.Watch {
		return env.watchHosts(ctx, o)
	}
	l, err := env.look(ctx, o.Source, need{Selection: env.Selection})
	if err != nil {
		return err
	}
	shown := o.shown(l.taken)
	switch o.Format {
	case "json":
		return env.answer(true, func(w io.Writer) error { return view.WriteHosts(w, l.plan, shown) }, nil)
	case "yaml":
		return env.answer(true, func(w io.Writer) error { return view.WriteHostsYAML(w, l.plan, shown) }, nil)
	case "name":
		return env.answer(false, nil, func(t *view.Text) { t.HostNames(l.plan, shown) })
	}
	return env.answer(false, nil, func(t *view.Text) { t.Hosts(l.plan, shown) })
}

// watchHosts shows the hosts again and again until a person stops it: in place on a terminal, else the rows that changed.
func (env *Env) watchHosts(ctx context.Context, o HostsOptions) error {
	var show func(*plan.Plan)
	if _, ok := terminal(env.Out); !ok {
		changes := new(view.HostChanges)
		show = func(p *plan.Plan) { changes.Print(env.outText(), p, o.shown(env.Now())) }
	} else {
		frames := view.NewFrames(env.sink(env.Out), func() (columns, rows int) { return size(env.Out) })
		show = func(p *plan.Plan) {
			frames.Draw(func(w io.Writer, width int) {
				view.NewText(w, width, !env.NoColor && view.Colour(true, os.Getenv)).Hosts(p, o.shown(env.Now()))
			})
		}
	}
	return env.with(ctx, need{Selection: env.Selection, readOnly: true}, func(looking context.Context, s *session) error {
		p, err := s.look(looking, "")
		for ; err == nil; err = env.unwritten() {
			if p != nil {
				show(p)
			}
			select {
			case <-looking.Done():
				return nil
			case <-time.After(o.Interval):
			}
			var lookErr error
			if _, p, lookErr = s.engine.Observe(looking); looking.Err() != nil {
				return nil
			} else if lookErr != nil {
				env.errText().Warn(lookErr.Error())
				p = nil
			}
		}
		return err
	})
}

// waitReady ends when all selected members are Ready, or when time is up.
func waitReady(ctx context.Context, env *Env, o HostsOptions) error {
	if err := cmp.Or(refuse(o.Source != (Source{}) || o.Format != "" && o.Format != "json",
		"--wait only combines with --json: hosts --wait ready [--json]"),
		refuse(o.Wait != "ready", "--wait %s: write --wait ready", o.Wait),
		refuse(o.Timeout <= 0, "--timeout is %s; it must be positive", o.Timeout)); err != nil {
		return err
	}
	n := need{Selection: env.Selection, readOnly: true, needsCluster: "hosts --wait ready"}
	return env.with(ctx, n, func(ctx context.Context, s *session) error {
		m, err := s.engine.Members(ctx)
		if err != nil {
			return err
		}
		if m.Missing == 0 && !slices.ContainsFunc(m.Hosts, joins) {
			return cmp.Or(refuse(len(m.Hosts) == 0, "no host matches the selection, so there is no Node to wait for"),
				errors.New("none of the selected hosts has a tart_kubelet block, so there is no Node to wait for"))
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
			env.errText().Warn(h.Host.Name + " is unreachable, so only its Node is considered: " + h.Why)
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
		t.Say(fmt.Sprintf("%[2]d of %[3]d Nodes are not Ready after %[1]s; macfleet plan shows why.", timeout, len(late), all))
	case all > 0:
		t.Say(fmt.Sprintf("All %d Nodes are Ready.", all))
	}
	if m.Missing > 0 {
		t.Say(fmt.Sprintf("%d hosts are missing; macfleet apply claims them from the pool.", m.Missing))
	}
}

// longestReason is the maximum length of the reason of a hold, in characters: every plan prints it.
const longestReason = 200
