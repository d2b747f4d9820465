package wire

import (
	"fmt"
	"io"
	"unicode"
	"unicode/utf8"
)

// Visible escapes the invisible characters of a JSON text: control characters, and those that rearrange a line or have no
// width. They only occur in strings, so the document means the same. A host's output or a server's name can then not
// control the terminal or CI page that shows the text.
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

// VisibleLines returns a writer that applies Visible. Each Write is one complete text, as an encoder writes it.
func VisibleLines(out io.Writer) io.Writer { return visibleLines{out} }

type visibleLines struct{ out io.Writer }

// Write writes a text. It returns the text's own length, because the escaped one is longer.
func (v visibleLines) Write(text []byte) (int, error) {
	if _, err := v.out.Write(Visible(text)); err != nil {
		return 0, err
	}
	return len(text), nil
}
