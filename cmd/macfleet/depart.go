package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/macfleet/macfleet/internal/app"
)

func replaceCmd(env *app.Env) *cobra.Command {
	var o app.DepartOptions
	c := &cobra.Command{Use: "replace HOST", Short: "Replace a host with another server of the pool", Args: cobra.ExactArgs(1), ValidArgsFunction: arguments(env, app.AHost),
		Long: `Claims another server for the host's group. Once it is Ready, macfleet drains
the old host, revokes its identity, erases it and returns its server to the
pool. If the pool has no server that fits, nothing happens to the host. A
later apply continues an interrupted replacement.

--cancel keeps the host, as long as its server is not being erased. If its
reinstallation was requested, the host must show that it has its old disk.

Exit codes: 0 replaced and verified, 1 error or not approved, 3 not replaced
yet.`,
		Example: `  macfleet replace acme-production-runners-m2-0bccd
  macfleet replace runners/0bccd --auto-approve
  macfleet replace --cancel runners/0bccd`,
		RunE: func(c *cobra.Command, _ []string) error { return app.Replace(c.Context(), env, o) }}
	departFlags(c.Flags(), env, &o)
	return c
}

func releaseCmd(env *app.Env) *cobra.Command {
	var o app.DepartOptions
	c := &cobra.Command{Use: "release NAME", Short: "Return an orphaned or unmanaged server to the pool", Args: cobra.ExactArgs(1),
		Long: `Erases a server that has no place in the configuration and returns it to the
pool: an orphaned member, or a server without an owner. NAME is its whole name
or its id. To release a member, lower replicas or use macfleet replace.

An unmanaged server must have no marker, claim, Node or running work, and
macfleet checks that again right before it erases the server. A terminal asks
for the name; without one, pass --auto-approve. macfleet sees virtual machines
and jobs of Tart and Packer only; other work is lost.

An interrupted release is continued by running it again. Once the server is
being erased, a later apply finishes it. --cancel keeps the server until then.

Exit codes: 0 released and verified, 1 error or not approved, 3 not released.`,
		Example: `  macfleet release acme-production-old-m2-0bccd
  macfleet release mac-test-7 --auto-approve`,
		RunE: func(c *cobra.Command, _ []string) error { return app.ReleaseServer(c.Context(), env, o) }}
	departFlags(c.Flags(), env, &o)
	return c
}

func departFlags(f *pflag.FlagSet, env *app.Env, o *app.DepartOptions) {
	verboseFlag(f, env)
	fullFlag(f, &o.Full)
	f.BoolVar(&o.AnyTime, "outside-windows", false, "drain, reboot and wipe outside the maintenance windows of the guardrails too")
	f.BoolVar(&o.Cancel, "cancel", false, "keep the server instead, unless it is being erased")
	approveFlag(f, &o.Approve)
	lockFlags(f, &o.Locking)
}
