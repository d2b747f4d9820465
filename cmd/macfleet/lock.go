package main

import (
	"github.com/spf13/cobra"

	"github.com/macfleet/macfleet/internal/app"
)

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
