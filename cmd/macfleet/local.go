package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/macfleet/macfleet/internal/app"
)

func validateCmd(env *app.Env) *cobra.Command {
	var o app.ValidateOptions
	c := &cobra.Command{Use: "validate", Short: "Check the configuration, offline", Args: cobra.NoArgs,
		Long: `Reads the configuration and reports all errors and warnings with file and line.
It needs no network and no credentials.

Exit codes: 0 valid, 1 errors.`,
		Example: `  macfleet validate -e production
  macfleet validate --var runners=3 --json`,
		RunE: func(c *cobra.Command, _ []string) error { return app.Validate(c.Context(), env, o) }}
	jsonFlag(c.Flags(), &o.JSON)
	annotationsFlag(c.Flags(), &o.Annotations)
	c.Flags().BoolVar(&o.NoSecrets, "no-secrets", false, "read no file outside the configuration's directory (secrets are never read)")
	return c
}

func fmtCmd(env *app.Env) *cobra.Command {
	var o app.FormatOptions
	c := &cobra.Command{Use: "fmt [FILE...]", Short: "Format configuration files",
		Long: `Formats the *.fleet.hcl files of the directory, or the given FILEs, and prints
the names of the files it changed. Only whitespace changes. "-" formats standard
input to standard output.

Exit codes: 0 formatted, 1 a file could not be read, parsed or written,
2 with --check: some files would change.`,
		Example: `  macfleet fmt
  macfleet fmt --check
  macfleet fmt - < main.fleet.hcl`,
		RunE: func(*cobra.Command, []string) error { return app.Format(env, o) }}
	annotationsFlag(c.Flags(), &o.Annotations)
	c.Flags().BoolVar(&o.Check, "check", false, "write nothing; list files that would change and exit 2")
	return c
}

func versionCmd(env *app.Env) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		Example: `  macfleet version
  macfleet version --json`,
		RunE: func(*cobra.Command, []string) error { return app.Version(env, asJSON) }}
	jsonFlag(c.Flags(), &asJSON)
	return c
}

func artifactsCmd(env *app.Env) *cobra.Command {
	c := group("artifacts", "Build, lock and list the files that hosts receive", artifactsBuildCmd(env), artifactsLockCmd(env), artifactsStatusCmd(env))
	c.Long = `Artifacts are the files that hosts receive, such as Tart and the kubelet. Their
digests are in the configuration. See docs/artifacts.md.`
	c.Example = `  macfleet artifacts lock
  macfleet artifacts status`
	return c
}

func artifactsLockCmd(env *app.Env) *cobra.Command {
	var o app.LockArtifactsOptions
	c := &cobra.Command{Use: "lock [NAME...]", Short: "Write the digests of artifacts into the configuration", Args: cobra.ArbitraryArgs, ValidArgsFunction: arguments(env, app.AnArtifact),
		Long: `Reads the source of each artifact, downloading URLs, and writes sha256 and size
into its block. An existing digest is replaced only with --update: a server that
returns different bytes under the same name is a mistake or an attack.

Exit codes: 0 done, 1 error, 2 with --check: some digests would change.`,
		Example: `  macfleet artifacts lock
  macfleet artifacts lock tart --update
  macfleet artifacts lock --check`,
		RunE: func(c *cobra.Command, _ []string) error { return app.LockArtifacts(c.Context(), env, o) }}
	c.Flags().BoolVar(&o.Check, "check", false, "write nothing; exit 2 when a digest would change")
	c.Flags().BoolVar(&o.Update, "update", false, "also replace existing digests")
	return c
}

func artifactsBuildCmd(env *app.Env) *cobra.Command {
	folder := "dist"
	c := &cobra.Command{Use: "build NAME@VERSION", Short: "Build programs that have no release for macOS", Args: cobra.ExactArgs(1),
		Long: `Compiles tailscale and tailscaled for the hosts from their Go module, with this
machine's go command, and packs them into an archive. The same version and the
same go give the same bytes. It takes minutes, and prints the artifact block.

Exit codes: 0 done, 1 error.`,
		Example: `  macfleet artifacts build tailscale@1.102.5
  macfleet artifacts build tailscale@1.102.5 --out dist`,
		RunE: func(c *cobra.Command, _ []string) error { return app.BuildArtifact(c.Context(), env, folder) }}
	c.Flags().StringVar(&folder, "out", folder, "folder for the archive, relative to the configuration")
	return c
}

func artifactsStatusCmd(env *app.Env) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{Use: "status", Short: "List artifacts with version, digest, local copy and users", Args: cobra.NoArgs,
		Example: `  macfleet artifacts status
  macfleet artifacts status --json`,
		RunE: func(c *cobra.Command, _ []string) error { return app.ArtifactsStatus(c.Context(), env, asJSON) }}
	jsonFlag(c.Flags(), &asJSON)
	return c
}

// incidentColumn is where the texts of incidents begin at the latest.
const incidentColumn = 26

func sandboxCmd(env *app.Env) *cobra.Command {
	var incidents strings.Builder
	for _, g := range app.Incidents() {
		incidents.WriteString("\n\nIncidents of " + g.Of + ":\n\n" + strings.Join(columns(g.Rows, incidentColumn), "\n"))
	}
	c := group("sandbox", "Inspect and disturb the simulated world",
		&cobra.Command{Use: "list", Short: "List the simulated servers and their incidents", Args: cobra.NoArgs,
			Example: `  macfleet sandbox list --sandbox
  macfleet sandbox list --sandbox=DIR`,
			RunE: func(*cobra.Command, []string) error { return app.SandboxList(env) }},
		&cobra.Command{Use: "path HOST", Short: "Print the directory that holds a simulated host's file system", Args: cobra.ExactArgs(1), ValidArgsFunction: arguments(env, app.ASimulatedHost),
			Example: `  macfleet sandbox path runners/0bccd --sandbox
  ls "$(macfleet sandbox path acme-pool-03 --sandbox)/etc"`,
			RunE: func(*cobra.Command, []string) error { return app.SandboxPath(env) }},
		&cobra.Command{Use: "inject HOST INCIDENT", Short: "Inject an incident into a host", Args: cobra.ExactArgs(2), ValidArgsFunction: arguments(env, app.ASimulatedHost, app.AnIncident),
			Long: "Injects an incident into a simulated host; macfleet sandbox heal undoes it. See\ndocs/incidents.md." + incidents.String(),
			Example: `  macfleet sandbox inject acme-production-runners-m2-0bccd unreachable --sandbox
  macfleet sandbox inject runners/0bccd sleep-enabled --sandbox
  macfleet sandbox inject scaleway revoked-key --sandbox`,
			RunE: func(*cobra.Command, []string) error { return app.SandboxInject(env) }},
		&cobra.Command{Use: "heal [HOST [INCIDENT]]", Short: "Undo incidents", Args: cobra.MaximumNArgs(2), ValidArgsFunction: arguments(env, app.ASimulatedHost, app.AnIncident),
			Example: `  macfleet sandbox heal --sandbox
  macfleet sandbox heal acme-production-runners-m2-0bccd --sandbox`,
			RunE: func(*cobra.Command, []string) error { return app.SandboxHeal(env) }},
		&cobra.Command{Use: "bake HOST", Short: "Bake an image on a builder, as a workflow does", Args: cobra.ExactArgs(1), ValidArgsFunction: arguments(env, app.ASimulatedHost),
			Long: `Runs a job of GitHub's runner on a simulated builder: it checks packer and
Xcode, connects to a virtual machine from the login user's session, stops it and
pushes it. What macOS denies to jobs fails here as it does on a Mac.

Exit codes: 0 the image was pushed, 1 error.`,
			Example: `  macfleet sandbox bake builders/fba75 --sandbox`,
			RunE:    func(c *cobra.Command, _ []string) error { return app.SandboxBake(c.Context(), env) }},
		&cobra.Command{Use: "switch HOST [NAME [VALUE]]", Short: "Show or set simulator behaviour that varies between real Macs", Args: cobra.RangeArgs(1, 3), ValidArgsFunction: arguments(env, app.ASimulatedHost, app.ASwitch, app.ASwitchValue),
			Example: `  macfleet sandbox switch acme-pool-04 --sandbox
  macfleet sandbox switch acme-pool-04 sealed-kcpassword by-design --sandbox`,
			RunE: func(*cobra.Command, []string) error { return app.SandboxSwitch(env) }},
		sandboxCreateCmd(env), sandboxRunCmd(env),
		&cobra.Command{Use: "reset", Short: "Delete the simulated world", Args: cobra.NoArgs,
			Example: `  macfleet sandbox reset --sandbox`,
			RunE:    func(*cobra.Command, []string) error { return app.SandboxReset(env) }})
	c.Long = `The simulated world holds Macs, Scaleway, Kubernetes, GitHub and Tailscale as
files in one directory. With --sandbox every command works on it, with the same
clients and scripts as on the real world. See docs/sandbox.md.`
	c.Example = `  macfleet apply -e production --sandbox --auto-approve
  macfleet sandbox inject acme-production-runners-m2-0bccd unreachable --sandbox`
	return c
}

func sandboxCreateCmd(env *app.Env) *cobra.Command {
	var population string
	c := &cobra.Command{Use: "create", Short: "Create a simulated world", Args: cobra.NoArgs,
		Long: `Creates a simulated world. Every command with --sandbox creates one by itself,
with a pool of new servers. This command can also create one by hand: 20 servers
that people and another controller named and set up, for trying adoption.`,
		Example: `  macfleet sandbox create --population by-hand --sandbox=macs
  macfleet init --from-inventory --sandbox=macs`,
		RunE: func(c *cobra.Command, _ []string) error { return app.SandboxCreate(c.Context(), env, population) }}
	c.Flags().StringVar(&population, "population", app.Populations()[0], "servers of the world: `KIND` is "+strings.Join(app.Populations(), " or "))
	return c
}

func sandboxRunCmd(env *app.Env) *cobra.Command {
	return &cobra.Command{Use: "run -- COMMAND [ARGUMENT...]", Short: "Run a command, such as kubectl, against the simulated cluster", Args: cobra.MinimumNArgs(1),
		Long: `Serves the simulated world while COMMAND runs. KUBECONFIG points to its cluster
and MACFLEET_SANDBOX to the world. It exits with COMMAND's exit code.`,
		Example: `  macfleet sandbox run --sandbox -- kubectl get nodes
  macfleet sandbox run --sandbox -- sh`,
		RunE: func(c *cobra.Command, _ []string) error { return app.SandboxRun(c.Context(), env) }}
}
