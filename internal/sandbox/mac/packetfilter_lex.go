package mac

import (
	"fmt"
	"strings"
)

// pfToken is one token of a file of pf.
type pfToken struct {
	kind pfTokenKind
	text string
	line int
}

type pfTokenKind int

const (
	pfEnd pfTokenKind = iota
	pfNewline
	pfWord
	pfQuoted // a text in quotes
	pfTable  // the name within < and >
	pfSign   // an operator, a bracket or a comma
)

// pfLine is an error with its place in the file.
type pfLine struct {
	line int
	text string
}

func (e pfLine) Error() string { return fmt.Sprintf("%d: %s", e.line, e.text) }

// pfTokens splits a text into tokens: comments are skipped, and a backslash at the end of a line joins
// the next one.
func pfTokens(text string, line int) ([]pfToken, error) {
	var tokens []pfToken
	for len(text) > 0 {
		var next pfToken
		size := 1
		switch c := text[0]; {
		case strings.HasPrefix(text, "\\\n"):
			text, line = text[2:], line+1
			continue
		case c == ' ' || c == '\t' || c == '\r':
			text = text[1:]
			continue
		case c == '#':
			text = text[len(pfComment(text)):]
			continue
		case c == '\n':
			next = pfToken{pfNewline, "", line}
			line++
		case c == '"' || c == '\'':
			end := strings.IndexByte(text[1:], c)
			if end < 0 || strings.Contains(text[1:1+end], "\n") {
				return nil, pfLine{line, "syntax error"}
			}
			next, size = pfToken{pfQuoted, text[1 : 1+end], line}, end+2
		default:
			next, size = pfPlain(text, line)
			if size == 0 {
				return nil, pfLine{line, "syntax error"}
			}
		}
		tokens = append(tokens, next)
		text = text[size:]
	}
	return tokens, nil
}

// pfComment returns the comment at the start of a text. A backslash does not continue it.
func pfComment(text string) string {
	comment, _, _ := strings.Cut(text, "\n")
	return comment
}

// pfPlain reads a word, a table's name or a sign; a size of 0 is none of them.
func pfPlain(text string, line int) (pfToken, int) {
	if text[0] == '<' {
		if end := strings.IndexByte(text, '>'); end > 1 && strings.IndexFunc(text[1:end], notOfWord) < 0 {
			return pfToken{pfTable, text[1:end], line}, end + 1
		}
	}
	for _, sign := range []string{"->", "<=", ">=", "!=", "<>", "><", "{", "}", "(", ")", ",", "=", "!", "<", ">"} {
		if strings.HasPrefix(text, sign) {
			return pfToken{pfSign, sign, line}, len(sign)
		}
	}
	size := strings.IndexFunc(text, notOfWord)
	if size < 0 {
		size = len(text)
	}
	return pfToken{pfWord, text[:size], line}, size
}

func notOfWord(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-/:+*$@%&;~", r))
}
