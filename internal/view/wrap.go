package view

import (
	"regexp"
	"slices"
	"strings"

	"github.com/charmbracelet/lipgloss"
)

// wrap breaks text between words into lines of at most width columns. A word, a command, and a number with what it counts are
// never broken: one that is wider than the line gets a separate line. A width of 0 or less breaks nothing.
func wrap(text string, width int) []string {
	if width <= 0 {
		return []string{text}
	}
	var lines []string
	line := ""
	for _, piece := range pieces(text) {
		switch {
		case line == "":
			line = piece
		case lipgloss.Width(line)+1+lipgloss.Width(piece) <= width:
			line += " " + piece
		default:
			lines = append(lines, line)
			line = piece
		}
	}
	return append(lines, line)
}

// number matches a number that has a unit behind it.
var number = regexp.MustCompile(`^[(~]*\d+(/\d+)?$`)

// pieces splits text into words, into numbers with their units, and into commands that a person will copy.
func pieces(text string) []string {
	words := strings.Fields(text)
	var out []string
	for len(words) > 0 {
		n := commandWords(words)
		if n == 1 && len(words) > 1 && number.MatchString(words[0]) && program.FindString(words[1]) == "" {
			n = 2
		}
		out = append(out, strings.Join(words[:n], " "))
		words = words[n:]
	}
	return out
}

// program matches the first word of the command lines that macfleet prints.
var program = regexp.MustCompile(`^[("']*(macfleet|kubectl|sudo|ssh|ssh-keygen|launchctl|tart|pfctl|fdesetup|sysadminctl|scw|gh)$`)

// verbs are the commands of macfleet that have another plain word behind them.
var verbs = []string{"init", "lock", "sandbox", "artifacts", "show", "help", "completion", "hosts"}

// commandWords returns how many of the words, from the first on, stay together: 1, or those of a command. It may take a word
// of the sentence too many, which costs nothing but an early break.
func commandWords(words []string) int {
	found := program.FindStringSubmatch(words[0])
	if found == nil {
		return 1
	}
	plain, verb := 1, false // words of letters that belong to it; whether it has its verb
	switch found[1] {
	case "kubectl":
		plain = 2
	case "ssh":
		plain = 0
	}
	quote := byte(0) // that is still open
	for n := 1; n < len(words); n++ {
		before, word := words[n-1], words[n]
		if quote == 0 && strings.ContainsRune(",;:.)", rune(before[len(before)-1])) && strings.Trim(before, ".") != "" { // . and .. are folders
			return n
		}
		switch {
		case quote != 0:
			if word[len(word)-1] == quote {
				quote = 0
			}
		case word[0] == '\'' || word[0] == '"':
			if len(word) == 1 || strings.IndexByte(word[1:], word[0]) < 0 {
				quote = word[0]
			}
		case strings.HasPrefix(before, "-"), isArgument(word):
		case plain > 0:
			plain--
			if !verb && slices.Contains(verbs, word) {
				plain++
			}
			verb = true
		default:
			return n
		}
	}
	return len(words)
}

// isArgument reports whether a word looks like an argument and not like a word of a sentence.
func isArgument(word string) bool {
	letters := strings.TrimRight(word, ",;:.)")
	return strings.ContainsAny(word, "-=/~|<>@0123456789") || len(letters) > 1 && strings.ToUpper(letters) == letters
}
