package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/macfleet/macfleet/internal/app"
)

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

// boundsFlags adds the flags of plan and apply that lift what one run may do. Each
// names what it allows, so that the record of a run tells it.
func boundsFlags(f *pflag.FlagSet, o *app.Bounds) {
	f.IntVar(&o.MaxDisrupted, "max-disrupted", 0, "let a run drain, reboot or wipe up to `N` Ready hosts of a fleet, and not a quarter of them")
	f.IntVar(&o.MaxWipes, "max-wipes", 0, "let a run wipe up to `N` hosts, and not one")
	f.IntVar(&o.MaxHosts, "max-hosts", 0, "let a run change up to `N` hosts, whatever the guardrails say")
	f.BoolVar(&o.AnyTime, "outside-windows", false, "drain, reboot and wipe now, whatever windows the guardrails name")
}

// rollbackFlag adds the flag of plan and apply by which hosts go back.
func rollbackFlag(f *pflag.FlagSet, rollback *bool) {
	f.BoolVar(rollback, "rollback", false, "of what hosts get as artifacts, go back to the version before; needs --on")
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

// jsonIntoFlag adds the flag by which a person reads text while a program reads
// JSON.
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

// fromEnvironment fills flags that were not given from MACFLEET_<FLAG>. --var
// has MACFLEET_VAR_<name> instead.
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

// givenFlags returns the flags that the command line or the environment gave. Of a
// variable it tells the name: a value may be anybody's.
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
