package secret

import (
	"cmp"
	"slices"
	"strings"
	"sync"
)

// Scrubbed stands in a text where a secret stood.
const Scrubbed = "<secret>"

// Shortest is the length in bytes from which a known value is replaced. A
// shorter one is found in ordinary words: replacing it would garble what hosts
// say and, by the places where it does so, tell the value.
const Shortest = 8

// Scrubber takes secrets out of text that comes from outside: values it was
// told, in the forms in which programs repeat them, and texts whose shape gives
// them away, such as private keys. It is safe for concurrent use. The zero
// Scrubber knows the shapes alone.
//
// It is the second line of defence. A Value cannot print itself; but a host can
// print what it was given, and a person can write a token into a name.
type Scrubber struct {
	mu    sync.RWMutex
	forms []string // what is looked for
	short bool
}

// Learn adds a value. A value shorter than Shortest is not replaced, and Short
// says so from then on.
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
		// A form that the replacement holds would be found in it again.
		if len(f) >= Shortest && !strings.Contains(Scrubbed, f) && !slices.Contains(s.forms, f) {
			s.forms = append(s.forms, f)
		}
	}
}

// Short reports whether a value was told that is too short to be replaced. Text
// that was scrubbed may then hold it, and should not be kept for others.
func (s *Scrubber) Short() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.short
}

// Scrub returns text with "<secret>" in place of every secret. It changes
// nothing else, and scrubbing twice is scrubbing once.
func (s *Scrubber) Scrub(text string) string {
	if len(text) < Shortest {
		return text
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	// What is left around a secret can, in rare texts, make up another one; each
	// pass takes letters away, so that they end.
	for range 8 {
		found := append(spansOf(text, s.forms), shapes(text)...)
		if len(found) == 0 {
			break
		}
		text = replace(text, found)
	}
	return text
}

// span is a part of a text, from its first byte to behind its last.
type span struct{ from, to int }

// spansOf finds every occurrence of every form, overlapping ones too: where two
// secrets share letters, no rest of either may stay.
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
