package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/hosts"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/internal/view"
	"github.com/macfleet/macfleet/internal/wholefile"
	"github.com/macfleet/macfleet/providers/kubernetes"
)

func (a *app) initCmd() *cobra.Command {
	c := &cobra.Command{Use: "init", Short: "Prepare what macfleet works with", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() }}
	c.AddCommand(a.initClusterCmd())
	return c
}

type initClusterOptions struct {
	approve    bool
	force      bool
	sshKey     string
	kubeconfig string
	ttl        time.Duration
}

func (a *app) initClusterCmd() *cobra.Command {
	var o initClusterOptions
	c := &cobra.Command{Use: "cluster", Short: "Prepare the cluster that the hosts join", Args: cobra.NoArgs,
		Long: "cluster looks at what macfleet needs in the configuration's cluster, asks, and makes what is missing:\n" +
			"the namespace, the place of the pinned host keys, the private key of the hosts where ssh.private_key\n" +
			"names a Secret of that namespace, the role of the hosts' kubelets, macfleet's own account with its\n" +
			"rights, and with a capi block what the Cluster API needs. It needs an administrator's kubeconfig, since\n" +
			"macfleet's own account may not read its own roles. Repeated, it changes nothing that is right. An SSH\n" +
			"key that is there is never replaced.\n\n" +
			"Exit codes: 0 prepared, 1 error or not approved, 3 something is not as wanted afterwards.",
		RunE: func(c *cobra.Command, _ []string) error { return a.initCluster(c.Context(), o) }}
	f := c.Flags()
	f.BoolVar(&o.approve, "auto-approve", false, "do not ask")
	f.StringVar(&o.sshKey, "ssh-key", "", "keep the private key of a `FILE` for the hosts (default a new Ed25519 key)")
	f.StringVar(&o.kubeconfig, "kubeconfig-out", "", "write a kubeconfig of macfleet's own account for CI to a `FILE` (mode 0600)")
	f.DurationVar(&o.ttl, "token-ttl", 720*time.Hour, "how `LONG` that kubeconfig is good for; the cluster may shorten it")
	f.BoolVar(&o.force, "force", false, "overwrite the file of --kubeconfig-out")
	return c
}

// shortestToken is what a cluster issues at least.
const shortestToken = 10 * time.Minute

func (a *app) initCluster(ctx context.Context, o initClusterOptions) error {
	if o.ttl < shortestToken {
		return fmt.Errorf("--token-ttl is %s; a cluster issues no token for less than %s", o.ttl, shortestToken)
	}
	if _, err := os.Lstat(o.kubeconfig); o.kubeconfig != "" && err == nil && !o.force {
		return fmt.Errorf("--kubeconfig-out %s: %w; name another file, or add --force", o.kubeconfig, fs.ErrExist)
	}
	return a.withCluster(ctx, func(looking, acting context.Context, s *session) error {
		if s.kubernetes == nil {
			return errNoCluster("init cluster")
		}
		if err := engine.CheckCluster(looking, s.kubernetes, s.config); err != nil {
			return err
		}
		if err := s.prepare(looking, acting, o); err != nil || o.kubeconfig == "" {
			return err
		}
		if looking.Err() != nil {
			return errors.New("the cluster is prepared, and no kubeconfig was written; the same command writes it")
		}
		return s.writeKubeconfig(acting, o)
	})
}

// prepare makes what the cluster lacks, and looks again. What it began to make it
// makes whole: the public half of a new key is told only by the run that made it.
func (s *session) prepare(looking, acting context.Context, o initClusterOptions) error {
	t := s.app.outText()
	p, err := s.preparation(looking, o)
	if err != nil {
		return err
	}
	p.Dry = true
	missing, err := s.looked(looking, p)
	if err != nil {
		return err
	}
	t.Preparation(missing)
	if len(unkept(missing)) > 0 {
		s.tellInProgress(looking)
		if err := s.approved(o); err != nil {
			return err
		}
	}
	if err := looking.Err(); err != nil {
		return err
	}
	s.app.acting.Store(true)
	if len(unkept(missing)) > 0 {
		// Where the cluster has lost its pins, those it last said become this machine's
		// own before an empty place for them takes their place.
		if err := s.pins(acting).Update(slices.Clone); err != nil {
			return err
		}
		p.Dry = false
		before, err := s.kubernetes.Prepare(acting, p)
		if err != nil {
			return err
		}
		if err := s.sayKey(acting, p, before); err != nil {
			return err
		}
		p.Dry = true
		if missing, err = s.looked(acting, p); err != nil {
			return err
		}
		t.Preparation(missing)
	}
	// What this machine pinned so far is the cluster's from now on.
	if err := s.pins(acting).Update(slices.Clone); err != nil {
		return err
	}
	return result(false, len(unkept(missing)) == 0)
}

func (s *session) approved(o initClusterOptions) error {
	switch {
	case o.approve:
		return nil
	case !s.app.interactive():
		return errors.New("init cluster must be approved and nobody can be asked here; pass --auto-approve")
	}
	return s.app.ask("Make this in the cluster of " + s.config.Owner.String() + "?")
}

// looked says how what the cluster needs stands, and what it is for.
func (s *session) looked(ctx context.Context, p kubernetes.PrepareOptions) ([]view.Prepared, error) {
	all, err := s.kubernetes.Prepare(ctx, p)
	var out []view.Prepared
	for _, o := range all {
		out = append(out, view.Prepared{Object: o, For: s.kubernetes.Purpose(o)})
	}
	return out, err
}

func unkept(all []view.Prepared) []view.Prepared {
	return slices.DeleteFunc(slices.Clone(all), func(p view.Prepared) bool { return p.State == inventory.ObjectKept })
}

// preparation says which SSH key the cluster is to keep: the one of ssh.private_key,
// where that is a Secret of macfleet's namespace. A Secret elsewhere is its owner's.
func (s *session) preparation(ctx context.Context, o initClusterOptions) (kubernetes.PrepareOptions, error) {
	var p kubernetes.PrepareOptions
	ref := s.config.SSH.PrivateKey
	ours := ref.Scheme == secret.Kubernetes && ref.Parts()[0] == s.config.Kubernetes.Namespace
	if !ours {
		if o.sshKey != "" {
			return p, fmt.Errorf("--ssh-key %s: ssh.private_key is no Secret of the namespace %s (secret(\"k8s://%s/NAME/KEY\")), so there is no place to keep it",
				o.sshKey, s.config.Kubernetes.Namespace, s.config.Kubernetes.Namespace)
		}
		return p, nil
	}
	p.SSHSecret, p.SSHSecretKey = ref.Parts()[1], ref.Parts()[2]
	var err error
	if o.sshKey == "" {
		p.SSHKey, err = hosts.NewPrivateKey(s.config.Owner.String())
		return p, err
	}
	text, err := os.ReadFile(o.sshKey)
	if err != nil {
		return p, fmt.Errorf("--ssh-key: %w", err)
	}
	s.app.secrets.Learn(string(text))
	given, _, err := hosts.PublicKey(string(text))
	if err != nil {
		return p, fmt.Errorf("--ssh-key %s: %w", o.sshKey, err)
	}
	if has, fingerprint, ok := s.keptKey(ctx, p); ok && has != given {
		return p, fmt.Errorf("--ssh-key %s: %s holds another key, %s, and hosts may trust it, so it is not replaced; to change it, let the hosts trust the new key first and write the Secret yourself",
			o.sshKey, ref, fingerprint)
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
	s.app.secrets.Learn(text)
	line, fingerprint, err = hosts.PublicKey(text)
	return line, fingerprint, err == nil
}

// sayKey tells of the key that the cluster has got, and who else must have it.
func (s *session) sayKey(ctx context.Context, p kubernetes.PrepareOptions, before []inventory.Object) error {
	made := slices.ContainsFunc(before, func(o inventory.Object) bool {
		return o.Kind == "Secret" && o.Name == p.SSHSecret && o.State == inventory.ObjectMissing
	})
	if !made {
		return nil
	}
	// What the cluster has is told, and not what was sent: another run may have been first.
	line, fingerprint, ok := s.keptKey(ctx, p)
	if !ok {
		return fmt.Errorf("%s cannot be read back; apply needs it", s.config.SSH.PrivateKey)
	}
	t := s.app.outText()
	t.Say(fmt.Sprintf("%s now holds the hosts' key %s. Its public half:", s.config.SSH.PrivateKey, fingerprint))
	t.Print("\n" + line + " " + s.config.Owner.String() + "\n\n")
	t.Say("Add it to the Scaleway project before servers are ordered: a server gets the project's keys at its first boot only. " +
		"On servers that are there, add the line to ~/.ssh/authorized_keys of " + s.config.SSH.User + ", or reinstall them.")
	return nil
}

// writeKubeconfig writes a kubeconfig of macfleet's own account.
func (s *session) writeKubeconfig(ctx context.Context, o initClusterOptions) error {
	token, until, err := s.kubernetes.IssueToken(ctx, o.ttl)
	if err != nil {
		return err
	}
	s.app.secrets.Learn(token.Reveal())
	text, err := s.kubernetes.Kubeconfig(token)
	if err != nil {
		return err
	}
	write := wholefile.Create
	if o.force {
		write = wholefile.Replace
	}
	if err := write(o.kubeconfig, 0o600, wholefile.Text(text.Reveal())); err != nil {
		return fmt.Errorf("--kubeconfig-out: %w", err)
	}
	s.app.outText().Say(fmt.Sprintf("Wrote %s, a kubeconfig of macfleet's own account. Its token ends on %s; make another one before then with the same command and --force.",
		o.kubeconfig, until.UTC().Format("2006-01-02 15:04 UTC")))
	return nil
}
