package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/view"
	"github.com/macfleet/macfleet/internal/wholefile"
	"github.com/macfleet/macfleet/providers/kubernetes"
)

// InitClusterOptions are the flags of init cluster.
type InitClusterOptions struct {
	Approve    bool
	SSHKey     string // file of the hosts' key; empty: none is given
	NewSSHKey  bool   // make a new one although hosts may trust another
	ExportKey  string // file that gets a copy of the key; empty: none is written
	Kubeconfig string // file of macfleet's own account; empty: none is written
	TokenTTL   time.Duration
	Force      bool   // replace that file
	MovedFrom  string // uid of the cluster whose place this one takes; empty: none
}

// shortestToken is what a cluster issues at least.
const shortestToken = 10 * time.Minute

// InitCluster prepares the cluster that the hosts join.
func InitCluster(ctx context.Context, env *Env, o InitClusterOptions) error {
	if err := cmp.Or(refuse(o.TokenTTL < shortestToken, "--token-ttl is %s; the shortest that a cluster issues is %s", o.TokenTTL, shortestToken),
		refuse(o.SSHKey != "" && o.NewSSHKey, "--ssh-key and --new-ssh-key exclude each other: use one of them"),
		checkNewFile("--kubeconfig-out", o.Kubeconfig, o.Force), checkExport(o.ExportKey)); err != nil {
		return err
	}
	return env.with(ctx, need{clusterOnly: true, needsCluster: "init cluster"}, func(looking context.Context, s *session) error {
		if o.Kubeconfig != "" {
			if err := s.kubernetes.Portable(); err != nil {
				return fmt.Errorf("--kubeconfig-out: %w", err)
			}
		}
		id, noted, err := s.kubernetes.Which(looking)
		if err != nil {
			return err
		}
		if err := engine.RightCluster(s.config, id, noted, o.MovedFrom); err != nil {
			return err
		}
		s.in, s.noted = id, noted
		if err := s.prepare(looking, ctx, o); err != nil || o.Kubeconfig == "" {
			return err
		}
		if looking.Err() != nil {
			return errors.New("the cluster is prepared, but no kubeconfig was written; run the same command again")
		}
		return s.writeKubeconfig(ctx, o)
	})
}

// prepare creates what the cluster lacks, and checks again. It finishes what it has started: the public half of a new key is
// printed only by the run that made it.
func (s *session) prepare(looking, acting context.Context, o InitClusterOptions) error {
	p, key, err := s.preparation(looking, o)
	if err != nil {
		return err
	}
	p.In = s.in
	if was, noting := s.noted.Get(); noting && was.UID == s.in.UID {
		p.In = was // the name stays as it is as long as the cluster does
	}
	missing, err := s.sayPrepared(looking, p)
	if err != nil {
		return err
	}
	if missing > 0 {
		s.warnInProgress(looking)
		s.sayKeyPlan(key)
		if err := s.env.approvable("init cluster", o.Approve, true, "pass --auto-approve"); err != nil {
			return err
		}
		if err := s.env.ask(o.Approve, fmt.Sprintf("Create or change these objects in the cluster %s, for %s?", s.in, s.config.Owner)); err != nil {
			return err
		}
	}
	if err := looking.Err(); err != nil {
		return err
	}
	s.env.acting.Store(true)
	lacking := missing
	if missing > 0 {
		// Where the cluster has lost its pins, those it last said become this machine's
		// own before an empty place for them takes their place.
		if err := s.gatherPins(acting); err != nil {
			return err
		}
		if _, err := s.kubernetes.Prepare(acting, p); err != nil {
			return err
		}
		if err := s.sayKey(acting, key, o); err != nil {
			return err
		}
		p.SSH.Why = ""
		if missing, err = s.sayPrepared(acting, p); err != nil {
			return err
		}
	}
	if err := s.exportKey(acting, key, o.ExportKey); err != nil {
		return err
	}
	// What this machine pinned so far is the cluster's from now on.
	if err := s.pins(acting).Update(slices.Clone); err != nil {
		return err
	}
	var done view.Counts
	done.Add("created or changed", max(0, lacking-missing))
	done.Add("still missing or different", missing)
	return s.env.summed("object", done, result(false, missing == 0))
}

// sayPrepared shows what the cluster needs, what of that it has, and what it is for.
func (s *session) sayPrepared(ctx context.Context, p kubernetes.PrepareOptions) (missing int, err error) {
	p.Dry = true
	all, err := s.kubernetes.Prepare(ctx, p)
	if err != nil {
		return 0, err
	}
	s.env.outText().Preparation(mapped(all, func(o inventory.Object) view.Prepared {
		return view.Prepared{Object: o, For: s.kubernetes.Purpose(o)}
	}))
	if !s.kubernetes.ServesPolicies(all) {
		s.env.outText().AgentsUnbound()
	}
	return len(slices.DeleteFunc(all, func(o inventory.Object) bool {
		return o.State == inventory.ObjectKept || o.State == inventory.ObjectForeign
	})), nil
}

// writeKubeconfig writes a kubeconfig of macfleet's own account.
func (s *session) writeKubeconfig(ctx context.Context, o InitClusterOptions) error {
	token, until, err := s.kubernetes.IssueToken(ctx, o.TokenTTL)
	if err != nil {
		return err
	}
	s.env.secrets.Learn(token.Reveal())
	text, err := s.kubernetes.Kubeconfig(token)
	if err != nil {
		return err
	}
	write := wholefile.Create
	if o.Force {
		write = wholefile.Replace
	}
	if err := write(o.Kubeconfig, 0o600, wholefile.Text(text.Reveal())); err != nil {
		return fmt.Errorf("--kubeconfig-out: %w", err)
	}
	s.env.outText().Say(fmt.Sprintf("Wrote %s, a kubeconfig for macfleet's own account. Its token expires on %s; to renew it, run the same command with --force.",
		o.Kubeconfig, until.UTC().Format("2006-01-02 15:04 UTC")))
	return nil
}
