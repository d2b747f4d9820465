package mac

import (
	"slices"
	"strings"
)

// Tools returns the sorted names of everything that a simulated Mac can run: programs and simulated
// builtins.
func Tools() []string {
	var names []string
	for name := range toolbox() {
		if name == ownRefuse {
			continue
		}
		name = strings.TrimPrefix(name, "/builtin/")
		name, _, _ = strings.Cut(name, " ")
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
