package wire

import (
	"fmt"
	"io"
	"unicode"
	"unicode/utf8"
)

// Visible writes the characters of a JSON text that nobody sees as escapes: control characters, and those that rearrange
// a line or have no width. Such a character stands in a string, so the document means the same; a terminal, or a page of
// CI, that shows the text is not told what to do by a host or a server's name.
func Visible(text []byte) []byte {
	var out []byte
	from := 0
	for i := 0; i < len(text); {
		if text[i] < utf8.RuneSelf && text[i] != 0x7f {
			i++
			continue
		}
		r, size := utf8.DecodeRune(text[i:])
		if hidden(r) {
			out = append(out, text[from:i]...)
			if from = i + size; r > 0xffff {
				r -= 0x10000
				out = fmt.Appendf(out, `\u%04x`, 0xd800+r>>10)
				r = 0xdc00 + r&0x3ff
			}
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		i += size
	}
	if from == 0 {
		return text
	}
	return append(out, text[from:]...)
}

func hidden(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) }

// VisibleLines returns a writer of JSON that hides nothing. Each Write is a text of its own, as an encoder writes it.
func VisibleLines(out io.Writer) io.Writer { return visibleLines{out} }

type visibleLines struct{ out io.Writer }

// Write writes a text, and says that all of it was taken where all of what it became was.
func (v visibleLines) Write(text []byte) (int, error) {
	if _, err := v.out.Write(Visible(text)); err != nil {
		return 0, err
	}
	return len(text), nil
}
