package load

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

const (
	longestName = 60 // of what a message quotes or compares, in bytes
	longestList = 20 // names that a message lists
)

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
