package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/macfleet/macfleet/internal/app"
)

func validateCmd(env *app.Env) *cobra.Command {
	var o app.ValidateOptions
	c := &cobra.Command{Use: "validate", Short: "Check the configuration, without network or credentials", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return app.Validate(c.Context(), env, o) }}
	jsonFlag(c.Flags(), &o.JSON)
	annotationsFlag(c.Flags(), &o.Annotations)
	c.Flags().BoolVar(&o.NoSecrets, "no-secrets", false, "read no file outside of the configuration's folder; of secrets none is read anyway")
	return c
}

func fmtCmd(env *app.Env) *cobra.Command {
	var o app.FormatOptions
	c := &cobra.Command{Use: "fmt [FILE...]", Short: "Lay out the configuration's files in the one canonical way",
		Long: "fmt lays out the *.fleet.hcl files of the directory, or the FILEs that are named, and prints the names\n" +
			"of those it changed. Only spaces change. \"-\" stands for standard input, laid out to standard output.\n\n" +
			"Exit codes:\n" +
			"  0    done; --check: all are laid out so already\n" +
			"  1    a file cannot be read, parsed or written; the others are done\n" +
			"  2    --check: some would change",
		RunE: func(*cobra.Command, []string) error { return app.Format(env, o) }}
	annotationsFlag(c.Flags(), &o.Annotations)
	c.Flags().BoolVar(&o.Check, "check", false, "write nothing; print the names of what would change and exit with 2")
	return c
}

func versionCmd(env *app.Env) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{Use: "version", Short: "Print macfleet's version", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return app.Version(env, asJSON) }}
	jsonFlag(c.Flags(), &asJSON)
	return c
}

func artifactsLockCmd(env *app.Env) *cobra.Command {
	var o app.LockArtifactsOptions
	c := &cobra.Command{Use: "lock [NAME...]", Short: "Write the digests of artifacts into the configuration", Args: cobra.ArbitraryArgs, ValidArgsFunction: arguments(env, app.AnArtifact),
		Long: "lock reads the source of each artifact, downloading URLs, and writes sha256 and size into its block.\n" +
			"A digest that stands there already is changed with --update alone: a server that has other bytes\n" +
			"under the same name is an accident or an attack.",
		RunE: func(c *cobra.Command, _ []string) error { return app.LockArtifacts(c.Context(), env, o) }}
	c.Flags().BoolVar(&o.Check, "check", false, "write nothing; exit with 2 when a block is out of date")
	c.Flags().BoolVar(&o.Update, "update", false, "also change digests that are locked")
	return c
}

func artifactsStatusCmd(env *app.Env) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{Use: "status", Short: "List the artifacts: version, digest, whether they are here, who uses them", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return app.ArtifactsStatus(c.Context(), env, asJSON) }}
	jsonFlag(c.Flags(), &asJSON)
	return c
}

func sandboxCmd(env *app.Env) *cobra.Command {
	var incidents strings.Builder
	for _, i := range app.Incidents() {
		fmt.Fprintf(&incidents, "  %-22s %s\n", i.Name, i.Summary)
	}
	return group("sandbox", "Look at and disturb the simulated world",
		&cobra.Command{Use: "list", Short: "List the simulated servers and their incidents", Args: cobra.NoArgs,
			RunE: func(*cobra.Command, []string) error { return app.SandboxList(env) }},
		&cobra.Command{Use: "path HOST", Short: "Print the folder that is a simulated host's file system", Args: cobra.ExactArgs(1), ValidArgsFunction: arguments(env, app.ASimulatedHost),
			RunE: func(*cobra.Command, []string) error { return app.SandboxPath(env) }},
		&cobra.Command{Use: "inject HOST INCIDENT", Short: "Let something happen to a host", Args: cobra.ExactArgs(2), ValidArgsFunction: arguments(env, app.ASimulatedHost, app.AnIncident),
			Long: "inject lets something happen to a host. The incidents:\n\n" + incidents.String(),
			RunE: func(*cobra.Command, []string) error { return app.SandboxInject(env) }},
		&cobra.Command{Use: "heal [HOST [INCIDENT]]", Short: "Undo incidents", Args: cobra.MaximumNArgs(2), ValidArgsFunction: arguments(env, app.ASimulatedHost, app.AnIncident),
			RunE: func(*cobra.Command, []string) error { return app.SandboxHeal(env) }},
		&cobra.Command{Use: "switch HOST [NAME [VALUE]]", Short: "Show or set how a simulated host behaves where Macs are told to differ", Args: cobra.RangeArgs(1, 3), ValidArgsFunction: arguments(env, app.ASimulatedHost, app.ASwitch, app.ASwitchValue),
			RunE: func(*cobra.Command, []string) error { return app.SandboxSwitch(env) }},
		sandboxRunCmd(env),
		&cobra.Command{Use: "reset", Short: "Remove the simulated world", Args: cobra.NoArgs,
			RunE: func(*cobra.Command, []string) error { return app.SandboxReset(env) }})
}

func sandboxRunCmd(env *app.Env) *cobra.Command {
	return &cobra.Command{Use: "run -- COMMAND [ARGUMENT...]", Short: "Run a command, such as kubectl, against the simulated cluster", Args: cobra.MinimumNArgs(1),
		Long: "run serves the simulated world while COMMAND runs. KUBECONFIG names a file that leads to its cluster and is\n" +
			"removed afterwards; MACFLEET_SANDBOX names the world. It ends with COMMAND's exit code.\n\n" +
			"  macfleet sandbox run -- kubectl get nodes",
		RunE: func(c *cobra.Command, _ []string) error { return app.SandboxRun(c.Context(), env) }}
}
