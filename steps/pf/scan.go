// Package pf reads and writes what the packet filter of macOS has: its
// configuration file /etc/pf.conf, the file of an anchor, and what pfctl says of
// the rules that are live. It knows statements and not their meaning: a line
// that is not macfleet's own keeps its bytes.
package pf

import (
	"fmt"
	"slices"
	"strings"
)

// Conf is a pf.conf or a listing of pfctl, taken apart. Its statements are never changed:
// the forms that a plan needs of one file share them.
type Conf struct{ all []*statement }

// statement is a statement, a comment or a blank line: whole lines with their ends.
type statement struct {
	text    string
	line    int    // of the file, counted from 1
	words   []word // empty for a comment and a blank line
	comment string // what a line says that is a comment alone
	braces  bool   // it holds a list or rules of its own
	ended   bool   // it ends with the end of a line, and not with that of the file

	Point               // the anchor that it evaluates or loads; the zero one: it does neither
	begins, ends string // the anchor whose block a comment begins or ends
}

// word is a word of a statement. A quoted one is never a keyword.
type word struct {
	text   string
	quoted bool
}

// keyword reports whether the i-th word is one of these, unquoted.
func (s *statement) keyword(i int, texts ...string) bool {
	return i < len(s.words) && !s.words[i].quoted && slices.Contains(texts, s.words[i].text)
}

// Parse takes a configuration apart as pfctl's own scanner does: a backslash at
// the end of a line joins it to the next, in comments as well; a quoted text and
// braces go over the ends of lines. The error says which line pfctl itself could not read.
func Parse(conf string) (Conf, error) {
	lines := strings.Count(strings.TrimSuffix(conf, "\n"), "\n") + 1 // a plan of a big fleet reads many
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

// text is the configuration, as all its statements together are.
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

// get returns the next character as pfctl's scanner sees it: a backslash is
// passed over, with the end of a line behind it.
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

// statement reads up to the end of the line that ends a statement.
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

// until reads up to a character, which it leaves.
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
