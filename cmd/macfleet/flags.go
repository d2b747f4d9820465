package main

import (
	"github.com/spf13/pflag"

	"github.com/macfleet/macfleet/internal/app"
)

// Flag texts are lower case, start with a verb or with what the flag sets, and name their
// placeholder in backquotes.

// globalFlags adds the flags of every command.
func globalFlags(f *pflag.FlagSet, g *app.Global) {
	f.SortFlags = false
	f.StringVarP(&g.Dir, "directory", "C", ".", "read the *.fleet.hcl files in `DIR`")
	f.StringVarP(&g.Environment, "environment", "e", "", "`ENVIRONMENT` to work on (required if the configuration defines any)")
	f.StringArrayVar(&g.Vars, "var", nil, "set a variable: `NAME=VALUE` (repeatable)")
	f.StringArrayVar(&g.VarFiles, "var-file", nil, "read variables from `FILE`, one name = value per line (repeatable)")
	f.StringVar(&g.Sandbox, "sandbox", "", "use the simulated world in `DIR`, created if missing")
	f.Lookup("sandbox").NoOptDefVal = app.SandboxDefault
	f.IntVar(&g.SandboxHosts, "sandbox-hosts", 0, "create a new sandbox with `N` servers in its pool (default 16)")
	f.StringArrayVar(&g.On, "on", nil, "limit to hosts matching `SELECTOR` (repeatable), e.g. fleet=runners,zone=fr-par-1")
	f.StringArrayVar(&g.Exclude, "exclude", nil, "skip hosts matching `SELECTOR` (repeatable)")
	f.StringArrayVar(&g.Steps, "step", nil, "limit to `STEP` (repeatable), e.g. power; servers are not claimed or renamed")
	f.IntVar(&g.Parallelism, "parallelism", 32, "change at most `N` hosts at the same time")
	f.IntVar(&g.ObserveParallelism, "observe-parallelism", app.DefaultObservers, "observe at most `N` hosts at the same time")
	f.IntVar(&g.Starts, "connection-starts", app.DefaultStarts, "open at most `N` connections at the same time, counted until login")
	f.StringVar(&g.SSHConfig, "ssh-config", "", "read the OpenSSH client configuration from `FILE`, or from no file with \"none\" "+
		"(default ~/.ssh/config and /etc/ssh/ssh_config; none in a sandbox)")
	f.BoolVar(&g.NoColor, "no-color", false, "disable colours")
	f.BoolVar(&g.Stats, "stats", false, "print timing and request statistics")
	f.StringVar(&g.RunsDir, "runs-dir", "", "keep run records and logs in `DIR` (default .macfleet/runs and .macfleet/logs next to the configuration)")
	f.StringVar(&g.LogLevel, "log-level", "debug", "log verbosity: `LEVEL` is debug, info, warn, error or off")
	f.StringVar(&g.LogFile, "log-file", "", "write the log to `FILE`")
}

// sourceFlags adds the flags of a command that only observes.
func sourceFlags(f *pflag.FlagSet, o *app.Source) {
	f.StringVar(&o.Record, "record", "", "save what was observed to `FILE`")
	f.StringVar(&o.Snapshot, "snapshot", "", "use the observation in `FILE` (made by --record), without network or credentials")
}

// formFlags adds the flags that choose how a plan is printed.
func formFlags(f *pflag.FlagSet, o *app.Form) {
	f.BoolVar(&o.JSON, "json", false, "print one JSON document (same as --format json)")
	f.StringVar(&o.Format, "format", app.Forms()[0], "output `FORMAT`: text, json or markdown")
	fullFlag(f, &o.Full)
	f.IntVar(&o.Limit, "limit", app.DefaultLimit, "maximum size of the Markdown output in `BYTES`")
}

// fullFlag adds the flag that unfolds a plan.
func fullFlag(f *pflag.FlagSet, full *bool) {
	f.BoolVar(full, "full", false, "show every host, step and field of the plan, with fingerprints and costs")
}

// boundsFlags adds the flags that bound what one run may do. Each names what it allows, so that the
// record of a run shows it.
func boundsFlags(f *pflag.FlagSet, o *app.Bounds) {
	f.IntVar(&o.MaxDisrupted, "max-disrupted", 0, "drain, reboot or wipe at most `N` Ready hosts per fleet in this run (default: the guardrails, else unlimited)")
	f.IntVar(&o.MaxWipes, "max-wipes", 0, "wipe at most `N` hosts in this run (default: the guardrails, else 1)")
	f.IntVar(&o.MaxHosts, "max-hosts", 0, "change at most `N` hosts in this run (default: the guardrails, else unlimited)")
	f.BoolVar(&o.AnyTime, "outside-windows", false, "drain, reboot and wipe outside the maintenance windows of the guardrails too")
	f.BoolVar(&o.AllowOrphans, "allow-orphans", false, "claim servers even while orphaned members exist")
	f.IntVar(&o.ReleaseSurplus, "release-surplus", 0, "release at most `N` hosts of groups that have more hosts than replicas, although replicas was not lowered")
	f.StringSliceVar(&o.AcceptLists, "accept-list", nil, "act on the list of the service `NAME` although it lacks what hosts say of themselves (tailnet, github.com/ORGANIZATION)")
	f.BoolVar(&o.AdoptOnly, "adopt-only", false, "limit to adopted servers, and write only their markers and host keys (and sudo, where it is missing)")
	f.StringVar(&o.MovedFrom, "moved-from-cluster", "", "move hosts that belong to the cluster with this `UID` to the current one")
	f.BoolVar(&o.Rollback, "rollback", false, "roll artifacts back to the previous version (requires --on)")
}

// lockFlags adds the flags of commands that change hosts.
func lockFlags(f *pflag.FlagSet, o *app.Locking) {
	f.DurationVar(&o.Timeout, "lock-timeout", app.LockTimeout, "how long to wait for another apply (0: do not wait)")
	f.DurationVar(&o.Lasts, "lock-lease", app.LockLasts, "time without renewal after which the lock expires")
	// Tests cannot wait for the half minute that a lock lasts, so they shorten it with this hidden flag.
	_ = f.MarkHidden("lock-lease") // it is defined
}

// jsonFlag adds the flag of commands that print one document.
func jsonFlag(f *pflag.FlagSet, asJSON *bool) {
	f.BoolVar(asJSON, "json", false, "print one JSON document")
}

// jsonIntoFlag adds the flag by which a person reads text while a program reads JSON.
func jsonIntoFlag(f *pflag.FlagSet, file *string) {
	f.StringVar(file, "json-into", "", "also write events to `FILE`, one JSON object per line, as apply --json prints them")
}

// approveFlag adds the flag of commands that ask.
func approveFlag(f *pflag.FlagSet, approve *bool) {
	f.BoolVar(approve, "auto-approve", false, "do not ask for approval")
}

func annotationsFlag(f *pflag.FlagSet, o *app.Annotations) {
	f.StringVar((*string)(o), "annotations", "", "annotate lines of the configuration on standard error: `FORMAT` is github")
}
