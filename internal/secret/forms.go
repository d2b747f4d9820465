package secret

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
)

// formsOf returns a value and the ways in which programs write it: escaped as
// JSON and as Go quotes it, in a URL, in base64 by itself or within a longer
// text. The lines of a longer value count separately, because tools indent,
// escape and cut lines.
func formsOf(text string) []string {
	out := append([]string{text, url.QueryEscape(text), url.PathEscape(text)}, escaped(text)...)
	out = append(out, encoded(text)...)
	if !strings.Contains(text, "\n") {
		return out
	}
	var body strings.Builder // of a key: its base64 without line ends
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "-----") {
			continue // "-----BEGIN …" is not secret
		}
		body.WriteString(line)
		out = append(out, line, url.QueryEscape(line))
	}
	return append(out, body.String())
}

// escaped returns the value as it is written between the quotes of JSON or Go.
func escaped(text string) []string {
	inside := func(quoted string) string {
		return strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(quoted), `"`), `"`)
	}
	var plain strings.Builder
	enc := json.NewEncoder(&plain)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(text)          // encoding a string cannot fail
	html, _ := json.Marshal(text) // likewise
	return []string{inside(plain.String()), inside(string(html)), inside(strconv.Quote(text)), inside(strconv.QuoteToASCII(text))}
}

// encoded returns the value in base64. Within a longer encoded text, a value can
// start at three places of a group of letters. Its first and last letters then
// depend on its neighbours and are left out.
func encoded(text string) []string {
	var out []string
	for _, e := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		out = append(out, e.EncodeToString([]byte(text)))
		for before := range 3 {
			whole := e.EncodeToString([]byte(strings.Repeat("x", before) + text))
			first := (before*8 + 5) / 6
			last := (before + len(text)) * 8 / 6
			if core := whole[first:last]; len(core) >= Shortest {
				out = append(out, core)
			}
		}
	}
	return out
}
