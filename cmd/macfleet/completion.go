package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/macfleet/macfleet/internal/app"
)

// completions gives cobra the values of the flags.
func completions(env *app.Env, root *cobra.Command) {
	for flag, f := range map[string]cobra.CompletionFunc{
		"environment": value(env, app.AnEnvironment, cobra.ShellCompDirectiveNoFileComp),
		"step":        value(env, app.AStep, cobra.ShellCompDirectiveNoFileComp),
		"failed-from": value(env, app.ARun, cobra.ShellCompDirectiveNoFileComp),
		// No space follows values that can continue.
		"on":          value(env, app.ASelector, cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace),
		"exclude":     value(env, app.ASelector, cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace),
		"var":         value(env, app.AVariable, cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace),
		"log-level":   words("debug", "error", "info", "off", "warn"),
		"wait":        words("ready"),
		"format":      words(app.Forms()...),
		"annotations": words("github"),
		"output":      words(app.HostsFormats()...),
		"sort-by":     words(app.HostsColumns()...),
	} {
		for _, c := range slices.Concat([]*cobra.Command{root}, root.Commands()) {
			if c.Flags().Lookup(flag) != nil || c.PersistentFlags().Lookup(flag) != nil {
				_ = c.RegisterFlagCompletionFunc(flag, f) // it fails for a flag that does not exist or has one
			}
		}
	}
}

// words completes to fixed words.
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
		_ = fromEnvironment(c.Flags()) // the command itself reports a flag that cannot be set
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
	c.Short = "Print a shell completion script (bash, zsh, fish)"
	c.Long = "Prints the script that completes macfleet's commands, flags and names in a\nshell. Its help says where to put the script."
	c.Example = "  source <(macfleet completion bash)\n  macfleet completion zsh > \"${fpath[1]}/_macfleet\"\n  macfleet completion fish | source"
	c.Args, c.Annotations = cobra.NoArgs, map[string]string{groupMark: "yes"}
	c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	for _, shell := range c.Commands() {
		text, known := shellHelp[shell.Name()]
		if !known {
			c.RemoveCommand(shell)
			continue
		}
		shell.Short, shell.Long, shell.Example = "Print the completion script for "+shell.Name(), text.long, text.example
		if f := shell.Flags().Lookup("no-descriptions"); f != nil {
			f.Usage = "complete to words only, without what they do"
		}
	}
}

// shellHelp says for each shell how its script is loaded.
var shellHelp = map[string]struct{ long, example string }{
	"bash": {"Prints the completion script for bash. It needs the package bash-completion.\n" +
		"Source the script in a running shell, or save it for every new one.",
		"  source <(macfleet completion bash)\n" +
			"  macfleet completion bash > /etc/bash_completion.d/macfleet\n" +
			"  macfleet completion bash > \"$(brew --prefix)/etc/bash_completion.d/macfleet\""},
	"zsh": {"Prints the completion script for zsh. Completion must be on: ~/.zshrc needs the\n" +
		"line \"autoload -U compinit; compinit\". Source the script in a running shell, or\n" +
		"save it for every new one.",
		"  source <(macfleet completion zsh)\n" +
			"  macfleet completion zsh > \"${fpath[1]}/_macfleet\"\n" +
			"  macfleet completion zsh > \"$(brew --prefix)/share/zsh/site-functions/_macfleet\""},
	"fish": {"Prints the completion script for fish. Source it in a running shell, or save it\nfor every new one.",
		"  macfleet completion fish | source\n" +
			"  macfleet completion fish > ~/.config/fish/completions/macfleet.fish"},
}
