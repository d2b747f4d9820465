package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/macfleet/macfleet/internal/app"
)

func applyCmd(env *app.Env) *cobra.Command {
	var o app.ApplyOptions
	c := &cobra.Command{Use: "apply [FILE]", Short: "Make it so, then look again", Args: cobra.MaximumNArgs(1),
		Long: "apply shows the plan, asks, performs it, and observes again. A run that did not converge is a\n" +
			"failure. Applying again goes on where a run broke off.\n\n" +
			"With a FILE that plan --out made it asks nobody, and does exactly what that approves: it looks again,\n" +
			"leaves what the file does not hold, and says so. A file is good for the configuration, the environment\n" +
			"and the version that it was made with, and for a day.\n\n" +
			"With --rollback the hosts of --on go back to the version that they had before of everything that they get\n" +
			"as an artifact (they have kept it), and stay there until an apply without --rollback. The configuration\n" +
			"still wants the newer one then: let it name the older.\n\n" +
			"With --rotate-tokens each selected host's kubelet gets a new token for the cluster and is started anew,\n" +
			"within the bounds of the rollout; virtual machines go on. Its old token ends when the cluster has heard of\n" +
			"it with the new one. A run that was killed is gone on with by the next apply.\n\n" + exitCodes,
		RunE: func(c *cobra.Command, _ []string) error { return app.Apply(c.Context(), env, o) }}
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		if strings.Contains(err.Error(), "--record") || strings.Contains(err.Error(), "--snapshot") {
			return fmt.Errorf("%w: apply looks at the world itself and keeps nothing; macfleet plan has --record and --snapshot", err)
		}
		return err
	})
	c.Flags().BoolVar(&o.JSON, "json", false, "print one JSON object a line, errors too; needs --auto-approve")
	boundsFlags(c.Flags(), &o.Bounds)
	c.Flags().BoolVar(&o.NewTokens, "rotate-tokens", false, "give the hosts' kubelets new tokens, and end the old ones once the cluster has heard of each with its new one")
	c.Flags().StringArrayVar(&o.ForceBusy, "force-busy", nil, "change a `HOST` (or another --force-busy) whatever it is at work on; that work is lost")
	c.Flags().BoolVar(&o.FailOnDeferred, "fail-on-deferred", false, "exit 3 when a limit of this run leaves hosts for a later one")
	c.Flags().DurationVar(&o.DrainTimeout, "drain-timeout", app.DefaultDrain, "how `LONG` the Pods of a host have to end before it is changed")
	jsonIntoFlag(c.Flags(), &o.JSONInto)
	c.Flags().DurationVar(&o.Deadline, "deadline", 0, "start nothing new this `LONG` after the command began, for example 50m; finish what runs, and exit 3")
	c.Flags().StringVar(&o.FailedFrom, "failed-from", "", "only the hosts on which an earlier `RUN` left something: its id, or last")
	approveFlag(c.Flags(), &o.Approve)
	lockFlags(c.Flags(), &o.Locking)
	c.Flags().StringArrayVar(&o.AskPasswords, "ask-password", nil, "ask for the login password of a `HOST`, where nobody else tells it; from a pipe, a line each")
	return c
}

func restartCmd(env *app.Env) *cobra.Command {
	var o app.RestartOptions
	c := &cobra.Command{Use: "restart HOST JOB", Short: "Start a job of a host anew, and prove it", Args: cobra.ExactArgs(2), ValidArgsFunction: arguments(env, app.AHost, app.AJob),
		Long: "restart starts a job anew on a host that has no difference in it, and waits for a new process that is\n" +
			"the same some seconds later, and then for the host's Node. The jobs are: " + strings.Join(app.Jobs(), ", ") + ".\n" +
			"Virtual machines go on. Where something differs, macfleet apply --on name=HOST repairs that, and\n" +
			"restarts what has to be.\n\n" + exitCodes,
		RunE: func(c *cobra.Command, _ []string) error { return app.Restart(c.Context(), env, o) }}
	lockFlags(c.Flags(), &o.Locking)
	approveFlag(c.Flags(), &o.Approve)
	return c
}

func holdCmd(env *app.Env) *cobra.Command {
	var o app.HoldOptions
	c := &cobra.Command{Use: "hold SELECTOR|HOST...", Short: "Keep everybody off hosts until a time", Args: cobra.MinimumNArgs(1), ValidArgsFunction: arguments(env, app.HostsOrSelectors),
		Long: "hold lets no macfleet change the hosts until a time, whoever runs it and wherever: plans show who holds\n" +
			"them, why and until when. It stands in the host's marker and on its Node; one of the two is enough, so\n" +
			"that it works while the other cannot be reached.\n\n" +
			"  macfleet hold acme-production-runners-m2-0bccd --reason \"its fan is loud\" --until 3d\n" +
			"  macfleet hold fleet=builders --reason \"release week\" --until 2026-11-28\n\n" +
			"Exit codes: 0 done, 1 error, 3 some hosts are not held.",
		RunE: func(c *cobra.Command, _ []string) error { return app.Hold(c.Context(), env, o) }}
	c.Flags().StringVar(&o.Reason, "reason", "", "why, as a `TEXT` that every plan shows")
	c.Flags().StringVar(&o.Until, "until", "", "until `WHEN`: 90m, 12h, 3d, 2w, or a time in UTC such as 2026-11-28; at most 30 days")
	return c
}

func unholdCmd(env *app.Env) *cobra.Command {
	return &cobra.Command{Use: "unhold SELECTOR|HOST...", Short: "Take a hold away", Args: cobra.MinimumNArgs(1), ValidArgsFunction: arguments(env, app.HostsOrSelectors),
		Long: "unhold takes away the holds of hosts, whoever set them, from their markers and their Nodes. A place that\n" +
			"cannot be reached keeps its hold, and the host stays held.\n\n" +
			"Exit codes: 0 done, 1 error, 3 some hosts are still held.",
		RunE: func(c *cobra.Command, _ []string) error { return app.Unhold(c.Context(), env) }}
}

func cordonCmd(env *app.Env) *cobra.Command {
	var o app.CordonOptions
	c := &cobra.Command{Use: "cordon SELECTOR|HOST...", Short: "Let no new Pod onto the Nodes of hosts, and empty them", Args: cobra.MinimumNArgs(1), ValidArgsFunction: arguments(env, app.HostsOrSelectors),
		Long: "cordon closes the Nodes of hosts to new Pods and notes on them who did so with macfleet. --undo opens\n" +
			"those again, and leaves alone what somebody closed by another way. --drain then evicts their Pods, one\n" +
			"Node after the other; disruption budgets are honoured, Pods of DaemonSets stay.\n\n" +
			"  macfleet cordon acme-production-runners-m2-0bccd --drain\n" +
			"  macfleet cordon fleet=runners,zone=fr-par-3\n\n" +
			"Exit codes: 0 done, 1 error or not approved, 3 some Nodes are not closed, opened or empty.",
		RunE: func(c *cobra.Command, _ []string) error { return app.Cordon(c.Context(), env, o) }}
	f := c.Flags()
	f.BoolVar(&o.Undo, "undo", false, "open the Nodes again that macfleet closed")
	f.BoolVar(&o.Drain, "drain", false, "evict the Pods too")
	f.DurationVar(&o.Timeout, "timeout", 10*time.Minute, "how `LONG` the Pods of a Node have until they are gone")
	f.BoolVar(&o.Force, "force", false, "evict Pods too that nothing makes again")
	approveFlag(f, &o.Approve)
	return c
}

func initClusterCmd(env *app.Env) *cobra.Command {
	var o app.InitClusterOptions
	c := &cobra.Command{Use: "cluster", Short: "Prepare the cluster that the hosts join", Args: cobra.NoArgs,
		Long: "cluster looks at what macfleet needs in the configuration's cluster, asks, and makes what is missing:\n" +
			"the namespace, the place of the pinned host keys, the private key of the hosts where ssh.private_key\n" +
			"names a Secret of that namespace, the role of the hosts' kubelets, macfleet's own account with its\n" +
			"rights, and with a capi block what the Cluster API needs. It needs an administrator's kubeconfig, since\n" +
			"macfleet's own account may not read its own roles. Repeated, it changes nothing that is right.\n\n" +
			"It makes a new SSH key only where no host can trust an older one. Where it finds hosts and no key, or\n" +
			"cannot find out, it stops: --ssh-key FILE brings the key back, --new-ssh-key makes a new one.\n\n" +
			"  macfleet init cluster --export-ssh-key fleet-ssh.key    prepare, and keep a copy of the hosts' key\n" +
			"  macfleet init cluster --ssh-key fleet-ssh.key           put that key into the cluster again\n\n" +
			"It notes on the namespace which cluster it is, and refuses one that was prepared as another: a backup\n" +
			"that was restored elsewhere, or a wrong context. Where this cluster takes the place of that one, give\n" +
			"its uid, then move the hosts with the same flag of plan and apply (docs/kubernetes.md).\n\n" +
			"  macfleet init cluster --moved-from-cluster 5a4d6b3c-0000-4000-8000-000000000002\n\n" +
			"Exit codes: 0 prepared, 1 error or not approved, 3 something is not as wanted afterwards.",
		RunE: func(c *cobra.Command, _ []string) error { return app.InitCluster(c.Context(), env, o) }}
	f := c.Flags()
	approveFlag(f, &o.Approve)
	f.StringVar(&o.SSHKey, "ssh-key", "", "put the private key of a `FILE` into the cluster as the hosts' key, in the place of another one too")
	f.BoolVar(&o.NewSSHKey, "new-ssh-key", false, "make a new SSH key although there are hosts that trust a lost one; they refuse macfleet then")
	f.StringVar(&o.ExportKey, "export-ssh-key", "", "write the hosts' private key to a new `FILE` (mode 0600)")
	f.StringVar(&o.Kubeconfig, "kubeconfig-out", "", "write a kubeconfig of macfleet's own account for CI to a `FILE` (mode 0600)")
	f.DurationVar(&o.TokenTTL, "token-ttl", 720*time.Hour, "how `LONG` that kubeconfig is good for; the cluster may shorten it")
	f.BoolVar(&o.Force, "force", false, "overwrite the file of --kubeconfig-out")
	f.StringVar(&o.MovedFrom, "moved-from-cluster", "", "let this cluster take the place of the one with this `UID`")
	return c
}

func lockCmd(env *app.Env) *cobra.Command {
	c := &cobra.Command{Use: "lock", Short: "See who applies, and take over from a run that is gone",
		Long: "One apply at a time works on a configuration and environment. Where there is a cluster, a Lease in\n" +
			"macfleet's namespace says who; it counts for 30 s without being renewed, so a run that was killed is\n" +
			"taken over by itself. Without a cluster each host keeps a lock for the run that works on it.\n" +
			"docs/locking.md says more."}
	c.AddCommand(&cobra.Command{Use: "status", Short: "Show who has the lock, where, since when, and whether that run lives", Args: cobra.NoArgs,
		Long: "status shows who has the lock. It changes nothing. Without a cluster it asks every host of the fleet.\n\n" +
			"Exit codes: 0 done, 1 error.",
		RunE: func(c *cobra.Command, _ []string) error { return app.LockStatus(c.Context(), env) }})
	var o app.ReleaseOptions
	r := &cobra.Command{Use: "release", Short: "Take the lock from a run that is gone", Args: cobra.NoArgs,
		Long: "release takes the lock away from the run that has it. That run, if it lives, finishes what it is\n" +
			"doing and changes nothing more. A lock that gave a sign of life lately is only taken with --force and\n" +
			"the id of the run, or who runs it, as macfleet lock status shows them.\n\n" +
			"  macfleet lock release\n" +
			"  macfleet lock release --force k3h7w2mq5a\n\n" +
			"Exit codes: 0 done, also where nobody has it, 1 error or not approved.",
		RunE: func(c *cobra.Command, _ []string) error { return app.LockRelease(c.Context(), env, o) }}
	r.Flags().StringVar(&o.Force, "force", "", "take it from this `RUN` (its id, or who runs it), though it may live; does not ask")
	r.Flags().BoolVar(&o.Approve, "auto-approve", false, "do not ask; takes only what has expired")
	c.AddCommand(r)
	return c
}
