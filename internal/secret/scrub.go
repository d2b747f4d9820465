package secret

import (
	"cmp"
	"slices"
	"strings"
	"sync"
)

// Scrubbed replaces a secret in a text.
const Scrubbed = "<secret>"

// Shortest is the length in bytes from which a known value is replaced. A
// shorter one occurs in ordinary words: replacing it would garble output, and the
// replaced places would disclose the value.
const Shortest = 8

// Scrubber removes secrets from text that comes from outside: values that it
// learnt, in the forms in which programs repeat them, and texts with a telling
// shape, such as private keys. It is safe for concurrent use. The zero Scrubber
// knows only the shapes.
//
// It is the second line of defence. A Value cannot print itself, but a host can
// print its input, and a person can write a token into a name.
type Scrubber struct {
	mu    sync.RWMutex
	forms []string // texts to replace
	short bool
}

// Learn adds a value. A value shorter than Shortest is not replaced; Short returns
// true from then on.
func (s *Scrubber) Learn(text string) {
	text = strings.TrimSpace(text)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(text) < Shortest {
		s.short = s.short || text != ""
		return
	}
	if slices.Contains(s.forms, text) {
		return
	}
	for _, f := range formsOf(text) {
		// A form that the replacement contains would be found in it again.
		if len(f) >= Shortest && !strings.Contains(Scrubbed, f) && !slices.Contains(s.forms, f) {
			s.forms = append(s.forms, f)
		}
	}
}

// Short reports whether a learnt value is too short to be replaced. Scrubbed text
// may then contain it, and should not be kept for others.
func (s *Scrubber) Short() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.short
}

// Scrub returns text with "<secret>" in place of every secret. It changes nothing
// else, and scrubbing again has no effect.
func (s *Scrubber) Scrub(text string) string {
	if len(text) < Shortest {
		return text
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	// In rare texts the remains around a secret form another one. Each pass removes
	// letters, so the passes end.
	for range 8 {
		found := append(spansOf(text, s.forms), shapes(text)...)
		if len(found) == 0 {
			break
		}
		text = replace(text, found)
	}
	return text
}

// span is a part of a text, from its first byte to the one after its last.
type span struct{ from, to int }

// spansOf finds every occurrence of every form, also overlapping ones, so that
// nothing remains where two secrets share letters.
func spansOf(text string, forms []string) []span {
	var out []span
	for _, f := range forms {
		for at := 0; ; at++ {
			i := strings.Index(text[at:], f)
			if i < 0 {
				break
			}
			at += i
			out = append(out, span{at, at + len(f)})
		}
	}
	return out
}

// replace puts one "<secret>" in the place of spans that overlap.
func replace(text string, spans []span) string {
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	var b strings.Builder
	end := 0
	for _, s := range spans {
		if s.from >= end {
			b.WriteString(text[end:s.from] + Scrubbed)
		}
		end = max(end, s.to)
	}
	return b.String() + text[end:]
}
