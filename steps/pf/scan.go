// Package pf parses and rewrites the configuration of macOS's packet filter: /etc/pf.conf,
// anchor files, and pfctl's listings of the live rules. It splits statements without
// interpreting them, and foreign lines keep their bytes.
package pf

import (
	"fmt"
	"slices"
	"strings"
)

// Conf is a parsed pf.conf or pfctl listing. Its statements are immutable, because several
// Confs share them.
type Conf struct{ all []*statement }

// statement is a statement, a comment or a blank line, with its line ends.
type statement struct {
	text    string
	line    int    // line number, from 1
	words   []word // empty for comments and blank lines
	comment string // text of a comment line
	braces  bool   // it has braces: a list or rules
	ended   bool   // it ends with a line end, not with the end of the file

	Point               // the anchor that it evaluates or loads, or the zero Point
	begins, ends string // the anchor whose block a comment begins or ends
}

// word is a word of a statement. A quoted word is never a keyword.
type word struct {
	text   string
	quoted bool
}

// keyword reports whether the i-th word is one of these, unquoted.
func (s *statement) keyword(i int, texts ...string) bool {
	return i < len(s.words) && !s.words[i].quoted && slices.Contains(texts, s.words[i].text)
}

// Parse splits a configuration as pfctl's own scanner does: a trailing backslash continues a
// line, also in comments; quotes and braces span lines. The error names the line that pfctl
// could not read either.
func Parse(conf string) (Conf, error) {
	lines := strings.Count(strings.TrimSuffix(conf, "\n"), "\n") + 1 // sizes the slice
	made, c := make([]statement, lines), Conf{make([]*statement, 0, lines)}
	s := scanner{text: conf, words: make([]word, 0, len(conf)/8)}
	for line := 1; s.pos < len(conf); {
		st := &made[len(c.all)]
		if err := s.statement(st, line); err != nil {
			return Conf{}, err
		}
		st.Point = st.anchor()
		st.begins, st.ends = st.marks()
		c.all = append(c.all, st)
		line += strings.Count(st.text, "\n")
	}
	return c, nil
}

// text returns the whole configuration.
func (c Conf) text() string {
	texts := make([]string, len(c.all))
	for i, s := range c.all {
		texts[i] = s.text
	}
	return strings.Join(texts, "")
}

// end is what scanner.get returns at the end of the text.
const end = -1

type scanner struct {
	text  string
	pos   int
	words []word // of all statements
}

// get returns the next character as pfctl's scanner sees it: it skips a backslash and the
// line end after it.
func (s *scanner) get() int {
	for strings.HasPrefix(s.text[s.pos:], "\\\n") {
		s.pos += 2
	}
	if strings.HasPrefix(s.text[s.pos:], `\`) {
		s.pos++
	}
	if s.pos == len(s.text) {
		return end
	}
	s.pos++
	return int(s.text[s.pos-1])
}

// statement reads up to the end of the statement's last line.
func (s *scanner) statement(st *statement, line int) error {
	from, words, comment := s.pos, len(s.words), ""
	add := func(text string, quoted bool) { s.words = append(s.words, word{text, quoted}) }
	for depth := 0; ; {
		before := s.pos
		switch c := s.get(); {
		case c == '\n' && depth > 0, c == ' ', c == '\t', c == '\r':
		case c == '\n' || c == end:
			if c == end && depth > 0 {
				return fmt.Errorf("line %d: a brace is never closed", line)
			}
			st.line, st.text, st.ended = line, s.text[from:s.pos], c == '\n'
			if st.words = s.words[words:len(s.words):len(s.words)]; len(st.words) == 0 {
				st.comment = comment
			}
			return nil
		case c == '#':
			comment = s.until(func(c byte) bool { return c == '\n' })
		case c == '"' || c == '\'':
			text, closed := s.quoted(byte(c))
			if !closed {
				return fmt.Errorf("line %d: a quotation is never closed", line)
			}
			if depth == 0 {
				add(text, true)
			}
		case c == '{' || c == '}':
			if st.braces = true; len(s.words) == words {
				add("{", false)
			}
			if depth--; c == '{' {
				depth += 2
			}
			depth = max(depth, 0)
		case depth > 0:
		case inWord(byte(c)):
			s.pos = before
			add(s.until(func(c byte) bool { return !inWord(c) }), false)
		default:
			add(string(rune(c)), false)
		}
	}
}

// until reads up to a character, without consuming it.
func (s *scanner) until(stop func(byte) bool) string {
	rest := s.text[s.pos:]
	if n := strings.IndexFunc(rest, func(r rune) bool { return r == '\\' || stop(byte(min(r, 0x7f))) }); n >= 0 && rest[n] != '\\' {
		s.pos += n
		return rest[:n]
	}
	var b []byte
	for {
		before := s.pos
		c := s.get()
		if c == end || stop(byte(c)) {
			s.pos = before
			return string(b)
		}
		b = append(b, byte(c))
	}
}

// quoted reads up to the closing quote.
func (s *scanner) quoted(quote byte) (text string, closed bool) {
	rest := s.text[s.pos:]
	if n := strings.IndexAny(rest, "\\\n"+string(rune(quote))); n >= 0 && rest[n] == quote {
		s.pos += n + 1
		return rest[:n], true
	}
	var b []byte
	for s.pos < len(s.text) {
		c := s.text[s.pos]
		s.pos++
		switch {
		case c == quote:
			return string(b), true
		case c == '\n':
		case c == '\\' && s.pos < len(s.text) && (s.text[s.pos] == quote || strings.IndexByte(" \t\n", s.text[s.pos]) >= 0):
			if s.text[s.pos] != '\n' {
				b = append(b, s.text[s.pos])
			}
			s.pos++
		default:
			b = append(b, c)
		}
	}
	return "", false
}

// inWord reports whether a character may be part of an unquoted word.
func inWord(c byte) bool { return c > ' ' && c < 0x7f && strings.IndexByte("(){}<>!=/#,", c) < 0 }
