package view

import (
	"regexp"
	"slices"
	"strings"
)

// Repeat lets the commands of macfleet that are printed have the flags that the reader gave, so that they work pasted in the
// same folder. Commands are macfleet's commands: other words behind its name are those of a sentence.
func (t *Text) Repeat(flags, commands []string) {
	if len(flags) == 0 || len(commands) == 0 {
		return
	}
	command := regexp.MustCompile(`(?:^|[^\w./-])(macfleet )(?:` + strings.Join(commands, "|") + `)\b`)
	t.repeat = func(text string) string {
		var b strings.Builder
		end := 0
		for _, at := range command.FindAllStringSubmatchIndex(text, -1) {
			words := strings.Fields(text[at[2]:])
			words = words[:commandWords(words)]
			b.WriteString(text[end:at[3]])
			for _, flag := range flags {
				if !isGiven(words, flag) {
					b.WriteString(flag + " ")
				}
			}
			end = at[3]
		}
		return b.String() + text[end:]
	}
}

// isGiven reports whether a command has a flag, such as "-e production", with any value.
func isGiven(words []string, flag string) bool {
	name := flag[:strings.IndexAny(flag+" ", " =")]
	return slices.ContainsFunc(words, func(word string) bool { return word == name || strings.HasPrefix(word, name+"=") })
}

// pasteable is a text whose commands have the reader's flags.
func (t *Text) pasteable(text string) string {
	if t.repeat == nil || !strings.Contains(text, "macfleet ") {
		return text
	}
	return t.repeat(text)
}
