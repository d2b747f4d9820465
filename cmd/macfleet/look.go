package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/macfleet/macfleet/internal/app"
)

func planCmd(env *app.Env) *cobra.Command {
	var o app.PlanOptions
	c := &cobra.Command{Use: "plan", Short: "Show what would change and why", Args: cobra.NoArgs,
		Long: `Observes servers, hosts and the cluster, compares them with the configuration
and shows the difference. It changes nothing.

--out saves the plan: "macfleet show FILE" prints it, "macfleet apply FILE"
applies exactly what it contains. --snapshot plans from a saved observation.
--no-secrets needs no credentials: it checks the configuration and compares it
with a --snapshot, if one is given. --what-if plans with another number of
servers and shows what that needs: pool, stock, lease and price class.

Exit codes: 0 done, 1 error. With --detailed-exitcode: 0 no changes, 2 changes,
3 something could not be compared.`,
		Example: `  macfleet plan -e production
  macfleet plan --on fleet=runners --step power
  macfleet plan --what-if runners=12
  macfleet plan --out plan.json`,
		RunE: func(c *cobra.Command, _ []string) error { return app.Plan(c.Context(), env, o) }}
	formFlags(c.Flags(), &o.Form)
	c.Flags().BoolVar(&o.Scripts, "show-scripts", false, "also print the scripts that would run")
	sourceFlags(c.Flags(), &o.Source)
	c.Flags().StringVar(&o.Out, "out", "", "save the plan to `FILE`, for macfleet show and macfleet apply")
	c.Flags().DurationVar(&o.Expires, "expires", app.DefaultExpiry, "time for which the saved plan can be applied (at most 168h)")
	boundsFlags(c.Flags(), &o.Bounds)
	jsonIntoFlag(c.Flags(), &o.JSONInto)
	c.Flags().BoolVar(&o.Detailed, "detailed-exitcode", false, "exit 2 with changes, 3 when something could not be compared")
	c.Flags().BoolVar(&o.NoSecrets, "no-secrets", false, "resolve no secrets, use no credentials and ask nothing")
	c.Flags().StringArrayVar(&o.WhatIf, "what-if", nil, "plan with another number of servers: `FLEET=N` or FLEET.GROUP=N (repeatable); changes no file")
	annotationsFlag(c.Flags(), &o.Annotations)
	return c
}

func driftCmd(env *app.Env) *cobra.Command {
	var o app.DriftOptions
	c := &cobra.Command{Use: "drift", Short: "Show what changed outside macfleet", Args: cobra.NoArgs,
		Long: `Observes everything and reports what changed outside macfleet. It changes
nothing. Changes in the configuration that were never applied are counted, but
are not drift. An ignore block silences drift until its date; apply still fixes
it. If a provider does not answer, the result is incomplete.

Exit codes: 0 everything compared and no drift, 1 error, 2 drift, 3 incomplete.
If both apply, the exit code is 2.`,
		Example: `  macfleet drift -e production
  macfleet drift --remember last.json --format markdown
  macfleet drift --format prometheus`,
		RunE: func(c *cobra.Command, _ []string) error { return app.Drift(c.Context(), env, o) }}
	c.Flags().StringVar(&o.Format, "format", app.DriftFormats()[0], "output `FORMAT`: text, json, markdown (for an issue) or prometheus (for the textfile collector)")
	c.Flags().BoolVar(&o.JSON, "json", false, "print one JSON document (same as --format json)")
	c.Flags().StringVar(&o.Since, "since", "", "compare with `FILE`, an earlier --format json: show new and recovered drift, keep what was known of unreachable hosts")
	c.Flags().StringVar(&o.Remember, "remember", "", "like --since, but creates `FILE` if missing and updates it")
	c.Flags().BoolVar(&o.ExitZero, "exit-zero", false, "exit 0 with drift and when incomplete; errors still exit 1")
	sourceFlags(c.Flags(), &o.Source)
	jsonIntoFlag(c.Flags(), &o.JSONInto)
	_ = c.RegisterFlagCompletionFunc("format", words(app.DriftFormats()...)) // it has more formats than a plan
	return c
}

func doctorCmd(env *app.Env) *cobra.Command {
	var o app.DoctorOptions
	c := &cobra.Command{Use: "doctor HOST", Short: "Check one host and list its problems", Args: cobra.ExactArgs(1), ValidArgsFunction: arguments(env, app.AHost),
		Long: `Runs all checks on one server and lists problems with their fixes. It changes
nothing. HOST is the name or id of any server of the project: a member, a pool
server or an unmanaged one.

--record saves the host's answers without names, addresses and keys, for a bug
report. Read the file before you share it.

Exit codes: 0 all checks ok, 1 no such server, 3 a problem, a warning or an
unknown.`,
		Example: `  macfleet doctor acme-production-runners-m2-0bccd
  macfleet doctor 0bccd --record answers.json`,
		RunE: func(c *cobra.Command, _ []string) error { return app.Doctor(c.Context(), env, o) }}
	jsonFlag(c.Flags(), &o.JSON)
	c.Flags().BoolVarP(&o.Verbose, "verbose", "v", false, "list the checks that are ok, too")
	c.Flags().StringVar(&o.Record, "record", "", "save the answers to a new `FILE`")
	c.Flags().BoolVar(&o.Force, "force", false, "overwrite the file of --record")
	c.AddCommand(accountCmd(env), githubCmd(env))
	return c
}

func accountCmd(env *app.Env) *cobra.Command {
	var o app.AccountOptions
	c := &cobra.Command{Use: "account", Short: "Check the API key, its rights and the project", Args: cobra.NoArgs,
		Long: `Shows which API key, project and zones macfleet uses, tests each right that can
be tested without a change, and counts the servers by zone, role, type and
status. It says whether the project has the fleet's SSH key. It contacts no host
and changes nothing.

Exit codes: 0 all checks ok, 1 error, 3 a problem, a warning or an unknown.`,
		Example: `  macfleet doctor account -e production
  macfleet doctor account --json`,
		RunE: func(c *cobra.Command, _ []string) error { return app.DoctorAccount(c.Context(), env, o) }}
	jsonFlag(c.Flags(), &o.JSON)
	return c
}

func githubCmd(env *app.Env) *cobra.Command {
	var o app.GitHubOptions
	c := &cobra.Command{Use: "github", Short: "Check the credentials for GitHub and the runner groups", Args: cobra.NoArgs,
		Long: `Checks each organization or repository where fleets register runners: the
credentials and their permission, which repositories may use the runner group,
and whether the fence group has none. It contacts no host and changes nothing.

Exit codes: 0 all checks ok, 1 error, 3 a problem, a warning or an unknown.`,
		Example: `  macfleet doctor github -e production
  macfleet doctor github --json`,
		RunE: func(c *cobra.Command, _ []string) error { return app.DoctorGitHub(c.Context(), env, o) }}
	jsonFlag(c.Flags(), &o.JSON)
	return c
}

func explainCmd(env *app.Env) *cobra.Command {
	var o app.ExplainOptions
	c := &cobra.Command{Use: "explain HOST [STEP]", Short: "Explain a host, a reason code or the configuration language",
		Args: func(c *cobra.Command, args []string) error {
			if o.Schema {
				return cobra.MaximumNArgs(1)(c, args)
			}
			return cobra.RangeArgs(1, 2)(c, args)
		},
		ValidArgsFunction: func(c *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if o.Schema {
				return arguments(env, app.APath)(c, args, begun)
			}
			return arguments(env, app.AHostOrCode, app.AStep)(c, args, begun)
		},
		Long: `Observes one host and shows, for each step, the state, the differences, what
apply would do and why, and every value with the file and line that set it. It
changes nothing.

With --schema it describes the configuration language instead: all blocks, or
the block or attribute at a PATH such as fleet.group.type. With a reason CODE it
says what the code means and how to fix it. Neither needs a connection.`,
		Annotations: map[string]string{otherUse: "CODE\n--schema [PATH]"},
		Example: `  macfleet explain acme-production-runners-m2-0bccd
  macfleet explain runners/0bccd tart_kubelet --script
  macfleet explain kubelet-crash-loop
  macfleet explain --schema fleet.group.type`,
		RunE: func(c *cobra.Command, _ []string) error { return app.Explain(c.Context(), env, o) }}
	jsonFlag(c.Flags(), &o.JSON)
	c.Flags().StringVar(&o.Snapshot, "snapshot", "", "use the observation in `FILE` (made by plan --record), without network or credentials")
	c.Flags().BoolVar(&o.Script, "script", false, "print the scripts that would run")
	c.Flags().BoolVar(&o.Schema, "schema", false, "describe the configuration language, or the block or attribute at PATH")
	return c
}

func hostsCmd(env *app.Env) *cobra.Command {
	var o app.HostsOptions
	c := &cobra.Command{Use: "hosts", Short: "List hosts with their state", Args: cobra.NoArgs,
		Long: `Lists the members: whether each is reachable, in sync and Ready, and why not.

--wait ready waits until the Nodes of all selected hosts are Ready and reports
those that are not. A Node counts when its current kubelet process has reported.

Exit codes with --wait: 0 all Ready, 1 error, 3 some are not Ready in time.`,
		Example: `  macfleet hosts --on fleet=runners
  macfleet hosts --sort-by state
  macfleet hosts -o json
  macfleet hosts -w --on fleet=runners
  macfleet hosts --wait ready --timeout 10m`,
		RunE: func(c *cobra.Command, _ []string) error { return app.Hosts(c.Context(), env, o) }}
	f := c.Flags()
	f.StringVarP(&o.Format, "output", "o", "", "output `FORMAT`: wide, json, yaml or name")
	f.BoolVar(&o.JSON, "json", false, "print one JSON document (same as -o json)")
	f.BoolVar(&o.NoHeaders, "no-headers", false, "print rows only: no heading, no column names, no footer")
	f.StringVar(&o.SortBy, "sort-by", "", "sort by `COLUMN`, for example state (worst first)")
	f.BoolVarP(&o.Watch, "watch", "w", false, "keep watching; on a terminal the table is redrawn, in a pipe changed rows are printed")
	f.DurationVar(&o.Interval, "interval", app.DefaultInterval, "how often --watch observes the hosts")
	f.StringVar(&o.Wait, "wait", "", "wait until the Nodes of all selected hosts have the `STATE` ready")
	f.DurationVar(&o.Timeout, "timeout", 10*time.Minute, "how long --wait waits")
	sourceFlags(f, &o.Source)
	c.AddCommand(forgetKeyCmd(env))
	return c
}

func forgetKeyCmd(env *app.Env) *cobra.Command {
	var o app.ForgetKeyOptions
	c := &cobra.Command{Use: "forget-key HOST...", Short: "Forget a host's pinned SSH key and pin the one it offers now", Args: cobra.MinimumNArgs(1),
		ValidArgsFunction: arguments(env, app.HostsByName),
		Long: `Shows the pinned key of a host and the key it offers, asks, then forgets the
first and pins the second. Use it for a host that was reinstalled on purpose
(wrong-host-key) or a member without a pin (host-key-unknown). Compare the
fingerprint with one from a trusted source first. Of a deleted server it only
forgets the pin.

Exit codes: 0 pinned, 1 error or not accepted.`,
		Example: `  macfleet hosts forget-key acme-production-runners-m2-0bccd
  macfleet hosts forget-key runners/0bccd --fingerprint SHA256:…`,
		RunE: func(c *cobra.Command, _ []string) error { return app.ForgetKey(c.Context(), env, o) }}
	c.Flags().StringVar(&o.Fingerprint, "fingerprint", "", "accept only the key with this `FINGERPRINT`, without asking (one host)")
	return c
}

func runsCmd(env *app.Env) *cobra.Command {
	asJSON := false
	c := &cobra.Command{Use: "runs", Short: "List runs started from this machine", Args: cobra.NoArgs,
		Long: `Lists runs started from this machine, successful or not, newest first. A run
that was killed has no end in its record. It reads local files only.`,
		Example: `  macfleet runs
  macfleet runs --json --runs-dir /var/lib/macfleet/runs`,
		RunE: func(*cobra.Command, []string) error { return app.Runs(env, asJSON) }}
	jsonFlag(c.Flags(), &asJSON)
	return c
}

func showCmd(env *app.Env) *cobra.Command {
	var o app.Form
	c := &cobra.Command{Use: "show RUN|FILE", Short: "Show a run or a saved plan", Args: cobra.ExactArgs(1), ValidArgsFunction: arguments(env, app.ARun),
		Long: `Shows a run: who started it, what happened on each host, and the output of
scripts that failed. RUN is its id, the beginning of its id, or last. FILE is a
record of a run or a plan saved by plan --out. It reads local files only.`,
		Example: `  macfleet show last
  macfleet show plan.json
  macfleet show plan.json --format markdown`,
		RunE: func(*cobra.Command, []string) error { return app.Show(env, o) }}
	formFlags(c.Flags(), &o)
	return c
}
