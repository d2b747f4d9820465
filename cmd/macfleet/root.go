package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/app"
)

const exitCodes = `Exit codes:
  0    done; plan --detailed-exitcode: no changes; drift: compared everything, no drift; apply: converged; doctor: all ok
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
		showCmd(env), runsCmd(env), initCmd(env), cordonCmd(env), holdCmd(env), unholdCmd(env), restartCmd(env), lockCmd(env),
		validateCmd(env), fmtCmd(env), artifactsCmd(env), sandboxCmd(env), versionCmd(env))
	completions(env, root)
	shells(root)
	explainArgs(root)
	return root
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

// argsError says that a command's arguments are too few or too many, and what to
// type.
type argsError struct {
	text string
	over bool // too many
}

func (e *argsError) Error() string { return e.text }

// tooMuch reports whether an error is about a word that has no place.
func tooMuch(err error) bool {
	var e *argsError
	return errors.As(err, &e) && e.over || err != nil && strings.HasPrefix(err.Error(), "unknown command")
}

// explainArgs makes all commands below c say which arguments are missing or too
// many, by the names that their usage has for them.
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
		return &argsError{text: fmt.Sprintf("%s needs %s; see %s --help", path, missing, path)}
	}
	extra := args[min(len(names), len(args)-1)]
	if c.HasSubCommands() {
		return &argsError{over: true, text: fmt.Sprintf("%s has no command %q; see %s --help", path, extra, path)}
	}
	return &argsError{over: true, text: fmt.Sprintf("%s has no place for %q; see %s --help", strings.Join(append([]string{path}, names...), " "), extra, path)}
}
