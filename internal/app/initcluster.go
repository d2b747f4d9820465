package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/hosts"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/internal/view"
	"github.com/macfleet/macfleet/internal/wholefile"
	"github.com/macfleet/macfleet/providers/kubernetes"
)

// InitClusterOptions are the flags of init cluster.
type InitClusterOptions struct {
	Approve    bool
	SSHKey     string // file whose key the hosts get; empty: a new one
	Kubeconfig string // file of macfleet's own account; empty: none is written
	TokenTTL   time.Duration
	Force      bool // replace that file
}

// shortestToken is what a cluster issues at least.
const shortestToken = 10 * time.Minute

// InitCluster prepares the cluster that the hosts join.
func InitCluster(ctx context.Context, env *Env, o InitClusterOptions) error {
	if err := cmp.Or(refuse(o.TokenTTL < shortestToken, "--token-ttl is %s; a cluster issues no token for less than %s", o.TokenTTL, shortestToken),
		checkNewFile("--kubeconfig-out", o.Kubeconfig, o.Force)); err != nil {
		return err
	}
	return env.with(ctx, need{clusterOnly: true, needsCluster: "init cluster"}, func(looking context.Context, s *session) error {
		if err := engine.CheckCluster(looking, s.kubernetes, s.config); err != nil {
			return err
		}
		if err := s.prepare(looking, ctx, o); err != nil || o.Kubeconfig == "" {
			return err
		}
		if looking.Err() != nil {
			return errors.New("the cluster is prepared, and no kubeconfig was written; the same command writes it")
		}
		return s.writeKubeconfig(ctx, o)
	})
}

// prepare makes what the cluster lacks, and looks again. What it began to make it
// makes whole: the public half of a new key is told only by the run that made it.
func (s *session) prepare(looking, acting context.Context, o InitClusterOptions) error {
	p, err := s.preparation(looking, o)
	if err != nil {
		return err
	}
	missing, err := s.sayPrepared(looking, p)
	if err != nil {
		return err
	}
	if missing > 0 {
		s.tellInProgress(looking)
		if err := s.env.approvable("init cluster", o.Approve, true, "pass --auto-approve"); err != nil {
			return err
		}
		if err := s.env.ask(o.Approve, "Make this in the cluster of "+s.config.Owner.String()+"?"); err != nil {
			return err
		}
	}
	if err := looking.Err(); err != nil {
		return err
	}
	s.env.acting.Store(true)
	if missing > 0 {
		// Where the cluster has lost its pins, those it last said become this machine's
		// own before an empty place for them takes their place.
		if err := s.pins(acting).Update(slices.Clone); err != nil {
			return err
		}
		before, err := s.kubernetes.Prepare(acting, p)
		if err != nil {
			return err
		}
		if err := s.sayKey(acting, p, before); err != nil {
			return err
		}
		if missing, err = s.sayPrepared(acting, p); err != nil {
			return err
		}
	}
	// What this machine pinned so far is the cluster's from now on.
	if err := s.pins(acting).Update(slices.Clone); err != nil {
		return err
	}
	return result(false, missing == 0)
}

// sayPrepared says how what the cluster needs stands, and what it is for.
func (s *session) sayPrepared(ctx context.Context, p kubernetes.PrepareOptions) (missing int, err error) {
	p.Dry = true
	all, err := s.kubernetes.Prepare(ctx, p)
	if err != nil {
		return 0, err
	}
	s.env.outText().Preparation(mapped(all, func(o inventory.Object) view.Prepared {
		return view.Prepared{Object: o, For: s.kubernetes.Purpose(o)}
	}))
	return len(slices.DeleteFunc(all, func(o inventory.Object) bool { return o.State == inventory.ObjectKept })), nil
}

// preparation says which SSH key the cluster is to keep: the one of ssh.private_key,
// where that is a Secret of macfleet's namespace. A Secret elsewhere is its owner's.
func (s *session) preparation(ctx context.Context, o InitClusterOptions) (kubernetes.PrepareOptions, error) {
	var p kubernetes.PrepareOptions
	ref := s.config.SSH.PrivateKey
	if ref.Scheme != secret.Kubernetes || ref.Parts()[0] != s.config.Kubernetes.Namespace {
		return p, refuse(o.SSHKey != "", "--ssh-key %s: ssh.private_key is no Secret of the namespace %[2]s (secret(\"k8s://%[2]s/NAME/KEY\")), so there is no place to keep it",
			o.SSHKey, s.config.Kubernetes.Namespace)
	}
	p.SSHSecret, p.SSHSecretKey = ref.Parts()[1], ref.Parts()[2]
	var err error
	if o.SSHKey == "" {
		p.SSHKey, err = hosts.NewPrivateKey(s.config.Owner.String())
		return p, err
	}
	text, err := os.ReadFile(o.SSHKey)
	if err != nil {
		return p, fmt.Errorf("--ssh-key: %w", err)
	}
	s.env.secrets.Learn(string(text))
	given, _, err := hosts.PublicKey(string(text))
	if err != nil {
		return p, fmt.Errorf("--ssh-key %s: %w", o.SSHKey, err)
	}
	if has, fingerprint, ok := s.keptKey(ctx, p); ok && has != given {
		return p, fmt.Errorf("--ssh-key %s: %s holds another key, %s, and hosts may trust it, so it is not replaced; to change it, let the hosts trust the new key first and write the Secret yourself",
			o.SSHKey, ref, fingerprint)
	}
	p.SSHKey, err = secret.New(string(text))
	return p, err
}

// keptKey returns the public half of the key that the cluster has.
func (s *session) keptKey(ctx context.Context, p kubernetes.PrepareOptions) (line, fingerprint string, ok bool) {
	text, err := s.kubernetes.Secret(ctx, s.config.Kubernetes.Namespace, p.SSHSecret, p.SSHSecretKey)
	if err != nil {
		return "", "", false
	}
	s.env.secrets.Learn(text)
	line, fingerprint, err = hosts.PublicKey(text)
	return line, fingerprint, err == nil
}

// sayKey tells of the key that the cluster has got, and who else must have it.
func (s *session) sayKey(ctx context.Context, p kubernetes.PrepareOptions, before []inventory.Object) error {
	if !slices.ContainsFunc(before, func(o inventory.Object) bool {
		return o.Kind == "Secret" && o.Name == p.SSHSecret && o.State == inventory.ObjectMissing
	}) {
		return nil
	}
	// What the cluster has is told, and not what was sent: another run may have been first.
	line, fingerprint, ok := s.keptKey(ctx, p)
	if !ok {
		return fmt.Errorf("%s cannot be read back; apply needs it", s.config.SSH.PrivateKey)
	}
	t := s.env.outText()
	t.Say(fmt.Sprintf("%s now holds the hosts' key %s. Its public half:", s.config.SSH.PrivateKey, fingerprint))
	t.Print("\n" + line + " " + s.config.Owner.String() + "\n\n")
	t.Say("Add it to the Scaleway project before servers are ordered: a server gets the project's keys at its first boot only. " +
		"On servers that are there, add the line to ~/.ssh/authorized_keys of " + s.config.SSH.User + ", or reinstall them.")
	return nil
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
	s.env.outText().Say(fmt.Sprintf("Wrote %s, a kubeconfig of macfleet's own account. Its token ends on %s; make another one before then with the same command and --force.",
		o.Kubeconfig, until.UTC().Format("2006-01-02 15:04 UTC")))
	return nil
}
