package main

import (
	"bytes"
	"io"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/macfleet/macfleet/internal/app"
	"github.com/macfleet/macfleet/plan"
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

// help returns a command's output and requires success.
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

// Help texts are plain sentences: lower case for flags, upper case for commands, no full stop.
func TestHelpTexts(t *testing.T) {
	t.Parallel()
	flagText, short := regexp.MustCompile(`^[a-z0-9"]|^OpenSSH|^ENVIRONMENT`), regexp.MustCompile(`^[A-Z].*[^.]$`)
	everyCommand(func(c *cobra.Command) {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if !flagText.MatchString(f.Usage) || strings.ContainsAny(f.Usage, "`\t") || strings.HasSuffix(f.Usage, ".") {
				t.Errorf("%s --%s: %q", c.CommandPath(), f.Name, f.Usage)
			}
		})
		if !short.MatchString(c.Short) || len(c.Short) > 66 {
			t.Errorf("%s: %q", c.CommandPath(), c.Short)
		}
		for line := range strings.Lines(helpOf(c)) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > helpWidth && !strings.HasPrefix(line, "  macfleet ") {
				t.Errorf("%s: a line of its help has %d columns: %s", c.CommandPath(), n, line)
			}
		}
	})
}

// Every command has an example, and macfleet accepts every example.
func TestHelpExamples(t *testing.T) {
	t.Parallel()
	everyCommand(func(c *cobra.Command) {
		if c.Example == "" && c.Runnable() && c.HasParent() && c.Name() != "lock" && c.Name() != "options" {
			t.Errorf("%s has no example", c.CommandPath())
		}
		for line := range strings.Lines(c.Example) {
			equal(t, misread(line), "", c.CommandPath(), strings.TrimSpace(line))
		}
	})
	for _, topic := range topics {
		for line := range strings.Lines(topic.text) {
			if strings.HasPrefix(line, "  --") {
				options, _, _ := strings.Cut(strings.TrimSpace(line), "   ")
				equal(t, misread("macfleet hosts "+options), "", topic.name, options)
			}
		}
	}
}

// misread returns why macfleet does not accept a shell's command line, or "".
func misread(line string) string {
	found := regexp.MustCompile(`macfleet ([^|<>)]*)`).FindStringSubmatch(line)
	if found == nil {
		return "it does not run macfleet"
	}
	var words []string
	for _, w := range regexp.MustCompile(`"[^"]*"|'[^']*'|\S+`).FindAllString(found[1], -1) {
		words = append(words, strings.Trim(w, `"'`))
	}
	return unparsed(words)
}

// unparsed returns why macfleet does not accept the words after its name, or "".
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

// TestDecisionFlags: what a plan file and a record keep of a run's decisions are the flags of apply that gave them.
func TestDecisionFlags(t *testing.T) {
	t.Parallel()
	all := plan.Decisions{Rollback: true, NewTokens: true, AdoptOnly: true, AllowOrphans: true, ReleaseSurplus: 2,
		AcceptLists: []string{"tailnet", "github.com/acme"}, MovedFrom: "uid-1"}
	for i, of := 0, reflect.ValueOf(all); i < of.NumField(); i++ {
		equal(t, of.Field(i).IsZero(), false, of.Type().Field(i).Name)
	}
	given := all.Flags()
	equal(t, strings.Join(given, " "), "--rollback --rotate-tokens --adopt-only --allow-orphans --release-surplus 2 "+
		"--accept-list tailnet --accept-list github.com/acme --moved-from-cluster uid-1")
	equal(t, unparsed(strings.Fields("apply "+strings.Join(given, " "))), "")
	equal(t, len(plan.Decisions{}.Flags()), 0)
}

// The topic names every command with an special exit code.
func TestExitCodesTopic(t *testing.T) {
	t.Parallel()
	own := regexp.MustCompile(`(?s)Exit codes.*\b[23] `)
	everyCommand(func(c *cobra.Command) {
		name := strings.TrimPrefix(c.CommandPath(), "macfleet ")
		if c.HasParent() && c.Runnable() && own.MatchString(c.Long) && !regexp.MustCompile(`(?m)^  ([a-z]+, )*`+name+`\b`).MatchString(exitCodes) {
			t.Errorf("%s is not in macfleet help exit-codes", name)
		}
	})
}

// testdata/typed.txt lists what users of other tools type, and what the error must contain.
func TestHints(t *testing.T) {
	t.Parallel()
	rows, err := os.ReadFile("testdata/typed.txt")
	must(t, err)
	for row := range strings.Lines(string(rows)) {
		line, hint, found := strings.Cut(strings.TrimSpace(row), " -> ")
		if !found {
			continue // a comment
		}
		var said bytes.Buffer
		code := run(t.Context(), strings.Fields(line), app.Streams{In: strings.NewReader(""), Out: &said, Err: &said})
		if code != 1 || !strings.Contains(said.String(), hint) {
			t.Errorf("macfleet %s: exit %d\n%swanted: %s", line, code, &said, hint)
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
