// Package pf reads and writes what the packet filter of macOS has: its
// configuration file /etc/pf.conf, the file of an anchor, and what pfctl says of
// the rules that are live. It knows statements and not their meaning: a line
// that is not macfleet's own keeps its bytes.
package pf

import (
	"fmt"
	"strings"
)

// statement is a statement of a pf.conf, a comment or a blank line: whole lines
// with their ends.
type statement struct {
	text    string
	line    int    // of the file, counted from 1
	words   []word // empty for a comment and a blank line
	comment string // what a line says that is a comment alone
	braces  bool   // it holds a list or rules of its own
	ended   bool   // it ends with the end of a line, and not with that of the file
}

// word is a word of a statement. A quoted one is never a keyword.
type word struct {
	text   string
	quoted bool
}

// keyword reports whether the i-th word is one of these, unquoted.
func (s *statement) keyword(i int, texts ...string) bool {
	if i >= len(s.words) || s.words[i].quoted {
		return false
	}
	for _, t := range texts {
		if s.words[i].text == t {
			return true
		}
	}
	return false
}

// split takes a configuration apart as pfctl's own scanner does: a backslash at
// the end of a line joins it to the next, in comments as well; a quoted text and
// braces go over the ends of lines. All texts together are the configuration.
func split(conf string) ([]*statement, error) {
	lines := strings.Count(conf, "\n") + 1
	made, out := make([]statement, 0, lines), make([]*statement, 0, lines)
	s := scanner{text: conf, words: make([]word, 0, len(conf)/8)}
	for line := 1; s.pos < len(conf); {
		st, err := s.statement(line)
		if err != nil {
			return nil, err
		}
		made = append(made, st)
		out = append(out, &made[len(made)-1]) // which stays: a statement has a line of its own
		line += strings.Count(st.text, "\n")
	}
	return out, nil
}

// end is what scanner.get returns at the end of the text.
const end = -1

type scanner struct {
	text  string
	pos   int
	words []word // of all statements: a plan of a big fleet reads many
}

// get returns the next character as pfctl's scanner sees it: a backslash is
// passed over, with the end of a line behind it.
func (s *scanner) get() int {
	for s.pos < len(s.text) {
		c := s.text[s.pos]
		s.pos++
		if c != '\\' {
			return int(c)
		}
		if s.pos < len(s.text) {
			c = s.text[s.pos]
			s.pos++
			if c != '\n' {
				return int(c)
			}
		}
	}
	return end
}

// statement reads up to the end of the line that ends a statement.
func (s *scanner) statement(line int) (statement, error) {
	st := statement{line: line}
	from, words, comment := s.pos, len(s.words), ""
	for depth := 0; ; {
		before := s.pos
		switch c := s.get(); {
		case c == '\n' && depth > 0, c == ' ', c == '\t', c == '\r':
		case c == '\n' || c == end:
			if c == end && depth > 0 {
				return st, fmt.Errorf("line %d: a brace is never closed", line)
			}
			st.text, st.ended = s.text[from:s.pos], c == '\n'
			if st.words = s.words[words:len(s.words):len(s.words)]; len(st.words) == 0 {
				st.comment = comment
			}
			return st, nil
		case c == '#':
			comment = s.comment()
		case c == '"' || c == '\'':
			text, closed := s.quoted(byte(c))
			if !closed {
				return st, fmt.Errorf("line %d: a quotation is never closed", line)
			}
			if depth == 0 {
				s.words = append(s.words, word{text, true})
			}
		case c == '{' || c == '}':
			if st.braces = true; len(s.words) == words {
				s.words = append(s.words, word{text: "{"})
			}
			if depth--; c == '{' {
				depth += 2
			}
			depth = max(depth, 0)
		case depth > 0:
		case inWord(byte(c)):
			s.pos = before
			s.words = append(s.words, word{text: s.word()})
		default:
			s.words = append(s.words, word{text: string(rune(c))})
		}
	}
}

// comment reads what stands behind a number sign, and leaves the end of the line.
func (s *scanner) comment() string {
	if n := strings.IndexAny(s.text[s.pos:], "\\\n"); n >= 0 && s.text[s.pos+n] == '\n' {
		s.pos += n
		return s.text[s.pos-n-1 : s.pos]
	}
	b := []byte{'#'}
	for {
		switch c := s.get(); c {
		case '\n':
			s.pos--
			return string(b)
		case end:
			return string(b)
		default:
			b = append(b, byte(c))
		}
	}
}

// quoted reads up to the closing quote.
func (s *scanner) quoted(quote byte) (text string, closed bool) {
	if n := strings.IndexByte(s.text[s.pos:], quote); n >= 0 && !strings.ContainsAny(s.text[s.pos:s.pos+n], "\\\n") {
		s.pos += n + 1
		return s.text[s.pos-n-1 : s.pos-1], true
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
	return string(b), false
}

// word reads an unquoted word.
func (s *scanner) word() string {
	n := s.pos
	for n < len(s.text) && inWord(s.text[n]) && s.text[n] != '\\' {
		n++
	}
	if n < len(s.text) && s.text[n] != '\\' {
		text := s.text[s.pos:n]
		s.pos = n
		return text
	}
	var b []byte
	for {
		before := s.pos
		c := s.get()
		if c == end || !inWord(byte(c)) {
			s.pos = before
			return string(b)
		}
		b = append(b, byte(c))
	}
}

// inWord reports whether a character may be part of an unquoted word.
func inWord(c byte) bool {
	switch c {
	case '(', ')', '{', '}', '<', '>', '!', '=', '/', '#', ',':
		return false
	}
	return c > ' ' && c < 0x7f
}
