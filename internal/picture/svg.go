package main

import (
	"fmt"
	"html"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	lineHeight = 18
	charWidth  = 8.4 // of a monospaced font of 14 pixels
	margin     = 16
)

// palette are the eight colours of a terminal and their bright forms, legible on the dark ground.
var palette = []string{
	"#5c6370", "#f07178", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#d7dae0",
	"#7f848e", "#ff8b92", "#b5e890", "#ffd68a", "#82c7ff", "#dc9aef", "#7fd5e0", "#ffffff",
}

// style is how text looks from an escape sequence on.
type style struct {
	bold, faint bool
	colour      string // "" is the terminal's own
}

// after returns the style that an escape sequence's parameters lead to.
func (s style) after(parameters string) style {
	codes := strings.Split(parameters, ";")
	for i := 0; i < len(codes); i++ {
		n, _ := strconv.Atoi(codes[i]) // an empty one is 0
		switch {
		case n == 0:
			s = style{}
		case n == 1:
			s.bold = true
		case n == 2:
			s.faint = true
		case n == 22:
			s.bold, s.faint = false, false
		case n == 39:
			s.colour = ""
		case n >= 30 && n <= 37:
			s.colour = palette[n-30]
		case n >= 90 && n <= 97:
			s.colour = palette[8+n-90]
		case n == 38 && i+2 < len(codes) && codes[i+1] == "5":
			if m, _ := strconv.Atoi(codes[i+2]); m < len(palette) {
				s.colour = palette[m]
			}
			i += 2
		}
	}
	return s
}

// attributes are the style's in SVG.
func (s style) attributes() (out string) {
	if s.bold {
		out += ` font-weight="bold"`
	}
	if s.faint {
		out += ` opacity="0.6"`
	}
	if s.colour != "" {
		out += ` fill="` + s.colour + `"`
	}
	return out
}

var escape = regexp.MustCompile("\x1b\\[([0-9;?]*)([A-Za-z])")

// draw returns lines of a terminal as a picture.
func draw(lines []string, columns int) string {
	var b strings.Builder
	width := 2*margin + int(charWidth*float64(columns)+0.5)
	height := 2*margin + lineHeight*len(lines)
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" `+
		`font-family="ui-monospace, Menlo, Consolas, monospace" font-size="14" fill="#d7dae0" xml:space="preserve">`+"\n", width, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" rx="8" fill="#1e2127"/>`+"\n", width, height)
	now := style{}
	for i, line := range lines {
		y, column := margin+lineHeight*(i+1)-5, 0
		line = strings.TrimRight(line, "\r")
		for len(line) > 0 {
			at := escape.FindStringSubmatchIndex(line)
			text := line
			if at != nil {
				text = line[:at[0]]
			}
			if strings.TrimSpace(text) != "" {
				// The width is given, so that columns stay in line whatever font there is.
				n := utf8.RuneCountInString(text)
				fmt.Fprintf(&b, `<text x="%.1f" y="%d" textLength="%.1f"%s>%s</text>`+"\n",
					margin+charWidth*float64(column), y, charWidth*float64(n), now.attributes(), html.EscapeString(text))
			}
			column += utf8.RuneCountInString(text)
			if at == nil {
				break
			}
			if line[at[4]:at[5]] == "m" {
				now = now.after(line[at[2]:at[3]])
			}
			line = line[at[1]:]
		}
	}
	b.WriteString("</svg>\n")
	return b.String()
}
