package main

import (
	"bytes"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/macfleet/macfleet/internal/app"
)

func tree() *cobra.Command {
	return rootCmd(&app.Env{Streams: app.Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard}})
}

// everyCommand visits all commands that help shows.
func everyCommand(visit func(*cobra.Command)) {
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		visit(c)
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(tree())
}

// help prints what a command line prints and insists that it succeeds.
func help(t *testing.T, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	if code := run(t.Context(), args, app.Streams{In: strings.NewReader(""), Out: &out, Err: &out}); code != 0 {
		t.Fatalf("macfleet %s: exit %d\n%s", strings.Join(args, " "), code, &out)
	}
	return out.String()
}

func TestHelpFitsAScreen(t *testing.T) {
	t.Parallel()
	text := help(t, "--help")
	if n := strings.Count(text, "\n"); n > 45 {
		t.Errorf("macfleet --help has %d lines:\n%s", n, text)
	}
	for _, c := range tree().Commands() {
		if c.GroupID == "" && c.Runnable() {
			t.Errorf("macfleet %s is in no group", c.Name())
		}
		if c.Runnable() && !strings.Contains(text, "  "+c.Name()+" ") {
			t.Errorf("macfleet --help does not show %s", c.Name())
		}
	}
}

// A text of help is a plain sentence: lower case for flags, upper case for commands, no full stop.
func TestHelpTexts(t *testing.T) {
	t.Parallel()
	flagText, short := regexp.MustCompile(`^[a-z0-9"]|^OpenSSH|^ENVIRONMENT`), regexp.MustCompile(`^[A-Z].*[^.]$`)
	everyCommand(func(c *cobra.Command) {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			_, text := pflag.UnquoteUsage(f)
			if !flagText.MatchString(text) || strings.HasSuffix(text, ".") {
				t.Errorf("%s --%s: %q", c.CommandPath(), f.Name, text)
			}
		})
		if c.Parent() != nil && c.Parent().Name() == "completion" {
			return // cobra's own
		}
		if !short.MatchString(c.Short) || len(c.Short) > 66 {
			t.Errorf("%s: %q", c.CommandPath(), c.Short)
		}
		for line := range strings.Lines(c.Long) {
			if len(strings.TrimRight(line, "\n")) > 82 && c.Name() != "inject" {
				t.Errorf("%s: a line of its help has %d columns: %s", c.CommandPath(), len(line), line)
			}
		}
	})
}

// Every command has an example, and every example is a command line that macfleet takes.
func TestHelpExamples(t *testing.T) {
	t.Parallel()
	everyCommand(func(c *cobra.Command) {
		plain := isGroup(c) || !c.Runnable() || strings.HasPrefix(c.CommandPath(), "macfleet completion") || c.Name() == "version" || c.Name() == "options"
		if c.Example == "" && !plain {
			t.Errorf("%s has no example", c.CommandPath())
		}
		for line := range strings.Lines(c.Example) {
			if why := misread(line); why != "" {
				t.Errorf("%s: %s: %s", c.CommandPath(), strings.TrimSpace(line), why)
			}
		}
	})
	for _, topic := range topics {
		for line := range strings.Lines(topic.text) {
			if strings.HasPrefix(line, "  --") {
				options, _, _ := strings.Cut(strings.TrimSpace(line), "   ")
				if why := misread("macfleet hosts " + options); why != "" {
					t.Errorf("%s: %s: %s", topic.name, options, why)
				}
			}
		}
	}
}

// misread says why macfleet does not take a command line of a shell, or "".
func misread(line string) string {
	found := regexp.MustCompile(`macfleet ([^|<)]*)`).FindStringSubmatch(line)
	if found == nil {
		return "it does not run macfleet"
	}
	var words []string
	for _, w := range regexp.MustCompile(`"[^"]*"|'[^']*'|\S+`).FindAllString(found[1], -1) {
		words = append(words, strings.Trim(w, `"'`))
	}
	return unparsed(words)
}

// unparsed says why macfleet does not take the words after its name, or "".
func unparsed(words []string) string {
	c, rest, err := tree().Find(words)
	if err == nil {
		err = c.ParseFlags(rest)
	}
	if err == nil {
		err = c.ValidateArgs(c.Flags().Args())
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// What people type who know other tools, and what they are told.
func TestHints(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ line, says string }{
		{"get", "use macfleet hosts"},
		{"get -o wide", "use macfleet hosts"},
		{"ls", "use macfleet hosts"},
		{"describe x", "use macfleet explain HOST"},
		{"ssh x", "macfleet has no ssh yet"},
		{"force-unlock", "use macfleet lock release"},
		{"plna", "did you mean macfleet plan?"},
		{"lock relase", "did you mean macfleet lock release?"},
		{"help nonsense", `unknown command "nonsense"`},
		{"hosts trust x", "use macfleet hosts forget-key HOST"},
		{"plan --target x", "use --on SELECTOR"},
		{"plan -l x", "use --on SELECTOR"},
		{"plan --limit runners", "use --on SELECTOR"},
		{"plan -out x", "did you mean --out?"},
		{"plan -out=x", "did you mean --out?"},
		{"plan -var runners=1", "did you mean --var?"},
		{"plan -expires 3h", "did you mean --expires?"},
		{"plan --detailed", "did you mean --detailed-exitcode?"},
		{"plan --exlude x", "did you mean --exclude?"},
		{"apply -auto-approve", "did you mean --auto-approve?"},
		{"apply --yes", "use --auto-approve"},
		{"apply --check", "use macfleet plan"},
		{"apply --lock-timeout x", `--lock-timeout must be a duration such as 90s, 15m or 2h; "x" is not`},
		{"plan runners", `macfleet plan takes no arguments (got "runners"); to limit it to one host, add --on name=runners`},
		{"doctor", "macfleet doctor needs HOST"},
		{"doctor a b", `macfleet doctor takes HOST only (got "b")`},
		{"--sandbox world plan", "--sandbox=DIR"},
	} {
		var said bytes.Buffer
		code := run(t.Context(), strings.Fields(test.line), app.Streams{In: strings.NewReader(""), Out: &said, Err: &said})
		if code != 1 || !strings.Contains(said.String(), test.says) {
			t.Errorf("macfleet %s: exit %d\n%swanted: %s", test.line, code, &said, test.says)
		}
	}
}

// A hint names only commands and flags that exist.
func TestHintsExist(t *testing.T) {
	t.Parallel()
	flags := map[string]bool{"wide": true}
	everyCommand(func(c *cobra.Command) {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) { flags[f.Name] = true })
	})
	for _, hints := range []map[string]string{foreignCommands, foreignFlags} {
		for word, hint := range hints {
			for _, m := range regexp.MustCompile(`macfleet ((?:[a-z]+-?)+)(?: ([a-z]+))?`).FindAllStringSubmatch(hint, -1) {
				c, _, err := tree().Find(m[1:2])
				if (err != nil || c == tree().Root()) && m[1] != "has" {
					t.Errorf("%s: %q: there is no command %s", word, hint, m[1])
				}
			}
			for _, m := range regexp.MustCompile(`--([a-z-]+)`).FindAllStringSubmatch(hint, -1) {
				if !flags[m[1]] {
					t.Errorf("%s: %q: there is no flag --%s", word, hint, m[1])
				}
			}
		}
	}
}
