package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/macfleet/macfleet/fleet"
)

// foreignCommands are words that people know from other tools, and what to type instead.
var foreignCommands = map[string]string{
	"trust": "use macfleet hosts forget-key HOST",

	"get": useHosts, "list": useHosts, "ls": useHosts, "status": useHosts, "ps": useHosts, "nodes": useHosts, "servers": useHosts, "inventory": useHosts, "top": useHosts,
	"describe": "use macfleet explain HOST", "inspect": "use macfleet explain HOST", "schema": "use macfleet explain --schema PATH",
	"preview": "use macfleet plan", "diff": "use macfleet plan", "dry-run": "use macfleet plan", "refresh": "use macfleet drift",
	"up": "use macfleet apply", "deploy": "use macfleet apply", "converge": "use macfleet apply", "sync": "use macfleet apply", "run": "use macfleet apply",
	"history": "use macfleet runs", "events": "use macfleet show last", "output": "use macfleet show last",
	"unlock": "use macfleet lock release", "force-unlock": "use macfleet lock release",
	"uncordon": "use macfleet cordon HOST --undo", "drain": "use macfleet cordon HOST --drain",
	"pause": "use macfleet hold HOST", "resume": "use macfleet unhold HOST, or macfleet apply after an interrupted run",
	"rollback": "use macfleet apply --rollback --on SELECTOR", "undo": "use macfleet apply --rollback --on SELECTOR",
	"format": "use macfleet fmt", "lint": "use macfleet validate", "check": "use macfleet validate for files, macfleet doctor for a host",
	"workspace": "choose an environment with -e ENVIRONMENT", "stack": "choose an environment with -e ENVIRONMENT",
	"state":   "macfleet has no state file; macfleet hosts lists the members, a moved block renames them",
	"console": "use macfleet explain --schema for the language, macfleet explain HOST for values",
	"import":  "write a host block with the server_id, then run macfleet plan (docs/configuration.md)",
	"ssh":     notYet("ssh") + "use ssh USER@ADDRESS; macfleet hosts -o wide shows addresses",
	"exec":    notYet("exec") + "use ssh USER@ADDRESS COMMAND; macfleet hosts -o wide shows addresses",
	"vnc":     notYet("vnc") + "use the VNC address in the Scaleway console",
	"logs":    notYet("logs") + "use ssh USER@ADDRESS; macfleet show last prints what failed scripts wrote", "log": notYet("log") + "use macfleet show last",
	"reboot":  notYet("reboot") + "use the Scaleway console, after macfleet cordon HOST --drain",
	"destroy": notYet("destroy") + "it cannot release servers; macfleet plan shows what a lower replicas would do",
	"delete":  notYet("delete") + "it cannot release servers; macfleet plan shows what a lower replicas would do",
	"release": notYet("release") + "it cannot release servers; for the lock use macfleet lock release",
	"replace": notYet("replace") + "reinstall the server in the Scaleway console, then run macfleet apply", "taint": notYet("taint") + "reinstall the server in the Scaleway console, then run macfleet apply",
	"graph": notYet("graph") + "macfleet plan shows the order of hosts",
}

const useHosts = "use macfleet hosts"

func notYet(command string) string { return "macfleet has no " + command + " yet; " }

// foreignFlags are flags that people know from other tools, and what to type instead.
var foreignFlags = map[string]string{
	"target": useOn, "limit": useOn, "l": useOn, "selector": useOn, "host": "use --on name=HOST", "hosts": "use --on name=HOST", "fleet": "use --on fleet=FLEET",
	"yes": "use --auto-approve", "y": "use --auto-approve", "assume-yes": "use --auto-approve", "force": "use --auto-approve to skip the question",
	"check": "use macfleet plan", "diff": "use macfleet plan", "dry-run": "use macfleet plan", "n": "use macfleet plan", "refresh-only": "use macfleet drift",
	"tags": "use --step STEP", "t": "use --step STEP", "only": "use --step STEP",
	"inventory": "use -C DIR", "i": "use -C DIR", "chdir": "use -C DIR", "dir": "use -C DIR", "f": "use -C DIR",
	"extra-vars": "use --var NAME=VALUE", "workspace": "use -e ENVIRONMENT", "stack": "use -e ENVIRONMENT", "s": "use -e ENVIRONMENT", "env": "use -e ENVIRONMENT",
	"forks": "use --parallelism N", "ask-become-pass": "use --ask-password HOST", "K": "use --ask-password HOST",
	"verbose": "use --log-level debug and read the log", "v": "use --log-level debug and read the log", "debug": "use --log-level debug and read the log",
	"state":   "macfleet has no state file",
	"destroy": notYet("destroy") + "it cannot release servers",
	"output":  "use --json, or --format where the command has it",
	"o":       "use --json, or --format where the command has it",
	"record":  useRecord, "snapshot": useRecord,
	"context": useKubernetes, "kubeconfig": "set KUBECONFIG", "namespace": useKubernetes,
}

const (
	useOn         = "use --on SELECTOR"
	useRecord     = "this command observes by itself; macfleet plan, drift, hosts and explain can use a recorded observation"
	useKubernetes = "set it in the kubernetes block of the configuration"
)

// flagFault explains a flag that cannot be parsed: it names the flag that was meant, where one is known.
func flagFault(c *cobra.Command, err error) error {
	if args := c.Flags().Args(); isGroup(c) && len(args) > 0 {
		return wrongArgs(c, args) // "macfleet get -o wide" is about get
	}
	if invalid := (*pflag.InvalidValueError)(nil); errors.As(err, &invalid) {
		return wrongValue(c, invalid.GetFlag(), invalid.GetValue())
	}
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return fmt.Errorf("%w; see %s --help", err, c.CommandPath())
	}
	written, name := "--"+unknown.GetSpecifiedName(), unknown.GetSpecifiedName()
	if short := unknown.GetSpecifiedShortnames(); short != "" {
		written, name = "-"+short, short
	}
	name, _, _ = strings.Cut(name, "=")
	return fmt.Errorf("unknown flag: %s; %s", written, flagHint(c, name))
}

// wrongValue explains a flag whose value has the wrong type.
func wrongValue(c *cobra.Command, f *pflag.Flag, value string) error {
	must := map[string]string{"int": "a whole number", "bool": "true or false", "duration": "a duration such as 90s, 15m or 2h"}[f.Value.Type()]
	hint := fmt.Sprintf("see %s --help", c.CommandPath())
	if f.Name == "limit" {
		hint = "it is a size in bytes; to limit the hosts, " + useOn
	}
	return fmt.Errorf("--%s must be %s; %q is not: %s", f.Name, cmp.Or(must, "a "+f.Value.Type()), value, hint)
}

// flagHint says what to type instead of a flag that does not exist.
func flagHint(c *cobra.Command, name string) string {
	known := make(map[string]bool)
	c.Flags().VisitAll(func(f *pflag.Flag) { known[f.Name] = !f.Hidden })
	names := slices.Sorted(maps.Keys(known))
	near := fleet.Nearest(name, names)
	if longer := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return !strings.HasPrefix(n, name) }); len(longer) == 1 {
		near = longer[0] // it was begun and not ended
	}
	switch hint := foreignFlags[name]; {
	case known[name]: // -out
		return fmt.Sprintf("did you mean --%s?", name)
	case hint != "":
		return hint
	case elsewhere(c.Root(), name) != "":
		return fmt.Sprintf("%s has it; see %s --help", elsewhere(c.Root(), name), c.CommandPath())
	case known[near]:
		return fmt.Sprintf("did you mean --%s?", near)
	}
	return fmt.Sprintf("see %s --help", c.CommandPath())
}

// elsewhere is the one everyday command that has a flag, or "".
func elsewhere(root *cobra.Command, name string) string {
	var have []string
	for _, c := range root.Commands() {
		if f := c.Flags().Lookup(name); f != nil && !f.Hidden && c.PersistentFlags().Lookup(name) == nil && c.InheritedFlags().Lookup(name) == nil {
			have = append(have, c.CommandPath())
		}
	}
	if len(have) == 0 || len(have) > 2 {
		return ""
	}
	return strings.Join(have, " or ")
}

// oneDash reports an error for -expires, which would be read as -e with the value xpires.
func oneDash(flags *pflag.FlagSet) error {
	e := flags.Lookup("environment")
	if e == nil || !e.Changed {
		return nil
	}
	name, _, _ := strings.Cut("e"+e.Value.String(), "=")
	if flags.Lookup(name) == nil {
		return nil
	}
	return fmt.Errorf("unknown flag: -%s; did you mean --%[1]s?", name)
}

// tooMany is the error of arguments that a command does not take.
type tooMany string

func (e tooMany) Error() string { return string(e) }

// explainArgs makes c and all commands below it name the arguments that are missing or too many.
func explainArgs(c *cobra.Command) {
	for _, sub := range c.Commands() {
		explainArgs(sub)
	}
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			if err := oneDash(c.Flags()); err != nil {
				return err
			}
			if check(c, args) == nil {
				return nil
			}
			return wrongArgs(c, args)
		}
	}
}

func wrongArgs(c *cobra.Command, args []string) error {
	path, names := c.CommandPath(), strings.Fields(c.Use)[1:]
	needed := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return strings.HasPrefix(n, "[") })
	if len(args) < len(needed) {
		return fmt.Errorf("%s needs %s; see %s --help", path, strings.Join(needed[len(args):], " and "), path)
	}
	extra := args[min(len(names), len(args)-1)]
	if isGroup(c) || c.HasSubCommands() && foreignCommands[extra] != "" {
		return tooMany(fmt.Sprintf("unknown command %q for %q; %s", extra, path, commandHint(c, extra)))
	}
	takes := "no arguments"
	if len(names) > 0 {
		takes = strings.Join(names, " ") + " only"
	}
	hint := fmt.Sprintf("see %s --help", path)
	if slices.Contains([]string{"plan", "drift", "hosts"}, c.Name()) {
		hint = "to limit it to one host, add --on name=" + extra
	}
	return tooMany(fmt.Sprintf("%s takes %s (got %q); %s", path, takes, extra, hint))
}

// commandHint says what to type instead of a command that does not exist.
func commandHint(c *cobra.Command, word string) string {
	if hint := foreignCommands[word]; hint != "" {
		return hint
	}
	var known []string
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			known = append(known, sub.Name())
		}
	}
	if near := fleet.Nearest(word, known); near != "" && near[0] == word[0] {
		return fmt.Sprintf("did you mean %s %s?", c.CommandPath(), near)
	}
	return fmt.Sprintf("see %s --help", c.CommandPath())
}
