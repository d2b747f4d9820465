package conformance

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Stream is what an answer accepts on one stream. The zero Stream accepts only an empty one.
type Stream struct {
	parts   []part
	pattern *regexp.Regexp
}

// part is one line of the table about a stream.
type part struct {
	sign byte // ':' a line, '=' bytes without a line break, '~' a line that matches a pattern, '*' anything
	text string
}

// with returns the stream with one more part.
func (s Stream) with(p part) (Stream, error) {
	s.parts = append(s.parts[:len(s.parts):len(s.parts)], p)
	var b strings.Builder
	b.WriteString(`\A`)
	for _, p := range s.parts {
		switch p.sign {
		case ':':
			b.WriteString(regexp.QuoteMeta(p.text) + `\n`)
		case '=':
			b.WriteString(regexp.QuoteMeta(p.text))
		case '~':
			b.WriteString("(?:" + p.text + `)\n`)
		case '*':
			b.WriteString(`(?s:.*)`)
		}
	}
	pattern, err := regexp.Compile(b.String() + `\z`)
	if err != nil {
		return s, fmt.Errorf("pattern %q: %w", p.text, err)
	}
	s.pattern = pattern
	return s, nil
}

// Fits reports whether text is accepted as a whole.
func (s Stream) Fits(text string) bool {
	if s.pattern == nil {
		return text == ""
	}
	return s.pattern.MatchString(text)
}

// String returns what is accepted, for a person.
func (s Stream) String() string {
	if len(s.parts) == 0 {
		return "nothing"
	}
	var out []string
	for _, p := range s.parts {
		switch p.sign {
		case ':':
			out = append(out, strconv.Quote(p.text+"\n"))
		case '=':
			out = append(out, strconv.Quote(p.text))
		case '~':
			out = append(out, "a line like "+p.text)
		case '*':
			out = append(out, "anything")
		}
	}
	return strings.Join(out, ", ")
}
