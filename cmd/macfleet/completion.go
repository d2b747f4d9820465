package main

import (
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/load"
	"github.com/macfleet/macfleet/internal/sandbox"
	"github.com/macfleet/macfleet/steps"
)

// complete returns the words that an argument or a flag's value may become. It
// reads local files alone: no network, no secret, no error, whatever state the
// configuration is in.
type complete func(done []string, begun string) []string

// words makes cobra's function of one of ours. Flags are read from the
// environment first, as every command does.
func words(f complete) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		_ = fromEnvironment(c.Flags()) // a flag that cannot be set is the command's own fault to tell
		return matching(f(args, begun), begun), cobra.ShellCompDirectiveNoFileComp
	}
}

// parts is words for values that go on: no space is put behind them.
func parts(f complete) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		found, directive := words(f)(c, args, begun)
		return found, directive | cobra.ShellCompDirectiveNoSpace
	}
}

// matching keeps the words that begin as the typed one does, each once.
func matching(all []string, begun string) []string {
	all = slices.DeleteFunc(slices.Clone(all), func(w string) bool { return !strings.HasPrefix(w, begun) })
	slices.Sort(all)
	return slices.Compact(all)
}

// inOrder offers one kind of word for each place of a command's arguments.
func inOrder(places ...complete) complete {
	return func(done []string, begun string) []string {
		if len(done) >= len(places) {
			return nil
		}
		return places[len(done)](done, begun)
	}
}

// names returns what the configuration's files declare.
func (a *app) names() load.Names { return load.Outline(os.DirFS(a.dir)) }

func (a *app) completeEnvironments([]string, string) []string { return a.names().Environments }

// completeVariables offers NAME= for --var.
func (a *app) completeVariables([]string, string) []string {
	var out []string
	for _, name := range a.names().Variables {
		out = append(out, name+"=")
	}
	return out
}

// completeHosts offers the members that are known without asking anybody: those
// with a pinned key, and those with a block of their own.
func (a *app) completeHosts([]string, string) []string {
	return append(a.names().Hosts, a.completePinned(nil, "")...)
}

// completeArtifacts offers the artifacts that were not named yet.
func (a *app) completeArtifacts(done []string, _ string) []string {
	return slices.DeleteFunc(a.names().Artifacts, func(name string) bool { return slices.Contains(done, name) })
}

// completePinned offers the hosts whose keys are pinned.
func (a *app) completePinned([]string, string) []string {
	environments := []string{a.environment}
	if a.environment == "" && a.sandbox == "" {
		environments = append(environments, a.names().Environments...)
	}
	var out []string
	for _, e := range environments {
		pins, _ := localPins{own: a.pinFile(e), cache: a.pinCache(e)}.All() // a damaged file offers nothing
		for _, p := range pins {
			out = append(out, p.Name)
		}
	}
	return out
}

// completeSteps offers the ids of all steps.
func completeSteps([]string, string) []string {
	var out []string
	for _, s := range steps.For(fleet.Host{Spec: fleet.Spec{}.WithDefaults()}) {
		out = append(out, string(s.ID()))
	}
	return out
}

// completeSimulated offers the hosts of the simulated world.
func (a *app) completeSimulated([]string, string) []string { return sandbox.Names(a.sandboxDir()) }

func completeIncidents([]string, string) []string {
	var out []string
	for _, i := range sandbox.Incidents() {
		out = append(out, i.Name)
	}
	return out
}

func completeSwitches([]string, string) []string {
	var out []string
	for _, s := range sandbox.Switches() {
		out = append(out, s.Name)
	}
	return out
}

// completeSwitchValues offers the values of the switch that was named.
func completeSwitchValues(args []string, _ string) []string {
	for _, s := range sandbox.Switches() {
		if len(args) > 1 && s.Name == args[1] {
			return s.Values
		}
	}
	return nil
}

// completeSelector offers the keys of a selector that were not given yet, and
// behind a key its values.
func (a *app) completeSelector(_ []string, begun string) []string {
	front, last := "", begun
	if i := strings.LastIndex(begun, ","); i >= 0 {
		front, last = begun[:i+1], begun[i+1:]
	}
	key, _, valued := strings.Cut(last, "=")
	var out []string
	for _, k := range []string{"fleet", "group", "name", "ready", "type", "zone"} {
		switch {
		case valued && k == key:
			for _, v := range a.selectorValues(k) {
				out = append(out, front+k+"="+v)
			}
		case !valued && !strings.Contains(","+front, ","+k+"="):
			out = append(out, front+k+"=")
		}
	}
	return out
}

// completeSelected offers hosts, and selectors where one was begun.
func (a *app) completeSelected(done []string, begun string) []string {
	if strings.Contains(begun, "=") {
		return a.completeSelector(nil, begun)
	}
	return slices.DeleteFunc(a.completeHosts(nil, ""), func(h string) bool { return slices.Contains(done, h) })
}

func (a *app) selectorValues(key string) []string {
	switch n := a.names(); key {
	case "fleet":
		return n.Fleets
	case "group":
		return n.Groups
	case "type":
		return n.Types
	case "zone":
		return n.Zones
	case "name":
		return a.completeHosts(nil, "")
	}
	return []string{"false", "true"} // ready
}

// completions tells cobra what the flags and arguments of the commands become.
// A command or flag that is not there is passed over.
func (a *app) completions(root *cobra.Command) {
	for name, f := range map[string]cobra.CompletionFunc{
		"environment": words(a.completeEnvironments),
		"on":          parts(a.completeSelector),
		"exclude":     parts(a.completeSelector),
		"var":         parts(a.completeVariables),
		"step":        words(completeSteps),
		"failed-from": words(a.completeRuns),
		"log-level":   words(func([]string, string) []string { return []string{"debug", "error", "info", "off", "warn"} }),
		"wait":        words(func([]string, string) []string { return []string{"ready"} }),
		"format":      words(completeForms),
		"annotations": words(func([]string, string) []string { return []string{"github"} }),
		"output":      words(func([]string, string) []string { return []string{"json", "name", "wide"} }),
	} {
		for _, c := range slices.Concat([]*cobra.Command{root}, root.Commands()) {
			if c.Flags().Lookup(name) != nil || c.PersistentFlags().Lookup(name) != nil {
				_ = c.RegisterFlagCompletionFunc(name, f) // it fails for a flag that is not there or has one
			}
		}
	}
	for path, f := range map[string]complete{
		"hosts trust":    inOrder(a.completePinned),
		"doctor":         inOrder(a.completeHosts),
		"cordon":         a.completeSelected,
		"hold":           a.completeSelected,
		"unhold":         a.completeSelected,
		"restart":        inOrder(a.completeHosts, completeJobs),
		"artifacts lock": a.completeArtifacts,
		"show":           inOrder(a.completeRuns),
		"explain":        inOrder(a.completeHosts, completeSteps),
		"sandbox path":   inOrder(a.completeSimulated),
		"sandbox inject": inOrder(a.completeSimulated, completeIncidents),
		"sandbox heal":   inOrder(a.completeSimulated, completeIncidents),
		"sandbox switch": inOrder(a.completeSimulated, completeSwitches, completeSwitchValues),
	} {
		if c, rest, err := root.Find(strings.Fields(path)); err == nil && len(rest) == 0 && c != root {
			c.ValidArgsFunction = words(f)
		}
	}
}
