package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/macfleet/macfleet/internal/app"
)

func sandboxCmd(env *app.Env) *cobra.Command {
	c := &cobra.Command{Use: "sandbox", Short: "Look at and disturb the simulated world", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() }}
	var incidents strings.Builder
	for _, i := range app.Incidents() {
		fmt.Fprintf(&incidents, "  %-22s %s\n", i.Name, i.Summary)
	}
	c.AddCommand(
		&cobra.Command{Use: "list", Short: "List the simulated servers and their incidents", Args: cobra.NoArgs,
			RunE: func(*cobra.Command, []string) error { return app.SandboxList(env) }},
		&cobra.Command{Use: "path HOST", Short: "Print the folder that is a simulated host's file system", Args: cobra.ExactArgs(1), ValidArgsFunction: arguments(env, app.ASimulatedHost),
			RunE: func(_ *cobra.Command, args []string) error { return app.SandboxPath(env, args[0]) }},
		&cobra.Command{Use: "inject HOST INCIDENT", Short: "Let something happen to a host", Args: cobra.ExactArgs(2), ValidArgsFunction: arguments(env, app.ASimulatedHost, app.AnIncident),
			Long: "inject lets something happen to a host. The incidents:\n\n" + incidents.String(),
			RunE: func(_ *cobra.Command, args []string) error { return app.SandboxInject(env, args[0], args[1]) }},
		&cobra.Command{Use: "heal [HOST [INCIDENT]]", Short: "Undo incidents", Args: cobra.MaximumNArgs(2), ValidArgsFunction: arguments(env, app.ASimulatedHost, app.AnIncident),
			RunE: func(_ *cobra.Command, args []string) error {
				args = append(args, "", "")
				return app.SandboxHeal(env, args[0], args[1])
			}},
		&cobra.Command{Use: "switch HOST [NAME [VALUE]]", Short: "Show or set how a simulated host behaves where Macs are told to differ", Args: cobra.RangeArgs(1, 3), ValidArgsFunction: arguments(env, app.ASimulatedHost, app.ASwitch, app.ASwitchValue),
			RunE: func(_ *cobra.Command, args []string) error { return app.SandboxSwitch(env, args[0], args[1:]...) }},
		sandboxRunCmd(env),
		&cobra.Command{Use: "reset", Short: "Remove the simulated world", Args: cobra.NoArgs,
			RunE: func(*cobra.Command, []string) error { return app.SandboxReset(env) }},
	)
	return c
}

func sandboxRunCmd(env *app.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "run -- COMMAND [ARGUMENT...]",
		Short: "Run a command, such as kubectl, against the simulated cluster",
		Long: "run serves the simulated world while COMMAND runs. KUBECONFIG names a file that leads to its cluster and is\n" +
			"removed afterwards; MACFLEET_SANDBOX names the world. It ends with COMMAND's exit code.\n\n" +
			"  macfleet sandbox run -- kubectl get nodes",
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return app.SandboxRun(c.Context(), env, args)
		},
	}
}
