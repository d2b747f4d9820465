package fleet

import (
	"slices"
	"strings"

	"github.com/agext/levenshtein"
)

// longestCompared is the longest name, in bytes, that is compared with others.
const longestCompared = MaxName + 1

// Nearest returns the candidate that name is probably a misspelling of, or "": at
// most two letters differ, less in a short name. More would turn one machine's
// name into another's. Of equally near ones it returns the first.
func Nearest(name string, candidates []string) string {
	if len(name) > longestCompared {
		return ""
	}
	plain := flat(name)
	if len(plain) < 2 {
		return ""
	}
	best, least := "", min(3, 1+(len(plain)+1)/3)
	for _, c := range candidates {
		if len(c) > longestCompared {
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
