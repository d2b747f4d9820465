package fleet

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// SelectorTerm is one property of a host and the shell pattern (path.Match) that its
// value must match.
type SelectorTerm struct{ Key, Pattern string }

// SelectorKeys are the properties of hosts that a selector may name.
func SelectorKeys() []string { return []string{"fleet", "group", "name", "ready", "type", "zone"} }

// SelectorTerms reads "fleet=runners,zone=fr-par-1,ready=false,name=…". The error
// names the keys that exist.
func SelectorTerms(text string) ([]SelectorTerm, error) {
	var terms []SelectorTerm
	for _, part := range strings.Split(text, ",") {
		key, pattern, found := strings.Cut(part, "=")
		if !found || pattern == "" {
			return nil, fmt.Errorf("selector %q: write key=value, with one of the keys %s", text, strings.Join(SelectorKeys(), ", "))
		}
		if !slices.Contains(SelectorKeys(), key) {
			return nil, fmt.Errorf("selector %q: there is no key %q; the keys are %s", text, key, strings.Join(SelectorKeys(), ", "))
		}
		if key == "ready" && pattern != "true" && pattern != "false" {
			return nil, fmt.Errorf("selector %q: ready is true or false", text)
		}
		if _, err := path.Match(pattern, ""); err != nil {
			return nil, fmt.Errorf("selector %q: the pattern %q is not complete", text, pattern)
		}
		terms = append(terms, SelectorTerm{key, pattern})
	}
	return terms, nil
}
