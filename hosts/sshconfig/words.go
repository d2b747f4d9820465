package sshconfig

import (
	"errors"
	"strings"
)

// words splits a line into its keyword and arguments as OpenSSH does: quotes of
// both kinds hold words together, a backslash takes a quote, a backslash or a
// blank as it is, and a # begins a comment only where a word could begin. A
// line without a keyword returns "".
func words(line string) (keyword string, args []string, err error) {
	line = strings.TrimLeft(line, blanks)
	if line == "" || line[0] == '#' {
		return "", nil, nil
	}
	keyword, rest := line, ""
	if i := strings.IndexAny(line, blanks+"="); i >= 0 {
		keyword, rest = line[:i], strings.TrimLeft(line[i:], blanks)
		rest = strings.TrimPrefix(rest, "=") // one alone: a second belongs to the value
	}
	keyword = strings.Trim(keyword, `"`)
	for {
		rest = strings.TrimLeft(rest, blanks)
		if rest == "" || rest[0] == '#' {
			return keyword, args, nil
		}
		var arg string
		if arg, rest, err = word(rest); err != nil {
			return "", nil, err
		}
		args = append(args, arg)
	}
}

const blanks = " \t\r\n\f\v"

var errQuote = errors.New("a quote is opened and not closed")

// word takes the first word off a text that does not begin with a blank.
func word(text string) (first, rest string, err error) {
	var b strings.Builder
	quote := byte(0)
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '\\' && i+1 < len(text) && escapes(text[i+1], quote):
			i++
			b.WriteByte(text[i])
		case quote == 0 && (c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\f' || c == '\v'):
			return b.String(), text[i:], nil
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
		case quote != 0 && c == quote:
			quote = 0
		default:
			b.WriteByte(c)
		}
	}
	if quote != 0 {
		return "", "", errQuote
	}
	return b.String(), "", nil
}

func escapes(c, quote byte) bool {
	return c == '"' || c == '\'' || c == '\\' || c == ' ' && quote == 0
}

// matches reports whether text is of a pattern in which * stands for any text
// and ? for one character. Only the last star is ever gone back to, so that no
// pattern takes long.
func matches(pattern, text string) bool {
	star, from := -1, 0
	p, t := 0, 0
	for t < len(text) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, from = p, t
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == text[t]):
			p, t = p+1, t+1
		case star >= 0:
			from++
			p, t = star+1, from
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// matchesAny reports whether text is of one of the patterns. A pattern after a "!"
// that fits makes it of none.
func matchesAny(patterns []string, text string) bool {
	found := false
	for _, p := range patterns {
		not := strings.HasPrefix(p, "!")
		if matches(strings.TrimPrefix(p, "!"), text) {
			if not {
				return false
			}
			found = true
		}
	}
	return found
}
