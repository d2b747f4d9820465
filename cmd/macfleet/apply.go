package main

import (
	"fmt"
	"strings"

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
			"still wants the newer one then: let it name the older.\n\n" + exitCodes,
		RunE: func(c *cobra.Command, args []string) error {
			o.File = append(args, "")[0]
			return app.Apply(c.Context(), env, o)
		}}
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		if strings.Contains(err.Error(), "--record") || strings.Contains(err.Error(), "--snapshot") {
			return fmt.Errorf("%w: apply looks at the world itself and keeps nothing; macfleet plan has --record and --snapshot", err)
		}
		return err
	})
	c.Flags().BoolVar(&o.JSON, "json", false, "print one JSON object a line, errors too; needs --auto-approve")
	rollbackFlag(c.Flags(), &o.Rollback)
	boundsFlags(c.Flags(), &o.Bounds)
	c.Flags().StringArrayVar(&o.ForceBusy, "force-busy", nil, "change a `HOST` (or another --force-busy) whatever it is at work on; that work is lost")
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
		RunE: func(c *cobra.Command, args []string) error {
			o.Host, o.Job = args[0], args[1]
			return app.Restart(c.Context(), env, o)
		}}
	lockFlags(c.Flags(), &o.Locking)
	approveFlag(c.Flags(), &o.Approve)
	return c
}
