package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/app"
)

const exitCodes = `Exit codes:
  0    done; plan --detailed-exitcode: no changes; drift: compared everything, no drift; apply: everything that may be done is done; doctor: all ok
  1    error: faulty configuration, missing credentials, a provider that does not answer
  2    plan --detailed-exitcode: changes; drift: drift (2 beats 3); fmt --check, artifacts lock --check: some files would change
  3    plan --detailed-exitcode, drift: incomplete (drift: a provider that does not answer, too); apply: some hosts failed, refused, interrupted or not converged;
       doctor: something is not ok
  130  left at once by a second Ctrl-C`

// run executes one command line and returns its exit code.
func run(ctx context.Context, args []string, s app.Streams) int {
	return app.Run(ctx, s, args, func(ctx context.Context, env *app.Env) error {
		root := rootCmd(env)
		root.SetArgs(args)
		err := root.ExecuteContext(ctx)
		if i := slices.Index(args, "--sandbox"); i >= 0 && tooMuch(err) {
			err = fmt.Errorf("%w\nA folder for --sandbox stands behind a sign: --sandbox=DIR", err)
		}
		return err
	})
}

func rootCmd(env *app.Env) *cobra.Command {
	root := &cobra.Command{
		Use:   "macfleet",
		Short: "Plan, apply and watch fleets of Mac minis",
		Long: "macfleet reads HCL that says what fleets of rented Mac minis should be, looks at the truth,\n" +
			"shows the difference, and removes it. There is no state file.\n\n" + exitCodes,
		Version:           fleet.Version,
		SilenceErrors:     true,
		SilenceUsage:      true,
		PersistentPreRunE: func(c *cobra.Command, _ []string) error { return begin(env, c) },
	}
	root.SetIn(env.In)
	root.SetOut(env.Out)
	root.SetErr(env.Err)
	globalFlags(root.PersistentFlags(), &env.Global)
	root.AddCommand(planCmd(env), applyCmd(env), driftCmd(env), hostsCmd(env), explainCmd(env), doctorCmd(env),
		showCmd(env), runsCmd(env), cordonCmd(env), holdCmd(env), unholdCmd(env), restartCmd(env), lockCmd(env),
		validateCmd(env), fmtCmd(env), sandboxCmd(env), versionCmd(env),
		group("init", "Prepare what macfleet works with", initClusterCmd(env)),
		group("artifacts", "Lock the files that hosts get, and say where they are", artifactsLockCmd(env), artifactsStatusCmd(env)))
	completions(env, root)
	shells(root)
	explainArgs(root)
	return root
}

// group returns a command that only has others below it.
func group(use, short string, below ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs, RunE: func(c *cobra.Command, _ []string) error { return c.Help() }}
	c.AddCommand(below...)
	return c
}

// begin settles the flags of a command, and tells the Env of what was given.
func begin(env *app.Env, c *cobra.Command) error {
	if c.Name() == cobra.ShellCompRequestCmd || c.Name() == cobra.ShellCompNoDescRequestCmd {
		return nil // completion says nothing of faults
	}
	if err := fromEnvironment(c.Flags()); err != nil {
		return err
	}
	env.Command = strings.Fields(c.CommandPath() + " macfleet")[1]
	env.Args, env.Flags = c.Flags().Args(), givenFlags(c.Flags())
	if c.Flags().Changed("sandbox") && env.Sandbox == "" {
		return errors.New("--sandbox= names no folder; without one this would be the real world")
	}
	return nil
}

// tooMany says that a command's arguments are too many.
type tooMany string

func (e tooMany) Error() string { return string(e) }

// tooMuch reports whether an error is about a word that has no place.
func tooMuch(err error) bool {
	return errors.As(err, new(tooMany)) || err != nil && strings.HasPrefix(err.Error(), "unknown command")
}

// explainArgs makes all commands below c name the arguments that are missing or too many.
func explainArgs(c *cobra.Command) {
	for _, sub := range c.Commands() {
		explainArgs(sub)
		if check := sub.Args; check != nil {
			sub.Args = func(c *cobra.Command, args []string) error {
				if check(c, args) == nil {
					return nil
				}
				return wrongArgs(c, args)
			}
		}
	}
}

func wrongArgs(c *cobra.Command, args []string) error {
	path, names := c.CommandPath(), strings.Fields(c.Use)[1:]
	needed := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return strings.HasPrefix(n, "[") })
	if len(args) < len(needed) {
		missing := strings.Join(needed[len(args):], " and ")
		return fmt.Errorf("%s needs %s; see %s --help", path, missing, path)
	}
	extra := args[min(len(names), len(args)-1)]
	if now, renamed := renamedCommands[extra]; renamed && c.HasSubCommands() {
		return tooMany(fmt.Sprintf("%s has no command %q any more: use %s; see %[3]s --help", path, extra, now))
	}
	if c.HasSubCommands() {
		return tooMany(fmt.Sprintf("%s has no command %q; see %s --help", path, extra, path))
	}
	return tooMany(fmt.Sprintf("%s has no place for %q; see %s --help", strings.Join(append([]string{path}, names...), " "), extra, path))
}

// renamedCommands are names that commands had, and what does their work now.
var renamedCommands = map[string]string{"trust": "macfleet hosts forget-key"}

// globalFlags adds the flags of every command.
func globalFlags(f *pflag.FlagSet, g *app.Global) {
	f.SortFlags = false
	f.StringVarP(&g.Dir, "directory", "C", ".", "`DIR` of the *.fleet.hcl files")
	f.StringVarP(&g.Environment, "environment", "e", "", "`ENVIRONMENT`, mandatory where the configuration has any")
	f.StringArrayVar(&g.Vars, "var", nil, "set a variable: `NAME=VALUE`")
	f.StringArrayVar(&g.VarFiles, "var-file", nil, "set variables from a `FILE` of name = value lines")
	f.StringVar(&g.Sandbox, "sandbox", "", "work on a simulated world in `DIR`, made when missing")
	f.Lookup("sandbox").NoOptDefVal = app.SandboxDefault
	f.IntVar(&g.SandboxHosts, "sandbox-hosts", 0, "servers in the pool of a new sandbox: `N` (default 16)")
	f.StringArrayVar(&g.On, "on", nil, "only hosts that match a `SELECTOR` (or another --on), for example fleet=runners,zone=fr-par-1,ready=false,name=…")
	f.StringArrayVar(&g.Exclude, "exclude", nil, "no hosts that match a `SELECTOR`")
	f.StringArrayVar(&g.Steps, "step", nil, "only a `STEP` (or another --step), for example power; no server is claimed or renamed then")
	f.IntVar(&g.Parallelism, "parallelism", 32, "`N` hosts worked on at once")
	f.IntVar(&g.ObserveParallelism, "observe-parallelism", app.DefaultObservers, "`N` hosts observed at once")
	f.IntVar(&g.Starts, "connection-starts", app.DefaultStarts, "`N` connections opened at once, until they are logged in")
	f.StringVar(&g.SSHConfig, "ssh-config", "", "the ssh client's `FILE`, none for no file (default ~/.ssh/config and /etc/ssh/ssh_config; a sandbox has none)")
	f.BoolVar(&g.NoColor, "no-color", false, "no colours")
	f.BoolVar(&g.Stats, "stats", false, "say what the command cost")
	f.StringVar(&g.RunsDir, "runs-dir", "", "keep the records of runs, and the logs, in a `DIR` (default .macfleet/runs and .macfleet/logs beside the configuration)")
	f.StringVar(&g.LogLevel, "log-level", "debug", "how much stands in the log: `LEVEL` debug, info, warn, error, or off for no log")
	f.StringVar(&g.LogFile, "log-file", "", "write the log into a `FILE`")
}

// sourceFlags adds the flags of a command that looks and changes nothing.
func sourceFlags(f *pflag.FlagSet, o *app.Source) {
	f.StringVar(&o.Record, "record", "", "keep what was observed in a `FILE`")
	f.StringVar(&o.Snapshot, "snapshot", "", "look at a `FILE` that --record made, without network or credentials")
}

// formFlags adds the flags that say how a plan is printed.
func formFlags(f *pflag.FlagSet, o *app.Form) {
	f.BoolVar(&o.JSON, "json", false, "print one JSON document, as --format json does")
	f.StringVar(&o.Format, "format", app.Forms()[0], "print the plan as `FORM`: text, json or markdown")
	f.IntVar(&o.Limit, "limit", app.DefaultLimit, "with --format markdown: at most so many `BYTES`")
}

// boundsFlags adds the flags of plan and apply that say what one run may do. Each names what it
// allows, so that the record of a run tells it.
func boundsFlags(f *pflag.FlagSet, o *app.Bounds) {
	f.IntVar(&o.MaxDisrupted, "max-disrupted", 0, "drain, reboot or wipe up to `N` Ready hosts of each fleet in this run (default: as the guardrails say, else any number)")
	f.IntVar(&o.MaxWipes, "max-wipes", 0, "wipe up to `N` hosts in this run (default: as the guardrails say, else one)")
	f.IntVar(&o.MaxHosts, "max-hosts", 0, "change up to `N` hosts in this run (default: as the guardrails say, else any number)")
	f.BoolVar(&o.AnyTime, "outside-windows", false, "drain, reboot and wipe now, whatever windows the guardrails name")
	f.BoolVar(&o.Orphans, "allow-orphans", false, "claim servers also while hosts of ours have no place in the configuration any more")
	f.StringVar(&o.MovedFrom, "moved-from-cluster", "", "move hosts that were set up in the cluster with this `UID` to the present one")
	f.BoolVar(&o.Rollback, "rollback", false, "of what hosts get as artifacts, go back to the version before; needs --on")
}

// lockFlags adds the flags of commands that change hosts.
func lockFlags(f *pflag.FlagSet, o *app.Locking) {
	f.DurationVar(&o.Timeout, "lock-timeout", app.LockTimeout, "how `LONG` another apply is waited for; 0: not at all")
	f.DurationVar(&o.Lasts, "lock-lease", app.LockLasts, "how `LONG` the lock counts without being renewed")
	// For tests, which cannot wait for half a minute: the name is there and hidden.
	_ = f.MarkHidden("lock-lease") // it is defined
}

// jsonFlag adds the flag of commands that print one document.
func jsonFlag(f *pflag.FlagSet, asJSON *bool) {
	f.BoolVar(asJSON, "json", false, "print one JSON document")
}

// jsonIntoFlag adds the flag by which a person reads text while a program reads JSON.
func jsonIntoFlag(f *pflag.FlagSet, file *string) {
	f.StringVar(file, "json-into", "", "beside the text, write one JSON object a line into a `FILE`, as apply --json prints them")
}

// approveFlag adds the flag of commands that ask.
func approveFlag(f *pflag.FlagSet, approve *bool) {
	f.BoolVar(approve, "auto-approve", false, "do not ask")
}

func annotationsFlag(f *pflag.FlagSet, o *app.Annotations) {
	f.StringVar((*string)(o), "annotations", "", "print notes on the lines of the configuration to standard error, as `SERVICE` reads them: github")
}

// fromEnvironment fills flags that were not given from MACFLEET_<FLAG>; --var has MACFLEET_VAR_<name> instead.
func fromEnvironment(flags *pflag.FlagSet) error {
	var err error
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Changed || f.Name == "var" || f.Name == "help" || f.Name == "version" || err != nil {
			return
		}
		name := "MACFLEET_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		value, ok := os.LookupEnv(name)
		if !ok || value == "" {
			return
		}
		if f.Name == "sandbox" {
			if on, berr := strconv.ParseBool(value); berr == nil && !on {
				return
			} else if berr == nil {
				value = f.NoOptDefVal
			}
		}
		if serr := flags.Set(f.Name, value); serr != nil {
			err = fmt.Errorf("environment variable %s: %w", name, serr)
		}
	})
	return err
}

// givenFlags returns the flags that were given. Of a variable it tells the name: a value may be anybody's.
func givenFlags(flags *pflag.FlagSet) []string {
	var out []string
	flags.Visit(func(f *pflag.Flag) {
		values := []string{f.Value.String()}
		if many, ok := f.Value.(pflag.SliceValue); ok {
			values = many.GetSlice()
		}
		for _, text := range values {
			if f.Name == "var" {
				text, _, _ = strings.Cut(text, "=")
			}
			out = append(out, "--"+f.Name+"="+text)
		}
	})
	return out
}

// completions tells cobra what the flags of the commands become.
func completions(env *app.Env, root *cobra.Command) {
	for flag, f := range map[string]cobra.CompletionFunc{
		"environment": value(env, app.AnEnvironment, cobra.ShellCompDirectiveNoFileComp),
		"step":        value(env, app.AStep, cobra.ShellCompDirectiveNoFileComp),
		"failed-from": value(env, app.ARun, cobra.ShellCompDirectiveNoFileComp),
		// No space is put behind values that go on.
		"on":          value(env, app.ASelector, cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace),
		"exclude":     value(env, app.ASelector, cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace),
		"var":         value(env, app.AVariable, cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace),
		"log-level":   words("debug", "error", "info", "off", "warn"),
		"wait":        words("ready"),
		"format":      words(app.Forms()...),
		"annotations": words("github"),
		"output":      words(app.HostsFormats()...),
	} {
		for _, c := range slices.Concat([]*cobra.Command{root}, root.Commands()) {
			if c.Flags().Lookup(flag) != nil || c.PersistentFlags().Lookup(flag) != nil {
				_ = c.RegisterFlagCompletionFunc(flag, f) // it fails for a flag that is not there or has one
			}
		}
	}
}

// words completes to words that are known now.
func words(all ...string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		all := slices.DeleteFunc(slices.Clone(all), func(w string) bool { return !strings.HasPrefix(w, begun) })
		slices.Sort(all)
		return all, cobra.ShellCompDirectiveNoFileComp
	}
}

// value completes to one kind of word. Flags are read from the environment first, as every command does.
func value(env *app.Env, kind app.Kind, directive cobra.ShellCompDirective) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		_ = fromEnvironment(c.Flags()) // a flag that cannot be set is the command's own fault to tell
		return app.Complete(env, kind, args, begun), directive
	}
}

// arguments completes to one kind of word for each place.
func arguments(env *app.Env, kinds ...app.Kind) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		place := len(args)
		if kinds[0].Repeats {
			place = 0
		}
		if place >= len(kinds) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return value(env, kinds[place], cobra.ShellCompDirectiveNoFileComp)(c, args, begun)
	}
}

// shells adds the command that prints completion scripts, for the shells of macOS and Linux.
func shells(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	c, _, err := root.Find([]string{"completion"})
	if err != nil {
		return
	}
	c.Short = "Print the completion script for bash, zsh or fish"
	c.Long = "completion prints the script that completes macfleet's commands, flags and names in a shell.\n" +
		"The help of the command for a shell says where to put it."
	c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	for _, shell := range c.Commands() {
		if shell.Name() == "powershell" {
			c.RemoveCommand(shell)
		}
	}
}
