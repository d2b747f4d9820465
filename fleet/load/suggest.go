package load

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/agext/levenshtein"
)

const (
	longestName = 60 // of what a message quotes or compares, in bytes
	longestList = 20 // names that a message lists
)

// nearest returns the candidate that name is probably a misspelling of, or "".
// Of equally near ones it returns the first.
func nearest(name string, candidates []string) string {
	if len(name) > longestName {
		return ""
	}
	plain := flat(name)
	if len(plain) < 2 {
		return ""
	}
	best, least := "", min(3, 1+(len(plain)+1)/3)
	for _, c := range candidates {
		if len(c) > longestName {
			continue
		}
		if d := distance(plain, flat(c)); d < least {
			best, least = c, d
		}
	}
	return best
}

// distance counts the letters that differ. Letters in another order are one
// slip.
func distance(a, b string) int {
	if a != b && anagram(a, b) {
		return 1
	}
	return levenshtein.Distance(a, b, nil)
}

func anagram(a, b string) bool {
	x, y := []rune(a), []rune(b)
	slices.Sort(x)
	slices.Sort(y)
	return slices.Equal(x, y)
}

// flat removes the differences that a person overlooks.
func flat(name string) string {
	return strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(name))
}

// didYouMean returns a sentence with a space before it, or "".
func didYouMean(suggestion string) string {
	if suggestion == "" {
		return ""
	}
	return fmt.Sprintf(" Did you mean %q?", suggestion)
}

// quoted quotes a name that a person wrote, cutting what is too long.
func quoted(name string) string {
	if len(name) > longestName {
		name = strings.ToValidUTF8(name[:longestName], "") + "…"
	}
	return fmt.Sprintf("%q", name)
}

// listed joins names for a sentence, in their order.
func listed(names []string) string {
	if len(names) > longestList {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:longestList], ", "), len(names)-longestList)
	}
	return strings.Join(names, ", ")
}

// sortedKeys returns the keys of m in order.
func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// hasWord reports whether word stands in text between other characters than
// those of names. A nil text, of which nothing is known, has every word.
func hasWord(text []byte, word string) bool {
	if text == nil {
		return true
	}
	for from := 0; from < len(text); {
		i := bytes.Index(text[from:], []byte(word))
		if i < 0 || word == "" {
			return false
		}
		start, end := from+i, from+i+len(word)
		if (start == 0 || !nameByte(text[start-1])) && (end == len(text) || !nameByte(text[end])) {
			return true
		}
		from = end
	}
	return false
}

func nameByte(b byte) bool {
	return b == '_' || b == '-' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= 0x80
}
