package main

import (
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/macfleet/macfleet/internal/app"
)

func applyCmd(env *app.Env) *cobra.Command {
	var o app.ApplyOptions
	c := &cobra.Command{Use: "apply [FILE]", Short: "Apply the plan and verify the result", Args: cobra.MaximumNArgs(1),
		Long: `Shows the plan, asks for approval, applies it and observes again. A run that
does not converge exits 3. Run apply again to resume an interrupted run.

With a FILE from plan --out, apply does not ask: it observes again and performs
only the actions in the file. A file is valid for one configuration, environment
and version, and for a day unless plan --expires says otherwise.

--rollback installs the previous version of every artifact on the hosts of --on.
The next apply without --rollback installs the configured version again; pin the
older version in the configuration to keep it.

--rotate-tokens gives each selected host's kubelet a new cluster token and
restarts it, within the limits of the rollout. Virtual machines keep running.
The old token is revoked once the new one is in use.

Exit codes: 0 everything allowed was done and verified, 1 error or not approved,
3 a host failed, was blocked, interrupted or did not converge.`,
		Example: `  macfleet apply -e production
  macfleet apply --on name=acme-production-runners-m2-0bccd --auto-approve
  macfleet apply plan.json`,
		RunE: func(c *cobra.Command, _ []string) error { return app.Apply(c.Context(), env, o) }}
	c.Flags().BoolVar(&o.JSON, "json", false, "print one JSON object per line, including errors (requires --auto-approve)")
	boundsFlags(c.Flags(), &o.Bounds)
	fullFlag(c.Flags(), &o.Full)
	c.Flags().BoolVar(&o.NewTokens, "rotate-tokens", false, "give kubelets new cluster tokens and revoke the old ones once the new ones are in use")
	c.Flags().StringArrayVar(&o.ForceBusy, "force-busy", nil, "change `HOST` even if it is busy; its running work is lost (repeatable)")
	verboseFlag(c.Flags(), env)
	c.Flags().BoolVar(&o.FailOnDeferred, "fail-on-deferred", false, "exit 3 when a limit of this run defers hosts to a later run")
	c.Flags().DurationVar(&o.DrainTimeout, "drain-timeout", app.DefaultDrain, "time allowed for the Pods or the CI job of a host to end before it is changed")
	jsonIntoFlag(c.Flags(), &o.JSONInto)
	c.Flags().DurationVar(&o.Deadline, "deadline", 0, "start nothing new after this time, e.g. 50m; finish running steps and exit 3")
	c.Flags().StringVar(&o.FailedFrom, "failed-from", "", "limit to hosts that an earlier `RUN` (id or last) did not finish")
	approveFlag(c.Flags(), &o.Approve)
	lockFlags(c.Flags(), &o.Locking)
	c.Flags().StringArrayVar(&o.AskPasswords, "ask-password", nil, "prompt for `HOST`'s login password when Scaleway does not provide it (from a pipe: one per line; repeatable)")
	return c
}

func verboseFlag(f *pflag.FlagSet, env *app.Env) {
	f.BoolVarP(&env.Verbose, "verbose", "v", false, "print every action as it ends, besides one line per host")
}

func restartCmd(env *app.Env) *cobra.Command {
	var o app.RestartOptions
	c := &cobra.Command{Use: "restart HOST JOB", Short: "Restart a job on a host and verify it", Args: cobra.ExactArgs(2), ValidArgsFunction: arguments(env, app.AHost, app.AJob),
		Long: `Restarts a job on a host that is in sync, then waits until the new process is
stable and the Node is Ready. Virtual machines keep running. On a host that is
not in sync, use macfleet apply --on name=HOST instead.

Jobs: ` + strings.Join(app.Jobs(), ", ") + `

Exit codes: 0 restarted and verified, 1 error or not approved, 3 not verified.`,
		Example: `  macfleet restart acme-production-runners-m2-0bccd tart_kubelet
  macfleet restart runners/0bccd tart_kubelet --auto-approve`,
		RunE: func(c *cobra.Command, _ []string) error { return app.Restart(c.Context(), env, o) }}
	verboseFlag(c.Flags(), env)
	lockFlags(c.Flags(), &o.Locking)
	approveFlag(c.Flags(), &o.Approve)
	return c
}

func rebootCmd(env *app.Env) *cobra.Command {
	var o app.RebootOptions
	c := &cobra.Command{Use: "reboot HOST", Short: "Restart a host's server once the host is idle", Args: cobra.ExactArgs(1), ValidArgsFunction: arguments(env, app.AHost),
		Long: `Restarts a host's server through Scaleway's API, also if the host does not
answer, and waits until it answers and its Node is Ready. Such a restart also
installs the SSH keys of the project and ends a ban of your address.

The host has to be idle: macfleet cordons and drains its Node. If the Node is
not Ready, it must not have any Pods. Whatever is unknown counts as busy, for
example the jobs of a builder.

A host that answers is restarted only if automatic login is in sync and
FileVault is off.

Exit codes: 0 restarted and in sync, 1 error or not approved, 3 blocked, not
verified or not in sync.`,
		Example: `  macfleet reboot acme-production-runners-m2-0bccd
  macfleet reboot builders/0bccd --force-busy builders/0bccd --auto-approve`,
		RunE: func(c *cobra.Command, _ []string) error { return app.Reboot(c.Context(), env, o) }}
	c.Flags().StringArrayVar(&o.ForceBusy, "force-busy", nil, "restart `HOST` even if it is or may be busy; its running work is lost")
	verboseFlag(c.Flags(), env)
	lockFlags(c.Flags(), &o.Locking)
	approveFlag(c.Flags(), &o.Approve)
	return c
}

func holdCmd(env *app.Env) *cobra.Command {
	var o app.HoldOptions
	c := &cobra.Command{Use: "hold SELECTOR|HOST...", Short: "Block changes to hosts until a given time", Args: cobra.MinimumNArgs(1), ValidArgsFunction: arguments(env, app.HostsOrSelectors),
		Long: `Blocks every macfleet, wherever it runs, from changing the hosts until a given
time. Plans show who holds a host, why and until when. A hold is stored in the
host's marker and on its Node; one of them is enough.

Exit codes: 0 held, 1 error, 3 some hosts are not held.`,
		Example: `  macfleet hold acme-production-runners-m2-0bccd --reason "loud fan" --until 3d
  macfleet hold fleet=builders --reason "release week" --until 48h`,
		RunE: func(c *cobra.Command, _ []string) error { return app.Hold(c.Context(), env, o) }}
	c.Flags().StringVar(&o.Reason, "reason", "", "reason shown in every plan: `TEXT` (required)")
	c.Flags().StringVar(&o.Until, "until", "", "end of the hold: `WHEN` is a duration (90m, 12h, 3d, 2w) or a UTC date (2026-11-28), at most 30 days (required)")
	return c
}

func unholdCmd(env *app.Env) *cobra.Command {
	return &cobra.Command{Use: "unhold SELECTOR|HOST...", Short: "Remove a hold", Args: cobra.MinimumNArgs(1), ValidArgsFunction: arguments(env, app.HostsOrSelectors),
		Long: `Removes the holds of hosts, no matter who set them, from markers and Nodes. If
one of the two cannot be reached, the host stays held.

Exit codes: 0 removed, 1 error, 3 some hosts are still held.`,
		Example: `  macfleet unhold acme-production-runners-m2-0bccd
  macfleet unhold fleet=builders`,
		RunE: func(c *cobra.Command, _ []string) error { return app.Unhold(c.Context(), env) }}
}

func quarantineCmd(env *app.Env) *cobra.Command {
	var o app.QuarantineOptions
	c := &cobra.Command{Use: "quarantine HOST...", Short: "Take hosts out of service until unquarantine", Args: cobra.MinimumNArgs(1), ValidArgsFunction: arguments(env, app.HostsOrSelectors),
		Long: `Takes hosts out of service until macfleet unquarantine. macfleet cordons their
Nodes, changes nothing on them and claims other servers in their place, if the
pool has any. apply does the same with a host after several failed repairs in a
row (quarantine_after in the rollout block).

Exit codes: 0 quarantined, 1 error or not approved, 3 some hosts are not
quarantined.`,
		Example: `  macfleet quarantine acme-production-runners-m2-0bccd --reason "broken disk"`,
		RunE:    func(c *cobra.Command, _ []string) error { return app.Quarantine(c.Context(), env, o) }}
	c.Flags().StringVar(&o.Reason, "reason", "", "reason shown in every plan: `TEXT` (required)")
	approveFlag(c.Flags(), &o.Approve)
	return c
}

func unquarantineCmd(env *app.Env) *cobra.Command {
	return &cobra.Command{Use: "unquarantine HOST...", Short: "End the quarantine of hosts", Args: cobra.MinimumNArgs(1), ValidArgsFunction: arguments(env, app.HostsOrSelectors),
		Long: `Ends the quarantine of hosts: they count for their fleets again, and the next
apply repairs them. A Node is uncordoned if the quarantine cordoned it. If
another server took a host's place, the group now has one too many, and the next
plan shows which one leaves.

Exit codes: 0 ended, 1 error, 3 some hosts are still quarantined.`,
		Example: `  macfleet unquarantine acme-production-runners-m2-0bccd`,
		RunE:    func(c *cobra.Command, _ []string) error { return app.Unquarantine(c.Context(), env) }}
}

func cordonCmd(env *app.Env) *cobra.Command {
	var o app.CordonOptions
	c := &cobra.Command{Use: "cordon SELECTOR|HOST...", Short: "Cordon the Nodes of hosts; --drain also evicts their Pods", Args: cobra.MinimumNArgs(1), ValidArgsFunction: arguments(env, app.HostsOrSelectors),
		Long: `Cordons the Nodes of hosts and notes on them who did it. --undo uncordons only
Nodes that macfleet cordoned. --drain then evicts the Pods, one Node after the
other; disruption budgets are respected and DaemonSet Pods stay.

Exit codes: 0 done, 1 error or not approved, 3 some Nodes are not cordoned,
uncordoned or drained.`,
		Example: `  macfleet cordon acme-production-runners-m2-0bccd --drain
  macfleet cordon fleet=runners,zone=fr-par-3
  macfleet cordon fleet=runners --undo`,
		RunE: func(c *cobra.Command, _ []string) error { return app.Cordon(c.Context(), env, o) }}
	f := c.Flags()
	f.BoolVar(&o.Undo, "undo", false, "uncordon Nodes that macfleet cordoned")
	f.BoolVar(&o.Drain, "drain", false, "also evict the Pods")
	f.DurationVar(&o.Timeout, "timeout", 10*time.Minute, "time allowed for the Pods of a Node to terminate")
	f.BoolVar(&o.Force, "force", false, "also evict Pods that no controller recreates")
	approveFlag(f, &o.Approve)
	return c
}

func initCmd(env *app.Env) *cobra.Command {
	var o app.InventoryOptions
	c := &cobra.Command{Use: "init", Short: "Write a configuration for existing servers, or prepare the cluster", Args: cobra.NoArgs,
		Annotations: map[string]string{otherUse: "COMMAND"},
		Long: `With --from-inventory, writes a configuration that adopts the servers of your
Scaleway project, each under its present name. It puts them into fleets by their
names, types and macOS families. It reads Scaleway's list, asks each host which
macOS it runs, and changes nothing. Existing files are never replaced. Servers
that cannot be adopted are listed with the reason. See docs/adoption.md.

init cluster prepares the cluster that hosts join.

Exit codes: 0 written, 1 error.`,
		Example: `  macfleet init --from-inventory --name acme
  macfleet init --from-inventory -e production --kube-context acme-production
  macfleet init cluster -e production`,
		RunE: func(c *cobra.Command, _ []string) error {
			if !o.From {
				return c.Help()
			}
			return app.InitFromInventory(c.Context(), env, o)
		}}
	c.AddCommand(initClusterCmd(env))
	f := c.Flags()
	f.BoolVar(&o.From, "from-inventory", false, "write main.fleet.hcl and hosts.fleet.hcl for the servers that exist")
	f.StringVar(&o.Name, "name", "", "name the configuration `NAME` (default: the first word of all server names, or the directory)")
	f.StringVar(&o.PoolPrefix, "pool-prefix", "", "do not adopt servers named `PREFIX`…: they are free to be claimed")
	f.StringArrayVar(&o.Zones, "zone", nil, "look for servers in `ZONE` (repeatable; default: all known zones)")
	f.StringVar(&o.Context, "kube-context", "", "write a kubernetes block for the cluster of `CONTEXT`: the hosts are its Nodes")
	noSSHFlag(f, &o.NoSSH)
	return c
}

func noSSHFlag(f *pflag.FlagSet, to *bool) {
	f.BoolVar(to, "no-ssh", false, "do not contact hosts; use the macOS family that Scaleway installed first")
}

func importCmd(env *app.Env) *cobra.Command {
	var o app.ImportOptions
	c := &cobra.Command{Use: "import [SERVER...]", Short: "Write host blocks for servers that no fleet has", Args: cobra.ArbitraryArgs,
		Long: `Prints HCL that adopts unmanaged servers, each under its present name: host
blocks, and fleets where no group has room for them. A SERVER is a name or an
id; without one, all unmanaged servers are imported. It reads the servers and
changes nothing. --to writes the blocks into a new file.

The blocks are checked together with the configuration before they are printed.
See docs/adoption.md.

Exit codes: 0 printed or written, 1 error.`,
		Example: `  macfleet import
  macfleet import acme-legacy-01 --group fleet.runners.group.m2
  macfleet import --to legacy.fleet.hcl`,
		RunE: func(c *cobra.Command, _ []string) error { return app.Import(c.Context(), env, o) }}
	f := c.Flags()
	f.StringVar(&o.To, "to", "", "write the blocks into the new `FILE` next to the configuration")
	f.StringVar(&o.Group, "group", "", "put all servers into this group: `REFERENCE` such as fleet.runners.group.m2")
	noSSHFlag(f, &o.NoSSH)
	return c
}

func initClusterCmd(env *app.Env) *cobra.Command {
	var o app.InitClusterOptions
	c := &cobra.Command{Use: "cluster", Short: "Prepare the cluster that the hosts join", Args: cobra.NoArgs,
		Long: `Checks what macfleet needs in the cluster, asks, and creates what is missing:
the namespace, the store of pinned host keys, the role of the kubelets, and
macfleet's own account with its rights. If ssh.private_key names a Secret of
that namespace, it creates the hosts' SSH key. With a capi block it prepares the
Cluster API. It needs an administrator's kubeconfig. Running it again changes
nothing that is correct.

A new SSH key is created only if no host can trust an older one. If there are
hosts but no key, it stops: --ssh-key FILE restores the key, --new-ssh-key
creates a new one.

The namespace records which cluster it belongs to, so a backup restored
elsewhere or a wrong context is an error. If this cluster replaces the other
one, pass its uid here, then move the hosts with the same flag of plan and apply
(docs/kubernetes.md).

Exit codes: 0 prepared, 1 error or not approved, 3 something is still wrong.`,
		Example: `  macfleet init cluster -e production
  macfleet init cluster --export-ssh-key fleet-ssh.key
  macfleet init cluster --ssh-key fleet-ssh.key
  macfleet init cluster --moved-from-cluster UID`,
		RunE: func(c *cobra.Command, _ []string) error { return app.InitCluster(c.Context(), env, o) }}
	f := c.Flags()
	approveFlag(f, &o.Approve)
	f.StringVar(&o.SSHKey, "ssh-key", "", "store the private key in `FILE` as the hosts' key, replacing any other")
	f.BoolVar(&o.NewSSHKey, "new-ssh-key", false, "create a new SSH key even if hosts trust a lost one; those hosts then refuse macfleet")
	f.StringVar(&o.ExportKey, "export-ssh-key", "", "write the hosts' private key to a new `FILE` (mode 0600)")
	f.StringVar(&o.Kubeconfig, "kubeconfig-out", "", "write a kubeconfig of macfleet's own account, e.g. for CI, to `FILE` (mode 0600)")
	f.DurationVar(&o.TokenTTL, "token-ttl", 720*time.Hour, "lifetime of the token in that kubeconfig; the cluster may shorten it")
	f.BoolVar(&o.Force, "force", false, "overwrite the file of --kubeconfig-out")
	f.StringVar(&o.MovedFrom, "moved-from-cluster", "", "let this cluster replace the one with this `UID`")
	return c
}

func lockCmd(env *app.Env) *cobra.Command {
	c := group("lock", "Show or release the apply lock",
		&cobra.Command{Use: "status", Short: "Show who holds the lock and since when", Args: cobra.NoArgs,
			Long: `Shows who holds the lock, since when, and when it expires. It changes nothing.
Without a cluster it asks every host.

Exit codes: 0 done, 1 error.`,
			Example: `  macfleet lock status -e production`,
			RunE:    func(c *cobra.Command, _ []string) error { return app.LockStatus(c.Context(), env) }},
		lockReleaseCmd(env))
	c.Long = `One apply at a time works on a configuration and environment. With a cluster the
lock is a Lease in macfleet's namespace. It expires 30 s after its last renewal,
so the lock of a killed run frees itself. Without a cluster each host keeps a
lock for the run that works on it. See docs/locking.md.`
	return c
}

func lockReleaseCmd(env *app.Env) *cobra.Command {
	var o app.ReleaseOptions
	c := &cobra.Command{Use: "release", Short: "Release the lock of a run that is gone", Args: cobra.NoArgs,
		Long: `Releases the lock. If its run is still alive, the run finishes what it is doing
and changes nothing more. A lock that has not expired needs --force with the run
id or the owner, as shown by lock status.

Exit codes: 0 released, or nothing to release; 1 error or not approved.`,
		Example: `  macfleet lock release
  macfleet lock release --force k3h7w2mq5a`,
		RunE: func(c *cobra.Command, _ []string) error { return app.LockRelease(c.Context(), env, o) }}
	c.Flags().StringVar(&o.Force, "force", "", "release the lock held by `RUN` (run id or owner) even if it has not expired, without asking")
	c.Flags().BoolVar(&o.Approve, "auto-approve", false, "do not ask for approval; releases only an expired lock")
	return c
}
