package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/macfleet/macfleet/internal/app"
)

func initCmd(env *app.Env) *cobra.Command {
	c := &cobra.Command{Use: "init", Short: "Prepare what macfleet works with", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() }}
	c.AddCommand(initClusterCmd(env))
	return c
}

func initClusterCmd(env *app.Env) *cobra.Command {
	var o app.InitClusterOptions
	c := &cobra.Command{Use: "cluster", Short: "Prepare the cluster that the hosts join", Args: cobra.NoArgs,
		Long: "cluster looks at what macfleet needs in the configuration's cluster, asks, and makes what is missing:\n" +
			"the namespace, the place of the pinned host keys, the private key of the hosts where ssh.private_key\n" +
			"names a Secret of that namespace, the role of the hosts' kubelets, macfleet's own account with its\n" +
			"rights, and with a capi block what the Cluster API needs. It needs an administrator's kubeconfig, since\n" +
			"macfleet's own account may not read its own roles. Repeated, it changes nothing that is right. An SSH\n" +
			"key that is there is never replaced.\n\n" +
			"Exit codes: 0 prepared, 1 error or not approved, 3 something is not as wanted afterwards.",
		RunE: func(c *cobra.Command, _ []string) error { return app.InitCluster(c.Context(), env, o) }}
	f := c.Flags()
	approveFlag(f, &o.Approve)
	f.StringVar(&o.SSHKey, "ssh-key", "", "keep the private key of a `FILE` for the hosts (default a new Ed25519 key)")
	f.StringVar(&o.Kubeconfig, "kubeconfig-out", "", "write a kubeconfig of macfleet's own account for CI to a `FILE` (mode 0600)")
	f.DurationVar(&o.TokenTTL, "token-ttl", 720*time.Hour, "how `LONG` that kubeconfig is good for; the cluster may shorten it")
	f.BoolVar(&o.Force, "force", false, "overwrite the file of --kubeconfig-out")
	return c
}
