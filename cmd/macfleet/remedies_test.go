package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/macfleet/macfleet/internal/app"
)

// TestRemediesNameWhatThereIs checks that each "macfleet COMMAND --flag" in printed troubles, in
// the codes and in the guides exists.
func TestRemediesNameWhatThereIs(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(files) == 0 {
		t.Fatalf("no guides: %v", err)
	}
	followed := 0
	for _, name := range append(files, "../../internal/view/testdata/errors-pipe.txt") {
		text, err := os.ReadFile(name)
		must(t, err)
		for _, line := range strings.Split(string(text), "\n") {
			for _, command := range commandsIn(line) {
				followed++
				equal(t, unknownIn(command), "", filepath.Base(name), "names", strings.Join(command, " "))
			}
		}
	}
	if followed < 100 {
		t.Errorf("only %d commands were followed", followed)
	}
}

// commandsIn are the words that follow "macfleet" in a line, each up to the end of its sentence.
func commandsIn(line string) (out [][]string) {
	for _, rest := range strings.Split(line, "macfleet ")[1:] {
		end := strings.IndexAny(rest, "`;,:|()\"")
		if end < 0 {
			end = len(rest)
		}
		if words := strings.Fields(rest[:end]); len(words) > 0 {
			out = append(out, words)
		}
	}
	return out
}

// unknownIn returns the word of a command line that macfleet does not know, or "". Prose is skipped.
func unknownIn(words []string) string {
	c, rest, err := rootCmd(&app.Env{}).Find(words)
	if err != nil || !c.HasParent() {
		return ""
	}
	for _, word := range rest {
		name, long := strings.CutPrefix(strings.TrimRight(word, ".]"), "--")
		if name, _, _ = strings.Cut(name, "="); !long || name == "" || name == "help" { // help is every command's
			continue
		}
		var flag *pflag.Flag
		if flag = c.Flags().Lookup(name); flag == nil {
			flag = c.InheritedFlags().Lookup(name)
		}
		if flag == nil && c.Root().PersistentFlags().Lookup(name) == nil {
			return c.CommandPath() + " has no flag --" + name
		}
	}
	return ""
}
