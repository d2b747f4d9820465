package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/macfleet/macfleet/internal/app"
)

func planCmd(env *app.Env) *cobra.Command {
	var o app.PlanOptions
	c := &cobra.Command{Use: "plan", Short: "Show what would change, and why", Args: cobra.NoArgs,
		Long: "plan looks at everything and changes nothing. With --snapshot it looks at a file that --record made.\n" +
			"With --out it keeps the plan in a file: show prints it, and apply FILE does exactly what it approves.\n" +
			"With --no-secrets it needs no credential and asks nobody: it reads the configuration, and compares it\n" +
			"with a --snapshot or with nothing.\n\n" + exitCodes,
		RunE: func(c *cobra.Command, _ []string) error { return app.Plan(c.Context(), env, o) }}
	formFlags(c.Flags(), &o.Form)
	c.Flags().BoolVar(&o.Scripts, "show-scripts", false, "print the exact scripts that would run, too")
	sourceFlags(c.Flags(), &o.Source)
	c.Flags().StringVar(&o.Out, "out", "", "keep the plan in a `FILE`, for macfleet show and macfleet apply")
	c.Flags().DurationVar(&o.Expires, "expires", app.DefaultExpiry, "how `LONG` the file of --out may be applied, from its look on, at most 168h")
	boundsFlags(c.Flags(), &o.Bounds)
	jsonIntoFlag(c.Flags(), &o.JSONInto)
	c.Flags().BoolVar(&o.Detailed, "detailed-exitcode", false, "exit 2 with changes, 3 when incomplete")
	c.Flags().BoolVar(&o.NoSecrets, "no-secrets", false, "resolve no secret, use no credential and ask nobody")
	annotationsFlag(c.Flags(), &o.Annotations)
	return c
}

func driftCmd(env *app.Env) *cobra.Command {
	var o app.DriftOptions
	c := &cobra.Command{Use: "drift", Short: "Show what changed behind our back", Args: cobra.NoArgs,
		Long: "drift looks at everything and changes nothing. What the configuration wants and was never\n" +
			"applied is counted and is no drift. What an ignore block names raises no alarm until its day;\n" +
			"apply mends it all the same. A provider that does not answer makes it incomplete, never clean.\n\n" + exitCodes,
		RunE: func(c *cobra.Command, _ []string) error { return app.Drift(c.Context(), env, o) }}
	c.Flags().StringVar(&o.Format, "format", app.DriftFormats()[0], "print it as `FORMAT`: text, json, markdown (the text of one issue) or prometheus (for its textfile collector)")
	c.Flags().BoolVar(&o.JSON, "json", false, "print one JSON document, as --format json")
	c.Flags().StringVar(&o.Since, "since", "", "compare with a `FILE` that --format json made: say what is new and what recovered, and keep what was known of hosts that cannot be asked now")
	c.Flags().StringVar(&o.Remember, "remember", "", "as --since with a `FILE` that need not be there yet, and put this look's document in its place")
	c.Flags().BoolVar(&o.ExitZero, "exit-zero", false, "exit 0 also with drift and when incomplete; errors stay errors")
	sourceFlags(c.Flags(), &o.Source)
	jsonIntoFlag(c.Flags(), &o.JSONInto)
	_ = c.RegisterFlagCompletionFunc("format", words(app.DriftFormats()...)) // it has more forms than a plan
	return c
}

func doctorCmd(env *app.Env) *cobra.Command {
	var o app.DoctorOptions
	c := &cobra.Command{Use: "doctor HOST", Short: "Look at one host and say what is wrong with it", Args: cobra.ExactArgs(1), ValidArgsFunction: arguments(env, app.AHost),
		Long: "doctor asks one server of the inventory everything that plan asks, and changes nothing: a member,\n" +
			"a server of the pool or any other, by its name or id. It prints a check list with remedies. Of a member\n" +
			"each difference is a problem, with the code and the remedy that plan has; what was not compared is unknown.\n\n" +
			"--record keeps the host's answers in a file, without names, addresses and keys: from a real Mac\n" +
			"it is a test for macfleet's steps. Read it before you give it away.\n\n" +
			"Exit codes: 0 all ok, 1 no such server or no inventory, 3 a problem, a warning, or something unknown.",
		RunE: func(c *cobra.Command, _ []string) error { return app.Doctor(c.Context(), env, o) }}
	jsonFlag(c.Flags(), &o.JSON)
	c.Flags().StringVar(&o.Record, "record", "", "keep the answers in a new `FILE`")
	c.Flags().BoolVar(&o.Force, "force", false, "replace FILE when it exists")
	return c
}

func explainCmd(env *app.Env) *cobra.Command {
	var o app.ExplainOptions
	c := &cobra.Command{Use: "explain HOST [STEP]", Short: "Say everything about one host: each value with its place, what was seen, what would be done and why",
		Args: cobra.RangeArgs(1, 2), ValidArgsFunction: arguments(env, app.AHost, app.AStep),
		Long: "explain looks at one host and changes nothing. For each step it shows every value that counts\n" +
			"with the file and line it was written at, what was seen, what differs, what would be done and\n" +
			"why, and the last proof. HOST is a name that `macfleet hosts` or `macfleet plan` shows, or\n" +
			"the server's present one.",
		RunE: func(c *cobra.Command, _ []string) error { return app.Explain(c.Context(), env, o) }}
	jsonFlag(c.Flags(), &o.JSON)
	c.Flags().StringVar(&o.Snapshot, "snapshot", "", "look at a `FILE` that plan --record made, without network or credentials")
	c.Flags().BoolVar(&o.Script, "script", false, "print the exact scripts that would run")
	return c
}

func hostsCmd(env *app.Env) *cobra.Command {
	var o app.HostsOptions
	c := &cobra.Command{Use: "hosts", Short: "List the members: reachable, converged, Ready", Args: cobra.NoArgs,
		Long: "hosts lists the members. With --wait ready it looks at the cluster until the Nodes of all selected\n" +
			"members are Ready, and tells who is not whenever that changes. A host whose Node says Ready is asked\n" +
			"whether its kubelet runs, and a heartbeat of the process before does not count.\n\n" +
			"Exit codes with --wait: 0 all are Ready, 1 error, 3 some were not in time or are not there.",
		RunE: func(c *cobra.Command, _ []string) error { return app.Hosts(c.Context(), env, o) }}
	f := c.Flags()
	f.StringVarP(&o.Format, "output", "o", "", "wide, json or name")
	f.BoolVar(&o.JSON, "json", false, "print one JSON document, as -o json does")
	f.StringVar(&o.Wait, "wait", "", "wait until the Nodes of all members are in a `STATE`: ready")
	f.DurationVar(&o.Timeout, "timeout", 10*time.Minute, "how `LONG` --wait waits")
	sourceFlags(f, &o.Source)
	c.AddCommand(forgetKeyCmd(env))
	return c
}

func forgetKeyCmd(env *app.Env) *cobra.Command {
	var o app.ForgetKeyOptions
	c := &cobra.Command{Use: "forget-key HOST...", Short: "Replace the pinned SSH keys of hosts by those that they offer now", Args: cobra.MinimumNArgs(1),
		ValidArgsFunction: arguments(env, app.HostsByName),
		Long: "forget-key shows the pinned key and the key that the host offers, asks, and pins the offered one. Use it for a host\n" +
			"that was reinstalled on purpose (wrong-host-key), or for a member without a pin (host-key-unknown). Compare the\n" +
			"fingerprint first: anybody may answer at an address. It also removes the pin of a server that is gone.\n\n" +
			"Example: macfleet hosts forget-key acme-production-runners-m2-0a1b2 --fingerprint SHA256:…\n\n" +
			"Exit codes: 0 pinned, or pinned already; 1 error, or not accepted.",
		RunE: func(c *cobra.Command, _ []string) error { return app.ForgetKey(c.Context(), env, o) }}
	c.Flags().StringVar(&o.Fingerprint, "fingerprint", "", "accept only the key with this `FINGERPRINT`, without asking (one host)")
	return c
}

func runsCmd(env *app.Env) *cobra.Command {
	asJSON := false
	c := &cobra.Command{Use: "runs", Short: "List the runs that were made from here", Args: cobra.NoArgs,
		Long: "runs lists the runs that changed something from this machine, or meant to, the newest first. One that broke\n" +
			"off has no end in its record, and its process is gone. It reads files alone.",
		RunE: func(*cobra.Command, []string) error { return app.Runs(env, asJSON) }}
	jsonFlag(c.Flags(), &asJSON)
	return c
}

func showCmd(env *app.Env) *cobra.Command {
	var o app.Form
	c := &cobra.Command{Use: "show RUN|FILE", Short: "Show what a run did, or a plan that plan --out kept", Args: cobra.ExactArgs(1), ValidArgsFunction: arguments(env, app.ARun),
		Long: "show tells who did what and when in a run, what happened on each host, and the last words of scripts that\n" +
			"failed. RUN is its id or how the id begins, or last. A file is shown by what is in it: a record of a run, or a\n" +
			"plan as plan printed it, with who made it and how long it is good. It reads files alone.",
		RunE: func(*cobra.Command, []string) error { return app.Show(env, o) }}
	formFlags(c.Flags(), &o)
	return c
}
