package plan

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// readable makes every text of a finding valid UTF-8: a step may repeat any bytes that
// a host printed, and no document can hold them.
func (f *Finding) readable() {
	for i := range f.Changes {
		c := &f.Changes[i]
		makeReadable(&c.Reason.Text)
		for j := range c.Fields {
			makeReadable(&c.Fields[j].Before, &c.Fields[j].After)
		}
	}
	for i := range f.Unread {
		makeReadable(&f.Unread[i].Why, &f.Unread[i].Bytes)
	}
	for i := range f.Warnings {
		makeReadable(&f.Warnings[i].Text)
	}
	for i := range f.Busy {
		makeReadable(&f.Busy[i].Text)
	}
	if f.Refused != nil {
		makeReadable(&f.Refused.Text)
	}
}

// makeReadable writes bytes that are no UTF-8 as \xff.
func makeReadable(texts ...*string) {
	for _, text := range texts {
		if utf8.ValidString(*text) {
			continue
		}
		var b strings.Builder
		for rest := *text; len(rest) > 0; {
			r, size := utf8.DecodeRuneInString(rest)
			if r == utf8.RuneError && size == 1 {
				fmt.Fprintf(&b, `\x%02x`, rest[0])
			} else {
				b.WriteString(rest[:size])
			}
			rest = rest[size:]
		}
		*text = b.String()
	}
}
