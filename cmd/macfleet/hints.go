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
	"github.com/macfleet/macfleet/internal/app"
)

// flagFault explains a flag that cannot be parsed: it names the flag that was meant, where one is known.
func flagFault(env *app.Env, c *cobra.Command, err error) error {
	if args := c.Flags().Args(); isGroup(c) && len(args) > 0 {
		return wrongArgs(env, c, args) // "macfleet get -o wide" is about get
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
	if longer := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return !strings.HasPrefix(n, name) }); len(name) > 1 && len(longer) == 1 {
		near = longer[0] // the beginning of a flag
	}
	switch hint := foreignFlags[name]; {
	case strings.Trim(name, "v") == "" || name == "verbose" || name == "debug":
		return verboseHint(known)
	case hint != "":
		return hint
	case elsewhere(c.Root(), name) != "":
		return fmt.Sprintf("%s has it; see %s --help", elsewhere(c.Root(), name), c.CommandPath())
	case known[near]:
		return fmt.Sprintf("did you mean --%s?", near)
	}
	return fmt.Sprintf("see %s --help", c.CommandPath())
}

// verboseHint says what a command with these flags has instead of --verbose.
func verboseHint(known map[string]bool) string {
	switch {
	case known["verbose"]:
		return "use -v or --verbose"
	case known["full"]:
		return "use --full for every host, step and field"
	}
	return "use --log-file FILE and read that log"
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

// oneDash returns an error for a long flag with one dash, such as -out, and nil where there is none. It would be read as
// several flags of one letter: -expires as -e xpires.
func oneDash(root *cobra.Command, args []string) error {
	c, rest, err := root.Find(args)
	if err != nil {
		return nil
	}
	for _, arg := range rest {
		name, _, _ := strings.Cut(strings.TrimPrefix(arg, "-"), "=")
		switch {
		case arg == "--":
			return nil
		case !strings.HasPrefix(arg, "-") || strings.HasPrefix(arg, "--") || len(name) < 3:
		case c.Flag(name) != nil || c.InheritedFlags().Lookup(name) != nil:
			return fmt.Errorf("unknown flag: -%s; did you mean --%[1]s?", name)
		case foreignFlags[name] != "":
			return fmt.Errorf("unknown flag: -%s; %s", name, foreignFlags[name])
		}
	}
	return nil
}

// tooMany is the error of arguments that a command does not take.
type tooMany string

func (e tooMany) Error() string { return string(e) }

// explainArgs makes c and all commands below it name the arguments that are missing or too many.
func explainArgs(env *app.Env, c *cobra.Command) {
	for _, sub := range c.Commands() {
		explainArgs(env, sub)
	}
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			if check(c, args) == nil {
				return nil
			}
			return wrongArgs(env, c, args)
		}
	}
}

func wrongArgs(env *app.Env, c *cobra.Command, args []string) error {
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
	switch {
	case slices.Contains([]string{"plan", "drift", "hosts"}, c.Name()):
		hint = "to limit it, add --on " + app.SelectorFor(env, extra)
	case c.Name() == "runs":
		hint = "use macfleet show RUN for one run"
	case c.Name() == "validate":
		hint = useDirectory + " to choose the configuration"
	}
	return tooMany(fmt.Sprintf("%s takes %s (got %q); %s", path, takes, extra, hint))
}

// commandHint says what to type instead of a command that does not exist.
func commandHint(c *cobra.Command, word string) string {
	var known []string
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			known = append(known, sub.Name())
		}
	}
	hint := foreignCommands[word]
	switch near := fleet.Nearest(word, known); {
	case hint != "" && (!c.HasParent() || strings.Contains(hint, c.CommandPath())):
		return hint
	case near != "" && near[0] == word[0]:
		return fmt.Sprintf("did you mean %s %s?", c.CommandPath(), near)
	case c.HasParent():
		return fmt.Sprintf("it has: %s", strings.Join(known, ", "))
	}
	return fmt.Sprintf("see %s --help", c.CommandPath())
}

// topicHint says which page of help a word may mean.
func topicHint(root *cobra.Command, word string) string {
	var known []string
	for _, c := range root.Commands() {
		if !c.Hidden {
			known = append(known, c.Name())
		}
	}
	near := fleet.Nearest(word, known)
	for _, name := range known {
		if near == "" && len(word) > 2 && strings.HasPrefix(name, word) {
			near = name
		}
	}
	switch {
	case near != "":
		return fmt.Sprintf("did you mean macfleet help %s?", near)
	case foreignCommands[word] != "":
		return foreignCommands[word]
	}
	return "help topics are " + strings.Join(topicNames(), ", ")
}
