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

// run executes one command line and returns its exit code.
func run(ctx context.Context, args []string, s app.Streams) int {
	return app.Run(ctx, s, args, func(ctx context.Context, env *app.Env) error {
		root := rootCmd(env)
		root.SetArgs(args)
		if err := oneDash(root, args); err != nil {
			return err
		}
		err := root.ExecuteContext(ctx)
		if slices.Contains(args, "--sandbox") && errors.As(err, new(tooMany)) {
			err = fmt.Errorf("%w\nUse \"=\" to choose a sandbox directory: --sandbox=DIR", err)
		}
		return err
	})
}

func rootCmd(env *app.Env) *cobra.Command {
	root := group("macfleet", "Plan, apply and watch fleets of Mac minis",
		planCmd(env), applyCmd(env), driftCmd(env), hostsCmd(env), explainCmd(env), doctorCmd(env),
		showCmd(env), runsCmd(env), cordonCmd(env), holdCmd(env), unholdCmd(env), quarantineCmd(env), unquarantineCmd(env), replaceCmd(env), releaseCmd(env), restartCmd(env), rebootCmd(env), lockCmd(env),
		validateCmd(env), fmtCmd(env), sandboxCmd(env), versionCmd(env), optionsCmd(),
		initCmd(env), importCmd(env), artifactsCmd(env))
	root.Long = "macfleet compares fleets of rented Mac minis with your HCL and fixes drift."
	root.Version = fleet.Version
	root.SilenceErrors, root.SilenceUsage = true, true
	root.PersistentPreRunE = func(c *cobra.Command, _ []string) error { return begin(env, c) }
	root.SetIn(env.In)
	root.SetOut(env.Out)
	root.SetErr(env.Err)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return flagFault(env, c, err) })
	globalFlags(root.PersistentFlags(), &env.Global)
	root.AddCommand(topicCmds()...)
	completions(env, root)
	shells(root)
	root.SetHelpCommand(helpCmd())
	root.InitDefaultHelpCmd()
	useHelp(root)
	explainArgs(env, root)
	plainTexts(root)
	return root
}

// group returns a command that only has others below it.
func group(use, short string, below ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs, Annotations: map[string]string{groupMark: "yes"},
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() }}
	c.AddCommand(below...)
	return c
}

// groupMark is the annotation of a command that does nothing itself.
const groupMark = "group"

func isGroup(c *cobra.Command) bool { return c.Annotations[groupMark] != "" }

// begin completes the flags of a command from the environment, and notes in env what was given.
func begin(env *app.Env, c *cobra.Command) error {
	if c.Name() == cobra.ShellCompRequestCmd || c.Name() == cobra.ShellCompNoDescRequestCmd {
		return nil // completion reports no errors
	}
	env.Repeat = repeatedFlags(c.Flags())
	for _, other := range c.Root().Commands() {
		env.Commands = append(env.Commands, other.Name())
	}
	if err := fromEnvironment(c.Flags()); err != nil {
		return err
	}
	env.Command = strings.Fields(c.CommandPath() + " macfleet")[1]
	env.Args, env.Flags = c.Flags().Args(), givenFlags(c.Flags())
	if c.Flags().Changed("sandbox") && env.Sandbox == "" {
		return errors.New("--sandbox= needs a directory; without one macfleet would work on the real world")
	}
	return nil
}

// repeatedFlags returns the flags, as they were given on the line, that a command needs to be about the same configuration and
// world. Without the variables a suggested command would remove what the shown plan adds.
func repeatedFlags(flags *pflag.FlagSet) []string {
	var out []string
	for _, flag := range []struct{ name, before string }{{"directory", "-C "}, {"environment", "-e "}, {"var-file", "--var-file "}, {"var", "--var "}, {"sandbox", "--sandbox="}} {
		f := flags.Lookup(flag.name)
		if f == nil || !f.Changed {
			continue
		}
		many, is := f.Value.(pflag.SliceValue)
		switch {
		case is:
			for _, text := range many.GetSlice() {
				out = append(out, flag.before+app.Quoted(text))
			}
		case f.NoOptDefVal != "" && f.Value.String() == f.NoOptDefVal:
			out = append(out, "--"+flag.name)
		default:
			out = append(out, flag.before+app.Quoted(f.Value.String()))
		}
	}
	return out
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

// givenFlags returns the flags that were given, for the record of a run. Of a variable it has only the name, because the value may be a secret.
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
