package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// groups are the headings of macfleet --help, in their order, and the commands under each.
var groups = []struct {
	title    string
	commands []string
}{
	{"Everyday", []string{"plan", "apply", "drift", "hosts", "explain", "doctor", "validate"}},
	{"Hosts", []string{"cordon", "hold", "unhold", "quarantine", "unquarantine", "restart", "reboot", "replace", "release"}},
	{"Plans and approvals", []string{"show", "runs", "lock"}},
	{"Setting up", []string{"init", "import"}},
	{"Other", []string{"sandbox", "artifacts", "fmt", "completion", "options", "version", "help"}},
}

// helpWidth is how many columns help takes. A longer line is broken between words.
const helpWidth = 80

// useHelp makes all commands below root print this help, and gives each its group.
func useHelp(root *cobra.Command) {
	for _, g := range groups {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title})
		for _, c := range root.Commands() {
			if slices.Contains(g.commands, c.Name()) {
				c.GroupID = g.title
			}
		}
	}
	root.SetHelpFunc(func(c *cobra.Command, _ []string) { printHelp(c, helpOf(c)) })
	root.SetUsageFunc(func(c *cobra.Command) error { printHelp(c, helpOf(c)); return nil })
}

func printHelp(c *cobra.Command, text string) { _, _ = io.WriteString(c.OutOrStdout(), text) }

// helpOf returns the help of a command: what it does, how it is called, examples, its own flags.
func helpOf(c *cobra.Command) string {
	var b strings.Builder
	b.WriteString(strings.TrimRight(cmp.Or(c.Long, c.Short), "\n") + "\n")
	if c.Runnable() || c.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\nUsage: %s\n", strings.ReplaceAll(usageLine(c), "\n", "\n       "))
	}
	if c.HasParent() {
		section(&b, "Commands", commandList(c.Commands()))
	} else {
		for _, g := range groups {
			section(&b, g.title, commandList(inGroup(c, g.title)))
		}
	}
	section(&b, "Examples", strings.Trim(c.Example, "\n"))
	section(&b, "Flags", flagList(c))
	b.WriteString(footer(c))
	return b.String()
}

// usageLine is how a command is called, on one line for each way. A command that only has others below it needs one of them.
func usageLine(c *cobra.Command) string {
	if isGroup(c) {
		return c.CommandPath() + " COMMAND [flags]"
	}
	path, args := c.CommandPath(), strings.TrimPrefix(c.Use, c.Name())
	if others := c.Annotations[otherUse]; others != "" {
		return path + args + " [flags]\n" + path + " " + strings.ReplaceAll(others, "\n", "\n"+path+" ") + " [flags]"
	}
	if command, ok := strings.CutPrefix(args, " -- "); ok { // flags behind it are the other command's
		return path + " [flags] -- " + command
	}
	return path + args + " [flags]"
}

// otherUse is the annotation of a command that can be called in other ways, one a line.
const otherUse = "use"

func section(b *strings.Builder, title, text string) {
	if text != "" {
		fmt.Fprintf(b, "\n%s:\n%s\n", title, text)
	}
}

func inGroup(root *cobra.Command, title string) []*cobra.Command {
	var out []*cobra.Command
	for _, c := range root.Commands() {
		if c.GroupID == title {
			out = append(out, c)
		}
	}
	return inOrder(out)
}

// inOrder sorts commands as their group names them: the everyday ones by use, not by the alphabet.
func inOrder(all []*cobra.Command) []*cobra.Command {
	place := make(map[string]int)
	for _, g := range groups {
		for _, name := range g.commands {
			place[name] = len(place)
		}
	}
	return slices.SortedStableFunc(slices.Values(all), func(a, b *cobra.Command) int { return place[a.Name()] - place[b.Name()] })
}

// commandList is one line for each command that can be run.
func commandList(all []*cobra.Command) string {
	all = slices.DeleteFunc(slices.Clone(all), func(c *cobra.Command) bool { return c.Hidden || !c.Runnable() && !c.HasAvailableSubCommands() })
	width := 0
	for _, c := range all {
		width = max(width, len(c.Name()), len("completion"))
	}
	var lines []string
	for _, c := range all {
		lines = append(lines, fmt.Sprintf("  %-*s  %s", width, c.Name(), c.Short))
	}
	return strings.Join(lines, "\n")
}

// flagList is the command's own flags. Those of every command are shown by options.
func flagList(c *cobra.Command) string {
	return strings.Join(flagLines(ownFlags(c)), "\n")
}

func ownFlags(c *cobra.Command) []*pflag.Flag { return visible(c.LocalNonPersistentFlags()) }

// visible are the flags that help shows, in the order of their names or as they were added.
func visible(flags *pflag.FlagSet) []*pflag.Flag {
	var out []*pflag.Flag
	flags.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && f.Name != "help" && f.Name != "version" {
			out = append(out, f)
		}
	})
	return out
}

// flagColumn is where the texts of flags begin at the latest. A longer name has its text below it.
const flagColumn = 30

// flagLines are the flags with their texts, broken at helpWidth.
func flagLines(flags []*pflag.Flag) []string {
	var rows [][2]string
	for _, f := range flags {
		rows = append(rows, [2]string{flagName(f), strings.ReplaceAll(flagText(f), "(default ", "(default"+unbroken)})
	}
	return columns(rows, flagColumn)
}

// columns prints a name and a text in each row, with texts that begin at most at column most. A longer name has its text below it.
func columns(rows [][2]string, most int) []string {
	column := 0
	for _, row := range rows {
		if n := len(row[0]) + 4; n <= most {
			column = max(column, n)
		}
	}
	if column == 0 {
		column = most
	}
	var lines []string
	for _, row := range rows {
		line := "  " + row[0]
		if len(line)+2 > column {
			lines = append(lines, line)
			line = ""
		}
		line = fmt.Sprintf("%-*s", column, line)
		for _, word := range strings.Fields(row[1]) {
			if len(line) > column && len(line)+len(word) > helpWidth {
				lines = append(lines, strings.TrimRight(line, " "))
				line = strings.Repeat(" ", column)
			}
			line += strings.ReplaceAll(word, unbroken, " ") + " "
		}
		lines = append(lines, strings.TrimRight(line, " "))
	}
	return lines
}

// unbroken is a space at which no line is broken.
const unbroken = "\u00a0"

// placeholderOf is the annotation of a flag that holds its placeholder.
const placeholderOf = "placeholder"

// plainTexts moves the placeholders of all flags from their texts into annotations, as shells complete to the bare texts.
func plainTexts(c *cobra.Command) {
	for _, sub := range c.Commands() {
		plainTexts(sub)
	}
	for _, flags := range []*pflag.FlagSet{c.Flags(), c.PersistentFlags()} {
		flags.VisitAll(func(f *pflag.Flag) {
			if f.Annotations[placeholderOf] != nil {
				return
			}
			name, text := pflag.UnquoteUsage(f)
			f.Usage = text
			if f.Annotations == nil {
				f.Annotations = make(map[string][]string)
			}
			f.Annotations[placeholderOf] = []string{name}
		})
	}
}

// flagName is how a flag is written: "-e, --environment ENVIRONMENT".
func flagName(f *pflag.Flag) string {
	placeholder := strings.Join(f.Annotations[placeholderOf], "")
	switch {
	case f.Value.Type() == "bool":
		placeholder = ""
	case f.NoOptDefVal != "":
		placeholder = "[=" + placeholder + "]"
	default:
		placeholder = " " + strings.ToUpper(placeholder) // without a name: the type, DURATION
	}
	if f.Shorthand != "" {
		return "-" + f.Shorthand + ", --" + f.Name + placeholder
	}
	return "    --" + f.Name + placeholder
}

// flagText is what a flag does, with its default.
func flagText(f *pflag.Flag) string {
	switch f.DefValue {
	case "", "0", "false", "[]", "0s":
		return f.Usage
	}
	return f.Usage + " (default " + shortDuration(f.DefValue) + ")"
}

// shortDuration writes 24h0m0s as 24h.
func shortDuration(text string) string {
	if d, err := time.ParseDuration(text); err != nil || d < time.Minute {
		return text
	}
	text = strings.TrimSuffix(text, "0s")
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

func footer(c *cobra.Command) string {
	switch {
	case !c.HasParent():
		return "\nTopics: macfleet help " + strings.Join(topicNames(), " | ") + "\n" + moreHelp(c)
	case c.HasAvailableSubCommands():
		return "\n" + moreHelp(c)
	case c.Runnable() && c.Name() != "options":
		return "\n\"macfleet options\" lists the flags of every command.\n"
	}
	return ""
}

func moreHelp(c *cobra.Command) string {
	return fmt.Sprintf("\"%s COMMAND --help\" describes a command.\n\"macfleet options\" lists the flags of every command.\n", c.CommandPath())
}

// optionsCmd lists the flags of every command, which no other help repeats.
func optionsCmd() *cobra.Command {
	c := &cobra.Command{Use: "options", Short: "List the flags of every command", Args: cobra.NoArgs,
		Long: "These flags work with every command. Each can also be set in the environment as\n" +
			"MACFLEET_<FLAG>: see macfleet help environment.",
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() }}
	c.SetHelpFunc(func(c *cobra.Command, _ []string) {
		printHelp(c, c.Long+"\n\n"+strings.Join(flagLines(visible(c.Root().PersistentFlags())), "\n")+"\n")
	})
	return c
}

// helpCmd prints the help of a command or a topic.
func helpCmd() *cobra.Command {
	return &cobra.Command{Use: "help [COMMAND|TOPIC]...", Short: "Show help for a command or topic",
		Long:    "Shows help for a command, or a topic: " + strings.Join(topicNames(), ", ") + ".",
		Example: "  macfleet help apply\n  macfleet help exit-codes",
		ValidArgsFunction: func(c *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
			at, _, err := c.Root().Find(args)
			if err != nil || at == nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			var names []string
			for _, sub := range at.Commands() {
				if !sub.Hidden {
					names = append(names, sub.Name())
				}
			}
			return words(names...)(c, args, begun)
		},
		RunE: func(c *cobra.Command, args []string) error {
			of, rest, err := c.Root().Find(args)
			switch {
			case err != nil || of == c.Root() && len(rest) > 0:
				return fmt.Errorf("there is no help for %q; %s", strings.Join(args, " "), topicHint(c.Root(), args[0]))
			case len(rest) > 0 && isGroup(of):
				return fmt.Errorf("there is no help for %q; %s", strings.Join(args, " "), commandHint(of, rest[0]))
			}
			return of.Help()
		}}
}
